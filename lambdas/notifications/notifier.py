"""From a job's run, or from what happened lately, to mails that are sent once."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import attrs

from lambdas import contract
from lambdas.notifications import alarm, facts, glue_runs, message, notices, outcome
from lambdas.notifications import errors as notification_errors
from lambdas.notifications.alarm import Run
from lambdas.notifications.facts import Told
from lambdas.notifications.glue_runs import Glue, GlueRun
from lambdas.notifications.links import Links
from lambdas.notifications.mailer import Post
from lambdas.notifications.message import Mail
from lambdas.notifications.notices import Document
from lambdas.notifications.outcome import News
from lambdas.shared.errors import LakeferryError, Transient

SUCCEEDED: Final = "SUCCEEDED"
#: How far back lost events and mails that were not sent are looked for.
_LOOKS_BACK: Final = timedelta(days=3)
_NOTICES: Final = 100


@attrs.frozen
class Notifier:
    post: Post
    glue: Glue
    exports: Mapping[str, Told]
    alarm_topic: str
    links: Links

    def of_job(self, job: str, job_run_id: str, state: str) -> None:
        """What came of a run that Glue says has ended. Raises LakeferryError; a later call then does what is left."""
        told = next((told for told in self.exports.values() if told.job == job), None)
        if told is None:
            raise LakeferryError(notification_errors.EVENT, f"job {job} is none of this deployment")
        run = glue_runs.ask(self.glue, job, job_run_id)
        records = list(glue_runs.records(self.post.objects, self._runs(told), run))
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
                records = list(glue_runs.begun_after(self.post.objects, self._runs(told), now - _LOOKS_BACK))
                self._tell(
                    told, [each for record in records if _is_over(record, now) for each in outcome.of_record(record)], Run()
                )
                self._send(self._lately(told, now - _LOOKS_BACK))
            except LakeferryError as error:
                wrong.append(error)
        _raise_worst(wrong)

    def _tell(self, told: Told, found: Iterable[News], run: Run) -> None:
        keys = []
        for each in found:
            key = f"{contract.NOTICES}/{told.name}/{each.place}.json"
            keys.append(key)
            self.post.update(key, lambda document, each=each: self._noted(document, each, told, run))  # type: ignore[misc]
        self._send(dict.fromkeys(keys))

    def _noted(self, document: Document, each: News, told: Told, run: Run) -> Document:
        state = notices.due(document, each)
        return notices.noted(document, each, self._mails(each, state, told, run) if state else [])

    def _mails(self, each: News, state: str, told: Told, run: Run) -> list[Mail]:
        """To those who get the file and, of trouble, to those who run the deployment."""
        known = facts.gather(self.post.objects, self.links.prefix, told, each, self.post.clock.time())
        mails = [message.compose(told.topic, each, state, known, self.links)]
        if state in alarm.HEARD and self.alarm_topic:
            mails.append(alarm.compose(self.alarm_topic, each, state, known, links=self.links, told=told, run=run))
        return mails

    def _send(self, keys: Iterable[str]) -> None:
        wrong = []
        for key in keys:
            try:
                self.post.send(key)
            except LakeferryError as error:
                wrong.append(error)
        _raise_worst(wrong)

    def _lately(self, told: Told, since: datetime) -> list[str]:
        """Notices that changed since then."""
        listed = self.post.objects.list(f"{contract.NOTICES}/{told.name}/")
        return [each.key for each in listed if each.modified >= since][-_NOTICES:]

    def _runs(self, told: Told) -> str:
        return f"{self.links.prefix}/{told.name}/runs/"


def _dead(told: Told, run: GlueRun) -> News:
    return outcome.of_dead_run(told.name, run.run_id, run.as_of)


def _is_over(record: Mapping[str, Any], now: datetime) -> bool:
    return record["state"] != "running" or datetime.fromisoformat(record["expires_at"]) <= now


def _raise_worst(wrong: list[LakeferryError]) -> None:
    """One that doesn't pass, if there is one."""
    if wrong:
        raise next((error for error in wrong if not isinstance(error, Transient)), wrong[0])
