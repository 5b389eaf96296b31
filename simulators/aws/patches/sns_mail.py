"""Subscriptions by e-mail, as SNS has them, with an inbox (inbox.py) where AWS has the post.

- A subscription waits (PendingConfirmation) until the link in the mail that it brings is followed, and gets nothing before.
  Stock MiniStack confirms it at once, and writes mails only to its log.
- Subscribe answers "pending confirmation", or the ARN where ReturnSubscriptionArn asks for it; lists show "PendingConfirmation".
  Subscribing again sends the mail again.
- The link may be followed more than once. Each mail ends with a link that unsubscribes.
- A subject is at most 100 characters in one line (InvalidParameter).

Laxer than AWS: a subscription that nobody confirms stays, where AWS forgets it after two days; deleting its stack removes it.
"""

from __future__ import annotations

import os
import uuid
from collections.abc import Callable
from typing import Any, Final
from urllib.parse import urlencode

from simulators.aws import settings
from simulators.aws.hooks import Answer, Original, Patch, ministack
from simulators.aws.patches import inbox

PATCH = Patch("sns_mail")
_SNS: Final = "ministack.services.sns"
_MAIL: Final = ("email", "email-json")
_PENDING: Final = "PendingConfirmation"
_NO_SUBJECT: Final = "AWS Notification Message"
_MAX_SUBJECT: Final = 100

Subscription = dict[str, Any]


@PATCH.replaces(_SNS, "_subscribe", "params")
def subscribe(original: Original, params: dict[str, Any]) -> Answer:
    sns = ministack("services.sns")
    protocol, endpoint = sns._p(params, "Protocol"), sns._p(params, "Endpoint")
    topic = sns._topic_by_arn_any_scope(sns._normalize_arn(sns._p(params, "TopicArn")))
    known = _found(topic, protocol, endpoint) if topic else None
    answer = original(params)
    if answer[0] != 200 or protocol not in _MAIL:
        return answer
    found = _found(topic, protocol, endpoint)
    if known is None or not known["confirmed"]:
        _ask(topic, found)
    shown = found["arn"]
    if not found["confirmed"] and sns._p(params, "ReturnSubscriptionArn").lower() != "true":
        shown = "pending confirmation"
    inner = f"<SubscribeResult><SubscriptionArn>{shown}</SubscriptionArn></SubscribeResult>"
    return sns._xml(200, "SubscribeResponse", inner)  # type: ignore[no-any-return]


@PATCH.replaces("ministack.services.cloudformation.provisioners", "_sns_sub_create", "logical_id props stack_name")
@PATCH.provisions("AWS::SNS::Subscription", "create", original=True)
def create(original: Callable[..., Any], logical_id: str, props: dict[str, Any], stack_name: str) -> Any:
    made = original(logical_id, props, stack_name)
    topic = ministack("services.sns")._topics.get(props.get("TopicArn"))
    found = next((each for each in topic["subscriptions"] if each["arn"] == made[0]), None) if topic else None
    if found and found["protocol"] in _MAIL:
        _ask(topic, found)
    return made


@PATCH.replaces(_SNS, "_confirm_subscription", "params")
def confirm_subscription(original: Original, params: dict[str, Any]) -> Answer:
    sns = ministack("services.sns")
    token = sns._p(params, "Token")
    topic = sns._topic_by_arn_any_scope(sns._normalize_arn(sns._p(params, "TopicArn")))
    for each in topic["subscriptions"] if topic and token else []:
        if each.get("mail_token") == token and each["confirmed"]:
            inner = f"<ConfirmSubscriptionResult><SubscriptionArn>{each['arn']}</SubscriptionArn></ConfirmSubscriptionResult>"
            return sns._xml(200, "ConfirmSubscriptionResponse", inner)  # type: ignore[no-any-return]
    return original(params)


@PATCH.replaces(_SNS, "_list_subscriptions", "params")
@PATCH.replaces(_SNS, "_list_subscriptions_by_topic", "params")
def list_subscriptions(original: Original, params: dict[str, Any]) -> Answer:
    status, headers, body = original(params)
    text = body.decode()
    for topic in ministack("services.sns")._topics.values():
        for each in topic["subscriptions"]:
            if not each["confirmed"]:
                text = text.replace(f"<SubscriptionArn>{each['arn']}<", f"<SubscriptionArn>{_PENDING}<")
    return status, headers, text.encode()


