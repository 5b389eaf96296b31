"""The rows of a CSV file as events of a topic, by a mapping (csv_mapping.py)."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from simulators.avro_json import Report, decoder
from simulators.csv_mapping import CsvMapping, MappingError, Rules
from simulators.csv_rules import Row, UnreadableError
from simulators.events import Mistakes, text_lines
from simulators.topic import Topic

#: The longest field that csv takes; its own limit of 131,072 is short of what a text may hold.
_LONGEST = 1 << 30


def read_csv(file: Path, mapping: CsvMapping, topic: Topic) -> list[dict[str, Any]]:
    """The values of all events, in the order in which they first appear, as Avro values of the topic's schema.

    Raises EventsError, OSError, and MappingError where the file lacks a column.
    """
    mistakes, decode = Mistakes(file.name), decoder(topic.root)
    values = []
    for rows in _groups(_rows(file, mapping, mistakes), mapping.group_by):
        report = partial(_tell, mistakes, rows, mapping.lines)
        value = _event(mapping, rows, report)
        if value is not None:
            values.append(decode(value, "", report))
    mistakes.settle()
    return values


def _rows(file: Path, mapping: CsvMapping, mistakes: Mistakes) -> Iterator[Row]:
    csv.field_size_limit(_LONGEST)
    reader = csv.reader((line for _, line in text_lines(file, mistakes)), delimiter=mapping.delimiter, strict=True)
    began = 1
    try:
        header = next(reader, [])
        _require(header, mapping, file.name)
        began = reader.line_num + 1
        for cells in reader:
            if len(cells) == len(header):
                yield Row(began, dict(zip(header, cells, strict=True)))
            elif cells:
                mistakes.add(began, "", f"has {len(cells)} fields, and the first row names {len(header)}")
            began = reader.line_num + 1
    except csv.Error as error:
        mistakes.add(began, "", f"is not CSV: {error}")


def _require(header: Sequence[str], mapping: CsvMapping, file: str) -> None:
    problems = [f"column {name!r} is not in the file, which has {', '.join(header)}" for name in mapping.columns - set(header)]
    problems += [f"column {name!r} is in the file twice" for name in mapping.columns if header.count(name) > 1]
    if problems:
        raise MappingError(file, sorted(problems))


def _groups(rows: Iterator[Row], group_by: Sequence[str]) -> Iterator[list[Row]]:
    if not group_by:
        yield from ([row] for row in rows)
        return
    found: dict[tuple[str, ...], list[Row]] = {}
    for row in rows:
        found.setdefault(tuple(row.cells[name] for name in group_by), []).append(row)
    yield from found.values()


def _event(mapping: CsvMapping, rows: Sequence[Row], report: Report) -> dict[str, Any] | None:
    """What JSON would have; None after a report."""
    told: list[str] = []

    def tell(path: str, problem: str) -> None:
        told.append(path)
        report(path, problem)

    event = _filled(mapping.event, rows, 0, "", tell)
    if mapping.lines:
        lines = (_filled(mapping.line, rows, number, f"{mapping.lines}[{number}].", tell) for number in range(len(rows)))
        event[mapping.lines] = list(lines)
    return None if told else event


def _filled(rules: Rules, rows: Sequence[Row], number: int, prefix: str, report: Report) -> dict[str, Any]:
    value: dict[str, Any] = {}
    for name, rule in rules.items():
        if isinstance(rule, dict):
            value[name] = _filled(rule, rows, number, f"{prefix}{name}.", report)
            continue
        try:
            value[name] = rule(rows, number)
        except UnreadableError as error:
            report(prefix + name, str(error))
    return value


def _tell(mistakes: Mistakes, rows: Sequence[Row], lines: str | None, path: str, problem: str) -> None:
    """A mistake belongs to the row that the element of the array is from, else to the first."""
    found = re.match(rf"{re.escape(lines)}\[(\d+)\]", path) if lines else None
    mistakes.add(rows[int(found[1]) if found else 0].line, path, problem)
