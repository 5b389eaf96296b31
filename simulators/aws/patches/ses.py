"""SES: permissions, an inbox, and events of bounces and complaints.

- ses_permissions: SendEmail of version 2 of the API with raw content needs ses:SendRawEmail, and with other
  content ses:SendEmail: on the sender's verified identity, on the configuration set, and, while the account
  is in the sandbox, on the verified identity of each recipient. Policies may restrict ses:FromAddress. Stock
  MiniStack asks for ses:SendEmail on "*", without the key. Source: SES developer guide, "Identity and access
  management in Amazon SES"; service authorization reference.
- ses_mail: A mail that SES accepted is in the inbox, with its HTML and attachments. An unknown configuration
  set is NotFoundException. Stock keeps no attachments, has no inbox, and accepts any configuration set.
  Source: API reference, SendEmail (errors).
- ses_events: With an event destination of the default event bus, a mail to bounce@simulator.amazonses.com
  causes "Email Bounced", and one to complaint@simulator.amazonses.com "Email Complaint Received". Stock sends
  no events. Source: SES developer guide, "Monitoring SES events using Amazon EventBridge" and "Using the
  mailbox simulator"; "Examples of event data".

Less strict than AWS: identities that were created are verified at once, and the account has production
access until PutAccountDetails says otherwise, as in stock MiniStack.

See stock: `.venv/bin/python -m pytest simulators/tests/aws/test_patches.py -m simulators -k "stock and ses"`
"""

from __future__ import annotations

import base64
import email
import email.policy
import hashlib
import json
from collections.abc import Callable
from email.message import EmailMessage
from email.utils import parseaddr
from typing import Any, Final

from simulators.aws import inbox, settings
from simulators.aws.hooks import (
    Answer,
    OriginalRequest,
    Patch,
    Request,
    get_region,
    import_ministack,
    run_in_background,
)

_APP: Final = "ministack.app"
_SEND: Final = "/v2/email/outbound-emails"

PERMISSIONS = Patch("ses_permissions")


@PERMISSIONS.replaces(_APP, "_enforce_ses_v2", "method path headers body query_params request_id")
def enforce(  # noqa: PLR0917  (MiniStack's own parameters)
    original: Callable[..., Answer | None],
    method: str,
    path: str,
    headers: dict[str, str],
    body: bytes,
    query_params: dict[str, Any],
    request_id: str,
) -> Answer | None:
    if (method, path.rstrip("/")) != ("POST", _SEND):
        return original(method, path, headers, body, query_params, request_id)
    asked = json.loads(body)
    sender = parseaddr(_find_sender(asked))[1]
    action = "ses:SendRawEmail" if asked["Content"].get("Raw") else "ses:SendEmail"
    for resource in _list_resources(asked, sender):
        denied: Answer | None = import_ministack("app")._enforce_data_plane(
            "sesv2",
            action,
            headers,
            query_params,
            request_id,
            resource_arn=resource,
            named_resource=resource,
            service_context={"ses:FromAddress": sender},
        )
        if denied:
            return denied
    return None


def _find_sender(asked: dict[str, Any]) -> str:
    return str(asked.get("FromEmailAddress") or _read_raw(asked)["From"] or "")


def _list_resources(asked: dict[str, Any], sender: str) -> list[str]:
    names = [f"identity/{_find_identity(sender)}"]
    if not import_ministack("services.ses")._production_access_enabled():
        names += [f"identity/{_find_identity(address)}" for address in _list_recipients(asked)]
    if asked.get("ConfigurationSetName"):
        names.append(f"configuration-set/{asked['ConfigurationSetName']}")
    return [f"arn:aws:ses:{get_region()}:{settings.ACCOUNT}:{name}" for name in names]


def _find_identity(address: str) -> str:
    """Return the verified address or domain that an address belongs to, or the address."""
    known = import_ministack("services.ses_v2")._identities
    domain = address.rpartition("@")[2].lower()
    parents = import_ministack("services.ses")._domain_and_parents(domain)
    return next((name for name in (address, *parents) if name in known), address)


def _list_recipients(asked: dict[str, Any]) -> list[str]:
    destination = asked.get("Destination") or {}
    fields = ("ToAddresses", "CcAddresses", "BccAddresses")
    written = [address for field in fields for address in destination.get(field) or []]
    return [parseaddr(address)[1] for address in written]


MAIL = Patch("ses_mail")


