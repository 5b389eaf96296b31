"""Has a Glue job create the table of an export's aggregates, or add the contract's new columns to it.

The job's own runs create the table too, but only when the first window is published, and Snowflake can show a
table only after it exists. One run of the job serves one request of CloudFormation, whose id it has as an
argument. So a start whose answer was lost is found again.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

import attrs

from lambdas import contract
from lambdas.shared import errors
from lambdas.shared.aws import raise_instead, translate_aws_errors
from lambdas.shared.clock import Clock
from lambdas.shared.errors import InProgress, ResourceFailed, shorten_detail

if TYPE_CHECKING:
    from mypy_boto3_glue import GlueClient
    from mypy_boto3_glue.type_defs import JobRunTypeDef

_SUCCEEDED: Final = "SUCCEEDED"
_FAILED: Final = ("ERROR", "EXPIRED", "FAILED", "STOPPED", "TIMEOUT")
#: The job has as many runs at a time as it may have.
_BUSY: Final = ("ConcurrentRunsExceededException",)


@attrs.frozen
class AggregateTable:
    """The properties name the `job`, the `export`, and its `columns`: other ones are another request."""

    glue: GlueClient
    clock: Clock
    properties: Mapping[str, Any]
    request_id: str

    def is_created(self) -> bool:
        """Return whether a run for this request has succeeded. Start one if there is none.

        Glue may list a run late, so there may be two. They want the same, so one that fails beside another
        proves nothing. Raises ResourceFailed if all have failed, InProgress while the job is busy, and
        Transient or Refused if AWS doesn't do it.
        """
        runs = self._list_runs()
        if not runs:
            self._start_run()
            return False
        if any(run["JobRunState"] == _SUCCEEDED for run in runs):
            return True
        failed = [run for run in runs if run["JobRunState"] in _FAILED]
        if len(failed) < len(runs):
            return False
        run = failed[0]
        reason = shorten_detail(run.get("ErrorMessage") or "Glue gives no reason")
        raise ResourceFailed(
            errors.AGGREGATE_TABLE, f"run {run['Id']} of job {self._job} is {run['JobRunState']}: {reason}"
        )

    @property
    def _job(self) -> str:
        return str(self.properties["job"])

    def _list_runs(self) -> list[JobRunTypeDef]:
        """Return the runs for this request."""
        with translate_aws_errors(f"listing the runs of job {self._job}"):
            runs = self.glue.get_job_runs(JobName=self._job, MaxResults=100)["JobRuns"]
        return [
            run for run in runs if run.get("Arguments", {}).get(contract.REQUEST_ARGUMENT) == self.request_id
        ]

    def _start_run(self) -> None:
        now = datetime.fromtimestamp(self.clock.time(), UTC)
        arguments = {
            "--export": str(self.properties["export"]),
            "--as-of": now.isoformat(timespec="seconds"),
            contract.REQUEST_ARGUMENT: self.request_id,
        }
        with (
            translate_aws_errors(f"starting job {self._job}"),
            raise_instead(_BUSY, lambda answer: InProgress(errors.WAITING, f"job {self._job}: {answer}")),
        ):
            self.glue.start_job_run(JobName=self._job, Arguments=arguments)
