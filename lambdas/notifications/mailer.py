"""Sends what notices hold, each mail once, or twice where SNS took one and its answer was lost.

A mail is claimed before it is sent and marked after. A claim that ends without a mark means that nobody knows: it is sent
once more, and after a second time without a mark it is left to people.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any, Final

import attrs

from lambdas.notifications import errors as notification_errors
from lambdas.notifications import notices
from lambdas.notifications.notices import Document
from lambdas.shared.clock import Clock
from lambdas.shared.errors import Denied, LakeferryError, NotYet, Refused, Transient
from lambdas.shared.http_types import Broken, NotSent
from lambdas.shared.log import Log
from lambdas.shared.s3 import Found, Objects
from lambdas.shared.sns import Topics

#: Seconds in which a call to SNS has ended, one way or the other.
CLAIM_SECONDS: Final = 50.0
_TRIES: Final = 2
_MARKS: Final = 4
#: More than invocations that could be at the same notice at once.
_ROUNDS: Final = 50


@attrs.frozen
class Post:
    objects: Objects
    topics: Topics
    clock: Clock
    log: Log

    def update(self, key: str, change: Callable[[Document], Document | None]) -> Document | None:
        """What `change` made of the newest document, once that is kept; None where it wanted nothing."""
        for _ in range(_ROUNDS):
            found = self.objects.read(key) or Found(notices.NEW, "")
            wanted = change(found.document)
            if wanted is None or wanted == found.document:
                return wanted
            if self.objects.write(key, wanted, over=found.etag or None):
                return wanted
        raise NotYet(notification_errors.BUSY, f"s3://{self.objects.bucket}/{key} changes all the time")

    def send(self, key: str) -> None:
        """Everything that waits there. Raises the worst of what went wrong, after all of it was tried."""
        found = self.objects.read(key)
        wrong = [error for mail in notices.waiting(found.document) if (error := self._tried(key, mail))] if found else []
        if wrong:
            raise next((error for error in wrong if not isinstance(error, Transient)), wrong[0])

    def _tried(self, key: str, mail: Document) -> LakeferryError | None:
        try:
            self._deliver(key, str(mail["id"]))
        except LakeferryError as error:
            self.log.error("not sent", notice=key, mail=mail["id"], code=error.row.code, reason=str(error))
            return error
        return None

    def _deliver(self, key: str, mail_id: str) -> None:
        token = str(uuid.uuid4())
        mail = self._claimed(key, mail_id, token)
        if mail is None:
            return
        try:
            self.topics.publish(mail["topic"], mail["subject"], mail["body"])
        except Broken:
            self._mark(key, mail_id, claim=None)
            raise
        except (NotSent, Refused) as error:
            self._mark(key, mail_id, claim=None, tries=mail["tries"] - 1)
            raise Transient(notification_errors.NOT_SENT, error.what) from None
        self._mark(key, mail_id, claim=None, sent=_instant(self.clock.time()))
        self.log.info("sent", notice=key, mail=mail_id, subject=mail["subject"])

    def _claimed(self, key: str, mail_id: str, token: str) -> Document | None:
        """The mail, ours to send; None where it is sent. Raises NotYet, and LakeferryError where it was given up."""
        until = self.clock.time() + CLAIM_SECONDS

        def claim(document: Document) -> Document | None:
            mail = _mail(document, mail_id)
            if mail is None or (mail["claim"] and mail["claim"]["token"] == token):
                return document
            if mail["claim"] and mail["claim"]["until"] > self.clock.time():
                raise NotYet(notification_errors.BUSY, f"mail {mail_id} of {key}")
            if mail["tries"] >= _TRIES:
                return notices.changed(document, mail_id, given_up=True)
            return notices.changed(document, mail_id, tries=mail["tries"] + 1, claim={"token": token, "until": until})

        document = self.update(key, claim)
        mine = next((mail for mail in (document or notices.NEW)["mails"] if mail["id"] == mail_id), None)
        if mine and mine["given_up"]:
            raise LakeferryError(notification_errors.UNCERTAIN, f"mail {mail_id} of s3://{self.objects.bucket}/{key}")
        return mine if mine and not mine["sent"] else None

    def _mark(self, key: str, mail_id: str, **values: Any) -> None:
        """Tries harder than anything else does: a mark that is lost is a mail that goes out again."""
        for left in reversed(range(_MARKS)):
            try:
                self.update(key, lambda document: notices.changed(document, mail_id, **values))
                return
            except (Transient, Denied):
                if not left:
                    raise


def _mail(document: Document, mail_id: str) -> Document | None:
    return next((mail for mail in notices.waiting(document) if mail["id"] == mail_id), None)


def _instant(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="seconds")
