"""Each export: its last run and what came of it, its next run, and whether those who wait for it get its mails."""

from __future__ import annotations

import functools
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from typing import Any, Final
from zoneinfo import ZoneInfo

import attrs

from exports import cron
from lakeferry.health.observations import Seen, State, look, spoken_hours
from lakeferry.health.places import Places
from lambdas.monitoring import measurements as watched_exports
from lambdas.monitoring.settings import MonitoredExport

_AT_ONCE: Final = 4
_BAD_RUNS: Final = ("FAILED", "TIMEOUT", "ERROR", "EXPIRED", "STOPPED")
_GOING: Final = ("STARTING", "RUNNING", "STOPPING", "WAITING")
#: States of a run's record in which something is wrong.
_BAD_RECORDS: Final = ("failed", "blocked")
#: Clocks of Glue and of its workers.
_SKEW: Final = 90.0


@attrs.frozen
class Last:
    """The latest run. Times are in seconds since 1970; `result` is Glue's word, `windows` those of its record."""

    id: str
    began: float
    seconds: float | None
    result: str
    record: str = ""
    windows: tuple[str, ...] = ()
    reason: str = ""


@attrs.frozen
class Standing:
    """`last` is None before the first run. `late` and `unconfirmed` are told where they are."""

    export: str
    last: Last | None
    next_run: float | None
    zone: str
    seen: tuple[Seen, ...]
    published: int = 0

    @property
    def next_told(self) -> str:
        if self.next_run is None:
            return "never"
        return f"{datetime.fromtimestamp(self.next_run, ZoneInfo(self.zone)):%Y-%m-%d %H:%M} {self.zone}"


def look_at(places: Places) -> list[Standing]:
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        return list(pool.map(functools.partial(_standing, places), places.settings.monitored.exports))


def _standing(places: Places, export: MonitoredExport) -> Standing:
    now = datetime.fromtimestamp(places.ctx.clock.time(), UTC)
    following = cron.parse(export.cron, export.zone).after(now)
    last = look(lambda: _last(places, export.export))
    count = look(lambda: _published(places, export.export))
    has_run = isinstance(last, Last)
    seen = [look(lambda: _late(places, export, has_run=has_run)), _unheard(places, export)]
    return Standing(
        export=export.export,
        last=last if isinstance(last, Last) else None,
        next_run=following.timestamp() if following else None,
        zone=export.zone,
        seen=tuple(one for one in (*_of_run(last), *seen, *([count] if isinstance(count, Seen) else [])) if one),
        published=count if isinstance(count, int) else 0,
    )


def _last(places: Places, export: str) -> Last | None:
    job = f"{places.settings.deployment}-{export}"
    runs = places.ctx.client("glue").get_job_runs(JobName=job, MaxResults=10)["JobRuns"]
    if not runs:
        return None
    run: dict[str, Any] = max(runs, key=lambda one: one["StartedOn"])
    ended = run.get("CompletedOn")
    began = run["StartedOn"].timestamp()
    last = Last(
        run["Id"], began, ended.timestamp() - began if ended else None, run["JobRunState"], reason=run.get("ErrorMessage") or ""
    )
    return last if run["JobRunState"] in _GOING else _with_record(places, export, last)


def _with_record(places: Places, export: str, last: Last) -> Last:
    """What the run itself wrote down. A run that died before that has none; then the latest record is an older one's."""
    folder = f"{places.settings.prefix}/{export}/runs/"
    keys = [listed.key for listed in places.objects.list(folder)]
    found = places.objects.read(max(keys)) if keys else None
    if found is None or datetime.fromisoformat(found.document["started_at"]).timestamp() < last.began - _SKEW:
        return last
    windows = tuple(f"{window['window']} {window['state']}" for window in found.document.get("windows", []))
    reason = str(found.document.get("reason") or last.reason)
    return attrs.evolve(last, record=str(found.document["state"]), windows=windows, reason=reason)


def _published(places: Places, export: str) -> int:
    return sum(1 for _ in places.objects.list(f"{places.settings.prefix}/{export}/manifests/"))


def _of_run(last: Any) -> list[Seen]:
    if isinstance(last, Seen):
        return [last]
    if last is None or (last.result not in _BAD_RUNS and last.record not in _BAD_RECORDS):
        return []
    return [Seen(State.WRONG, told=f"the last run {last.record or last.result.lower()}: {last.reason or 'no reason given'}")]


def _late(places: Places, export: MonitoredExport, *, has_run: bool) -> Seen | None:
    hours = places.results.late(export)
    if hours > 0:
        return Seen(State.WRONG, hours, f"{spoken_hours(hours)} late")
    first = places.results.first_run(export)
    if first and places.ctx.clock.time() < (first + timedelta(hours=export.late_after_hours)).timestamp():
        return Seen(State.WAITING, told=f"the first {'scheduled ' if has_run else ''}run comes at {first:%Y-%m-%d %H:%M} UTC")
    return None


def _unheard(places: Places, export: MonitoredExport) -> Seen | None:
    if not export.topic:
        return None
    answer = look(lambda: watched_exports.unconfirmed(places.ctx.client("sns"), export))
    if isinstance(answer, Seen):
        return answer
    told = f"{answer:.0f} of {export.recipients} recipients have not confirmed the mail from AWS: they get nothing"
    return Seen(State.LOOK, answer, told) if answer else None
