"""What an export is: the model of `exports/*.toml`.

A contract says which events of a topic count for a window of time, how they become rows, what each column means and
what happens to personal data, what must hold before anyone sees the file, and how it is delivered. A field of the
source that the contract doesn't name never leaves.
"""

from __future__ import annotations

import re
import zoneinfo
from collections.abc import Iterator
from datetime import date
from typing import Literal

import attrs

from exports.toml_model import Form, setting

#: Kinds of windows. exports/windows.py says what each of them is.
Every = Literal["day", "iso_week", "month", "quarter"]

NAME = Form(r"[a-z][a-z0-9_]{0,62}", "a name of lower-case letters, digits and underscores, a letter first, 63 at most")
PATH = Form(r"[A-Za-z_][A-Za-z0-9_]*(\.[A-Za-z_][A-Za-z0-9_]*)*", "the name of a field, inside records with dots: customer.email")
TOPIC = Form(r"[a-z0-9._-]{1,249}", "a topic's name: lower-case letters, digits, dots, hyphens and underscores")
TYPE = Form(
    r"text|integer|date|timestamp|boolean|decimal\([0-9]{1,2},[0-9]{1,2}\)",
    "text, integer, decimal(p,s), date, timestamp or boolean",
)
NULL_TEXT = Form(r'[^",;\t\r\n]{0,16}', "at most 16 characters, no quote, delimiter or line break among them")
#: Zones are well known between these days, and no topic is as old or as young.
_FIRST_DAY, _LAST_DAY = date(1990, 1, 1), date(2100, 12, 31)


def zone_problem(name: str) -> str | None:
    try:
        zoneinfo.ZoneInfo(name)
    except (zoneinfo.ZoneInfoNotFoundError, ValueError, OSError):
        return f"{name!r} is not a time zone of the tz database. Use a name like Europe/Berlin or UTC"
    return None


def implausible_day(day: date) -> str | None:
    """Return what is wrong with a day on which windows are to begin. Catching up from long ago would never end."""
    if not _FIRST_DAY <= day <= _LAST_DAY:
        return f"{day} is not a day on which windows can begin: from {_FIRST_DAY} to {_LAST_DAY}"
    return None


@attrs.frozen
class Source:
    topic: str = setting("The Kafka topic; its Iceberg table has the same name.", form=TOPIC)
    event_time: str = setting(
        "The field that says when the event happened, or kafka_timestamp for when Kafka received it. A local-timestamp, which "
        "has no zone, is taken for the time of a clock in the window's zone.",
        form=PATH,
    )
    min_event_date: date = setting(
        "An event dated before this day (UTC), or more than a day after the table's last commit, has no valid time.",
        default=date(1970, 1, 1),
    )
    max_invalid_percent: int = setting(
        "How many events may have no valid time or no key, in percent of the window's events (an event without a valid time "
        "belongs to the window in which Kafka received it); and how many of the table's may have no valid time. More keep the "
        "file back.",
        default=1,
        minimum=0,
        maximum=100,
    )
    replaced_fields: list[str] = setting(
        "Fields that were dropped from the topic and added again on purpose: their old values read as null.",
        default=list,
        form=PATH,
    )


@attrs.frozen
class WindowRule:
    every: Every = setting("How long a window is.")
    zone: str = setting("The time zone whose midnights begin and end a window, from the tz database.", check=zone_problem)
    first: date = setting("A day (in `zone`) of the first window to publish.", name="from", check=implausible_day)
    filter_stage: Literal["before_deduplication", "after_deduplication"] = setting(
        "before_deduplication where all events of a key carry the same event time: only the window's files are read. "
        "after_deduplication where they may differ: each run then reads the whole table.",
        default="before_deduplication",
    )
    restate_for_days: int = setting(
        "How long after its end a window is published again when late events change it.",
        default=14,
        minimum=0,
        maximum=366,
    )
    max_backfill: int = setting(
        "How many missed windows one run takes at most, oldest first, besides the window that closed last; of those that failed "
        "in an earlier run, as many again.",
        default=8,
        minimum=1,
        maximum=500,
    )
    on_empty: Literal["publish", "skip", "fail"] = setting(
        "A window without rows: a file with only a header, nothing, or a failure.", default="publish"
    )
    on_incomplete_source: Literal["wait", "publish", "fail"] = setting(
        "The table's last commit with events is older than the window's end, or less than an hour younger and without newer "
        "events of some Kafka partition: events may be missing.",
        default="wait",
    )


