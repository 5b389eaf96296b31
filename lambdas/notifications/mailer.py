"""Mails about a run: composed once, kept with the export's notification state, and each sent once, or twice where SNS took one
and its answer was lost.

A mail is claimed before it is sent and marked after. A claim that ends without a mark means that nobody knows: it is sent once
more, and after a second time without a mark it is left to people.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final

import attrs

from lambdas import contract
from lambdas.notifications import errors as notification_errors
from lambdas.notifications import message, outcome
from lambdas.notifications import outcome as states
from lambdas.notifications.message import Links, Mail, Run
from lambdas.notifications.outcome import ExportSettings, GlueRun, RunOutcome
from lambdas.shared.clock import Clock
from lambdas.shared.errors import Denied, InProgress, LakeferryError, Refused, Transient
from lambdas.shared.http import NotSent, ResponseLost
from lambdas.shared.log import Log
from lambdas.shared.s3 import Found, Objects
from lambdas.shared.sns import SnsTopics

if TYPE_CHECKING:
    from mypy_boto3_glue import GlueClient

Document = dict[str, Any]

NEW_STATE: Final[Document] = {"run": "", "trouble": "", "told": [], "mails": []}
#: Sent mails that are remembered; their texts are not.
_REMEMBERED: Final = 30


def pending_state(document: Document, news: RunOutcome) -> str | None:
    """The state that is to be told: that of the news, or that all is well again. None where it is known already, or was
    overtaken by a later run's."""
    if news.run_id < document["run"]:
        return None
    if not news.is_bad and document["trouble"]:
        return states.RECOVERED
    if news.identity in document["told"] or news.state == states.FINE:
        return None
    return news.state


def with_outcome(document: Document, news: RunOutcome, mails: Iterable[Mail]) -> Document:
    """The document with `mails` to be sent. What is good ends what was told of trouble before."""
    if news.run_id < document["run"]:
        return document
    trouble = news.state if news.state in states.FAILURE_STATES else ""
    before = document["told"] if news.is_bad else []
    told = [*before, *([] if news.identity in before else [news.identity])]
    new = [_waiting(mail, f"{news.run_id}/{number}") for number, mail in enumerate(mails)]
    kept = [_short(mail) for mail in document["mails"]][-_REMEMBERED:]
    return {
        "run": news.run_id,
        "trouble": trouble or (document["trouble"] if news.is_bad else ""),
        "told": told,
        "mails": [*kept, *new],
    }


def waiting_mails(document: Document) -> list[Document]:
    """Mails that may still have to be sent, in order."""
    return [mail for mail in document["mails"] if not mail["sent"] and not mail["given_up"]]


def with_mail(document: Document, mail_id: str, **values: Any) -> Document:
    mails = [{**mail, **values} if mail["id"] == mail_id else mail for mail in document["mails"]]
    return {**document, "mails": mails}


def _waiting(mail: Mail, mail_id: str) -> Document:
    return {"id": mail_id, **attrs.asdict(mail), "tries": 0, "claim": None, "sent": None, "given_up": False}


def _short(mail: Document) -> Document:
    return mail if not mail["sent"] else {**mail, "body": ""}


#: Seconds in which a call to SNS has ended, one way or the other.
CLAIM_SECONDS: Final = 50.0
_TRIES: Final = 2
_MARKS: Final = 4
#: More than invocations that could be at the same notice at once.
_ROUNDS: Final = 50


@attrs.frozen
class Mailer:
    objects: Objects
    topics: SnsTopics
    clock: Clock
    log: Log

    def update(self, key: str, change: Callable[[Document], Document | None]) -> Document | None:
        """What `change` made of the newest document, once that is kept; None where it wanted nothing."""
        for _ in range(_ROUNDS):
            found = self.objects.read(key) or Found(NEW_STATE, "")
            wanted = change(found.document)
            if wanted is None or wanted == found.document:
                return wanted
            if self.objects.write(key, wanted, over=found.etag or None):
                return wanted
        raise InProgress(notification_errors.BUSY, f"s3://{self.objects.bucket}/{key} changes all the time")

    def send(self, key: str) -> None:
        """Everything that waits there. Raises the worst of what went wrong, after all of it was tried."""
        found = self.objects.read(key)
        wrong = [error for mail in waiting_mails(found.document) if (error := self._tried(key, mail))] if found else []
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
        except ResponseLost:
            self._mark(key, mail_id, claim=None)
            raise
        except (NotSent, Refused) as error:
            self._mark(key, mail_id, claim=None, tries=mail["tries"] - 1)
            raise Transient(notification_errors.NOT_SENT, error.what) from None
        self._mark(key, mail_id, claim=None, sent=_instant(self.clock.time()))
        self.log.info("sent", notice=key, mail=mail_id, subject=mail["subject"])

    def _claimed(self, key: str, mail_id: str, token: str) -> Document | None:
        """The mail, ours to send; None where it is sent. Raises InProgress, and LakeferryError where it was given up."""
        until = self.clock.time() + CLAIM_SECONDS

        def claim(document: Document) -> Document | None:
            mail = _mail(document, mail_id)
            if mail is None or (mail["claim"] and mail["claim"]["token"] == token):
                return document
            if mail["claim"] and mail["claim"]["until"] > self.clock.time():
                raise InProgress(notification_errors.BUSY, f"mail {mail_id} of {key}")
            if mail["tries"] >= _TRIES:
                return with_mail(document, mail_id, given_up=True)
            return with_mail(document, mail_id, tries=mail["tries"] + 1, claim={"token": token, "until": until})

        document = self.update(key, claim)
        mine = next((mail for mail in (document or NEW_STATE)["mails"] if mail["id"] == mail_id), None)
        if mine and mine["given_up"]:
            raise LakeferryError(notification_errors.UNCERTAIN, f"mail {mail_id} of s3://{self.objects.bucket}/{key}")
        return mine if mine and not mine["sent"] else None

    def _mark(self, key: str, mail_id: str, **values: Any) -> None:
        """Tries harder than anything else does: a mark that is lost is a mail that goes out again."""
        for left in reversed(range(_MARKS)):
            try:
                self.update(key, lambda document: with_mail(document, mail_id, **values))
                return
            except (Transient, Denied):
                if not left:
                    raise


