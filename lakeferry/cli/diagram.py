"""`lakeferry diagram`."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Final

import typer

from lakeferry.cli import app as frame
from lakeferry.cli.app import CommandContext

app: Final = frame.commands()


@frame.command(app, stage=True, json_keys={"stage": "Whose it is.", "diagrams": "Mermaid by the part of the deployment."})
def diagram(
    call: CommandContext,
    *,
    write: Annotated[bool, typer.Option("--write", help="Write docs/explanation/infrastructure.md anew.")] = False,
    check: Annotated[bool, typer.Option("--check", help="Fail where that page shows something else.")] = False,
    assembly: Annotated[Path, typer.Option(help="Where the templates are.")] = Path("build/cdk.out"),
) -> Mapping[str, Any]:
    """The infrastructure as Mermaid, from the templates that `make synth` wrote."""
    from lakeferry.cli import diagram_commands  # noqa: PLC0415 - commands load what they need

    found = diagram_commands.told(call.output, call.stage, assembly, write=write, check=check)
    if not call.output.as_json and not write and not check:
        for mermaid in found["diagrams"].values():
            typer.echo(mermaid)
    return found
