"""SNS topics that send mails, and alarms that use them."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import zip_longest

from aws_cdk import Duration, RemovalPolicy, Stack
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_cloudwatch_actions as actions
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from aws_cdk import aws_sns as sns
from aws_cdk import aws_sns_subscriptions as subscriptions
from aws_cdk import aws_sqs as sqs
from constructs import Construct

from lambdas import contract
from stacks.constructs.runtime import Runtime
from stacks.constructs.secrets import create_encryption_key
from stacks.constructs.statements import acknowledge
from stacks.constructs.synthesis import build_own_arn


def mail_topic(
    scope: Construct,
    id: str,
    *,
    title: str,
    recipients: Sequence[str],
    key: kms.IKey,
    topic_name: str | None = None,
    ids: Sequence[str] = (),
) -> sns.Topic:
    """Return a topic that mails.

    `title` is the sender's name: 100 characters at most. Each recipient has to confirm once. With `ids`, one
    for each recipient, a recipient gets only mails that have its id as their attribute.
    """
    topic = sns.Topic(
        scope, id, display_name=title[:100], enforce_ssl=True, master_key=key, topic_name=topic_name
    )
    for address, recipient in zip_longest(recipients, ids):
        own = sns.SubscriptionFilter.string_filter(allowlist=[recipient]) if recipient else None
        topic.add_subscription(
            subscriptions.EmailSubscription(address, filter_policy={contract.RECIPIENT: own} if own else None)
        )
    acknowledge(
        topic,
        "SNS repeats a mail for six hours until the recipient's server accepts it. A queue would only keep "
        "copies: run records and the states of alarms contain the same.",
        "Serverless-SNSRedrivePolicy",
    )
    return topic


def create_alarm(
    scope: Construct,
    id: str,
    *,
    topic: sns.ITopic,
    name: str,
    description: str,
    metric: cloudwatch.IMetric,
    above: float = 0,
    periods: int = 1,
    datapoints: int | None = None,
    mail_without_data: bool = False,
) -> cloudwatch.Alarm:
    """Return an alarm that sends a mail when the metric rises above `above`, and when it is no longer above
    it.

    With `mail_without_data`, an alarm without data changes to INSUFFICIENT_DATA, which is mailed too. A new
    alarm has that state at first and mails nothing.
    """
    missing = cloudwatch.TreatMissingData
    created = cloudwatch.Alarm(
        scope,
        id,
        alarm_name=name,
        alarm_description=description,
        metric=metric,
        threshold=above,
        comparison_operator=cloudwatch.ComparisonOperator.GREATER_THAN_THRESHOLD,
        evaluation_periods=periods,
        datapoints_to_alarm=datapoints,
        treat_missing_data=missing.MISSING if mail_without_data else missing.NOT_BREACHING,
    )
    mail = actions.SnsAction(topic)
    created.add_alarm_action(mail)
    created.add_ok_action(mail)
    if mail_without_data:
        created.add_insufficient_data_action(mail)
    return created


def build_alarm_topic_name(prefix: str) -> str:
    """Return the name of a deployment's topic of alarms.

    It is fixed, so that alarms of stacks that are deployed before the topic can name it.
    """
    return f"{prefix}-alarms"


def find_alarm_topic(scope: Construct, id: str, runtime: Runtime) -> sns.ITopic:
    return sns.Topic.from_topic_arn(scope, id, runtime.alarm_topic_arn)


def alarm_on_dead_letters(
    scope: Construct, id: str, *, queue: sqs.IQueue, topic: sns.ITopic, name: str, what: str
) -> cloudwatch.Alarm:
    return create_alarm(
        scope,
        id,
        topic=topic,
        name=name,
        description=f"{what} could not be delivered; the queue shows which",
        metric=queue.metric_approximate_number_of_messages_visible(
            period=Duration.minutes(5), statistic="Maximum"
        ),
    )


def create_dead_letter_queue(scope: Construct, id: str) -> sqs.Queue:
    """Return a queue for events that could not be delivered. It keeps them for two weeks."""
    queue = sqs.Queue(
        scope,
        id,
        encryption=sqs.QueueEncryption.SQS_MANAGED,
        enforce_ssl=True,
        removal_policy=RemovalPolicy.DESTROY,
        retention_period=Duration.days(14),
    )
    acknowledge(
        queue,
        "This is the dead-letter queue of the schedules and rules.",
        "AwsSolutions-SQS3",
        "Serverless-SQSRedrivePolicy",
    )
    return queue


class AlarmTopic(Construct):
    """Mails alarms to the engineers. Its key is not SNS's default key, which CloudWatch can't use."""

    def __init__(self, scope: Construct, id: str, *, runtime: Runtime, engineers: Sequence[str]) -> None:
        super().__init__(scope, id)
        prefix = runtime.prefix
        key: kms.IKey
        if runtime.logs_key_arn:
            key = kms.Key.from_key_arn(self, "Key", runtime.logs_key_arn)
        else:
            key = self._create_key(prefix)
        self.key_arn = key.key_arn
        self.topic = mail_topic(
            self,
            "Topic",
            title=f"Lakeferry {prefix} alarms",
            recipients=engineers,
            key=key,
            topic_name=build_alarm_topic_name(prefix),
        )
        self.topic.add_to_resource_policy(
            iam.PolicyStatement(
                sid="LetAlarmsIn",
                actions=["sns:Publish"],
                principals=[iam.ServicePrincipal("cloudwatch.amazonaws.com")],
                resources=[self.topic.topic_arn],
                conditions={
                    "StringEquals": {"aws:SourceAccount": Stack.of(self).account},
                    "ArnLike": {"aws:SourceArn": build_own_arn(self, "cloudwatch", f"alarm:{prefix}-*")},
                },
            )
        )

    def _create_key(self, prefix: str) -> kms.Key:
        key = create_encryption_key(self, "Key", f"Encrypts alarms of {prefix}")
        key.add_to_resource_policy(
            iam.PolicyStatement(
                sid="LetAlarmsIn",
                actions=["kms:Decrypt", "kms:GenerateDataKey*"],
                principals=[iam.ServicePrincipal("cloudwatch.amazonaws.com")],
                resources=["*"],
                conditions={"StringEquals": {"aws:SourceAccount": Stack.of(self).account}},
            )
        )
        return key
