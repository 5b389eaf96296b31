"""Turn the pinned table into rows that are ready to be written: deduplicate, explode, filter, treat personal
data and sort.

Events of other windows may be left out before deduplication. No other valid event is dropped on the way: each
gets an outcome (see `outcomes`), and the executors that write the file count them.
"""

from __future__ import annotations

import re
from functools import cached_property, reduce
from itertools import chain

import attrs
from pyspark.sql import Column as Expression
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from config.exports.allowed_functions import WINDOW_FIELDS
from config.exports.contract import Column, Contract
from config.exports.windows import Window
from glue_jobs import aggregate, columns, outcomes, ranges, source
from glue_jobs.analyse import analyse, require_sound
from glue_jobs.catalogs import SourceCatalog
from glue_jobs.delivery import csv
from glue_jobs.errors import StorageProblem
from glue_jobs.event_lines import POSITION, has_null_key, to_lines, with_latest_flag
from glue_jobs.event_time import EventTime
from glue_jobs.files import TableFiles, list_files
from glue_jobs.measures import measure_delivered_lines
from glue_jobs.source import PinnedTable
from glue_jobs.table_fields import TIMESTAMP

#: Up to this many groups are sorted in one task, which is cheaper than another shuffle.
_FEW_GROUPS = 500_000


@attrs.frozen
class WindowFrame:
    """What `multipart.write_file` needs."""

    frame: DataFrame
    partitions: int
    #: Columns that the executors hash when they write them.
    hashed_on_write: frozenset[str] = frozenset()
    #: The groups of an aggregate, including suppressed ones; None for lines.
    groups: DataFrame | None = None


@attrs.frozen(slots=False)  # for `cached_property`
class ExportQuery:
    """What all `windows` of a run share.

    The table is loaded, listed and analysed once, when a window first needs it.
    """

    spark: SparkSession
    contract: Contract
    table: PinnedTable
    windows: list[Window]
    #: The key of pseudonyms; empty if nothing is hashed.
    key: bytes = attrs.field(repr=False)
    catalog: SourceCatalog

    def window(self, window: Window) -> WindowQuery:
        return WindowQuery(self, window)

    @cached_property
    def events(self) -> DataFrame:
        return self.catalog.read_events(self.table)

    @cached_property
    def files(self) -> TableFiles:
        return list_files(self.events, self.table, self.contract, self.windows)

    @cached_property
    def types(self) -> StructType:
        """Spark's types of the columns' raw values.

        Raises SourceProblem or BadInput if the contract does not fit the table.
        """
        analysis, types = analyse(self.contract, self.events)
        require_sound(analysis, self.contract, f"{self.table.database}.{self.table.name}")
        reads = list(chain.from_iterable(analysis.reads.values()))
        source.require_same_fields(reads, self.contract, self.table)
        return types

    @cached_property
    def event_count(self) -> int:
        """Return the number of events in the table: from its metadata or, if rows are deleted, from a
        query.
        """
        return self.events.count() if self.table.events is None else self.table.events


