"""Tell the engineers about mails of SES that did not arrive, or that a recipient reported as spam.

EventBridge may deliver an event of SES twice. A marker records which were reported; it is written after the
mail to the engineers, so that none is lost.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

import attrs

from lambdas import contract
from lambdas.notifications import errors as notification_errors
from lambdas.notifications import message
from lambdas.shared.errors import Refused, Transient
from lambdas.shared.http import NotSent, ResponseLost
from lambdas.shared.log import Log
from lambdas.shared.s3 import Objects
from lambdas.shared.sns import SnsTopics

_BOUNCE: Final = "Bounce"
_COMPLAINT: Final = "Complaint"
_REJECT: Final = "Reject"
_WHAT: Final = {
    _BOUNCE: "did not arrive",
    _COMPLAINT: "was reported as spam",
    _REJECT: "was not sent: SES found a virus in it",
}
_PERMANENT: Final = "Permanent"
_IF_IT_REPEATS: Final = (
    "Nothing, if it happens once: the recipient's server may be busy, or the mailbox full. Ask the recipient "
    "if it happens again."
)
_TO_DO: Final = {
    _BOUNCE: "Correct the address in recipients of the export, or remove it, and deploy. SES stops sending "
    "to an address that does not exist, and the account's reputation suffers from each further mail.",
    _COMPLAINT: "Ask the recipient. If the mails are not wanted, remove the address from recipients of the "
    "export, and deploy. AWS stops accounts with many complaints.",
    _REJECT: "Look at the file of the export.",
}
_UNSAFE: Final = re.compile(r"[^A-Za-z0-9_.@-]")


@attrs.frozen
class Reporter:
    """`topic` is that of the engineers, and `notices` the S3 prefix of the markers."""

    objects: Objects
    topics: SnsTopics
    log: Log
    topic: str
    notices: str

    def report(self, detail: Mapping[str, Any]) -> None:
        """Send the engineers one mail about an event. Raises LakeferryError."""
        kind = str(detail.get("eventType"))
        if kind not in _WHAT:
            raise Refused(notification_errors.EVENT, f"an event of SES of type {message.to_one_line(kind)}")
        mail = detail["mail"]
        key = f"{self.notices}/undelivered/{_UNSAFE.sub('-', str(mail['messageId']))}-{kind}.json"
        if self.objects.read(key):
            return
        export = _read_export(mail)
        subject = message.build_subject(export, f"a mail {_WHAT[kind].partition(':')[0]}")
        try:
            self.topics.publish(self.topic, subject, "\n".join(_list_lines(kind, export, detail)) + "\n")
        except (NotSent, Refused) as error:
            raise Transient(notification_errors.NOT_SENT, error.what) from None
        except ResponseLost as error:
            raise Transient(notification_errors.UNCERTAIN, error.what) from None
        self.objects.write(key, {"export": export, "type": kind}, over=None)
        self.log.info("reported", export=export, type=kind, addresses=[*map(_mask, _list_addresses(detail))])


def _read_export(mail: Mapping[str, Any]) -> str:
    tagged = (mail.get("tags") or {}).get(contract.MAIL_EXPORT_TAG) or ["unknown export"]
    return message.to_one_line(tagged[0])


def _list_lines(kind: str, export: str, detail: Mapping[str, Any]) -> Iterator[str]:
    yield f"A mail of export {export} {_WHAT[kind]}."
    # The addresses are shown in full: without them nobody could correct the list.
    yield f"To: {', '.join(message.to_one_line(address) for address in _list_addresses(detail))}"
    if subject := (detail["mail"].get("commonHeaders") or {}).get("subject"):
        yield f"Subject: {message.quote_line(subject)}"
    if why := _explain(detail):
        yield f"Why: {message.quote_line(why)}"
    yield f"What to do: {_advise(kind, detail)}"


def _advise(kind: str, detail: Mapping[str, Any]) -> str:
    """Return what to do. SES calls a bounce permanent if the address will not accept later mails either."""
    if kind == _BOUNCE and (detail.get("bounce") or {}).get("bounceType") != _PERMANENT:
        return _IF_IT_REPEATS
    return _TO_DO[kind]


def _list_addresses(detail: Mapping[str, Any]) -> list[str]:
    bounced = (detail.get("bounce") or {}).get("bouncedRecipients") or []
    complained = (detail.get("complaint") or {}).get("complainedRecipients") or []
    named = [str(recipient["emailAddress"]) for recipient in (*bounced, *complained)]
    return named or [str(address) for address in detail["mail"].get("destination") or []]


def _explain(detail: Mapping[str, Any]) -> str:
    if bounce := detail.get("bounce"):
        codes = [str(recipient.get("diagnosticCode") or "") for recipient in bounce["bouncedRecipients"]]
        return f"{bounce.get('bounceType')}, {bounce.get('bounceSubType')}. {' '.join(codes)}".strip()
    if complaint := detail.get("complaint"):
        return str(complaint.get("complaintFeedbackType") or "")
    return str((detail.get("reject") or {}).get("reason") or "")


def _mask(address: str) -> str:
    """Return an address for logs: its first letter and its domain."""
    return f"{address[:1]}…@{address.rpartition('@')[2]}"
