"""What became of a run: which record it wrote, what that says about each window and the run as a whole, and what a mail adds."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from decimal import Decimal, InvalidOperation
from typing import TYPE_CHECKING, Any, Final

import attrs

from exports import contract as contracts
from exports.toml_model import BadFile
from lambdas.shared import cron
from lambdas.shared.aws import aws_call
from lambdas.shared.s3 import Objects

if TYPE_CHECKING:
    from mypy_boto3_glue import GlueClient

#: The place of what concerns a run as a whole; no window has such a label.
RUN: Final = "run"

COMPLETE: Final = "complete"
EMPTY: Final = "empty"
LATE: Final = "late"
BLOCKED: Final = "blocked"
FAILED: Final = "failed"
RECOVERED: Final = "recovered"
#: Of a run as a whole: nothing to tell, unless something was wrong before.
FINE: Final = "fine"

#: Worse than late, so that its end is news too.
FAILURE_STATES: Final = (BLOCKED, FAILED)
DIED: Final = "EXP-DIED"
_VISIBLE: Final = ("published", "unchanged", "superseded")
_CODE: Final = re.compile(r"[A-Z]+(?:-[A-Z]+)+")
_UNKNOWN: Final = "EXP-INTERNAL"


@attrs.frozen
class RunOutcome:
    """`identity` is the same for the same thing told by several runs. `document` is the window's, from the run's record.

    `has_file` says whether what it tells of has files to be fetched.
    """

    export: str
    place: str
    state: str
    identity: str
    run_id: str
    as_of: str = ""
    code: str = ""
    reason: str = ""
    remedy: str = ""
    document: Mapping[str, Any] = attrs.Factory(dict)

    @property
    def is_bad(self) -> bool:
        return self.state in (LATE, *FAILURE_STATES) and not self.has_file

    @property
    def has_file(self) -> bool:
        return bool(self.document.get("files"))


def of_record(record: Mapping[str, Any]) -> list[RunOutcome]:
    """In the order in which the run met it; about the run itself at the end."""
    windows = [news for window in record.get("windows", []) if (news := _of_window(record, window))]
    return [*windows, _of_run(record)]


def of_dead_run(export: str, run_id: str, as_of: str = "") -> RunOutcome:
    """A run that wrote no record, or none of its end."""
    reason = "the run ended without a word"
    return RunOutcome(
        export, RUN, FAILED, f"failed-{run_id}", run_id, as_of, DIED, reason, "Look into the job's log, then run again"
    )


def _of_run(record: Mapping[str, Any]) -> RunOutcome:
    export, run_id, as_of = record["export"], record["id"], str(record.get("as_of", ""))
    if record["state"] == "running":
        return of_dead_run(export, run_id, as_of)
    code, _, what = str(record.get("reason") or "").partition("  ")
    of_windows = [window.get("code") for window in record.get("windows", []) if window.get("exit_code")]
    if record["state"] in FAILURE_STATES and code not in of_windows:
        return RunOutcome(export, RUN, FAILED, f"failed-{run_id}", run_id, as_of, _known(code), what)
    return RunOutcome(export, RUN, FINE, FINE, run_id, as_of)


def _of_window(record: Mapping[str, Any], window: Mapping[str, Any]) -> RunOutcome | None:
    """None where the window's state is no news to anybody, as in a dry run."""
    common = {"export": record["export"], "place": str(window["window"]), "run_id": record["id"], "as_of": str(record["as_of"])}
    state, reason = window["state"], str(window.get("reason") or "")
    if state in _VISIBLE:
        status = window["status"] if window["status"] in (COMPLETE, EMPTY, LATE) else COMPLETE
        return RunOutcome(**common, state=status, identity=f"published-{window['generation']}", document=window)
    if state == "skipped":
        return RunOutcome(**common, state=EMPTY, identity="skipped", document={**window, "files": []})
    if state == LATE:
        return RunOutcome(**common, state=LATE, identity=LATE, reason=reason)
    if state in FAILURE_STATES:
        code = _known(str(window.get("code") or ""))
        remedy = str(window.get("remedy") or "")
        return RunOutcome(**common, state=state, identity=f"{state}-{code}", code=code, reason=reason, remedy=remedy)
    return None


def _known(code: str) -> str:
    return code if _CODE.fullmatch(code) else _UNKNOWN


#: Windows that are looked through for one with rows.
_LOOKED_AT: Final = 10


@attrs.frozen
class ExportSettings:
    """What the deployment says of an export, from the function's environment."""

    name: str
    job: str
    topic: str
    zone: str
    cron: str = ""