@MAIL.handles("ministack.services.ses_v2")
async def handle_request(original: OriginalRequest, request: Request) -> Answer:
    if (request.method, request.path.rstrip("/")) != ("POST", _SEND):
        return await original()
    asked = json.loads(request.body)
    service = import_ministack("services.ses_v2")
    name = asked.get("ConfigurationSetName")
    if name and name not in service._config_sets:
        missing: Answer = service._missing_config_set(name)
        return missing
    answer = await original()
    if answer[0] == 200 and asked["Content"].get("Raw"):
        for recipient in _list_recipients(asked):
            inbox.keep(_build_mail(_read_raw(asked), recipient))
    return answer


def _read_raw(asked: dict[str, Any]) -> EmailMessage:
    raw = base64.b64decode((asked["Content"].get("Raw") or {}).get("Data", ""))
    message = email.message_from_bytes(raw, policy=email.policy.default)
    assert isinstance(message, EmailMessage)
    return message


def _build_mail(message: EmailMessage, recipient: str) -> inbox.Mail:
    text = message.get_body(("plain",))
    page = message.get_body(("html",))
    attachments = []
    for part in message.iter_attachments():
        content = part.get_payload(decode=True)
        assert isinstance(content, bytes), "an attachment has no parts"
        digest = hashlib.sha256(content).hexdigest()
        attachments.append(
            inbox.Attachment(part.get_filename() or "", part.get_content_type(), len(content), digest)
        )
    return inbox.Mail(
        to=recipient,
        subject=str(message["Subject"]),
        body=text.get_content() if text else "",
        at=inbox.now(),
        topic="",
        sender=str(message["From"]),
        kind="message",
        link="",
        html=page.get_content() if page else "",
        attachments=tuple(attachments),
    )


EVENTS = Patch("ses_events")
#: By local part of an address of the mailbox simulator: the event's type, its detail-type and its field.
_OUTCOMES: Final = {
    "bounce": ("Bounce", "Email Bounced"),
    "complaint": ("Complaint", "Email Complaint Received"),
}
_SIMULATOR: Final = "simulator.amazonses.com"


@EVENTS.handles("ministack.services.ses_v2")
async def send_events(original: OriginalRequest, request: Request) -> Answer:
    answer = await original()
    if (request.method, request.path.rstrip("/")) == ("POST", _SEND) and answer[0] == 200:
        asked = json.loads(request.body)
        message_id = json.loads(answer[2])["MessageId"]
        for recipient in _list_recipients(asked):
            local, _, domain = recipient.partition("@")
            outcome = _OUTCOMES.get(local.partition("+")[0]) if domain == _SIMULATOR else None
            if outcome and _publishes(asked.get("ConfigurationSetName"), outcome[0]):
                run_in_background(_put_event, asked, recipient, message_id, *outcome)
    return answer


def _publishes(name: str | None, event_type: str) -> bool:
    """Return whether the configuration set has an enabled event destination for these events."""
    record = import_ministack("services.ses_v2")._config_sets.get(name) or {}
    return any(
        destination["Enabled"]
        and "EventBridgeDestination" in destination
        and event_type.upper() in destination["MatchingEventTypes"]
        for destination in (record.get("EventDestinations") or {}).values()
    )


def _put_event(asked: dict[str, Any], recipient: str, message_id: str, kind: str, detail_type: str) -> None:
    sender = _find_sender(asked)
    tags = {tag["Name"]: [tag["Value"]] for tag in asked.get("EmailTags") or []}
    mail = {
        "timestamp": inbox.now(),
        "source": sender,
        "sendingAccountId": settings.ACCOUNT,
        "messageId": message_id,
        "destination": [recipient],
        "tags": {"ses:configuration-set": [asked["ConfigurationSetName"]], **tags},
    }
    if asked["Content"].get("Raw"):
        subject = str(_read_raw(asked)["Subject"])
        mail["commonHeaders"] = {"from": [sender], "to": [recipient], "subject": subject}
    ses = import_ministack("services.ses")
    detail = {
        "eventType": kind,
        "mail": mail,
        **ses._notification_detail(kind, recipient, inbox.now(), "General"),
    }
    entry = {"Source": "aws.ses", "DetailType": detail_type, "Detail": json.dumps(detail)}
    import_ministack("services.eventbridge")._put_events({"Entries": [entry]}, allow_aws_source=True)


PATCHES: Final = (
    PERMISSIONS,
    MAIL,
    EVENTS,
)