@attrs.frozen
class Deduplicate:
    key: list[str] = setting(
        "Fields that name the thing an event speaks of; events with an empty key are set aside and counted.",
        form=PATH,
    )
    order: list[str] = setting(
        "What decides between events of a key, most important first; Kafka's offset breaks ties, and an event without a value "
        "never wins. Name kafka_timestamp where the topic got more partitions: offsets of two partitions can't be compared.",
        default=list,
        form=PATH,
    )
    keep: Literal["latest", "first"] = setting("Which event of a key counts.", default="latest")


@attrs.frozen
class Filter:
    where: str = setting("A Spark SQL condition; rows for which it is false or null are left out.")
    reason: str = setting("Why, for the manifest and the report.")
    on: Literal["events", "lines"] = setting(
        "Before the array is exploded, on the surviving event of a key; or after it.", default="events"
    )


@attrs.frozen
class Explode:
    array: str = setting("The array field of which each item becomes a row.", form=PATH)
    alias: str = setting("The name under which expressions see an item.", name="as", form=NAME)


@attrs.frozen
class Personal:
    treatment: Literal["keep", "drop", "mask", "hash", "generalise"] = setting("What happens to the value before it leaves.")
    kind: Literal["email", "phone", "name", "text", "id"] | None = setting(
        "For hash: how spellings of one value are made equal. The same kind gives the same pseudonym in every export.",
        default=None,
    )
    visible: int | None = setting("For mask: how many of the last characters stay readable.", default=None, minimum=0, maximum=8)
    to: Literal["year", "month", "prefix", "bucket"] | None = setting("For generalise: what is left of the value.", default=None)
    size: int | None = setting("For prefix: characters; for bucket: width of a bucket.", default=None, minimum=1)
    reason: str | None = setting("For keep: why the value may leave readable.", default=None)


@attrs.frozen
class Column:
    name: str = setting("The header in the file.", form=NAME)
    type: str = setting("The type of its values; a timestamp is in UTC.", form=TYPE)
    title: str = setting("A short title for people.")
    description: str = setting("What the column means.")
    unit: str | None = setting("The unit or currency of the numbers.", default=None)
    per: str | None = setting(
        "The column that holds the unit in each row, such as the currency, where it varies: totals and charts are then per unit.",
        default=None,
        form=NAME,
    )
    source: str | None = setting(
        "The source field; the column's own name where nothing is said.", name="from", default=None, form=PATH
    )
    expression: str | None = setting("A Spark SQL expression over source fields instead of one field.", default=None)
    measure: str | None = setting("In an aggregate: a Spark SQL aggregate such as sum(quantity).", default=None)
    nullable: bool = setting("Whether the column may be empty. If not, an empty value blocks the export.", default=False)
    allowed: list[str] = setting("The only values that may occur; another one blocks the export.", default=list)
    example: str | None = setting("An example for the data dictionary.", default=None)
    personal: Personal | None = setting("What happens to personal data in this column.", default=None)

    @property
    def field(self) -> str | None:
        """Return the source field this column takes over, or None where it is computed."""
        return self.source or (None if self.expression or self.measure else self.name)

    @property
    def delivered(self) -> bool:
        return self.personal is None or self.personal.treatment != "drop"

    @property
    def numeric(self) -> bool:
        return self.type == "integer" or self.type.startswith("decimal")


@attrs.frozen
class Aggregate:
    person_id: str | None = setting(
        "The field whose distinct values count the people in a group. Upper and lower case, and blanks around a value, make no "
        "difference; a blank value counts as nobody.",
        default=None,
        form=PATH,
    )
    min_group_size: int = setting(
        "A group of fewer people is left out, and a second one where only one would be.", default=10, minimum=2
    )
    no_persons_because: str | None = setting("Where no person stands behind the rows: why, instead of `person_id`.", default=None)
    keep_as_table: bool = setting("Whether the aggregate is also kept as an Iceberg table of Lakeferry's own.", default=False)


@attrs.frozen
class Check:
    id: str = setting("A short name.", form=NAME)
    severity: Literal["warn", "block"] = setting("warn tells the reader, block keeps the file back.")
    message: str = setting("What is wrong when it fails, in plain words.")
    each_row: str | None = setting("A Spark SQL condition over the file's columns that holds for each row.", default=None)
    overall: str | None = setting("A condition over `rows`, and sum_x, min_x, max_x of numeric columns x.", default=None)