@PATCH.replaces(_SNS, "_publish", "params")
def publish(original: Original, params: dict[str, Any]) -> Answer:
    sns = ministack("services.sns")
    subject = sns._p(params, "Subject")
    if len(subject) > _MAX_SUBJECT or not subject.isprintable():
        return sns._error("InvalidParameter", "Invalid parameter: Subject", 400)  # type: ignore[no-any-return]
    return original(params)


@PATCH.replaces(
    _SNS,
    "_fanout",
    "topic_arn msg_id message subject message_structure message_attributes message_group_id message_dedup_id",
)
def fanout(  # noqa: PLR0917  (MiniStack's own parameters)
    original: Callable[..., None],
    topic_arn: str,
    msg_id: str,
    message: str,
    subject: str,
    message_structure: str = "",
    message_attributes: dict[str, Any] | None = None,
    **fifo: str,
) -> None:
    original(topic_arn, msg_id, message, subject, message_structure, message_attributes, **fifo)
    sns = ministack("services.sns")
    topic, attributes = sns._topic_by_arn_any_scope(topic_arn), message_attributes or {}
    for each in topic["subscriptions"] if topic else []:
        if each["protocol"] not in _MAIL or not each["confirmed"]:
            continue
        text = sns._resolve_message_for_protocol(message, message_structure, each["protocol"])
        if not sns._matches_filter_policy(each, attributes, text):
            continue
        if each["protocol"] == "email-json":
            text = sns._build_envelope(topic_arn, msg_id, text, subject, attributes, False)
        _deliver(topic, each, subject, text)


def _deliver(topic: dict[str, Any], subscription: Subscription, subject: str, text: str) -> None:
    link = _link("Unsubscribe", SubscriptionArn=subscription["arn"])
    if subscription["protocol"] == "email":
        text = f"{text}\n\n--\nTo get no more mails from this topic, follow this link:\n{link}\n"
    _put(topic, subscription, subject or _NO_SUBJECT, text, kind="message", link=link)


def _ask(topic: dict[str, Any], subscription: Subscription) -> None:
    """Makes it wait for its recipient."""
    arn = topic["arn"]
    token = subscription.get("token") or uuid.uuid4().hex * 2
    subscription.update(confirmed=False, token=token, mail_token=token)
    subscription["attributes"].update(
        {
            "SubscriptionArn": subscription["arn"],
            "TopicArn": arn,
            "Protocol": subscription["protocol"],
            "Endpoint": subscription["endpoint"],
            "Owner": subscription["owner"],
            "ConfirmationWasAuthenticated": "false",
            _PENDING: "true",
        }
    )
    ministack("services.sns")._refresh_subscription_counts(topic)
    link = _link("ConfirmSubscription", TopicArn=arn, Token=token)
    text = f"This address was subscribed to the topic\n{arn}\n\nTo confirm that you want its mails, follow this link:\n{link}\n"
    _put(topic, subscription, "AWS Notification - Subscription Confirmation", text, kind="confirmation", link=link)


def _put(topic: dict[str, Any], subscription: Subscription, subject: str, text: str, *, kind: str, link: str) -> None:
    name = topic["attributes"].get("DisplayName") or "AWS Notifications"
    sender = f"{name} <no-reply@sns.amazonaws.com>"
    inbox.put(subscription["endpoint"], subject, text, topic=topic["arn"], sender=sender, kind=kind, link=link)


def _link(action: str, **given: str) -> str:
    """SNS serves these two without credentials, to whoever has the link."""
    return f"http://{settings.HOST}:{os.environ['GATEWAY_PORT']}/?{urlencode({'Action': action, **given})}"


def _found(topic: dict[str, Any], protocol: str, endpoint: str) -> Any:
    subscriptions = topic["subscriptions"]
    return next((each for each in subscriptions if (each["protocol"], each["endpoint"]) == (protocol, endpoint)), None)
