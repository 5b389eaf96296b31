"""`lakeferry diagram`."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from lakeferry.cli.app import CommandContext, command, command_group
from lakeferry.errors import CommandFailed
from lakeferry.local.bootstrap import ROOT

if TYPE_CHECKING:
    from lakeferry.deployment.diagram import Template

PAGE: Final = ROOT / "docs" / "explanation" / "infrastructure.md"
_TITLES: Final = {
    "data": "Where data lies",
    "confluent": "Kafka, Flink and Tableflow",
    "snowflake": "Snowflake",
    "exports": "Exports and mails",
    "operations": "Watch and alarms",
}
_INTRO: Final = """\
# The infrastructure

<!-- Made by `lakeferry diagram --write`. Change the stacks, not this page. -->

What `deployments/dev.toml` becomes, one picture a stack, from the templates that `make synth` writes. A box stands for all
resources of one type. An arrow leads from what needs something to what it needs; a dotted one leads into another stack.
Permissions, logs and what CDK adds for its own ends are left out.
"""
app: Final = command_group()


@command(app, stage=True, json_keys={"stage": "The deployment stage.", "diagrams": "Mermaid by the part of the deployment."})
def diagram(
    call: CommandContext,
    *,
    write: Annotated[bool, typer.Option("--write", help="Write docs/explanation/infrastructure.md.")] = False,
    check: Annotated[bool, typer.Option("--check", help="Fail if that page is out of date.")] = False,
    assembly: Annotated[Path, typer.Option(help="Where the templates are.")] = Path("cdk.out"),
) -> Mapping[str, Any]:
    """Draw the infrastructure as Mermaid, from the templates that `make synth` wrote."""
    from lakeferry.deployment import diagram as core
    from lakeferry.deployment.context import load_deployment

    prefix = load_deployment(call.stage).deployment.prefix
    try:
        templates = core.read(prefix, assembly)
    except core.NoTemplates as none:
        raise CommandFailed("NO-TEMPLATES", str(none), f"Run make synth STAGE={call.stage}") from None
    if check:
        require_fresh(templates)
        call.output.print("docs/explanation/infrastructure.md is up to date.")
    if write:
        PAGE.write_text(page(templates), encoding="utf-8")
        call.output.print("wrote docs/explanation/infrastructure.md")
    diagrams = core.draw(templates)
    if not call.output.as_json and not write and not check:
        for mermaid in diagrams.values():
            typer.echo(mermaid)
    return {"stage": call.stage, "diagrams": diagrams}


def page(templates: Mapping[str, Template]) -> str:
    from lakeferry.deployment.diagram import draw

    drawn = draw(templates)
    parts = [f"## {_TITLES[part]}\n\n```mermaid\n{mermaid}```\n" for part, mermaid in drawn.items()]
    return "\n".join([_INTRO, *parts])


def require_fresh(templates: Mapping[str, Template], file: Path = PAGE) -> None:
    """Raise CommandFailed if the page is out of date."""
    if not file.is_file() or file.read_text(encoding="utf-8") != page(templates):
        raise CommandFailed("DIAGRAM-STALE", f"{file.name} doesn't show the infrastructure of the templates")
