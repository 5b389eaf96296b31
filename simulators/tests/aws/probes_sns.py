"""Probes: how AWS differs from stock MiniStack in SNS."""

import itertools
import json
import urllib.error
import urllib.request

from simulators.tests.aws.probe_kit import probe
from simulators.tests.aws.stack_kit import Stack
from tests.support.aws_clients import error_of, policy

_numbers = itertools.count(1)


_opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))


def get(url):
    with _opener.open(url) as answer:
        return answer.read().decode()


def page_of(aws, page, address):
    """None on stock MiniStack, which has no inbox."""
    try:
        return get(f"{aws.server.url}/_simulator/{page}?to={address}")
    except urllib.error.HTTPError as error:
        error.close()
        return None


def inbox(aws, address):
    return json.loads(page_of(aws, "mail", address) or "[]")


def topic_and_address(aws, **attributes):
    number = next(_numbers)
    sns = aws.client("sns")
    return (
        sns,
        sns.create_topic(Name=f"topic-{number}", Attributes=attributes)["TopicArn"],
        f"reader-{number}@example.com",
    )


def subscribed(aws, **subscribe):
    sns, topic, address = topic_and_address(aws)
    given = {"TopicArn": topic, "Protocol": "email", "Endpoint": address, "ReturnSubscriptionArn": True}
    return sns, topic, address, sns.subscribe(**(given | subscribe))["SubscriptionArn"]


def follow(aws, address, kind="confirmation"):
    for mail in [mail for mail in inbox(aws, address) if mail["kind"] == kind][-1:]:
        get(mail["link"])


def counts(sns, topic):
    attributes = sns.get_topic_attributes(TopicArn=topic)["Attributes"]
    return attributes["SubscriptionsConfirmed"], attributes["SubscriptionsPending"]


@probe("sns_mail")
def waits_for_the_recipient(aws):
    sns, topic, _, arn = subscribed(aws)
    listed = sns.list_subscriptions_by_topic(TopicArn=topic)["Subscriptions"]
    pending = sns.get_subscription_attributes(SubscriptionArn=arn)["Attributes"]["PendingConfirmation"]
    shown = [subscription["SubscriptionArn"] for subscription in listed]
    return (shown, pending, counts(sns, topic)) == (["PendingConfirmation"], "true", ("0", "1"))


@probe("sns_mail")
def hides_the_arn_before_confirmation(aws):
    return subscribed(aws, ReturnSubscriptionArn=False)[-1] == "pending confirmation"


@probe("sns_mail")
def confirms_by_the_link_of_the_mail(aws):
    sns, topic, address, _ = subscribed(aws)
    follow(aws, address)
    follow(aws, address)
    return len(inbox(aws, address)) == 1 and counts(sns, topic) == ("1", "0")


@probe("sns_mail")
def confirms_by_the_token(aws):
    sns, topic, address, arn = subscribed(aws)
    tokens = [mail["link"].rpartition("Token=")[2] for mail in inbox(aws, address)]
    return [sns.confirm_subscription(TopicArn=topic, Token=token)["SubscriptionArn"] for token in tokens] == [
        arn
    ]


@probe("sns_mail")
def sends_the_confirmation_again(aws):
    sns, topic, address, _ = subscribed(aws)
    sns.subscribe(TopicArn=topic, Protocol="email", Endpoint=address)
    return [mail["kind"] for mail in inbox(aws, address)] == ["confirmation"] * 2


@probe("sns_mail")
def delivers_to_the_confirmed_alone(aws):
    sns, topic, address, _ = subscribed(aws)
    sns.publish(TopicArn=topic, Subject="Early", Message="too early")
    follow(aws, address)
    sns.publish(TopicArn=topic, Subject="Sales of June", Message="All is there.")
    mails = [mail for mail in inbox(aws, address) if mail["kind"] == "message"]
    read = [(mail["subject"], mail["body"].startswith("All is there.\n"), mail["topic"]) for mail in mails]
    return read == [("Sales of June", True, topic)]


@probe("sns_mail")
def unsubscribes_by_the_link_of_a_mail(aws):
    sns, topic, address, _ = subscribed(aws)
    follow(aws, address)
    sns.publish(TopicArn=topic, Message="one")
    before = counts(sns, topic)
    follow(aws, address, kind="message")
    return (before, counts(sns, topic)) == (("1", "0"), ("0", "0"))


@probe("sns_mail")
def filters_mails(aws):
    sns, topic, address, arn = subscribed(aws)
    sns.set_subscription_attributes(
        SubscriptionArn=arn, AttributeName="FilterPolicy", AttributeValue='{"kind": ["late"]}'
    )
    follow(aws, address)
    for kind in ("late", "early"):
        attributes = {"kind": {"DataType": "String", "StringValue": kind}}
        sns.publish(TopicArn=topic, Subject=kind, Message=kind, MessageAttributes=attributes)
    return [mail["subject"] for mail in inbox(aws, address)][1:] == ["late"]


