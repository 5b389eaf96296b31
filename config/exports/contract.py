"""The model of an export contract, `project/exports/*.toml`.

A contract defines which events of a topic belong to a time window, how they become rows, what each column
means, how personal data is treated, which checks the file must pass before it is published, and how it is
delivered. A source field that the contract doesn't name is never exported.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import date
from typing import Literal

import attrs

from config.exports.file_model import Check, Delivery, PersonalPattern, Report
from config.forms import NAME, PATH, TOPIC, TYPE, explain_implausible_day, find_zone_problem, name_table
from config.toml_model import setting

#: Kinds of windows. config/exports/windows.py defines each of them.
Every = Literal["day", "iso_week", "month", "quarter"]


@attrs.frozen
class Source:
    topic: str = setting("The Kafka topic; its Iceberg table has the same name, in lower case.", form=TOPIC)
    event_time: str = setting(
        "The field with the time at which the event happened: a timestamp, a local-timestamp or a date. Or "
        "kafka_timestamp for the time at which Kafka received it. A local-timestamp and a date, which have "
        "no zone, are read as those of the window's zone.",
        form=PATH,
    )
    min_event_date: date | None = setting(
        "The first valid day of events, in UTC or, for a local-timestamp or a date, in the window's zone. An "
        "event before it, or more than a day after the table's last commit, has no valid time. A date is as "
        "early as the midnight with which it begins. The default is the day two years before the first "
        "window: an earlier time is most often one that was never set, or that has another unit than its "
        "field says.",
        default=None,
    )
    max_invalid_percent: int = setting(
        "The highest percentage of the window's events that may have no valid time or no key. Above it, "
        "the file is not published. An event without a valid time belongs to the window in which Kafka "
        "received it.",
        default=1,
        minimum=0,
        maximum=100,
    )
    replaced_fields: list[str] = setting(
        "Fields that were dropped from the topic and added again on purpose. Their old values are read as "
        "null.",
        default=list,
        form=PATH,
    )

    @property
    def table(self) -> str:
        """Return the name of the topic's table in Glue."""
        return name_table(self.topic)


@attrs.frozen
class WindowRule:
    every: Every = setting("The length of a window.")
    zone: str = setting(
        "The time zone in which windows begin and end at midnight, from the tz database.",
        check=find_zone_problem,
    )
    first: date = setting(
        "A day (in `zone`) of the first window to publish.", name="from", check=explain_implausible_day
    )
    filter_stage: Literal["before_deduplication", "after_deduplication"] = setting(
        "before_deduplication if all events of a key have the same event time: a run then reads only the "
        "files that may have events of the window. after_deduplication if the event times may differ: each "
        "run then reads the whole table.",
        default="before_deduplication",
    )
    restate_for_days: int = setting(
        "The number of days after its end in which a window is published again if late events change it.",
        default=14,
        minimum=0,
        maximum=366,
    )
    on_empty: Literal["publish", "skip", "fail"] = setting(
        "What to do with a window without rows: publish a file that has only a header, publish nothing, or "
        "fail.",
        default="publish",
    )
    on_incomplete_source: Literal["wait", "publish", "fail"] = setting(
        "What to do if events may be missing: for some Kafka partition, the table has no event that Kafka "
        "received after the window's end, and the partition is not known to be idle.",
        default="wait",
    )


@attrs.frozen
class Deduplicate:
    key: list[str] = setting(
        "The fields that identify what an event is about, such as an order. Events in which one of them is "
        "empty are not exported, only counted.",
        form=PATH,
    )
    order: list[str] = setting(
        "The fields that decide which event of a key is kept, most important first. Kafka's offset breaks "
        "ties, and an event without a value is never preferred. Name kafka_timestamp if partitions were "
        "added to the topic, because offsets of two partitions can't be compared.",
        default=list,
        form=PATH,
    )
    keep: Literal["latest", "first"] = setting("Which event of a key is kept.", default="latest")


@attrs.frozen
class Filter:
    where: str = setting("A Spark SQL condition; rows for which it is false or null are left out.")
    reason: str = setting("Why, for the data dictionary and the report.")
    on: Literal["events", "lines"] = setting(
        "events filters the events that deduplication keeps, before the array is exploded; lines filters "
        "the rows after that.",
        default="events",
    )


@attrs.frozen
class Explode:
    array: str = setting("The array field. Each of its items becomes a row.", form=PATH)
    alias: str = setting("The name of an item in fields and expressions.", name="as", form=NAME)


#: What happens to personal data. What each leaves is in `columns.treat_value`.
Treatment = Literal["keep", "drop", "mask", "hash", "generalise"]
#: What `generalise` leaves of a value.
Generalisation = Literal["year", "month", "prefix", "bucket"]


