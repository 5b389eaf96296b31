"""Topics of SNS that mail people."""

from __future__ import annotations

from collections.abc import Sequence

from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from aws_cdk import aws_sns as sns
from aws_cdk import aws_sns_subscriptions as subscriptions
from constructs import Construct

from stacks.base import LakeferryStack
from stacks.constructs.secrets import encryption_key


def mail_topic(
    scope: Construct, name: str, *, title: str, recipients: Sequence[str], key: kms.IKey, topic_name: str | None = None
) -> sns.Topic:
    """`title` is the sender's name in mails: 100 characters at most. Each recipient has to confirm once."""
    topic = sns.Topic(scope, name, display_name=title[:100], enforce_ssl=True, master_key=key, topic_name=topic_name)
    for address in recipients:
        topic.add_subscription(subscriptions.EmailSubscription(address))
    return topic


def alarm_topic_name(stack: LakeferryStack) -> str:
    """Fixed, so that alarms of stacks that are deployed before the topic can name it."""
    return f"{stack.deployment.prefix}-alarms"


def alarm_topic(stack: LakeferryStack) -> tuple[sns.Topic, kms.Key]:
    """With a key of its own, because CloudWatch can't use the one that SNS brings."""
    prefix = stack.deployment.prefix
    key = encryption_key(stack, "AlarmKey", f"Encrypts alarms of {prefix}")
    topic = mail_topic(
        stack,
        "AlarmTopic",
        title=f"Lakeferry {prefix} alarms",
        recipients=stack.deployment.alerts.engineers,
        key=key,
        topic_name=alarm_topic_name(stack),
    )
    cloudwatch, own = iam.ServicePrincipal("cloudwatch.amazonaws.com"), {"aws:SourceAccount": stack.account}
    key.add_to_resource_policy(
        iam.PolicyStatement(
            sid="LetAlarmsIn",
            actions=["kms:Decrypt", "kms:GenerateDataKey*"],
            principals=[cloudwatch],
            resources=["*"],
            conditions={"StringEquals": own},
        )
    )
    topic.add_to_resource_policy(
        iam.PolicyStatement(
            sid="LetAlarmsIn",
            actions=["sns:Publish"],
            principals=[cloudwatch],
            resources=[topic.topic_arn],
            conditions={
                "StringEquals": own,
                "ArnLike": {"aws:SourceArn": stack.own_arn("cloudwatch", f"alarm:{prefix}-*")},
            },
        )
    )
    return topic, key
