"""What a contract defines, as one Spark SQL query over a topic's events.

It uses none of the job's code: expressions of contracts are Spark SQL, so Spark says what they give, and all
else is written from docs/reference/export-contract.md once more.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Final, assert_never

import attrs

from config.exports.allowed_functions import WINDOW_FIELDS
from config.exports.contract import Column, Contract, Personal
from config.exports.windows import Window, find_next_window

#: Names of the query's own columns. No field of a topic has a hyphen.
EVENT: Final = "oracle-event"
PERSONS: Final = "oracle-persons"
_NUMBER: Final = "oracle-number"
_ORDER: Final = ("kafka_offset", "kafka_timestamp", "kafka_partition")
_SQL_TYPES: Final = {"text": "STRING", "integer": "BIGINT"}
_INVISIBLE: Final = r"[\\p{Z}\\p{Cc}\\p{Cf}]"


@attrs.frozen
class Query:
    """`types` has Spark's names of the types of fields and expressions, by their SQL."""

    contract: Contract
    window: Window
    types: Mapping[str, str]

    def select_lines(self, *, all_events: bool = False) -> str:
        """Return the query for the lines of the window, with the topic's fields. With `all_events`, all lines
        of all events, without deduplication.
        """
        contract = self.contract
        events = f"(SELECT *, {self._write_window_fields()} FROM events)"
        early = contract.window.filter_stage == "before_deduplication"
        if not all_events:
            if early:
                events = f"(SELECT * FROM {events} WHERE {self._write_inside()})"
            if contract.deduplicate:
                events = f"(SELECT * FROM ({self._deduplicate(events)}) WHERE `{_NUMBER}` = 1)"
            if not early:
                events = f"(SELECT * FROM {events} WHERE {self._write_inside()})"
        kept = f"(SELECT * FROM {events} WHERE {self._write_filters('events')})"
        if contract.explode:
            alias = contract.explode.alias
            array = quote(contract.explode.array)
            kept = f"(SELECT * FROM {kept} LATERAL VIEW explode({array}) `oracle-items` AS `{alias}`)"
        return f"SELECT * FROM {kept} WHERE {self._write_filters('lines')}"

    def select_rows(self) -> str:
        """Return the query for the rows of the file, with the number of people of each group, in order."""
        lines = self.select_lines()
        order = ", ".join(f"`{name}` ASC NULLS FIRST" for name in self.order)
        if self.contract.aggregate is None:
            return f"SELECT {self.write_columns()} FROM ({lines}) ORDER BY {order}"
        keys = [column for column in self.contract.columns if column.measure is None]
        grouped = ", ".join(self._write_value(column) for column in keys)
        persons = self._write_person()
        groups = f"GROUP BY {grouped}" if grouped else ""
        return (
            f"SELECT {self.write_columns()}, count(DISTINCT {persons}) AS `{PERSONS}` FROM ({lines}) "
            f"{groups} HAVING count(*) > 0 ORDER BY {order}"
        )

    def write_columns(self, columns: Sequence[Column] | None = None) -> str:
        chosen = self.contract.columns if columns is None else columns
        return ", ".join(f"{self._write_value(column)} AS `{column.name}`" for column in chosen)

    @property
    def order(self) -> list[str]:
        """Return all columns, those first by which the file is sorted."""
        first = self.contract.delivery.order_by
        return [*first, *(column.name for column in self.contract.columns if column.name not in first)]

    def _write_window_fields(self) -> str:
        bounds = zip(WINDOW_FIELDS, (self.window.start, self.window.end), strict=True)
        return ", ".join(f"{write_time(moment)} AS `{name}`" for name, moment in bounds)

    def _write_inside(self) -> str:
        """Return whether an event is in the window and not before the first valid day."""
        moment = quote(self.contract.source.event_time)
        first_valid = self.contract.min_event_date
        following = find_next_window(self.window, self.contract.window)
        while following.start == following.end:  # clocks skipped this whole day, and no file is of it
            following = find_next_window(following, self.contract.window)
        days = (self.window.first_day, following.first_day, first_valid)
        match self.types[moment]:
            case "date":
                start, end, first = (f"DATE '{day}'" for day in days)
            case "timestamp_ntz":
                start, end, first = (f"TIMESTAMP_NTZ '{day} 00:00:00'" for day in days)
            case _:
                earliest = datetime.combine(first_valid, datetime.min.time(), UTC)
                start, end, first = map(write_time, (self.window.start, self.window.end, earliest))
        return f"{moment} >= {start} AND {moment} < {end} AND {moment} >= {first}"

    def _deduplicate(self, events: str) -> str:
        rule = self.contract.deduplicate
        assert rule is not None, "callers check for it"
        keys = [quote(path) for path in rule.key]
        present = " AND ".join(
            f"length(regexp_replace(CAST({key} AS STRING), '{_INVISIBLE}', '')) > 0" for key in keys
        )
        direction = "DESC NULLS LAST" if rule.keep == "latest" else "ASC NULLS LAST"
        order = ", ".join(f"{quote(path)} {direction}" for path in dict.fromkeys((*rule.order, *_ORDER)))
        numbered = f"row_number() OVER (PARTITION BY {', '.join(keys)} ORDER BY {order})"
        return f"SELECT *, {numbered} AS `{_NUMBER}` FROM {events} WHERE {present}"

    def _write_filters(self, of: str) -> str:
        texts = [filter_.where for filter_ in self.contract.filter if filter_.on == of]
        return " AND ".join(f"coalesce(({text}), false)" for text in texts) or "true"

    def _write_person(self) -> str:
        """Return the id of a person as people are counted: without case, and without what nobody sees."""
        rule = self.contract.aggregate
        if rule is None or rule.person_id is None:
            return "CAST(NULL AS STRING)"
        text = f"CAST({quote(rule.person_id)} AS STRING)"
        hashed = [column for column in self.contract.hashed if column.field == rule.person_id]
        if any(column.personal and column.personal.kind == "phone" for column in hashed):
            return f"nullif(regexp_replace({text}, '[^0-9+]', ''), '')"
        return f"nullif(lower(regexp_replace({text}, '{_INVISIBLE}', '')), '')"

    def _write_value(self, column: Column) -> str:
        raw = write_raw(column)
        personal = column.personal
        if personal is None or personal.treatment == "keep":
            if self.types.get(raw) == "float":
                raw = f"CAST({raw} AS STRING)"
            return _cast(raw, column)
        match personal.treatment:
            case "hash":
                return f"pseudonym(CAST({raw} AS STRING), '{personal.kind or 'text'}')"
            case "mask":
                return _mask(raw, personal.visible or 0)
            case "generalise":
                return _cast(_generalise(raw, personal), column)
            case "drop":
                raise ValueError(f"column {column.name} is dropped, and has no value to export")
        assert_never(personal.treatment)


