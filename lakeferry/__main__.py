"""The `lakeferry` command. Each command ends by reporting the result and the next step."""

from __future__ import annotations

import sys

import typer

from lakeferry.cli import (
    app as cli,
)
from lakeferry.cli import (
    cost,
    demo,
    deploy,
    destroy,
    diagram,
    doctor,
    explain,
    export_links,
    forget,
    init,
    interrupts,
    inventory,
    logs,
    plan,
    query,
    rehearse,
    rotate,
    secrets,
    status,
    topics,
    verify,
)

#: In the order in which `lakeferry --help` lists them.
_COMMANDS = (
    *(demo, rehearse, init, secrets, doctor, plan, deploy, status, verify, rotate, logs),
    *(topics, cost, export_links, query, inventory, diagram, explain, forget, destroy),
)
app = typer.Typer(
    name=cli.NAME,
    cls=cli.Root,
    callback=cli.common,
    help=(
        "Kafka topics on Confluent Cloud as Iceberg tables in your S3 bucket, and clean CSV files from "
        "them on a schedule."
    ),
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
for module in _COMMANDS:
    app.add_typer(module.app)


def main() -> None:
    interrupts.handle_signals()
    for stream in (sys.stdout, sys.stderr):
        stream.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]  # not every terminal shows every character
    app()


if __name__ == "__main__":
    main()
