"""Exports: whether each has what it should have by now, and whether those who wait for it get its mails."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from typing import Any, Protocol

import attrs

from exports import contract as contracts
from exports.contract import WindowRule
from exports.toml_model import BadFile
from exports.windows import closed_windows
from lambdas.monitoring import errors as monitoring_errors
from lambdas.monitoring.remembered import HOUR
from lambdas.monitoring.watched import Export
from lambdas.shared import cron
from lambdas.shared.aws import told
from lambdas.shared.errors import LakeferryError
from lambdas.shared.s3 import Objects


class Sns(Protocol):
    def get_topic_attributes(self, **asked: Any) -> Any: ...


class Glue(Protocol):
    def get_job(self, **asked: Any) -> Any: ...


@attrs.frozen
class Results:
    """What exports have published, below `prefix`."""

    objects: Objects
    prefix: str
    glue: Glue
    now: Callable[[], float]

    def late(self, export: Export) -> float:
        """Hours for which the oldest window has been missing of those that are missing without a gap up to the newest that is
        due; 0 where that one is there, and until the first run since the export was deployed is due."""
        hours = self._missing(export)
        if hours == 0:
            return 0.0
        first = self.first_run(export)
        due = first + timedelta(hours=export.late_after_hours) if first else None
        return hours if due and self.now() >= due.timestamp() else 0.0

    def first_run(self, export: Export) -> datetime | None:
        """The first time of the schedule since the export's job was created; None where none comes."""
        with told(f"asking Glue for job {export.job}"):
            created = self.glue.get_job(JobName=export.job)["Job"]["CreatedOn"]
        return cron.parse(export.cron, export.zone).after(created.astimezone(UTC))

    def _missing(self, export: Export) -> float:
        now = datetime.fromtimestamp(self.now(), UTC)
        grace = timedelta(hours=export.late_after_hours)
        schedule = cron.parse(export.cron, export.zone)
        due = schedule.until(now - grace)
        closed = [(window.label, window.end) for window in closed_windows(_rule(export), due)] if due else []
        there = self._labels(export.export, "manifests") | self._labels(export.export, "skipped")
        missing = None
        for label, end in reversed(closed):
            if label in there:
                break
            missing = end
        wanted = schedule.after(missing - timedelta(seconds=1)) if missing else None
        return (now - grace - wanted).total_seconds() / HOUR if wanted else 0.0

    def _labels(self, export: str, folder: str) -> set[str]:
        prefix = f"{self.prefix}/{export}/{folder}/"
        return {listed.key.removeprefix(prefix).removesuffix(".json") for listed in self.objects.list(prefix)}


def unconfirmed(sns: Sns, export: Export) -> float:
    """How many recipients get nothing: they never confirmed, or have left. SNS forgets them after two days."""
    with told(f"asking for topic {export.topic}"):
        attributes = sns.get_topic_attributes(TopicArn=export.topic)["Attributes"]
    return float(max(0, export.recipients - int(attributes.get("SubscriptionsConfirmed") or 0)))


def _rule(export: Export) -> WindowRule:
    try:
        rule = contracts.load(export.export).window
    except BadFile as bad:
        raise LakeferryError(monitoring_errors.CONTRACT, str(bad)) from None
    return attrs.evolve(rule, first=date.fromisoformat(export.first_day)) if export.first_day else rule
