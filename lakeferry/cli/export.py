"""`lakeferry export …`."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import attrs
import typer

from config.exports.avro_schema import BadSchema
from config.project import PROJECT
from lakeferry.cli.app import CommandContext, command, command_group, complete_stages
from lakeferry.cli.target import open_target
from lakeferry.errors import BLOCKED, LATER, CommandFailed
from lakeferry.output import Output, find_program_name

if TYPE_CHECKING:
    from config.exports.contract import Contract
    from config.exports.topic_schema import TopicSchema
    from glue_jobs.runs import RunRecord
    from lakeferry.local.target import ExportTarget

#: Keys of the run's record, which docs/reference/manifest-and-run-record.md explains in detail.
_RUN: Final = {
    "source": "The database, bucket and region, or the demo, that the run used.",
    "id": "The run's id.",
    "export": "The contract's name.",
    "as_of": "The time by which a window must have ended to count as closed.",
    "started_at": "When the run began.",
    "expires_at": "The time after which the run publishes nothing more.",
    "state": "`done`, `blocked` or `failed`.",
    "reason": "The reason, if the run didn't succeed.",
    "ended_at": "When the run ended.",
    "windows": "The result of each window.",
    "working_on": "The window in progress; null when the run has ended.",
    "windows_left": "The number of windows that the run planned and didn't begin.",
    "phases": "The duration of each phase in seconds.",
    "asked": "The arguments `windows` and `only`, if the run was asked for certain windows; else null.",
    "job_run_id": "The id of the Glue job run; null outside Glue.",
    "host": "The name of the machine.",
    "pid": "The process id.",
}
app: Final = command_group("export", "Run and check exports.")


#: Options of the job that several commands have.
DryRun = Annotated[bool, typer.Option("--dry-run", help="Compute and check the files, but publish nothing.")]
AcceptFewerEvents = Annotated[
    bool,
    typer.Option(
        "--accept-fewer-events",
        help="Publish a window again although its table lost events that its published file has.",
    ),
]
AcceptWindowChange = Annotated[
    bool,
    typer.Option(
        "--accept-window-change",
        help="Publish a window although older windows were published by other rules of the contract.",
    ),
]
CompleteUntil = Annotated[
    str, typer.Option(help="State that the table has all events that Kafka received before this time.")
]
AsOf = Annotated[
    str,
    typer.Option(
        help=(
            "Publish windows that ended by this time, for instance 2026-11-16T06:00:00Z. With --stage, the "
            "default is now."
        )
    ),
]
DeployedStage = Annotated[
    str | None,
    typer.Option(
        "--stage",
        help="Run the Glue job of this deployment stage, instead of Spark on this machine.",
        autocompletion=complete_stages,
    ),
]


@command(app, json_keys=_RUN, exits=(LATER, BLOCKED))
def run(
    call: CommandContext,
    *,
    name: Annotated[
        str,
        typer.Argument(
            help="The name of a contract in project/exports/, or the path of another one on this machine."
        ),
    ],
    deployed: DeployedStage = None,
    as_of: AsOf = "",
    windows: Annotated[
        str,
        typer.Option(
            help="Publish these closed windows only: a range like 2026-W40..W44, or a list with commas."
        ),
    ] = "",
    wait: Annotated[
        bool | None,
        typer.Option("--wait/--no-wait", help="Whether to follow a run of --stage; by default, yes."),
    ] = None,
    dry_run: DryRun = False,
    accept_fewer_events: AcceptFewerEvents = False,
    accept_window_change: AcceptWindowChange = False,
    complete_until: CompleteUntil = "",
    table: Annotated[str, typer.Option(help="The table to read, if its name differs from the topic's.")] = "",
    out: Annotated[Path | None, typer.Option(help="Also copy the files to this folder.")] = None,
    master: Annotated[
        str | None,
        typer.Option(help="The Spark master, like local[4], spark://HOST:PORT or yarn. Default: local[2]."),
    ] = None,
) -> Mapping[str, Any]:
    """Publish every closed window that needs it: with --stage by the Glue job of a deployment, without it on
    this machine, in the bucket that environment variables name, or in the last demo.
    """
    arguments = build_job_arguments(
        as_of=as_of,
        windows=windows,
        table=table,
        complete_until=complete_until,
        dry_run=dry_run,
        accept_fewer_events=accept_fewer_events,
        accept_window_change=accept_window_change,
    )
    if deployed:
        from lakeferry.exports.run import run_export

        if out or master:
            message = "--out and --master are for a run on this machine, and --stage runs the job in Glue"
            raise CommandFailed("USAGE", message, "Leave them out, or leave out --stage")
        return run_export(call.output, deployed, name, wait=wait is not False, arguments=arguments)
    if wait is not None:
        raise CommandFailed("USAGE", "--wait and --no-wait need --stage", "Give --stage too")
    if not as_of:
        hint = "Name the time, or a deployed --stage, where the default is now"
        raise CommandFailed("USAGE", "Missing option '--as-of'", hint)
    return _run_here(call.output, name, arguments, out=out, master=master or "local[2]")


def build_job_arguments(**options: str | bool) -> dict[str, str]:
    """Return the arguments of the job for options that were given, without hyphens in front."""
    return {
        name.replace("_", "-"): str(value).lower() if value is True else str(value)
        for name, value in options.items()
        if value
    }


def _run_here(
    output: Output, name: str, arguments: Mapping[str, str], *, out: Path | None, master: str
) -> Mapping[str, Any]:
    """Run the job on this machine. Raises CommandFailed."""
    from lakeferry.local import export, results
    from lakeferry.local.target import require_writable

    if "dry-run" in arguments and out:
        raise CommandFailed(
            "USAGE", "--dry-run publishes nothing, so --out has nothing to copy", "Give one of them"
        )
    words = ["--export", name]
    for argument, value in arguments.items():
        words += [f"--{argument}", value]
    if out:
        require_writable(out)
    with open_target() as target, export.open_spark(output, master):
        output.info(f"Working in {target.source}")
        record = export.run(output, target, words, "export")
        files = export.download(target, record, out) if out else []
    _report_run(output, target, record, files)
    if failure := results.find_failure(record):
        raise failure
    return {"source": target.source, **attrs.asdict(record)}


def _report_run(output: Output, target: ExportTarget, record: RunRecord, files: Sequence[Path]) -> None:
    """Print what became of each window, and where the record and the copied files are."""
    from lakeferry.local import results
    from lakeferry.local.target import shorten_path

    if not record.windows:
        output.print("Nothing to do: every closed window is published and final.")
    output.table(["export", "window", "state", "rows", "totals"], results.summarize(record))
    for line in results.describe_left_out(record):
        output.print(line)
    for note in results.list_notes(record):
        output.print(note)
    if record.windows_left:
        output.print(
            f"The run did not begin {record.windows_left} more windows; run again to continue with them."
        )
    for file in files:
        output.print(f"wrote {shorten_path(file)}")
    if not target.embedded_url:  # nobody can open a bucket of the demo, which ends with the command
        output.print(f"Record: s3://{target.bucket}/{target.prefix}/{record.key}")


@command(
    app,
    json_keys={
        "name": "The contract's name.",
        "columns": "Names of its columns.",
        "personal": "Columns with personal data, with their treatment.",
        "unique": "The columns that identify a row; empty if the contract doesn't say it.",
    },
)
def check(
    call: CommandContext,
    *,
    file: Annotated[
        Path, typer.Argument(help="The path of a contract, or the name of one in project/exports/.")
    ],
    schema: Annotated[
        Path | None, typer.Option(help="The Avro schema of its topic. Default: that in project/topics/.")
    ] = None,
) -> Mapping[str, Any]:
    """Check a contract: report all mistakes at once, by key and line."""
    from config.exports import check as checks
    from config.exports import contracts
    from config.toml_model import BadFile
    from glue_jobs.delivery.personal_scan import require_patterns
    from glue_jobs.errors import ExportError
    from lakeferry.local.judge import open_judge
    from lakeferry.local.target import shorten_path

    output = call.output
    if str(file) in contracts.names():
        file = Path(shorten_path(PROJECT / "exports" / f"{file}.toml"))
    elif not file.exists():
        hint = (
            "Give the path of a contract, or the name of one in project/exports/: "
            f"{', '.join(contracts.names())}"
        )
        raise CommandFailed("EXP-CONTRACT", f"there is no file {file}", hint)
    try:
        topic = _read_topic(file) or contracts.load(str(file)).source.topic
        fields = _load_schema(topic, schema)
        with open_judge() as judge, output.step("Checking the contract"):
            contract = checks.check_file(file, fields, judge)
        require_patterns(contract)
    except BadFile as bad:
        mistakes = [attrs.asdict(problem) for problem in bad.problems]
        raise CommandFailed("EXP-CONTRACT", str(bad), "Correct the contract", details=mistakes) from None
    except BadSchema as error:
        hint = "Give the topic's Avro schema with --schema FILE"
        raise CommandFailed("EXP-SCHEMA", str(error), hint) from None
    except ExportError as error:
        raise CommandFailed(error.code, error.what, error.remedy) from None
    treated = [f"{c.name} ({c.personal.treatment})" for c in contract.column if c.personal]
    _report_contract(output, file, contract, treated)
    own = f" --events EVENTS.jsonl --topic {topic} --schema {schema}" if schema else ""
    output.print(f"Next: {find_program_name()} demo --export {file}{own}")
    return {
        "name": contract.name,
        "columns": [column.name for column in contract.columns],
        "personal": treated,
        "unique": contract.unique,
    }


def _report_contract(output: Output, file: Path, contract: Contract, treated: Sequence[str]) -> None:
    output.print(
        f"{file}: {contract.title}, {len(contract.columns)} columns, every "
        f"{contract.window.every.replace('_', ' ')}."
    )
    output.print(f"Personal data: {', '.join(treated) or 'none'}.")
    if contract.unique:
        output.print(f"Two rows never have the same {', '.join(contract.unique)}.")
    else:
        output.print(
            f'Note: no key is checked, so a row may occur twice although the grain is "{contract.grain}". '
            'Name the columns that identify a row: unique = ["…"]'
        )
    if contract.window.filter_stage == "after_deduplication":
        output.print("The window is applied after deduplication: each run reads the whole table.")


@command(
    app,
    "list",
    json_keys={
        "exports": (
            "Name, title and topic of each export. With --stage also: version, cron, zone, last (id, began, "
            "state), next_run, windows (window, state, generation, rows; the newest first), older (how many "
            "windows are not listed), missing (all windows without a file, as ranges)."
        ),
        "broken": "Names of contracts with mistakes.",
    },
)
def listed(
    call: CommandContext,
    *,
    deployed: Annotated[
        str | None,
        typer.Option(
            "--stage",
            help="List the exports of this deployment stage, with their runs and windows.",
            autocompletion=complete_stages,
        ),
    ] = None,
    everything: Annotated[
        bool, typer.Option("--all", help="List all windows of --stage, instead of the ten newest.")
    ] = False,
) -> Mapping[str, Any]:
    """List the exports in project/exports/ or, with --stage, those of a deployment with their windows."""
    from config.exports import contracts

    if deployed:
        from lakeferry.exports.listing import list_exports

        return list_exports(call.output, deployed, everything=everything)
    if everything:
        raise CommandFailed("USAGE", "--all needs --stage", "Give --stage too")
    found, broken = contracts.load_all()
    rows = [[c.name, c.title, c.source.topic, c.window.every.replace("_", " "), c.grain] for c in found]
    call.output.table(["export", "title", "topic", "window", "grain"], rows)
    for name in broken:
        call.output.warn(
            f"! project/exports/{name}.toml has mistakes: "
            f"`{find_program_name()} export check {name}` names them"
        )
    return {
        "exports": [{"name": c.name, "title": c.title, "topic": c.source.topic} for c in found],
        "broken": broken,
    }


def _load_schema(topic: str, file: Path | None) -> TopicSchema:
    """Return the topic's schema from the file or from project/topics/, or the one that Flink will register
    for the table that a statement in project/flink/ creates.

    Raises BadSchema, and CommandFailed if nothing shows the schema.
    """
    from config.deployments import flink_origins
    from config.deployments.lineage import Unknown
    from config.deployments.sources import Sources
    from config.exports import topic_schema
    from config.exports.check import NOT_JUDGED

    sources = Sources(PROJECT, NOT_JUDGED)
    files = {path.stem: path for path in sorted((PROJECT / "topics").glob("*.avsc"))}
    if file or topic in files:
        return flink_origins.with_origins(topic_schema.load(file or files[topic], topic), sources)
    try:
        return flink_origins.derive_schema(topic, sources)
    except Unknown as unknown:
        hint = f"Give its Avro schema with --schema FILE. project/topics/ has: {', '.join(files)}"
        message = f"project/topics/ has no schema of {topic}: {unknown}"
        raise CommandFailed("EXP-SCHEMA", message, hint) from None


def _read_topic(file: Path) -> str | None:
    """Return the topic that a contract reads, None if the file has no valid one.

    An invalid contract often still names its topic; with the topic's schema, all its mistakes can be reported
    together.
    """
    try:
        topic = tomllib.loads(file.read_text(encoding="utf-8"))["source"]["topic"]
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return topic if isinstance(topic, str) else None