@probe("sns_mail")
def waits_for_the_recipient_that_a_stack_names(aws):
    sns, topic, address = topic_and_address(aws)
    Stack(aws, "AWS::SNS::Subscription", TopicArn=topic, Protocol="email", Endpoint=address)
    before = counts(sns, topic)
    follow(aws, address)
    return (before, counts(sns, topic)) == (("0", "1"), ("1", "0"))


@probe("sns_mail")
def shows_mails_to_people(aws):
    sns, topic, address, _ = subscribed(aws)
    follow(aws, address)
    sns.publish(TopicArn=topic, Subject="a < b", Message="<script>")
    page = page_of(aws, "mail.html", address) or ""
    return (
        "<h2>a &lt; b</h2>" in page
        and "&lt;script&gt;" in page
        and '<a href="http' in page
        and "<script>" not in page
    )


@probe("sns_mail")
def refuses_a_subject_of_two_lines(aws):
    sns, topic, _ = topic_and_address(aws)
    codes = [
        error_of(sns.publish, TopicArn=topic, Subject=subject, Message="m") for subject in ("a\nb", "a" * 101)
    ]
    return codes == ["InvalidParameter"] * 2


@probe("sns_keys")
def wants_the_key_of_an_encrypted_topic(aws):
    """Root's key policy leaves it to the roles."""
    kms, (_, open_topic, _) = aws.client("kms"), topic_and_address(aws, KmsMasterKeyId="alias/aws/sns")
    own = {
        "Effect": "Allow",
        "Principal": {"AWS": f"arn:aws:iam::{aws.server.account}:root"},
        "Action": "kms:*",
        "Resource": "*",
    }
    key = kms.create_key(Policy=policy(own))["KeyMetadata"]
    topic = topic_and_address(aws, KmsMasterKeyId=key["KeyId"])[1]
    may_publish = ("sns:Publish", "*")
    without = aws.assuming(aws.new_role(may_publish)).client("sns")
    half = aws.assuming(aws.new_role(may_publish, ("kms:Decrypt", key["Arn"]))).client("sns")
    with_it = aws.assuming(
        aws.new_role(may_publish, (["kms:GenerateDataKey", "kms:Decrypt"], key["Arn"]))
    ).client("sns")
    codes = [error_of(part.publish, TopicArn=topic, Message="m") for part in (without, half, with_it)]
    codes.append(error_of(without.publish, TopicArn=open_topic, Message="m"))
    return codes == ["KMSAccessDenied", "KMSAccessDenied", None, None]


@probe("sns_keys")
def refuses_a_disabled_key(aws):
    kms = aws.client("kms")
    key = kms.create_key()["KeyMetadata"]["KeyId"]
    sns, topic, _ = topic_and_address(aws, KmsMasterKeyId=key)
    kms.disable_key(KeyId=key)
    return error_of(sns.publish, TopicArn=topic, Message="m") == "KMSDisabled"


@probe("sns_keys")
def wants_a_key_that_alarms_may_use(aws):
    """Alarms reach a topic whose key lets CloudWatch use it, and no other encrypted topic."""
    own = {
        "Effect": "Allow",
        "Principal": {"AWS": f"arn:aws:iam::{aws.server.account}:root"},
        "Action": "kms:*",
        "Resource": "*",
    }
    lets_alarms = own | {"Principal": {"Service": "cloudwatch.amazonaws.com"}}
    kms = aws.client("kms")
    metrics = aws.client("cloudwatch")
    mails = []
    for statements in ((own,), (own, lets_alarms)):
        key = kms.create_key(Policy=policy(*statements))["KeyMetadata"]["KeyId"]
        sns, topic, address = topic_and_address(aws, KmsMasterKeyId=key)
        sns.subscribe(TopicArn=topic, Protocol="email", Endpoint=address)
        follow(aws, address)
        name = f"alarm-of-{address}"
        metrics.put_metric_alarm(
            AlarmName=name,
            Namespace="N",
            MetricName="M",
            Period=60,
            EvaluationPeriods=1,
            Threshold=0,
            Statistic="Sum",
            ComparisonOperator="GreaterThanThreshold",
            AlarmActions=[topic],
        )
        metrics.set_alarm_state(AlarmName=name, StateValue="ALARM", StateReason="test")
        mails.append([mail["subject"] for mail in inbox(aws, address) if mail["kind"] == "message"])
    return mails[0] == [] and len(mails[1]) == 1


@probe("sns_mail")
def confirms_and_unsubscribes_in_another_region(aws):
    sns = aws.client("sns", region="eu-central-1")
    number = next(_numbers)
    topic = sns.create_topic(Name=f"topic-{number}")["TopicArn"]
    address = f"reader-{number}@example.com"
    sns.subscribe(TopicArn=topic, Protocol="email", Endpoint=address)
    follow(aws, address)
    confirmed = counts(sns, topic)
    sns.publish(TopicArn=topic, Message="m", Subject="s")
    follow(aws, address, "message")
    return (confirmed, counts(sns, topic)) == (("1", "0"), ("0", "0"))
