"""What the windows of a run share, in a bucket, without a Spark session: the rows are scripted."""

from __future__ import annotations

import json
from datetime import UTC, date, datetime, timedelta
from typing import Any

import attrs

from config.exports.contract import Contract
from config.exports.windows import Window, parse_label
from glue_jobs.completeness import Verdict
from glue_jobs.delivery.manifest import Manifest, describe_window, membership
from glue_jobs.delivery.publish import Listing
from glue_jobs.rows import WindowFrame
from glue_jobs.run_context import RunContext
from glue_jobs.runs import RunRecord
from glue_jobs.source import PinnedTable
from glue_jobs.store import Bucket
from glue_jobs.table_fields import Field
from tests.support import samples
from tests.support.frames import Frame, batch

NOW = datetime(2026, 11, 10, 6, tzinfo=UTC)
THINGS = samples.things(("a", "text"), ("n", "integer"))
DAY = "2026-11-09"


def window_of(label: str = DAY, contract: Contract = THINGS) -> Window:
    return parse_label(label, contract.window)


def change_window_rule(contract: Contract = THINGS, **changes: Any) -> Contract:
    return attrs.evolve(contract, window=attrs.evolve(contract.window, **changes))


def pinned_table(type_: str = "timestamptz") -> PinnedTable:
    return attrs.evolve(samples.pinned(window_of(), "things"), fields={"at": Field(2, "at", type_)})


def new_record() -> RunRecord:
    return RunRecord("run-2", "things", NOW, NOW, NOW + timedelta(hours=1))


def leave_file_of_dead_run(bucket: Bucket) -> str:
    """Write a file of a run that ended a minute ago and may have published it, and return the file's key."""
    key = f"things/data/{DAY}/run-0/a.csv"
    ended = (NOW - timedelta(minutes=1)).isoformat()
    window = {"window": DAY, "state": "failed", "may_be_published": True}
    record = {"windows": [window], "state": "failed", "ended_at": ended, "expires_at": ended}
    bucket.write("things/runs/run-0.json", json.dumps(record).encode(), "application/json")
    bucket.write(key, b"x", "text/csv")
    return key


class Session:
    """A Spark session that counts how often its cache was cleared."""

    def __init__(self):
        self.catalog = self
        self.cleared = 0

    def clearCache(self):
        self.cleared += 1


@attrs.define
class ScriptedRows:
    """What is asked about the rows of windows. Each text of `texts` is an event of the window.

    `fails` is raised as rows are computed.
    """

    texts: list[bytes] = attrs.field(factory=list)
    digested: str = "files"
    fails: BaseException | None = None
    groups: Any = None
    counts: dict[str, int] = attrs.field(factory=dict)
    asked: list[str] = attrs.field(factory=list)
    key: bytes = b""
    event_count: int = 100

    @property
    def files(self):
        return self

    def digest(self, window: Window) -> str:
        return f"{self.digested} of {window.label}"

    def window(self, window: Window):
        self.asked.append(window.label)
        return self

    def rows(self) -> WindowFrame:
        if self.fails:
            raise self.fails
        batches = [batch(*self.texts)] if self.texts else []
        return WindowFrame(Frame(batches), 1, groups=self.groups)

    def count_read(self) -> dict[str, int]:
        known = {"inside": len(self.texts), "invalid_time": 0, "invalid_time_received": 0, "null_key": 0}
        return known | self.counts


@attrs.define
class ScriptedCompleteness:
    """What is known about the table. `missing` says why a new table may begin too late."""

    verdict: Verdict = Verdict(True, "It is known.")
    stated: bool = False
    missing: str = ""
    asked: list[str] = attrs.field(factory=list)

    def of(self, window: Window) -> Verdict:
        self.asked.append(window.label)
        return self.verdict

    def is_stated(self, _window: Window) -> bool:
        return self.stated

    def explain_missing(self, _window: Window, _current: Manifest | None) -> str:
        return self.missing


def new_context(bucket: Bucket, **changes: Any) -> RunContext:
    """Return the context of a run of one window. Its listing is that of the bucket as it is now."""
    known = {
        "spark": Session,
        "catalog": "catalog",
        "contract": THINGS,
        "table": pinned_table(),
        "key": None,
        "bucket": bucket,
        "record": new_record(),
        "listing": Listing.read(bucket, "things"),
        "windows": [window_of()],
        "first_day": date(2026, 11, 1),
        "computed": {},
        "clock": lambda: NOW,
        "on_phase": lambda _window, _phase: None,
        "aggregates": None,
        "dry_run": False,
        "accept_fewer_events": False,
        "accept_window_change": False,
        "partitions": 0,
        "complete_until": None,
    }
    return RunContext(**known | changes)


def new_run(
    bucket: Bucket, rows: ScriptedRows, known: ScriptedCompleteness | None = None, **changes: Any
) -> RunContext:
    """Return a context that has looked up its rows, and what is known about the table, already."""
    run = new_context(bucket, **changes)
    completeness = known or ScriptedCompleteness()
    # Cached properties keep their values here.
    vars(run).update(query=rows, completeness=completeness, replacement=completeness)
    return run


def describe_published(label: str = DAY, contract: Contract = THINGS, **changes: Any) -> Manifest:
    """Return a manifest as far as a later run reads it."""
    table = pinned_table()
    known = {
        "run_id": "run-1",
        "window": describe_window(window_of(label, contract), contract),
        "membership": membership(contract),
        "contract": {"version": contract.version, "sha256": contract.sha256},
        "status": "complete",
        "completeness": "It was known.",
        "source": {"table_uuid": table.uuid, "committed_at": table.committed_at.isoformat()},
        "accepted": {"sentences": [], "neighbours": []},
        "generation": 1,
        "generations": [{"run_id": "run-1"}],
        "rows": {"rows": 3},
        "headline": [],
        "files": [],
        "checks": [],
        "notes": [],
    }
    return known | changes


def store_manifest(bucket: Bucket, label: str = DAY, **changes: Any) -> Manifest:
    made = describe_published(label, **changes)
    bucket.write(f"things/manifests/{label}.json", json.dumps(made).encode(), "application/json")
    return made
