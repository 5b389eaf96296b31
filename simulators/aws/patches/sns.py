"""SNS: mail subscriptions with an inbox, and encrypted topics.

- sns_mail: An e-mail subscription is pending, and receives nothing, until the link in its confirmation mail
  is opened; stock MiniStack confirms it at once and writes mails to its log. Subscribe returns "pending
  confirmation", or the ARN with ReturnSubscriptionArn; lists show PendingConfirmation; subscribing again
  sends the mail again. Each mail ends with an unsubscribe link. A subject must be one line of at most 100
  characters (else InvalidParameter). Source: SNS API reference, Subscribe and Publish; developer guide,
  "Email notifications".
- sns_keys: Publishing to an encrypted topic needs kms:GenerateDataKey and kms:Decrypt on its key
  (KMSAccessDenied); a key that is disabled, pending deletion or missing is KMSDisabled, KMSInvalidState or
  KMSNotFound. Everybody in the account may use alias/aws/sns. An alarm reaches an encrypted topic only if the
  key's policy lets cloudwatch.amazonaws.com use it, which alias/aws/sns doesn't. Stock never checks the key.
  Source: SNS developer guide, "Managing Amazon SNS encryption keys and costs"; API reference, Publish
  (errors).

Less strict than AWS: a subscription that nobody confirms is kept, whereas AWS removes it after two days.

Beyond AWS: simulators/aws/inbox.py shows the mails.

See stock: `.venv/bin/python -m pytest simulators/tests/aws/test_patches.py -m simulators -k "stock and sns"`
"""

from __future__ import annotations

import os
import uuid
from collections.abc import Callable
from typing import Any, Final
from urllib.parse import parse_qs, urlencode

from simulators.aws import inbox, keys, settings
from simulators.aws.hooks import Answer, Original, OriginalRequest, Patch, Request, import_ministack

MAIL = Patch("sns_mail")
_SNS: Final = "ministack.services.sns"
_MAIL_PROTOCOLS: Final = ("email", "email-json")
_PENDING: Final = "PendingConfirmation"
_DEFAULT_SUBJECT: Final = "AWS Notification Message"
_MAX_SUBJECT: Final = 100

Subscription = dict[str, Any]


@MAIL.replaces(_SNS, "_subscribe", "params")
def subscribe(original: Original, params: dict[str, Any]) -> Answer:
    sns = import_ministack("services.sns")
    protocol = sns._p(params, "Protocol")
    endpoint = sns._p(params, "Endpoint")
    topic = sns._topic_by_arn_any_scope(sns._normalize_arn(sns._p(params, "TopicArn")))
    subscription = _find_subscription(topic, protocol, endpoint) if topic else None
    answer = original(params)
    if answer[0] != 200 or protocol not in _MAIL_PROTOCOLS:
        return answer
    result = _find_subscription(topic, protocol, endpoint)
    if subscription is None or not subscription["confirmed"]:
        _request_confirmation(topic, result)
    returned_arn = result["arn"]
    if not result["confirmed"] and sns._p(params, "ReturnSubscriptionArn").lower() != "true":
        returned_arn = "pending confirmation"
    inner = f"<SubscribeResult><SubscriptionArn>{returned_arn}</SubscriptionArn></SubscribeResult>"
    return sns._xml(200, "SubscribeResponse", inner)  # type: ignore[no-any-return]


@MAIL.replaces(
    "ministack.services.cloudformation.provisioners", "_sns_sub_create", "logical_id props stack_name"
)
@MAIL.provisions("AWS::SNS::Subscription", "create", original=True)
def create_of_stack(
    original: Callable[..., Any], logical_id: str, props: dict[str, Any], stack_name: str
) -> Any:
    resource = original(logical_id, props, stack_name)
    topic = import_ministack("services.sns")._topics.get(props.get("TopicArn"))
    subscriptions = topic["subscriptions"] if topic else []
    result = next(
        (subscription for subscription in subscriptions if subscription["arn"] == resource[0]), None
    )
    if result and result["protocol"] in _MAIL_PROTOCOLS:
        _request_confirmation(topic, result)
    return resource