@attrs.frozen
class Delivery:
    order_by: list[str] = setting("Columns that order the file; the other columns break ties, and then Kafka's order.", form=NAME)
    dialect: Literal["excel", "machine"] = setting(
        "excel begins with a byte order mark, so that Excel reads UTF-8; machine doesn't.", default="excel"
    )
    delimiter: Literal[",", ";", "\t"] = setting(
        "What separates cells: Excel expects a comma in English, a semicolon in German or French. Whichever of them a "
        "spreadsheet splits lines at, it executes no text of the file as a formula.",
        default=",",
    )
    null_text: str = setting("What stands for a missing value. Text that looks the same is quoted.", default="", form=NULL_TEXT)
    gzip: bool = setting("Whether the file is compressed.", default=False)


@attrs.frozen
class Chart:
    title: str = setting("What the chart shows.")
    x: str = setting("The column along the axis.", form=NAME)
    y: str = setting("The numeric column that is summed, or rows.", form=NAME)
    kind: Literal["bar", "line"] = setting("Bars for categories, a line for times.", default="bar")
    only: str | None = setting("Where y has a unit `per` row: the one unit that the chart shows, such as EUR.", default=None)


@attrs.frozen
class Report:
    headline: list[str] = setting("Numeric columns whose totals (one per unit) stand on top.", default=list, form=NAME)
    chart: list[Chart] = setting("Two or three charts.", default=list)


@attrs.frozen
class Expression:
    """A Spark SQL expression of a contract.

    `key` is where it stands in the file, `label` what the job calls it. `of` is what its value is computed from: a row of the
    source, a group of such rows, a row of the file, or the file's totals.
    """

    key: str
    label: str
    text: str
    of: Literal["row", "group", "file_row", "file"]


@attrs.frozen
class Contract:
    name: str = setting("The export's name, also in file names.", form=NAME)
    version: int = setting("Count up when the meaning of the file changes.", minimum=1)
    title: str = setting("A title for people.")
    description: str = setting("What the file is for.")
    owner: str = setting("Whom to ask: a team or a role.")
    grain: str = setting("What one row is.")
    source: Source = setting("Where events come from.")
    window: WindowRule = setting("Which events belong to one file.")
    deduplicate: Deduplicate | None = setting("How events about one thing become one.", default=None)
    filter: list[Filter] = setting("What is left out.", default=list)
    explode: Explode | None = setting("Which array is exploded into rows.", default=None)
    column: list[Column] = setting("The columns, in order.")
    aggregate: Aggregate | None = setting("Grouping by all columns that are not measures.", default=None)
    check: list[Check] = setting("What must hold.", default=list)
    delivery: Delivery = setting("The form of the file.")
    report: Report = setting("What the report shows.", default=Report(headline=[], chart=[]))
    sha256: str = attrs.field(default="", kw_only=True)

    @property
    def columns(self) -> list[Column]:
        """Return the columns of the file, in order."""
        return [column for column in self.column if column.delivered]

    @property
    def hashed(self) -> list[Column]:
        return [c for c in self.column if c.personal and c.personal.treatment == "hash"]

    def fields(self) -> Iterator[tuple[str, str]]:
        """Yield the fields that the contract names outright, as (key, path)."""
        yield "source.event_time", self.source.event_time
        if self.deduplicate:
            yield from ((f"deduplicate.key[{n}]", path) for n, path in enumerate(self.deduplicate.key))
            yield from ((f"deduplicate.order[{n}]", path) for n, path in enumerate(self.deduplicate.order))
        if self.explode:
            yield "explode.array", self.explode.array
        if self.aggregate and self.aggregate.person_id:
            yield "aggregate.person_id", self.aggregate.person_id
        for index, column in enumerate(self.column):
            if column.field:
                yield f"column[{index}]" + (".from" if column.source else ".name"), column.field

    def expressions(self) -> Iterator[Expression]:
        for index, one in enumerate(self.filter):
            yield Expression(f"filter[{index}].where", f"filter[{index}].where", one.where, "row")
        for index, column in enumerate(self.column):
            if column.expression:
                yield Expression(f"column[{index}].expression", f"column {column.name}", column.expression, "row")
            if column.measure:
                yield Expression(f"column[{index}].measure", f"column {column.name}", column.measure, "group")
        for index, check in enumerate(self.check):
            if check.each_row:
                yield Expression(f"check[{index}].each_row", f"check {check.id}", check.each_row, "file_row")
            if check.overall:
                yield Expression(f"check[{index}].overall", f"check {check.id}", check.overall, "file")


def decimal_type(type_: str) -> tuple[int, int] | None:
    """Return (precision, scale) of decimal(p,s), or None for another type."""
    match = re.fullmatch(r"decimal\((\d+),(\d+)\)", type_)
    return (int(match[1]), int(match[2])) if match else None