@attrs.frozen
class Personal:
    treatment: Treatment = setting("What happens to the value before it is exported.")
    kind: Literal["email", "phone", "name", "text", "id"] | None = setting(
        "For hash: how spellings of a value are normalised. With the same kind and key, a value has the "
        "same pseudonym in every export.",
        default=None,
    )
    visible: int | None = setting(
        "For mask: how many of the last characters stay readable.", default=None, minimum=0, maximum=8
    )
    to: Generalisation | None = setting("For generalise: what is left of the value.", default=None)
    size: int | None = setting(
        "For prefix: the number of characters. For bucket: the width of a bucket.", default=None, minimum=1
    )
    reason: str | None = setting("For keep: why the value may be exported unchanged.", default=None)
    may_contain: list[str] = setting(
        "For keep: the kinds of values that the scan of the finished file accepts in this column. `email`, "
        "`phone`, `iban`, `card`, or the name of a `[[personal_pattern]]`. A kind that isn't named blocks "
        "the file.",
        default=list,
        form=NAME,
    )


@attrs.frozen
class Column:
    name: str = setting("The header in the file.", form=NAME)
    type: str = setting("The type of its values; a timestamp is in UTC.", form=TYPE)
    title: str = setting("A short title for people.")
    description: str = setting("What the column means.")
    unit: str | None = setting("The unit or currency of the numbers.", default=None)
    per: str | None = setting(
        "The column that has the unit of each row, such as the currency, if it varies. Totals and charts "
        "are then per unit.",
        default=None,
        form=NAME,
    )
    adds_up: bool | None = setting(
        "Whether a sum of the numbers has a meaning: false for a price, a share, a year or a number that "
        "is a name. Totals, headlines and charts then leave the column out. Without it, a measure adds up "
        "if it is a sum or a count. A column that is not a measure adds up unless rows are grouped by it, "
        "its values are generalised, its unit is a share or a rate (such as % or EUR/kg), or its "
        "expression is a ratio or a part of a date.",
        default=None,
    )
    source: str | None = setting(
        "The source field. Without it, the field with the column's name.",
        name="from",
        default=None,
        form=PATH,
    )
    expression: str | None = setting(
        "A Spark SQL expression over source fields instead of one field.", default=None
    )
    measure: str | None = setting(
        "In an aggregate: a Spark SQL aggregate such as sum(quantity).", default=None
    )
    shows_one_person_because: str | None = setting(
        "In an aggregate with `person_id`: why a measure may show the value of one person of a group, as "
        "min() and max() do.",
        default=None,
    )
    nullable: bool = setting(
        "Whether the column may be empty. If not, an empty value blocks the export.", default=False
    )
    allowed: list[str] = setting(
        "The only values that may occur. Any other value blocks the export.", default=list
    )
    example: str | None = setting("An example for the data dictionary.", default=None)
    personal: Personal | None = setting("What happens to personal data in this column.", default=None)

    @property
    def field(self) -> str | None:
        """Return the source field that this column copies, or None if it is computed."""
        return self.source or (None if self.expression or self.measure else self.name)

    @property
    def delivered(self) -> bool:
        return self.personal is None or self.personal.treatment != "drop"

    @property
    def is_hashed(self) -> bool:
        """Return whether the file has pseudonyms in this column."""
        return self.personal is not None and self.personal.treatment == "hash"

    @property
    def keeps_personal(self) -> bool:
        """Return whether its values are personal and exported unchanged."""
        return self.personal is not None and self.personal.treatment == "keep"

    @property
    def is_personal(self) -> bool:
        """Return whether its values come from personal data, whatever happens to them, or may show one
        person's.
        """
        return self.personal is not None or self.shows_one_person_because is not None

    @property
    def numeric(self) -> bool:
        return self.type == "integer" or self.type.startswith("decimal")

    @property
    def totals(self) -> tuple[str, ...]:
        """Return what the file's totals have about this column: no sum if it is known not to add up."""
        if not self.numeric:
            return ()
        return ("min", "max") if self.adds_up is False else ("sum", "min", "max")


@attrs.frozen
class Aggregate:
    person_id: str | None = setting(
        "The field that identifies a person. The people in a group are its distinct values. Case, white "
        "space, invisible characters and spellings that Unicode treats as equal (NFKC) make no difference, "
        "and blank values are not counted.",
        default=None,
        form=PATH,
    )
    min_group_size: int = setting(
        "Groups with fewer people are left out. If that is only one group, the next smallest is left out "
        "too.",
        default=10,
        minimum=2,
    )
    no_persons_because: str | None = setting(
        "Instead of `person_id`: why the rows are not about people.", default=None
    )
    keep_as_table: bool = setting(
        "Whether the aggregate is also written to an Iceberg table of Lakeferry.", default=False
    )


