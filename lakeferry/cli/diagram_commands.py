"""`lakeferry diagram`, and the page that it keeps."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from lakeferry.deployment import diagram
from lakeferry.deployment.context import load_deployment
from lakeferry.deployment.diagram import NoTemplates, Template
from lakeferry.errors import CommandFailed
from lakeferry.local.bootstrap import ROOT
from lakeferry.output import Output

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


def told(output: Output, stage: str, assembly: Path, *, write: bool, check: bool) -> dict[str, Any]:
    """Raises CommandFailed where nothing was synthesised, or the page differs from what would be written."""
    prefix = load_deployment(stage).deployment.prefix
    try:
        templates = diagram.read(prefix, assembly)
    except NoTemplates as none:
        raise CommandFailed("NO-TEMPLATES", str(none), f"Run make synth STAGE={stage}") from None
    if check:
        require_fresh(templates)
        output.print("docs/explanation/infrastructure.md is as the templates are.")
    if write:
        PAGE.write_text(page(templates), encoding="utf-8")
        output.print("wrote docs/explanation/infrastructure.md")
    return {"stage": stage, "diagrams": diagram.draw(templates)}


def page(templates: Mapping[str, Template]) -> str:
    drawn = diagram.draw(templates)
    parts = [f"## {_TITLES[part]}\n\n```mermaid\n{mermaid}```\n" for part, mermaid in drawn.items()]
    return "\n".join([_INTRO, *parts])


def require_fresh(templates: Mapping[str, Template], file: Path = PAGE) -> None:
    """Raises CommandFailed."""
    if not file.is_file() or file.read_text(encoding="utf-8") != page(templates):
        raise CommandFailed("DIAGRAM-STALE", f"{file.name} shows another infrastructure than the templates")