@attrs.frozen
class Facts:
    """`manifest` is that of the news' window, where it says the same as the news; `last` that of the latest window with rows
    before it, or before now."""

    title: str
    owner: str
    zone: str
    next_run: datetime | None
    manifest: Mapping[str, Any] = attrs.Factory(dict)
    last: Mapping[str, Any] = attrs.Factory(dict)

    def change(self, number: Mapping[str, Any]) -> tuple[Decimal, str] | None:
        """By how many percent a number of the headline differs from the window's before, and which that was."""
        before = self.manifest.get("previous_window") or {}
        figure = f"{number.get('column')} {number.get('unit') or ''}" if number.get("per") else str(number.get("column"))
        old = (before.get("totals") or {}).get(figure) or "0"
        try:
            return (Decimal(str(number["total"])) / Decimal(old) - 1) * 100, before["window"]
        except (InvalidOperation, ZeroDivisionError):
            return None


def gather_facts(objects: Objects, prefix: str, told: ExportSettings, news: RunOutcome, now: float) -> Facts:
    """Raises LakeferryError where the bucket can't be asked."""
    title, owner = _of_contract(told.name)
    folder = f"{prefix}/{told.name}/manifests/"
    manifest = objects.read(f"{folder}{news.place}.json") if news.place != RUN else None
    same = manifest is not None and manifest.document.get("generation") == news.document.get("generation")
    return Facts(
        title=title,
        owner=owner,
        zone=told.zone,
        next_run=next_run(told, now),
        manifest=manifest.document if manifest and same else {},
        last=_last(objects, folder, news.place) if not news.has_file or news.state == "empty" else {},
    )


def next_run(told: ExportSettings, now: float) -> datetime | None:
    return cron.parse(told.cron, told.zone).after(datetime.fromtimestamp(now, UTC)) if told.cron else None


@functools.cache
def _of_contract(name: str) -> tuple[str, str]:
    """Title and owner; the contract ships with the function, but a mail has to go out without it too."""
    try:
        contract = contracts.load(name)
    except BadFile:
        return name, ""
    return contract.title, contract.owner


def _last(objects: Objects, folder: str, place: str) -> Mapping[str, Any]:
    """The manifest of the latest window with rows, up to `place` where that is a window."""
    labels = [listed.key.removeprefix(folder).removesuffix(".json") for listed in objects.list(folder)]
    earlier = [label for label in labels if place == RUN or label < place]
    for label in sorted(earlier, reverse=True)[:_LOOKED_AT]:
        found = objects.read(f"{folder}{label}.json")
        if found and found.document.get("rows", {}).get("rows"):
            return found.document
    return {}


#: A run's id begins with the time at which its record was begun.
_ID_TIME: Final = "%Y%m%dT%H%M%SZ"
#: Clocks of Glue and of its workers.
_SKEW: Final = timedelta(seconds=90)


@attrs.frozen
class GlueRun:
    """`as_of` is "" where the job was started without one; then it took the time of its start."""

    job_run_id: str
    started: datetime
    ended: datetime | None
    as_of: str

    @property
    def run_id(self) -> str:
        """In place of a record's id, in the order of time with those."""
        return f"{self.started:{_ID_TIME}}-{self.job_run_id[:40]}"


def get_job_run(glue: GlueClient, job: str, job_run_id: str) -> GlueRun:
    with aws_call(f"asking for run {job_run_id} of job {job}"):
        run: Mapping[str, Any] = glue.get_job_run(JobName=job, RunId=job_run_id)["JobRun"]
    ended = run.get("CompletedOn")
    return GlueRun(
        job_run_id=job_run_id,
        started=run["StartedOn"].astimezone(UTC),
        ended=ended.astimezone(UTC) if ended else None,
        as_of=str((run.get("Arguments") or {}).get("--as-of") or ""),
    )


def records_of(objects: Objects, folder: str, run: GlueRun) -> Iterator[dict[str, Any]]:
    """Those that were begun while it ran and are as of the same instant: one, unless somebody ran the same on a laptop."""
    for record in begun_after(objects, folder, run.started - _SKEW):
        begun = datetime.fromisoformat(record["started_at"])
        if (run.ended is None or begun <= run.ended + _SKEW) and (not run.as_of or _same(run.as_of, record["as_of"])):
            yield record


def begun_after(objects: Objects, folder: str, instant: datetime) -> Iterator[dict[str, Any]]:
    """In the order of time."""
    for listed in objects.list(folder, after=f"{folder}{instant.astimezone(UTC):{_ID_TIME}}"):
        if found := objects.read(listed.key):
            yield found.document


def _same(one: str, other: str) -> bool:
    try:
        return datetime.fromisoformat(one) == datetime.fromisoformat(other)
    except (ValueError, TypeError):
        return False