def _mail(document: Document, mail_id: str) -> Document | None:
    return next((mail for mail in waiting_mails(document) if mail["id"] == mail_id), None)


def _instant(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="seconds")


SUCCEEDED: Final = "SUCCEEDED"
#: How far back lost events and mails that were not sent are looked for.
_LOOKS_BACK: Final = timedelta(days=3)
_NOTICES: Final = 100


@attrs.frozen
class Notifier:
    post: Mailer
    glue: GlueClient
    exports: Mapping[str, ExportSettings]
    alarm_topic: str
    links: Links

    def of_job(self, job: str, job_run_id: str, state: str) -> None:
        """What came of a run that Glue says has ended. Raises LakeferryError; a later call then does what is left."""
        told = next((told for told in self.exports.values() if told.job == job), None)
        if told is None:
            raise LakeferryError(notification_errors.EVENT, f"job {job} is none of this deployment")
        run = outcome.get_job_run(self.glue, job, job_run_id)
        records = list(outcome.records_of(self.post.objects, self._runs(told), run))
        if not records and state == SUCCEEDED:
            raise LakeferryError(notification_errors.NO_RECORD, f"run {job_run_id} of {job}, below {self._runs(told)}")
        found = [each for record in records for each in outcome.of_record(record)] or [_dead(told, run)]
        self._tell(told, found, Run(job_run_id, state))

    def of_late(self) -> None:
        """What events should have told of and didn't, and mails that wait. Raises LakeferryError after all of it was tried."""
        now = datetime.fromtimestamp(self.post.clock.time(), UTC)
        wrong = []
        for told in self.exports.values():
            try:
                records = list(outcome.begun_after(self.post.objects, self._runs(told), now - _LOOKS_BACK))
                self._tell(
                    told, [each for record in records if _is_over(record, now) for each in outcome.of_record(record)], Run()
                )
                self._send(self._lately(told, now - _LOOKS_BACK))
            except LakeferryError as error:
                wrong.append(error)
        _raise_worst(wrong)

    def _tell(self, told: ExportSettings, found: Iterable[RunOutcome], run: Run) -> None:
        keys = []
        for each in found:
            key = f"{contract.NOTICES}/{told.name}/{each.place}.json"
            keys.append(key)
            self.post.update(key, lambda document, each=each: self._noted(document, each, told, run))  # type: ignore[misc]
        self._send(dict.fromkeys(keys))

    def _noted(self, document: Document, each: RunOutcome, told: ExportSettings, run: Run) -> Document:
        state = pending_state(document, each)
        return with_outcome(document, each, self._mails(each, state, told, run) if state else [])

    def _mails(self, each: RunOutcome, state: str, told: ExportSettings, run: Run) -> list[Mail]:
        """To those who get the file and, of trouble, to those who run the deployment."""
        known = outcome.gather_facts(self.post.objects, self.links.prefix, told, each, self.post.clock.time())
        mails = [message.compose_notice(told.topic, each, state, known, self.links)]
        if state in message.HEARD and self.alarm_topic:
            mails.append(message.compose_alarm(self.alarm_topic, each, state, known, links=self.links, told=told, run=run))
        return mails

    def _send(self, keys: Iterable[str]) -> None:
        wrong = []
        for key in keys:
            try:
                self.post.send(key)
            except LakeferryError as error:
                wrong.append(error)
        _raise_worst(wrong)

    def _lately(self, told: ExportSettings, since: datetime) -> list[str]:
        """Notices that changed since then."""
        listed = self.post.objects.list(f"{contract.NOTICES}/{told.name}/")
        return [each.key for each in listed if each.modified >= since][-_NOTICES:]

    def _runs(self, told: ExportSettings) -> str:
        return f"{self.links.prefix}/{told.name}/runs/"


def _dead(told: ExportSettings, run: GlueRun) -> RunOutcome:
    return outcome.of_dead_run(told.name, run.run_id, run.as_of)


def _is_over(record: Mapping[str, Any], now: datetime) -> bool:
    return record["state"] != "running" or datetime.fromisoformat(record["expires_at"]) <= now


def _raise_worst(wrong: list[LakeferryError]) -> None:
    """One that doesn't pass, if there is one."""
    if wrong:
        raise next((error for error in wrong if not isinstance(error, Transient)), wrong[0])