@MAIL.replaces(_SNS, "_confirm_subscription", "params")
def confirm_subscription(original: Original, params: dict[str, Any]) -> Answer:
    sns = import_ministack("services.sns")
    _enter_region(sns._p(params, "TopicArn"))
    token = sns._p(params, "Token")
    topic = sns._topic_by_arn_any_scope(sns._normalize_arn(sns._p(params, "TopicArn")))
    subscriptions = topic["subscriptions"] if topic and token else []
    for subscription in subscriptions:
        if subscription.get("mail_token") == token and subscription["confirmed"]:
            arn = f"<SubscriptionArn>{subscription['arn']}</SubscriptionArn>"
            inner = f"<ConfirmSubscriptionResult>{arn}</ConfirmSubscriptionResult>"
            return sns._xml(200, "ConfirmSubscriptionResponse", inner)  # type: ignore[no-any-return]
    return original(params)


@MAIL.replaces(_SNS, "_unsubscribe", "params")
def unsubscribe(original: Original, params: dict[str, Any]) -> Answer:
    _enter_region(import_ministack("services.sns")._p(params, "SubscriptionArn"))
    return original(params)


def _enter_region(arn: str) -> None:
    """Process the request in the region of this ARN: a link in a mail has no signature that names it. At AWS,
    the host of the link does.
    """
    if arn.count(":") > 3:
        import_ministack("core.responses").set_request_region(arn.split(":")[3])


@MAIL.replaces(_SNS, "_list_subscriptions", "params")
@MAIL.replaces(_SNS, "_list_subscriptions_by_topic", "params")
def list_subscriptions(original: Original, params: dict[str, Any]) -> Answer:
    status, headers, body = original(params)
    text = body.decode()
    for topic in import_ministack("services.sns")._topics.values():
        for subscription in topic["subscriptions"]:
            if not subscription["confirmed"]:
                text = text.replace(
                    f"<SubscriptionArn>{subscription['arn']}<", f"<SubscriptionArn>{_PENDING}<"
                )
    return status, headers, text.encode()


@MAIL.replaces(_SNS, "_publish", "params")
def publish(original: Original, params: dict[str, Any]) -> Answer:
    sns = import_ministack("services.sns")
    subject = sns._p(params, "Subject")
    if len(subject) > _MAX_SUBJECT or not subject.isprintable():
        return sns._error("InvalidParameter", "Invalid parameter: Subject", 400)  # type: ignore[no-any-return]
    return original(params)


