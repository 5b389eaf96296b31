"""The operator's command line. Each command ends by saying what exists now and what to do next."""

from __future__ import annotations

from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from lakeferry import __version__
from lakeferry.console import WRONG_INPUT, CommandFailed, Voice, told

app = typer.Typer(
    help="Kafka topics on Confluent Cloud as Iceberg tables in your S3 bucket, and clean CSV files from them on a schedule.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
export_app = typer.Typer(help="Run and check exports.", no_args_is_help=True)
app.add_typer(export_app, name="export")

AsJson = Annotated[bool, typer.Option("--json", help="One JSON document on standard output.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Only results and errors.")]


class Catalog(StrEnum):
    """`tableflow` is Confluent's own Iceberg REST catalog, entered with the key that LAKEFERRY_TABLEFLOW_SECRET names."""

    GLUE = "glue"
    TABLEFLOW = "tableflow"


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"lakeferry {__version__}")
        raise typer.Exit


@app.callback()
def common(
    version: Annotated[bool, typer.Option("--version", callback=_version, is_eager=True, help="Show it.")] = False,
) -> None:
    """Options of all commands."""


@app.command()
def demo(
    events: Annotated[Path | None, typer.Option(help="A JSON Lines file of your own events, in the topic's shape.")] = None,
    topic: Annotated[str | None, typer.Option(help="The topic that the events belong to.")] = None,
    schema: Annotated[Path | None, typer.Option(help="The Avro schema of a topic of your own.")] = None,
    export: Annotated[str | None, typer.Option(help="One export only: a shipped one's name, or the path of yours.")] = None,
    as_of: Annotated[
        str | None, typer.Option(help="Windows that ended by then are published, like 2026-11-16T06:00:00Z.")
    ] = None,
    out: Annotated[Path, typer.Option(help="Where the files go.")] = Path("out"),
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Try it without any account: events become Iceberg tables, and the tables become files."""
    from lakeferry import demo as demos  # noqa: PLC0415 - commands load what they need

    voice = Voice(as_json=as_json, quiet=quiet)
    with told(voice):
        wishes = demos.Wishes(events=events, topic=topic, schema=schema, export=export, as_of=_instant(as_of), out=out)
        voice.document(True, **demos.demo(voice, wishes))


@export_app.command("run")
def export_run(
    name: Annotated[str, typer.Argument(help="A shipped export's name, or the path of yours.")],
    as_of: Annotated[str, typer.Option(help="Windows that ended by then are published, like 2026-11-16T06:00:00Z.")],
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Compute and check, publish nothing.")] = False,
    table: Annotated[str, typer.Option(help="The table to read, where its name is not the topic's.")] = "",
    out: Annotated[Path | None, typer.Option(help="Copy the files here as well.")] = None,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Publish every closed window that needs it, in the AWS that the environment names (or the last demo's)."""
    from lakeferry import export_commands  # noqa: PLC0415

    voice = Voice(as_json=as_json, quiet=quiet)
    with told(voice):
        words = ["--export", name, "--as-of", as_of, "--table", table, "--dry-run", str(dry_run).lower()]
        voice.document(True, **export_commands.run(voice, words, out))


@export_app.command("check")
def export_check(
    file: Annotated[Path, typer.Argument(help="The contract.")],
    schema: Annotated[Path | None, typer.Option(help="The Avro schema of its topic; else the shipped one.")] = None,
    as_json: AsJson = False,
) -> None:
    """Check a contract before anything runs: all mistakes at once, by key and line."""
    from lakeferry import export_commands  # noqa: PLC0415

    voice = Voice(as_json=as_json)
    with told(voice):
        voice.document(True, **export_commands.check(voice, file, schema))


@export_app.command("list")
def export_list(as_json: AsJson = False) -> None:
    """The exports that ship with Lakeferry."""
    from lakeferry import export_commands  # noqa: PLC0415

    voice = Voice(as_json=as_json)
    with told(voice):
        voice.document(True, **export_commands.listed(voice))


@app.command()
def cost(
    stage: Annotated[str, typer.Option(help="Whose deployment file: deployments/STAGE.toml.")] = "dev",
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """What a deployment file costs a month, before anything is made: a range, rates by use, and what is left out."""
    from lakeferry import cost_commands  # noqa: PLC0415

    voice = Voice(as_json=as_json, quiet=quiet)
    with told(voice):
        voice.document(True, **cost_commands.told(voice, stage))


@app.command()
def diagram(
    stage: Annotated[str, typer.Option(help="Whose templates: those of deployments/STAGE.toml.")] = "dev",
    write: Annotated[bool, typer.Option("--write", help="Write docs/explanation/infrastructure.md anew.")] = False,
    check: Annotated[bool, typer.Option("--check", help="Fail where that page shows something else.")] = False,
    assembly: Annotated[Path, typer.Option(help="Where the templates are.")] = Path("build/cdk.out"),
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """The infrastructure as Mermaid, from the templates that `make synth` wrote."""
    from lakeferry import diagram_commands  # noqa: PLC0415

    voice = Voice(as_json=as_json, quiet=quiet)
    with told(voice):
        found = diagram_commands.told(voice, stage, assembly, write=write, check=check)
        voice.document(True, **found)
        if not as_json and not write and not check:
            for mermaid in found["diagrams"].values():
                typer.echo(mermaid)


@app.command()
def query(
    sql: Annotated[str, typer.Argument(help="One SELECT.")],
    catalog: Annotated[Catalog, typer.Option(help="Where the tables are looked up.")] = Catalog.GLUE,
    as_json: AsJson = False,
) -> None:
    """Ask the Iceberg tables a question, with DuckDB."""
    from lakeferry import query as queries  # noqa: PLC0415
    from lakeferry import world  # noqa: PLC0415

    voice = Voice(as_json=as_json)
    with told(voice), world.current() as here:
        answer = queries.query(here, sql) if catalog is Catalog.GLUE else queries.query_tableflow(sql)
        voice.document(True, columns=answer.columns, rows=answer.rows)
        if not as_json:
            queries.show(answer)


def _instant(text: str | None) -> datetime | None:
    if text is None:
        return None
    try:
        instant = datetime.fromisoformat(text)
    except ValueError:
        instant = None
    if instant is None or instant.tzinfo is None:
        hint = "Write it like 2026-11-16T06:00:00Z"
        raise CommandFailed(WRONG_INPUT, "AS-OF", f"--as-of {text!r} is not a time with an offset", hint)
    return instant.astimezone(UTC)


def main() -> None:
    app()


if __name__ == "__main__":
    main()
