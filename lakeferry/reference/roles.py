"""iam-roles.md: each role of a deployment, and all that it may do, from the matrix that the templates are held against."""

from __future__ import annotations

from itertools import groupby

from lakeferry.bootstrap import ROOT
from lakeferry.reference import markdown
from lakeferry.reference.markdown import code

TITLE = "IAM roles"
#: role | action | resource, a line each; tests/infra/test_matrix.py derives the same from the templates.
_MATRIX = ROOT / "tests" / "infra" / "golden" / "dev.txt"
_INTRO = """\
The roles of the deployment that `deployments/dev.toml` describes, and everything that they may do: what isn't here is denied. A
test evaluates the synthesised templates and fails when a right is added or lost. `stack.Name` is where a role or resource stands.
Who may assume the roles that vendors come to stands in [Who trusts whom](../explanation/trust.md); the rights of the export job
were proved sufficient and minimal ([IAM permissions](iam.md))."""


def text() -> str:
    rows = [line.split(" | ", 2) for line in _MATRIX.read_text(encoding="utf-8").splitlines()]
    return markdown.page(TITLE, _INTRO, *(_role(role, [row[1:] for row in of]) for role, of in groupby(rows, lambda row: row[0])))


def _role(name: str, rights: list[list[str]]) -> str:
    by_resource: dict[str, list[str]] = {}
    for action, resource in rights:
        by_resource.setdefault(resource, []).append(code(action))
    rows = [(resource, ", ".join(actions)) for resource, actions in by_resource.items()]
    return f"## {name}\n\n" + markdown.table(["on", "may"], rows)