def write_raw(column: Column) -> str:
    """Return the SQL of the column's value as the source or the contract's expression gives it."""
    text = column.expression or column.measure
    return f"({text})" if text else quote(column.field or column.name)


def _cast(value: str, column: Column) -> str:
    return f"CAST({value} AS {_SQL_TYPES.get(column.type, column.type)})"


def quote(path: str) -> str:
    return ".".join(f"`{part}`" for part in path.split("."))


def write_time(moment: datetime) -> str:
    return f"TIMESTAMP '{moment.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC'"


def _mask(raw: str, visible: int) -> str:
    if not visible:
        return f"CASE WHEN {raw} IS NOT NULL THEN '***' END"
    shown = (
        f"CASE WHEN char_length({raw}) > {visible} THEN concat('***', right({raw}, {visible})) ELSE '***' END"
    )
    return f"CASE WHEN {raw} IS NOT NULL THEN {shown} END"


def _generalise(raw: str, personal: Personal) -> str:
    match personal.to:
        case "year":
            return f"year({raw})"
        case "month":
            return f"date_format({raw}, 'yyyy-MM')"
        case "prefix":
            return f"left(trim({raw}), {personal.size or 1})"
        case "bucket":
            return f"({raw} - pmod({raw}, {personal.size or 1}))"
        case None:
            raise ValueError("generalise needs `to`")
    assert_never(personal.to)
