"""SHOW and DESCRIBE."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Final

import attrs

from simulators.aws.athena.catalog import Lake
from simulators.aws.athena.outcomes import Asked, Column, Failed, Rows
from simulators.aws.athena.parsing import Utility
from simulators.aws.athena.types import engine_type

_WIDTH: Final = 20


def run(asked: Asked, utility: Utility, lake: Lake) -> Rows:
    """Raises Failed."""
    database = utility.database or asked.database.lower()
    if not database and utility.form != "databases":
        raise Failed("FAILED: SemanticException no database is chosen")
    return _RUN[utility.form](attrs.evolve(utility, database=database), lake)


def _databases(_: Utility, lake: Lake) -> Rows:
    return _listed("database_name", lake.names())


def _tables(utility: Utility, lake: Lake) -> Rows:
    """The pattern is a regular expression in which * stands for anything."""
    wanted = re.compile(utility.pattern.replace("*", ".*") or ".*")
    return _listed("tab_name", [name for name in lake.names(utility.database) if wanted.fullmatch(name)])


def _columns(utility: Utility, lake: Lake) -> Rows:
    table = lake.table(utility.database, utility.table)
    return _listed("field", [field.name.lower() for field in table.schema().fields])


def _describe(utility: Utility, lake: Lake) -> Rows:
    """Each row is one text with tabs in it."""
    fields = lake.table(utility.database, utility.table).schema().fields
    cells = [(field.name.lower(), engine_type(field.field_type), field.doc or "") for field in fields]
    lines = ["\t".join(cell.ljust(_WIDTH) for cell in each) for each in cells]
    names = [Column(name, "string") for name in ("col_name", "data_type", "comment")]
    return Rows(names, [[line] for line in lines], header=False)


def _listed(name: str, values: list[str]) -> Rows:
    return Rows([Column(name, "string")], [[value] for value in values], header=False)


_RUN: Final[Mapping[str, Callable[[Utility, Lake], Rows]]] = {
    "databases": _databases,
    "tables": _tables,
    "columns": _columns,
    "describe": _describe,
}