@MAIL.replaces(
    _SNS,
    "_fanout",
    "topic_arn msg_id message subject message_structure message_attributes message_group_id message_dedup_id",
)
def publish_to_mails(  # noqa: PLR0917  (MiniStack's own parameters)
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
    sns = import_ministack("services.sns")
    topic = sns._topic_by_arn_any_scope(topic_arn)
    attributes = message_attributes or {}
    subscriptions = topic["subscriptions"] if topic else []
    for subscription in subscriptions:
        if subscription["protocol"] not in _MAIL_PROTOCOLS or not subscription["confirmed"]:
            continue
        text = sns._resolve_message_for_protocol(message, message_structure, subscription["protocol"])
        if not sns._matches_filter_policy(subscription, attributes, text):
            continue
        if subscription["protocol"] == "email-json":
            text = sns._build_envelope(topic_arn, msg_id, text, subject, attributes, False)
        _deliver(topic, subscription, subject, text)


def _deliver(topic: dict[str, Any], subscription: Subscription, subject: str, text: str) -> None:
    link = _build_link("Unsubscribe", SubscriptionArn=subscription["arn"])
    if subscription["protocol"] == "email":
        text = f"{text}\n\n--\nTo get no more mails from this topic, follow this link:\n{link}\n"
    _put_in_inbox(topic, subscription, subject or _DEFAULT_SUBJECT, text, kind="message", link=link)


def _request_confirmation(topic: dict[str, Any], subscription: Subscription) -> None:
    """Make the subscription pending and send the confirmation mail."""
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
    import_ministack("services.sns")._refresh_subscription_counts(topic)
    link = _build_link("ConfirmSubscription", TopicArn=arn, Token=token)
    text = (
        f"This address was subscribed to the topic\n{arn}\n\nTo confirm that you want its mails, follow "
        f"this link:\n{link}\n"
    )
    _put_in_inbox(
        topic,
        subscription,
        "AWS Notification - Subscription Confirmation",
        text,
        kind="confirmation",
        link=link,
    )


def _put_in_inbox(
    topic: dict[str, Any], subscription: Subscription, subject: str, text: str, *, kind: str, link: str
) -> None:
    name = topic["attributes"].get("DisplayName") or "AWS Notifications"
    sender = f"{name} <no-reply@sns.amazonaws.com>"
    inbox.keep(
        inbox.Mail(subscription["endpoint"], subject, text, inbox.now(), topic["arn"], sender, kind, link)
    )


def _build_link(action: str, **parameters: str) -> str:
    """Return a link to ConfirmSubscription or Unsubscribe, which SNS serves without credentials."""
    return (
        f"http://{settings.HOST}:{os.environ['GATEWAY_PORT']}/?{urlencode({'Action': action, **parameters})}"
    )


def _find_subscription(topic: dict[str, Any], protocol: str, endpoint: str) -> Any:
    for subscription in topic["subscriptions"]:
        if (subscription["protocol"], subscription["endpoint"]) == (protocol, endpoint):
            return subscription
    return None


KEYS = Patch("sns_keys")
_AWS_MANAGED_KEY: Final = "alias/aws/sns"
_CODES: Final = {
    "AccessDenied": "KMSAccessDenied",
    "Disabled": "KMSDisabled",
    "InvalidState": "KMSInvalidState",
    "NotFound": "KMSNotFound",
}
_CLOUDWATCH: Final = "cloudwatch.amazonaws.com"


@KEYS.handles("ministack.services.sns")
async def handle_request(original: OriginalRequest, request: Request) -> Answer:
    sns = import_ministack("services.sns")
    fields = {**request.query, **parse_qs(request.body.decode("utf-8", errors="replace"))}
    if sns._p(fields, "Action") in ("Publish", "PublishBatch"):
        keys.set_caller(request)
        arn = sns._normalize_arn(sns._p(fields, "TopicArn") or sns._p(fields, "TargetArn"))
        topic = sns._topic_by_arn_any_scope(arn)
        if topic and (refusal := _find_refusal(topic)):
            return sns._error(_CODES[refusal.kind], refusal.message, 400)  # type: ignore[no-any-return]
    return await original()


def _find_refusal(topic: dict[str, Any]) -> keys.KeyRefusal | None:
    """Return why the caller may not use the topic's key, None if it may."""
    key_name = topic["attributes"].get("KmsMasterKeyId") or _AWS_MANAGED_KEY
    return keys.find_refusal(key_name, keys.WRITES, "sns", {"aws:sns:topicArn": topic["arn"]})


@KEYS.replaces("ministack.services.cloudwatch", "_dispatch_alarm_actions", "alarm old_state new_state reason")
def dispatch_alarm_actions(
    original: Callable[..., None], alarm: dict[str, Any], old_state: str, new_state: str, reason: str
) -> None:
    """Leave out topics whose key CloudWatch may not use, as AWS does: the alarm's history says it failed."""
    sns = import_ministack("services.sns")
    open_actions = {}
    for field in ("AlarmActions", "OKActions", "InsufficientDataActions"):
        topics = {arn: sns._topic_by_arn_any_scope(arn) for arn in alarm.get(field) or []}
        open_actions[field] = [
            arn for arn, topic in topics.items() if topic is None or _is_open_to_alarms(topic, alarm)
        ]
    original({**alarm, **open_actions}, old_state, new_state, reason)


def _is_open_to_alarms(topic: dict[str, Any], alarm: dict[str, Any]) -> bool:
    key_name = topic["attributes"].get("KmsMasterKeyId")
    if not key_name:
        return True
    is_own = not keys.is_managed_by_aws(key_name)
    return is_own and keys.is_open_to_service(
        key_name, _CLOUDWATCH, keys.WRITES, source_arn=alarm.get("AlarmArn", "")
    )


PATCHES: Final = (
    MAIL,
    KEYS,
)
