"""Read the logs of a deployment: of its functions, by their purpose, and of the runs of its exports."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime
from typing import Any, Final

import attrs
from botocore.exceptions import ClientError

from lakeferry.deployment import stacks as deployed
from lakeferry.deployment.context import DeploymentContext
from lakeferry.error_translation import translate_aws_errors
from lakeferry.errors import CommandFailed
from lambdas import contract
from lambdas.shared.aws import read_error_code
from lambdas.shared.redaction import redact

#: Names of functions for users, each with the parts of the deployment and the handler in each.
FUNCTIONS: Final = {
    "confluent": (("confluent", contract.CUSTOM_RESOURCE),),
    "snowflake": (("snowflake", contract.CUSTOM_RESOURCE),),
    "rotation": (
        ("confluent", contract.ROTATE),
        ("snowflake", contract.ROTATE),
        ("exports", contract.ROTATE),
    ),
    "notification": (("exports", contract.NOTIFY),),
    "links": (("exports", contract.OPEN_LINK),),
    "watch": (("operations", contract.WATCH),),
}
#: Those that only a deployment with links has.
_OF_LINKS: Final = (("exports", contract.ROTATE), ("exports", contract.OPEN_LINK))
#: Log groups of a Glue job run, below the deployment's prefix.
_GLUE: Final = ("output", "error")
#: How many runs are read to find the newest ones: Glue's documentation doesn't say in which order it returns
#: runs.
_RUNS: Final = 50
_STREAMS: Final = 20
#: Glue's states of a run that hasn't ended.
_ACTIVE: Final = ("STARTING", "RUNNING", "STOPPING", "WAITING")
#: Seconds between two looks at the log of a run, and how many follow after its end.
_FOLLOW_SECONDS: Final = 5.0
_LOOKS_AFTER_END: Final = 2
_PAGE: Final = 1000
#: Lines that the Lambda service writes for each invocation. Of functions that log JSON, these are objects
#: with a platform type.
_PLATFORM_LINE: Final = re.compile(
    r'(START|END|REPORT) RequestId|INIT_START|\{"time": ?"[^"]*", ?"type": ?"platform\.'
)


@attrs.frozen
class Line:
    """A line of a log. `at` is in seconds since 1970; `stream` is the CloudWatch log stream."""

    at: float
    stream: str
    text: str

    @property
    def moment(self) -> str:
        return datetime.fromtimestamp(self.at, UTC).strftime("%Y-%m-%d %H:%M:%S")

    @property
    def fields(self) -> dict[str, Any]:
        """Return the fields of a line that is a JSON object, {} for any other line."""
        try:
            document = json.loads(self.text)
        except ValueError:
            return {}
        return document if isinstance(document, dict) else {}


@attrs.frozen
class Run:
    """A run of an export, or the lines of functions, without an id.

    `group` has the names of the log groups, or their prefix.
    """

    id: str
    state: str
    began: str
    lines: list[Line]
    group: str


def list_sources(ctx: DeploymentContext) -> list[str]:
    """Return the names that `of` accepts."""
    exports = [export.contract for export in ctx.deployment.exports]
    if ctx.deployment.shows_aggregates:
        exports.append(contract.AGGREGATE_TABLES)
    return [*exports, *(name for name in FUNCTIONS if _list_handlers(ctx, name))]


def _list_handlers(ctx: DeploymentContext, name: str) -> list[tuple[str, str]]:
    """Return the parts of the deployment that have the function, each with its handler."""
    has_links = bool(ctx.deployment.exports_with_links)
    return [
        place for place in FUNCTIONS[name] if place[0] in ctx.parts and (has_links or place not in _OF_LINKS)
    ]


def read_runs(ctx: DeploymentContext, name: str, last: int, *, everything: bool = False) -> list[Run]:
    """Return the last runs of an export, the newest first, or one Run with the last lines of a function.
    Raises CommandFailed.

    `last` is the number of runs or of lines. With `everything`, the lines that the Lambda service writes are
    included.
    """
    if name not in list_sources(ctx):
        message = f"no function or export of this deployment is called {name!r}"
        raise CommandFailed("LOGS-UNKNOWN", message, f"There are: {', '.join(list_sources(ctx))}")
    with translate_aws_errors(f"reading logs of {name}"):
        if name not in FUNCTIONS:
            return list(_read_export_logs(ctx, name, last))
        run = _read_function_logs(ctx, name)
    lines = [line for line in run.lines if everything or not _PLATFORM_LINE.match(line.text)]
    return [attrs.evolve(run, lines=lines[-last:])]


def follow_run(ctx: DeploymentContext, name: str, show: Callable[[Line], object]) -> Run | None:
    """Show the lines of an export's newest run as they are written, until it has ended. Return the run with
    all its lines, None if there is none yet. Raises CommandFailed.

    CloudWatch shows lines some seconds after they were written, so the log is read again after the end.
    """
    if name in FUNCTIONS:
        message = f"{name} is a function, which has no runs that end"
        raise CommandFailed("USAGE", message, "Name an export with --follow")
    newest = read_runs(ctx, name, 1)
    if not newest:
        return None
    (run,) = newest
    shown: Counter[str] = Counter()
    looks = _LOOKS_AFTER_END
    while True:
        counted: Counter[str] = Counter()
        for line in run.lines:
            counted[line.stream] += 1
            if counted[line.stream] > shown[line.stream]:
                show(line)
        shown = counted
        if run.state not in _ACTIVE:
            if not looks:
                return run
            looks = looks - 1
        ctx.clock.sleep(_FOLLOW_SECONDS)
        with translate_aws_errors(f"reading logs of {name}"):
            run = _read_run(ctx, name, run)


def _read_run(ctx: DeploymentContext, name: str, run: Run) -> Run:
    """Return the run as it is now. Raises ClientError, BotoCoreError."""
    job = f"{ctx.deployment.prefix}-{name}"
    state = ctx.client("glue").get_job_run(JobName=job, RunId=run.id)["JobRun"]["JobRunState"]
    return attrs.evolve(run, state=state, lines=_read_lines(ctx, run.group, run.id))


def _read_lines(ctx: DeploymentContext, prefix: str, run_id: str) -> list[Line]:
    return _sort_lines(line for part in _GLUE for line in _read_run_logs(ctx, f"{prefix}/{part}", run_id))


def read_function_lines(ctx: DeploymentContext, group: str, since: float) -> Iterator[Line]:
    """Yield the lines of a log group since a time in seconds since 1970, the oldest first.

    Raises ClientError, BotoCoreError.
    """
    pages = (
        ctx.client("logs")
        .get_paginator("filter_log_events")
        .paginate(logGroupName=group, startTime=int(since * 1000))
    )
    for page in pages:
        yield from (_parse_line(event, event.get("logStreamName", "")) for event in page["events"])


def _read_function_logs(ctx: DeploymentContext, name: str) -> Run:
    places = [(deployed.require_part(ctx, part), handler) for part, handler in _list_handlers(ctx, name)]
    groups: list[str] = []
    for stack, handler in places:
        functions = deployed.list_functions(ctx, stack, handler)
        groups += [function.log_group for function in functions]
    lines = _sort_lines(line for group in groups for line in _read_newest_lines(ctx, group))
    return Run("", "", "", lines, ", ".join(groups))


def _read_export_logs(ctx: DeploymentContext, name: str, last: int) -> Iterator[Run]:
    job = f"{ctx.deployment.prefix}-{name}"
    prefix = f"/aws-glue/{ctx.deployment.prefix}"
    deployed.require_part(ctx, "exports")
    most = max(last, _RUNS)
    pages = (
        ctx.client("glue")
        .get_paginator("get_job_runs")
        .paginate(JobName=job, PaginationConfig={"MaxItems": most})
    )
    runs = [run for page in pages for run in page["JobRuns"]]
    for run in sorted(runs, key=lambda run: run["StartedOn"], reverse=True)[:last]:
        lines = _read_lines(ctx, prefix, run["Id"])
        yield Run(
            run["Id"],
            run["JobRunState"],
            run["StartedOn"].astimezone(UTC).isoformat(timespec="seconds"),
            lines,
            prefix,
        )


def _read_run_logs(ctx: DeploymentContext, group: str, run_id: str) -> Iterator[Line]:
    """Yield all lines of a run.

    The driver's log stream has the name of the run; names of executors' streams begin with it.
    """
    client = ctx.client("logs")
    for stream in _list_streams(client, group, logStreamNamePrefix=run_id):
        pages = client.get_paginator("filter_log_events").paginate(
            logGroupName=group, logStreamNames=[stream]
        )
        for page in pages:
            yield from (_parse_line(event, stream) for event in page["events"])


def _read_newest_lines(ctx: DeploymentContext, group: str) -> Iterator[Line]:
    client = ctx.client("logs")
    for stream in _list_streams(client, group, _STREAMS, orderBy="LastEventTime", descending=True):
        page = client.get_log_events(
            logGroupName=group, logStreamName=stream, startFromHead=False, limit=_PAGE
        )
        yield from (_parse_line(event, stream) for event in page["events"])


def _list_streams(client: Any, group: str, most: int | None = None, **query: Any) -> list[str]:
    paginator = client.get_paginator("describe_log_streams")
    try:
        pages = paginator.paginate(logGroupName=group, PaginationConfig={"MaxItems": most}, **query)
        return [stream["logStreamName"] for page in pages for stream in page["logStreams"]]
    except ClientError as error:
        if read_error_code(error) == "ResourceNotFoundException":  # nothing has been written yet
            return []
        raise


def _sort_lines(lines: Iterable[Line]) -> list[Line]:
    """Sort lines by time. Lines of the same time keep their order."""
    return sorted(lines, key=lambda line: line.at)


def _parse_line(event: dict[str, Any], stream: str) -> Line:
    return Line(event["timestamp"] / 1000, stream, redact(event["message"].rstrip("\n")))
