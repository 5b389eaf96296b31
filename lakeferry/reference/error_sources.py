"""Where the sources raise which error code, and which exit codes each can lead to: read from their syntax, nothing is run."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

import attrs

from glue_jobs import errors
from lakeferry import console

_PACKAGES: Final = ("glue_jobs", "lakeferry")
_LAMBDAS: Final = "lambdas"
_HERE: Final = Path("lakeferry") / "reference"
_CODE: Final = re.compile(r"[A-Z]{2,}(-[A-Z]+)*")


@attrs.define
class Source:
    """`places` are files by their path in the tree; `exits` what an error that is made there ends a command or job with."""

    places: set[str] = attrs.field(factory=set)
    exits: set[int] = attrs.field(factory=set)


NOWHERE: Final = Source()


def found(root: Path) -> dict[str, Source]:
    codes: dict[str, Source] = {}
    for file, tree in _trees(root, _PACKAGES):
        for name, exits in _of_file(tree):
            source = codes.setdefault(name, Source())
            source.places.add(str(file))
            source.exits |= exits
    for _, kind, name, _, _ in errors._KNOWN:
        if name in codes:
            codes[name].exits.add(kind.exit_code)
    for code, places in _rows(root).items():
        codes.setdefault(code, Source()).places.update(places)
    return codes


def _trees(root: Path, packages: tuple[str, ...]) -> Iterator[tuple[Path, ast.Module]]:
    for file in (file for package in packages for file in sorted((root / package).rglob("*.py"))):
        place = file.relative_to(root)
        if not place.is_relative_to(_HERE):
            yield place, ast.parse(file.read_text(encoding="utf-8"))


def _of_file(tree: ast.Module) -> Iterator[tuple[str, set[int]]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and "-" in node.value and _CODE.fullmatch(node.value):
            yield node.value, set()
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            yield from _of_call(node.func.id, node.args)


def _of_call(name: str, arguments: list[ast.expr]) -> Iterator[tuple[str, set[int]]]:
    """An error that is made right here, so that both its code and its exit code can be read."""
    if name == "CommandFailed" and len(arguments) > 1 and isinstance(arguments[1], ast.Constant):
        exit_name = arguments[0]
        exits = {getattr(console, exit_name.id)} if isinstance(exit_name, ast.Name) and exit_name.id.isupper() else set()
        yield str(arguments[1].value), exits
    kind = getattr(errors, name, None)
    if isinstance(kind, type) and issubclass(kind, errors.ExportError) and isinstance(arguments[0], ast.Constant):
        yield str(arguments[0].value), {kind.exit_code}


def _rows(root: Path) -> dict[str, set[str]]:
    """Of the rows of errors in lambdas: who raises them; where only the row's own module names it, that one."""
    trees = dict(_trees(root, (_LAMBDAS, "lakeferry")))
    rows = {(_module(file), name): code for file, tree in trees.items() for name, code in _rows_of(tree)}
    places: dict[str, set[str]] = {code: set() for code in rows.values()}
    for file, tree in trees.items():
        for row in _used(tree):
            if code := rows.get(row):
                places[code].add(str(file))
    homes = {code: module.replace(".", "/") + ".py" for (module, _), code in rows.items()}
    return {code: used or {homes[code]} for code, used in places.items()}


def _rows_of(tree: ast.Module) -> Iterator[tuple[str, str]]:
    """(name, code) of each row that a module declares."""
    for node in tree.body:
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) and isinstance(node.value, ast.Call):
            call = node.value
            if isinstance(call.func, ast.Name) and call.func.id == "ErrorRow" and isinstance(call.args[0], ast.Constant):
                yield node.target.id, str(call.args[0].value)


def _used(tree: ast.Module) -> Iterator[tuple[str, str]]:
    """(module, name) of everything in other modules that is named here."""
    imported: Mapping[str, tuple[str, str]] = {
        alias.asname or alias.name: (node.module, alias.name)
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and node.module
        for alias in node.names
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id in imported:
            yield ".".join(imported[node.value.id]), node.attr
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load) and node.id in imported:
            yield imported[node.id]


def _module(file: Path) -> str:
    return ".".join(file.with_suffix("").parts)