@attrs.frozen
class Expression:
    """A Spark SQL expression of a contract.

    `key` is its path in the file, `label` its name in the job's messages. `of` says what its value is
    computed from: a row of the source, a group of such rows, a row of the file, or the file's totals.
    """

    key: str
    label: str
    text: str
    of: Literal["row", "group", "file_row", "file"]


@attrs.frozen
class Contract:
    name: str = setting("The export's name, which is also part of file names.", form=NAME)
    version: int = setting("Increase it when the meaning of the file changes.", minimum=1)
    title: str = setting("A title for people.")
    description: str = setting("What the file is for.")
    owner: str = setting("The team or role to contact about this export.")
    grain: str = setting("What one row represents.")
    unique: list[str] = setting(
        'The delivered columns that identify a row, as `grain` says in words: ["order_id", "line_no"]. Two '
        "rows with the same values in all of them block the file. Missing values are equal.",
        default=list,
        form=NAME,
    )
    source: Source = setting("Where events come from.")
    window: WindowRule = setting("Which events belong to one file.")
    deduplicate: Deduplicate | None = setting(
        "How several events about the same thing become one.", default=None
    )
    filter: list[Filter] = setting("What is left out.", default=list)
    explode: Explode | None = setting("Which array is exploded into rows.", default=None)
    column: list[Column] = setting("The columns, in order.")
    aggregate: Aggregate | None = setting("Grouping by all columns that are not measures.", default=None)
    check: list[Check] = setting("The checks of the file.", default=list)
    personal_pattern: list[PersonalPattern] = setting(
        "What the scan of the finished file looks for besides e-mail addresses, telephone numbers, IBANs "
        "and card numbers.",
        default=list,
    )
    delivery: Delivery = setting("The format of the file.")
    report: Report = setting("What the report shows.", default=Report(headline=[], chart=[]))
    sha256: str = attrs.field(default="", kw_only=True)

    @property
    def columns(self) -> list[Column]:
        """Return the columns of the file, in order."""
        return [column for column in self.column if column.delivered]

    @property
    def total_names(self) -> list[str]:
        """Return the names of totals in `overall` checks, without `rows`. No sum adds up several units."""
        names = []
        for column in self.columns:
            for total in column.totals:
                if total != "sum" or column.per is None:
                    names.append(f"{total}_{column.name}")
        return names

    @property
    def min_event_date(self) -> date:
        """Return the first valid day of events."""
        return self.source.min_event_date or _subtract_two_years(self.window.first)

    def starting_by(self, day: date) -> Contract:
        """Return the contract for a run whose first window may be earlier than that of the contract."""
        if self.source.min_event_date or day >= self.window.first:
            return self
        return attrs.evolve(self, source=attrs.evolve(self.source, min_event_date=_subtract_two_years(day)))

    @property
    def hashed(self) -> list[Column]:
        return [column for column in self.column if column.is_hashed]

    @property
    def keeps_table(self) -> bool:
        """Return whether its aggregates are kept as a table too."""
        return self.aggregate is not None and self.aggregate.keep_as_table

    def fields(self) -> Iterator[tuple[str, str]]:
        """Yield the source fields that the contract names outside of expressions, as (key, path)."""
        yield "source.event_time", self.source.event_time
        if self.deduplicate:
            for index, path in enumerate(self.deduplicate.key):
                yield f"deduplicate.key[{index}]", path
            for index, path in enumerate(self.deduplicate.order):
                yield f"deduplicate.order[{index}]", path
        if self.explode:
            yield "explode.array", self.explode.array
        if self.aggregate and self.aggregate.person_id:
            yield "aggregate.person_id", self.aggregate.person_id
        for index, column in enumerate(self.column):
            if column.field:
                yield f"column[{index}]" + (".from" if column.source else ".name"), column.field

    def expressions(self) -> Iterator[Expression]:
        for index, filter_ in enumerate(self.filter):
            yield Expression(f"filter[{index}].where", f"filter[{index}].where", filter_.where, "row")
        for index, column in enumerate(self.column):
            if column.expression:
                yield Expression(
                    f"column[{index}].expression", f"column {column.name}", column.expression, "row"
                )
            if column.measure:
                yield Expression(f"column[{index}].measure", f"column {column.name}", column.measure, "group")
        for index, check in enumerate(self.check):
            if check.each_row:
                yield Expression(f"check[{index}].each_row", f"check {check.id}", check.each_row, "file_row")
            if check.overall:
                yield Expression(f"check[{index}].overall", f"check {check.id}", check.overall, "file")


def _subtract_two_years(day: date) -> date:
    is_leap_day = (day.month, day.day) == (2, 29)
    return day.replace(year=day.year - 2, day=28 if is_leap_day else day.day)


def decimal_type(type_: str) -> tuple[int, int] | None:
    """Return (precision, scale) of decimal(p,s), or None for another type."""
    match = re.fullmatch(r"decimal\((\d+),(\d+)\)", type_)
    return (int(match[1]), int(match[2])) if match else None