@attrs.frozen
class WindowQuery:
    """Everything that determines the rows of a window: the same values give the same rows."""

    export: ExportQuery
    window: Window

    @property
    def contract(self) -> Contract:
        return self.export.contract

    @property
    def table(self) -> PinnedTable:
        return self.export.table

    def rows(self) -> WindowFrame:
        """Plan the rows. Groups are cached; the caller clears Spark's cache."""
        return self._plan_groups() if self.contract.aggregate else self._plan_lines()

    def count_read(self) -> dict[str, int]:
        """Count the events as they are read, by the names of `ReadCounts`.

        This is a separate query and not an `Observation` on the rows: adaptive execution drops the observing
        node from a plan whose shuffle is empty, and `Observation.get` then waits forever (SPARK-54620). Also,
        rows that Spark computes again after the loss of an executor would be counted twice.
        """
        received = F.col(TIMESTAMP)
        in_time = (received >= source.make_timestamp_literal(self.window.start)) & (
            received < source.make_timestamp_literal(self.window.end)
        )
        invalid, inside = self._build_time_conditions()
        null_key = has_null_key(self.contract.deduplicate)
        counts = {
            "inside": inside,
            "invalid_time": invalid,
            "invalid_time_received": invalid & in_time,
            "null_key": inside & null_key,
        }
        if not self._window_first:
            in_window = ~invalid & self._event_time.is_inside(self.window)
            counts |= {"in_window": in_window, "null_key_in_window": in_window & null_key}
        totals = self._select_events().agg(
            *[F.count_if(condition).alias(name) for name, condition in counts.items()]
        )
        return dict(totals.collect()[0].asDict())

    def _read_window_events(self) -> DataFrame:
        bounds = zip(WINDOW_FIELDS, (self.window.start, self.window.end), strict=True)
        return self.export.events.withColumns(
            {name: source.make_timestamp_literal(moment) for name, moment in bounds}
        )

    def _select_events(self) -> DataFrame:
        """Return the window's events and those with an invalid time; all events if the window is applied
        after deduplication.
        """
        if not self._window_first:
            return self._read_window_events()
        return self._read_window_events().filter(
            self._event_time.is_inside(self.window) | self._event_time.is_invalid()
        )

    def _select_valid_events(self) -> DataFrame:
        """Return the events that are deduplicated.

        `count_read` counts those without a valid time or a key.
        """
        _, inside = self._build_time_conditions()
        return self._select_events().filter(inside & ~has_null_key(self.contract.deduplicate))

    def _build_time_conditions(self) -> tuple[Expression, Expression]:
        invalid = F.coalesce(self._event_time.is_invalid(), F.lit(True))
        inside = self._event_time.is_inside(self.window) if self._window_first else F.lit(True)
        return invalid, ~invalid & inside

    @property
    def _event_time(self) -> EventTime:
        return EventTime(self.contract, self.table)

    @property
    def _window_first(self) -> bool:
        return self.contract.window.filter_stage == "before_deduplication"

    def _plan_lines(self) -> WindowFrame:
        contract = self.contract
        first = next(column for column in contract.columns if column.name == contract.delivery.order_by[0])
        files = self.export.files.of_window(self.window)
        hashed_on_write = _find_hashed_on_write(contract)
        rows = sum(file.rows for file in files)
        layout = None
        if first.field and _are_keys_in_ranges(contract, first):
            fields = self.table.fields
            inside = self.export.files.bounds(self.window)
            of_column = fields[first.field].id
            of_time = fields[contract.source.event_time].id
            s3 = self.export.catalog.connect_s3(self.export.events)
            try:
                sample = ranges.sample_values(s3, files, of_column, of_time, inside)
            except StorageProblem as problem:
                raise self.export.catalog.translate_read(problem) from problem
            layout = ranges.plan(rows, sample, self._parallelism)
        if layout is not None and first.field:
            partitions = layout.partitions
            events = layout.spread(self._select_valid_events(), F.col(first.field))
            lines = self._to_lines(with_latest_flag(events, contract.deduplicate, within=(ranges.BUCKET,)))
            values = self._treat_values(lines, hashed_on_write)
        else:
            partitions = ranges.count_partitions(rows, self._parallelism)
            lines = self._deduplicate_and_explode(partitions)
            values = self._treat_values(lines, hashed_on_write)
            values = values.repartitionByRange(partitions, F.col(first.name).asc_nulls_first())
        if layout is None or not _is_ordered_by_key(contract):
            values = values.sortWithinPartitions(*self._build_total_order(hashed_on_write))
        return WindowFrame(self._add_counters(values, hashed_on_write), partitions, hashed_on_write)

    def _plan_groups(self) -> WindowFrame:
        contract = self.contract
        types = self.export.types
        rows_read = sum(file.rows for file in self.export.files.of_window(self.window))
        partitions = ranges.count_partitions(rows_read, self._parallelism)
        self.export.spark.conf.set("spark.sql.shuffle.partitions", partitions)
        keys = {}
        measures = {}
        for column in contract.columns:
            spark_type = types[column.name].dataType
            if column.measure:
                value = measure_delivered_lines(self.export.spark, column.measure)
                value = columns.make_printable(value, column, spark_type, F.lit(True))
                measures[column.name] = columns.cast_to(value, column.type)
            else:
                value = _null_unless_delivered(column)
                keys[column.name] = columns.treat_value(
                    column, value, spark_type, self.export.key, _is_delivered()
                )
        rows = aggregate.duplicate_rows_for_counts(self._deduplicate_and_explode(partitions))
        groups = aggregate.group_rows(rows, contract, keys, measures).persist()
        are_few = groups.count() <= _FEW_GROUPS
        names = list(keys)
        remaining = aggregate.suppress_small_groups(groups, contract.aggregate, names)  # type: ignore[arg-type]
        order = self._build_total_order()
        ordered = remaining.coalesce(1).sortWithinPartitions(*order) if are_few else remaining.orderBy(*order)
        return WindowFrame(self._add_counters(ordered), 1 if are_few else partitions, groups=remaining)

    def _deduplicate_and_explode(self, partitions: int) -> DataFrame:
        rule = self.contract.deduplicate
        events = self._select_valid_events()
        events = events.repartition(partitions, *rule.key) if rule else events
        return self._to_lines(with_latest_flag(events, rule))

    def _to_lines(self, events: DataFrame) -> DataFrame:
        inside = F.lit(True) if self._window_first else self._event_time.is_inside(self.window)
        return to_lines(events, self.contract, inside)

    def _treat_values(self, lines: DataFrame, hashed_on_write: frozenset[str]) -> DataFrame:
        """Replace the source's columns with the contract's.

        In rows without a delivered line, their values mean nothing.
        """
        values = []
        for column in self.contract.columns:
            is_hashed_on_write = column.name in hashed_on_write
            spark_type = self.export.types[column.name].dataType
            guarded = is_hashed_on_write or columns.may_fail(column, spark_type)
            value = _null_unless_delivered(column) if guarded else columns.read_raw_value(column)
            if not is_hashed_on_write:
                value = columns.treat_value(column, value, spark_type, self.export.key, _is_delivered())
            values.append(value.alias(column.name))
        carried = [name for name in (*outcomes.COUNTED, ranges.BUCKET, POSITION) if name in lines.columns]
        return lines.select(*carried, *values)

    def _add_counters(self, values: DataFrame, hashed_on_write: frozenset[str] = frozenset()) -> DataFrame:
        """Return what executors write and count: the contract's columns, and those of `outcomes`."""
        failed = [~F.expr(check.each_row) for check in self.contract.check if check.each_row]
        flags = [F.when(_is_delivered(), bits).alias(name) for name, bits in _flag_conditions(failed).items()]
        cells = []
        for column in self.contract.columns:
            is_hashed_on_write = column.name in hashed_on_write
            cell = F.col(column.name) if is_hashed_on_write else self._build_cell(column).alias(column.name)
            cells.append(cell)
        counted = [name for name in outcomes.COUNTED if name in values.columns]
        return values.select(*cells, *counted, *flags)

    def _build_cell(self, column: Column) -> Expression:
        value = F.col(column.name)
        if column.type == "text" and self.contract.delivery.dialect == "excel":
            # Keep one character more than fits, so that `csv` counts the text as too long. Cut it before it
            # is sent to Python, because the size of a batch is limited in rows, and a text may have
            # megabytes.
            cut = F.substring(value, 1, csv.LONGEST_TEXT + 1)
            return F.when(F.octet_length(value) > csv.LONGEST_TEXT, cut).otherwise(value)
        return value.cast("string") if csv.is_written_by_spark(column) else value

    def _build_total_order(self, hashed_on_write: frozenset[str] = frozenset()) -> list[Expression]:
        order_by = self.contract.delivery.order_by
        rest = [column.name for column in self.contract.columns if column.name not in order_by]
        # The order of values that are hashed later would reveal something about them. Kafka's order decides
        # instead.
        names = [name for name in (*order_by, *rest) if name not in hashed_on_write]
        if hashed_on_write:
            names += [outcomes.PARTITION, outcomes.OFFSET_MIN]
            if self.contract.explode:
                names.append(POSITION)
        return [F.col(name).asc_nulls_first() for name in names]

    @property
    def _parallelism(self) -> int:
        return self.export.spark.sparkContext.defaultParallelism


