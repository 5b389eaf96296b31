"""`lakeferry doctor`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any, Final

import attrs
import typer

from lakeferry.cli.app import CommandContext, command, command_group
from lakeferry.errors import CommandFailed
from lakeferry.output import Output, find_program_name

if TYPE_CHECKING:
    from lakeferry.health.model import Check
    from lakeferry.health.runner import Probe

#: The mark for each result of a check.
_MARKS: Final = {"ok": "✓", "warn": "!", "fail": "✗", "skip": "–"}
_INDENT: Final = "      "
app: Final = command_group()


@command(
    app,
    stage=True,
    json_keys={
        "stage": "The deployment stage.",
        "checks": (
            "Each check: group, name, result (`ok`, `warn`, `fail`, or `skip` where it can't be checked "
            "yet), message, needed, fix, caused_by (the check whose failure caused this one to fail), "
            "is_seen (false if what it is about could not be seen)."
        ),
        "topics": (
            "With --discover, each topic of the existing cluster: name, partitions, cleanup_policy, "
            "retention_ms, value_schema and key_schema (the type, `none` or `unknown`), tableflow (`off`, "
            "`unknown`, or state and storage), in_file, and needs (what an export of it would need)."
        ),
    },
)
def doctor(
    call: CommandContext,
    *,
    discover: Annotated[
        bool, typer.Option("--discover", help="Only list the topics of the existing cluster.")
    ] = False,
) -> Mapping[str, Any]:
    """Check what a deployment needs: tools, keys, permissions, and each step of the trust between the vendors
    and AWS.
    """
    if discover:
        return _discover(call)
    checks = _run_checks(call.output, call.stage)
    show(call.output, checks)
    document = {"stage": call.stage, "checks": [attrs.asdict(check) for check in checks], "topics": []}
    require_healthy(checks, document)
    return document


def _discover(call: CommandContext) -> Mapping[str, Any]:
    from lakeferry.deployment.context import open_unchecked_context
    from lakeferry.topics.discovery import open_cluster

    with open_unchecked_context(call.stage) as ctx:
        cluster = open_cluster(ctx)
        with call.output.step(f"Reading the topics of {cluster.id}"):
            topics = cluster.list_topics([topic.name for topic in ctx.deployment.topics])
    call.output.print(f"Kafka cluster {cluster.id}: {len(topics)} topics that the key may see")
    if topics:
        names = ["topic", "partitions", "cleanup", "retention ms", "value", "key", "Tableflow", "needs"]
        rows = [
            [
                *(topic.name, str(topic.partitions), topic.cleanup_policy, topic.retention_ms),
                *(topic.value_schema, topic.key_schema, topic.tableflow, topic.needs),
            ]
            for topic in topics
        ]
        call.output.table(names, rows)
    call.output.print(
        f"Next: `{find_program_name()} topics import TOPIC --stage {call.stage}` adds a topic to the file, "
        "with its schema"
    )
    return {"stage": call.stage, "checks": [], "topics": [attrs.asdict(topic) for topic in topics]}


def _run_checks(output: Output, stage: str) -> list[Check]:
    from lakeferry.deployment.context import open_context
    from lakeferry.health import tools
    from lakeferry.health.doctor import list_machine_probes, list_probes

    try:
        with open_context(stage) as ctx:
            return _run(output, list_probes(ctx))
    except CommandFailed as failure:
        if failure.code != "DEPLOYMENT-FILE":
            raise
        return [*_run(output, list_machine_probes()), *tools.report_invalid_file(failure)]


def _run(output: Output, probes: Sequence[Probe]) -> list[Check]:
    from lakeferry.health.runner import run

    with output.step("Checking") as report:
        return run(probes, report)


def show(output: Output, checks: Sequence[Check]) -> None:
    """Show each check on one line, followed by what is needed and how to fix it, if it has these."""
    for group in dict.fromkeys(check.group for check in checks):
        output.print(group)
        of_group = [check for check in checks if check.group == group]
        for check in _shorten_skipped(of_group):
            for line in format_lines(check, marks=output.out.is_terminal):
                output.print(line)
    counted = Counter(str(check.result) for check in checks)
    output.print(f"{counted['ok']} ok, {counted['warn']} with warnings, {counted['fail']} failed")


def _shorten_skipped(checks: list[Check]) -> list[Check]:
    """Return a single check if all checks of a group were skipped for the same reason."""
    if len(checks) > 1 and {(check.result, check.message) for check in checks} == {
        ("skip", checks[0].message)
    }:
        return [attrs.evolve(checks[0], name=f"{len(checks)} checks")]
    return checks


def format_lines(check: Check, *, marks: bool) -> list[str]:
    mark = _MARKS[check.result] if marks else f"{check.result:<4}"
    lines = [f"  {mark} {check.name}: {check.message}"]
    if check.needed:
        lines.append(f"{_INDENT}needed: {check.needed}")
    if check.fix:
        lines.append(f"{_INDENT}→ {check.fix}")
    return lines


def require_healthy(checks: Sequence[Check], document: Any) -> None:
    """Raise CommandFailed if a check failed. It names the failed checks that no other check caused."""
    failed = [check for check in checks if check.result == "fail"]
    if not failed:
        return
    roots = [check for check in failed if check.is_root]
    names = ", ".join(f"{check.group}: {check.name}" for check in roots)
    raise CommandFailed("DOCTOR", f"failed: {names}", roots[0].fix, document)
