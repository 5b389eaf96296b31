"""From what Glue says of a job's run to the records that it wrote."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, Final, Protocol

import attrs

from lambdas.shared.aws import told
from lambdas.shared.s3 import Objects

#: A run's id begins with the time at which its record was begun.
_ID_TIME: Final = "%Y%m%dT%H%M%SZ"
#: Clocks of Glue and of its workers.
_SKEW: Final = timedelta(seconds=90)


class Glue(Protocol):
    def get_job_run(self, **asked: Any) -> Any: ...


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


def ask(glue: Glue, job: str, job_run_id: str) -> GlueRun:
    with told(f"asking for run {job_run_id} of job {job}"):
        run: Mapping[str, Any] = glue.get_job_run(JobName=job, RunId=job_run_id)["JobRun"]
    ended = run.get("CompletedOn")
    return GlueRun(
        job_run_id=job_run_id,
        started=run["StartedOn"].astimezone(UTC),
        ended=ended.astimezone(UTC) if ended else None,
        as_of=str((run.get("Arguments") or {}).get("--as-of") or ""),
    )


def records(objects: Objects, folder: str, run: GlueRun) -> Iterator[dict[str, Any]]:
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
