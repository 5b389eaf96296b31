"""Rows of the comparison page, and what their last column points to: pages, tests, commands, targets."""

from __future__ import annotations

import ast
import re
from pathlib import Path
from typing import NamedTuple

import docs_commands
import docs_reader
import typer

_CELLS = 7
_LINK = re.compile(r"\[([^\]]*)\]\(([^)\s]+)\)")
_CODE = re.compile(r"`([^`]+)`")


class Row(NamedTuple):
    number: int
    what: str
    here: str
    proofs: list[str]


def rows(page: str) -> list[Row]:
    """The table's rows that begin with a number. A proof is a link, `label](target`, or a piece of code."""
    found = []
    for line in page.splitlines():
        cells = [cell.strip() for cell in line.strip("|").split(" | ")]
        if len(cells) == _CELLS and (number := cells[0].strip()).isdecimal():
            found.append(Row(int(number), cells[1], cells[5], _proofs(cells[6].rstrip(" |"))))
    return found


def wrong(row: Row, page: Path, app: typer.Typer, makefile: Path) -> list[str]:
    """Proofs of the row that lead nowhere."""
    return [f"{row.number}: {proof}" for proof in row.proofs if _is_wrong(proof, page, app, makefile)]


def _proofs(cell: str) -> list[str]:
    links = ["](".join(found) for found in _LINK.findall(cell)]
    return [*links, *_CODE.findall(_LINK.sub("", cell))]


def _is_wrong(proof: str, page: Path, app: typer.Typer, makefile: Path) -> bool:
    if "](" in proof:
        label, _, target = proof.partition("](")
        return not docs_reader.leads_somewhere(page, target) or not _says(
            label.strip("`"), page.parent / target.partition("#")[0]
        )
    told = docs_commands.wrong_line(app, makefile, proof)
    return told is not None


def _says(label: str, file: Path) -> bool:
    """Whether a label that names a test, `file.py` or `file.py::function`, means the file that it leads to."""
    if not label.startswith("tests/"):
        return True
    name, _, function = label.partition("::")
    if not file.as_posix().endswith(name):
        return False
    tree = ast.parse(file.read_text(encoding="utf-8"))
    return not function or function in {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}
