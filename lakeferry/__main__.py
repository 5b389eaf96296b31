"""The operator's command line. Each command ends by saying what exists now and what to do next."""

from __future__ import annotations

import sys

import typer

from lakeferry.cli import app as frame
from lakeferry.cli.commands import ALL

app = typer.Typer(
    name=frame.NAME,
    cls=frame.Root,
    callback=frame.common,
    help="Kafka topics on Confluent Cloud as Iceberg tables in your S3 bucket, and clean CSV files from them on a schedule.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
for module in ALL:
    app.add_typer(module.app)


def main() -> None:
    for stream in (sys.stdout, sys.stderr):
        stream.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]  # a terminal may not know every character
    app()


if __name__ == "__main__":
    main()