def _are_keys_in_ranges(contract: Contract, first: Column) -> bool:
    """Return whether events of one deduplication key are always in one range of the first ordering column.

    One shuffle is then enough.
    """
    rule = contract.deduplicate
    early = contract.window.filter_stage == "before_deduplication"
    return rule is not None and early and _is_untouched(first) and first.field == rule.key[0]


def _is_ordered_by_key(contract: Contract) -> bool:
    """Return whether deduplication already returns rows in the file's order, given that ranges hold whole
    keys.

    `order_by` must name the whole key, so that no two rows tie: the file breaks ties by other columns than
    the rest of the key.
    """
    rule = contract.deduplicate
    if rule is None or contract.explode:
        return False
    by_name = {column.name: column for column in contract.columns}
    order = [by_name[name] for name in contract.delivery.order_by]
    return all(map(_is_untouched, order)) and [column.field for column in order] == rule.key


def _is_untouched(column: Column) -> bool:
    """Return whether the column copies a field without changing the order of its values."""
    is_kept = column.personal is None or column.personal.treatment == "keep"
    return column.field is not None and is_kept and column.type in ("text", "integer", "date", "timestamp")


def _find_hashed_on_write(contract: Contract) -> frozenset[str]:
    """Return the columns that executors can hash when they write: the file isn't sorted by them, and no check
    names them.
    """
    checks = " ".join(check.each_row for check in contract.check if check.each_row)
    return frozenset(
        column.name
        for column in contract.hashed
        if column.name not in contract.delivery.order_by and not re.search(rf"\b{column.name}\b", checks)
    )


def _is_delivered() -> Expression:
    return F.col(outcomes.LINE_STATE) == outcomes.DELIVERED


def _null_unless_delivered(column: Column) -> Expression:
    """Return the raw value, or null in lines that aren't delivered: a filter may be what prevents a division
    by zero.
    """
    return F.when(_is_delivered(), columns.read_raw_value(column))


def _flag_conditions(conditions: list[Expression]) -> dict[str, Expression]:
    """Return columns with a bit for each condition that is true.

    A condition is a failure: null passes, as in SQL's CHECK.
    """
    size = outcomes.FLAGS_PER_COLUMN
    result = {}
    for start in range(0, len(conditions), size):
        bits = [
            F.when(condition, F.lit(1 << bit).cast("bigint")).otherwise(F.lit(0).cast("bigint"))
            for bit, condition in enumerate(conditions[start : start + size])
        ]
        result[f"{outcomes.FLAGS}{start // size}"] = reduce(lambda left, right: left.bitwiseOR(right), bits)
    return result
