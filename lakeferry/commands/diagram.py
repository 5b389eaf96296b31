"""`lakeferry diagram`."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Final

import typer

from lakeferry import frame
from lakeferry.frame import Call

app: Final = frame.commands()


@frame.command(app, stage=True, says={"stage": "Whose it is.", "diagrams": "Mermaid by the part of the deployment."})
def diagram(
    call: Call,
    *,
    write: Annotated[bool, typer.Option("--write", help="Write docs/explanation/infrastructure.md anew.")] = False,
    check: Annotated[bool, typer.Option("--check", help="Fail where that page shows something else.")] = False,
    assembly: Annotated[Path, typer.Option(help="Where the templates are.")] = Path("cdk.out"),
) -> Mapping[str, Any]:
    """The infrastructure as Mermaid, from the templates that `make synth` wrote."""
    from lakeferry import diagram_commands  # noqa: PLC0415 - commands load what they need

    found = diagram_commands.told(call.voice, call.stage, assembly, write=write, check=check)
    if not call.voice.as_json and not write and not check:
        for mermaid in found["diagrams"].values():
            typer.echo(mermaid)
    return found
