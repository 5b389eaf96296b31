"""CSV files as events of a topic, told by a small mapping file in TOML.

    [rows]
    group_by = ["Invoice"]          # rows with the same values here make one event; without it, each row is an event
    lines = "order_lines"           # the array of the event that has an element for each of its rows
    delimiter = ";"                 # "," unless said

    [event]                         # a rule for each field of the event; fields inside a record with a dot
    order_id = { column = "Invoice" }
    channel = { value = "web" }
    status = { when = [{ column = "Qty", below = 0, value = "returned" }], otherwise = "accepted" }
    ordered_at = { column = "Date", format = "%d.%m.%Y %H:%M", zone = "Europe/Berlin" }
    customer.region = { column = "Land", translate = { "Deutschland" = "DE" } }

    [line]                          # the same for each element of the array
    line_no = { row_number = true }

A rule takes its value from exactly one of
  column      the text of a column; with format (as in strptime) and zone a time, with translate another text (a text
              that is not listed is a mistake), with cut_suffix without that end
  value       the same for all
  hash        a list of columns: 32 hexadecimal digits of the SHA-256 of their texts, the same in every run
  when        the value of the first condition that a row of the event meets, or else `otherwise`; a condition names a
              column and one of equals, starts_with, below (a number)
  row_number  the number of the row within its event, from 1
Fields of the event are read from its first row, `when` from all of them. An empty text is null where a field can be.
A field without a rule gets the schema's default. The file is UTF-8, with the names of the columns in its first row.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import Any, Final

from simulators.avro_json import shown
from simulators.avro_schema import Array, Node, Struct
from simulators.csv_rules import Rule, build, columns_of
from simulators.topic import Topic

_TABLES: Final = ("rows", "event", "line")
_ROWS: Final = ("group_by", "lines", "delimiter")


class MappingError(Exception):
    """What is wrong in a mapping file, by key."""

    def __init__(self, file: str, problems: Sequence[str]) -> None:
        self.problems = list(problems)
        super().__init__("\n".join([f"{file}: the mapping can't be used", *(f"  {each}" for each in problems)]))


#: A rule for each field that has one, or the rules of a record's fields.
Rules = dict[str, "Rule | Rules"]


@dataclass(frozen=True)
class CsvMapping:
    """`lines` is the array that `line` has the rules for; `columns` are those that any rule reads."""

    event: Rules
    line: Rules = field(default_factory=dict)
    columns: frozenset[str] = frozenset()
    group_by: tuple[str, ...] = ()
    lines: str | None = None
    delimiter: str = ","


def load_mapping(file: Path, topic: Topic) -> CsvMapping:
    """Raises MappingError with every problem, by key."""
    try:
        table = tomllib.loads(file.read_text("utf-8"), parse_float=Decimal)
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise MappingError(file.name, [f"not a readable TOML file: {error}"]) from error
    reader = _Reader(topic)
    mapping = reader.mapping(table)
    if reader.problems:
        raise MappingError(file.name, reader.problems)
    return mapping


class _Reader:
    def __init__(self, topic: Topic) -> None:
        self._topic = topic
        self._columns: set[str] = set()
        self.problems: list[str] = []

    def mapping(self, table: Mapping[str, Any]) -> CsvMapping:
        self._only(table, _TABLES, "")
        rows = table.get("rows", {})
        if not isinstance(rows, dict):
            self._refuse("rows", f"is a table, found {shown(rows)}")
            rows = {}
        self._only(rows, _ROWS, "rows.")
        group_by, delimiter = rows.get("group_by", []), rows.get("delimiter", ",")
        if not isinstance(group_by, list) or not all(isinstance(each, str) for each in group_by):
            self._refuse("rows.group_by", "is a list of columns")
            group_by = []
        if not isinstance(delimiter, str) or len(delimiter) != 1:
            self._refuse("rows.delimiter", f"is one character, found {shown(delimiter)}")
        self._columns.update(group_by)
        lines, line = self._lines(rows.get("lines"), table.get("line", {}))
        event = self._rules(table.get("event", {}), self._topic.root, "event", without=lines)
        return CsvMapping(event, line, frozenset(self._columns), tuple(group_by), lines, delimiter)

    def _lines(self, lines: Any, table: Mapping[str, Any]) -> tuple[str | None, Rules]:
        if lines is None:
            if table:
                self._refuse("line", "has rules, but rows.lines doesn't say for which array")
            return None, {}
        node = next((each.node for each in self._topic.root.fields if each.name == lines), None)
        if not isinstance(node, Array) or not isinstance(node.items, Struct):
            self._refuse("rows.lines", f"{shown(lines)} is no array of records in topic {self._topic.name}")
            return None, {}
        return lines, self._rules(table, node.items, "line")

    def _rules(self, table: Any, struct: Struct, key: str, without: str | None = None) -> Rules:
        if not isinstance(table, dict):
            self._refuse(key, f"is a table of rules, found {shown(table)}")
            return {}
        fields = {each.name: each for each in struct.fields if each.name != without}
        self._only(table, fields, f"{key}.")
        for name, each in fields.items():
            if name not in table and not each.has_default and not isinstance(each.node, Struct):
                self._refuse(f"{key}.{name}", "has no rule, and the schema no default for it")
        return {
            name: self._rule(table.get(name, {}), each.node, f"{key}.{name}")
            for name, each in fields.items()
            if name in table or (isinstance(each.node, Struct) and not each.has_default)
        }

    def _rule(self, table: Any, node: Node, key: str) -> Rule | Rules:
        if isinstance(node, Struct):
            return self._rules(table, node, key)
        if not isinstance(table, dict):
            self._refuse(key, f'needs a rule such as {{ column = "Name" }}, found {shown(table)}')
            table = {"value": None}
            return build(table, node, lambda _: None)
        before = len(self.problems)
        rule = build(table, node, partial(self._refuse, key))
        if len(self.problems) == before:
            self._columns.update(columns_of(table))
        return rule

    def _only(self, table: Any, known: Sequence[str] | Mapping[str, Any], prefix: str) -> None:
        for name in table if isinstance(table, dict) else ():
            if name not in known:
                self._refuse(f"{prefix}{name}", f"not known here. There are {', '.join(known)}")

    def _refuse(self, key: str, problem: str) -> None:
        self.problems.append(f"{key}: {problem}")
