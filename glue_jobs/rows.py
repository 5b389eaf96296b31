"""From the pinned table to rows that are ready to be written: the transforms in order, for lines and for aggregates."""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs
from pyspark.sql import Column as Expression
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from exports.contract import Column, Contract
from exports.expressions import WINDOW_FIELDS
from exports.windows import Window
from glue_jobs import aggregate, columns, outcomes, ranges, sampling, source
from glue_jobs.delivery import csv
from glue_jobs.errors import SourceProblem
from glue_jobs.expressions import require_no_clock
from glue_jobs.pseudonyms import is_foreign, with_pads
from glue_jobs.sampling import DataFile
from glue_jobs.table_metadata import PinnedTable
from glue_jobs.transforms.check import flags, row_rules
from glue_jobs.transforms.deduplicate import marked, unkeyed
from glue_jobs.transforms.flatten import unfolded

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client

#: Groups up to this many are ordered in one task: cheaper than another shuffle.
_FEW_GROUPS = 500_000


@attrs.frozen
class Rows:
    """What `upload` needs."""

    frame: DataFrame
    partitions: int
    #: An aggregate's groups before they became lines, some of them suppressed; None for lines.
    groups: DataFrame | None = None
    persisted: DataFrame | None = None

    def release(self) -> None:
        """Lets go of what was persisted."""
        if self.persisted is not None:
            self.persisted.unpersist()


@attrs.frozen
class Pipeline:
    """Everything that decides the rows of a window: the same values give the same rows."""

    spark: SparkSession
    contract: Contract
    table: PinnedTable
    window: Window
    key: bytes | None
    #: For a look into a few data files before Spark reads them all.
    s3: S3Client

    def rows(self, *, any_text: bool) -> Rows:
        """`any_text` sends pseudonymised text beyond ASCII through Python; without it such values are only counted."""
        types = self._analysed()
        return self._groups(types, any_text) if self.contract.aggregate else self._lines(types, any_text)

    def count_read(self) -> dict[str, int]:
        """Counts the events as they are read: `inside`, `undated`, `undated_received` and `unkeyed` of `reconcile.Read`.

        A query of its own, not an `Observation` on the rows: adaptive execution drops the observing node from a plan whose
        shuffle is empty, and `Observation.get` then waits for ever (SPARK-54620); and what Spark computes again after the
        loss of an executor is observed twice.
        """
        received = F.col("kafka_timestamp")
        in_time = (received >= source.instant(self.window.start)) & (received < source.instant(self.window.end))
        counts = {
            "inside": self._is_inside,
            "undated": self._is_undated,
            "undated_received": self._is_undated & in_time,
            "unkeyed": self._is_inside & self._is_unkeyed,
        }
        totals = self._of_interest().agg(*[F.count_if(condition).alias(name) for name, condition in counts.items()])
        return dict(totals.collect()[0].asDict())

    def partitions_behind(self) -> list[int]:
        """The Kafka partitions of which the table holds events, and none that Kafka received after the window's end."""
        newest = source.events(self.spark, self.table).groupBy("kafka_partition").agg(F.max("kafka_timestamp").alias("newest"))
        behind = newest.filter(F.col("newest") < source.instant(self.window.end)).collect()
        return sorted(row["kafka_partition"] for row in behind)

    def count_table(self) -> int:
        return self._source().count()

    def _analysed(self) -> StructType:
        """The types of all columns as the source or the author's expression gives them. Raises SourceProblem."""
        lines = self._unfolded(marked(self._source(), None))
        plain = [columns.raw(column).alias(column.name) for column in self.contract.column if not column.measure]
        measures = [columns.raw(column).alias(column.name) for column in self.contract.column if column.measure]
        found = StructType([*lines.select(plain).schema, *(lines.agg(*measures).schema if measures else [])])
        if wrong := columns.misfits(self.contract.columns, found):
            raise SourceProblem(
                "EXP-TYPE-CHANGED",
                f"table {self.table.database}.{self.table.name} does not fit the contract: " + "; ".join(wrong),
                "Correct the type or the expression in the contract, and count up its version",
            )
        whole = unfolded(marked(self._source(), None), attrs.evolve(self.contract, filter=[]), F.lit(True))
        require_no_clock(self.contract, whole)
        return found

    def _lines(self, types: StructType, any_text: bool) -> Rows:
        files = self._files()
        rows = sum(file.rows for file in files)
        events = self._countable()
        plan = self._plan(files, rows)
        if plan is not None and self._first.field:
            spread = plan.spread(events, F.col(self._first.field))
            values = self._valued(self._unfolded(self._marked(spread, within=(ranges.BUCKET,))), types, any_text)
            partitions = plan.partitions
        else:
            partitions = ranges.wanted(rows, self._parallelism)
            values = self._valued(self._unfolded(self._marked(self._by_key(events, partitions))), types, any_text)
            values = values.repartitionByRange(partitions, F.col(self._first.name).asc_nulls_first())
        if plan is None or not self._key_orders_all:
            values = values.sortWithinPartitions(*self._total_order())
        return Rows(self._finished(values, F.col(_FOREIGN)), partitions)

    def _groups(self, types: StructType, any_text: bool) -> Rows:
        partitions = ranges.wanted(sum(file.rows for file in self._files()), self._parallelism)
        self.spark.conf.set("spark.sql.shuffle.partitions", partitions)
        lines = self._with_pads(self._unfolded(self._marked(self._by_key(self._countable(), partitions))))
        keys = {c.name: columns.treated(c, types[c.name].dataType, any_text=any_text) for c in self._keys}
        measures = {c.name: columns.in_type(columns.raw(c), c.type) for c in self.contract.columns if c.measure}
        rows = aggregate.lines_and_events(lines, foreign=self._foreign(any_text))
        groups = aggregate.grouped(rows, self.contract, keys, measures).persist()
        few = groups.count() <= _FEW_GROUPS
        shown = aggregate.suppressed(groups, self.contract.aggregate, list(keys))  # type: ignore[arg-type]
        order = self._total_order()
        ordered = shown.coalesce(1).sortWithinPartitions(*order) if few else shown.orderBy(*order)
        finished = self._finished(ordered, F.col(aggregate.FOREIGN_FOUND))
        return Rows(finished, 1 if few else partitions, shown, groups)

    def _plan(self, files: list[DataFile], rows: float) -> ranges.Layout | None:
        """Ranges of the first ordering column; None where they can't hold whole keys, or no file gave a sample of it."""
        if not self._ordered_by_key or not self._first.field:
            return None
        sample = sampling.values(self.s3, files, self.table.fields[self._first.field].id)
        return ranges.plan(rows, sample, self._parallelism)

    @property
    def _first(self) -> Column:
        name = self.contract.delivery.order_by[0]
        return next(column for column in self.contract.columns if column.name == name)

    @property
    def _keys(self) -> list[Column]:
        return [column for column in self.contract.columns if not column.measure]

    @property
    def _ordered_by_key(self) -> bool:
        """Whether ranges of the first ordering column hold whole deduplication keys, so that one shuffle is enough."""
        rule = self.contract.deduplicate
        return rule is not None and self._early and _untouched(self._first) and self._first.field == rule.key[0]

    @property
    def _key_orders_all(self) -> bool:
        """Whether rows leave deduplication in the order that the file wants."""
        rule = self.contract.deduplicate
        if rule is None or not self._ordered_by_key or self.contract.explode:
            return False
        named = {column.name: column for column in self.contract.columns}
        wanted = [named[name] for name in self.contract.delivery.order_by]
        return all(map(_untouched, wanted)) and [column.field for column in wanted] == rule.key[: len(wanted)]

    def _source(self) -> DataFrame:
        bounds = zip(WINDOW_FIELDS, (self.window.start, self.window.end), strict=True)
        frame = source.events(self.spark, self.table)
        return frame.withColumns({name: source.instant(moment) for name, moment in bounds})

    def _countable(self) -> DataFrame:
        """The events that deduplication sees. `count_read` counts those that have no valid time or no key."""
        return self._of_interest().filter(self._is_inside & ~self._is_unkeyed)

    def _of_interest(self) -> DataFrame:
        if not self._early:
            return self._source()
        limits = source.plausible(self.contract, self.table)
        return self._source().filter(source.of_interest(self.contract, self.table, self.window, limits))

    @property
    def _early(self) -> bool:
        return self.contract.window.applies == "before_deduplication"

    @property
    def _is_undated(self) -> Expression:
        limits = source.plausible(self.contract, self.table)
        return F.coalesce(source.undated(self.contract, self.table, limits), F.lit(True))

    @property
    def _is_inside(self) -> Expression:
        return ~self._is_undated & (source.in_window(self.contract, self.table, self.window) if self._early else F.lit(True))

    @property
    def _is_unkeyed(self) -> Expression:
        return F.coalesce(unkeyed(self.contract.deduplicate), F.lit(True))

    def _by_key(self, events: DataFrame, partitions: int) -> DataFrame:
        rule = self.contract.deduplicate
        return events.repartition(partitions, *rule.key) if rule else events

    def _marked(self, events: DataFrame, within: tuple[str, ...] = ()) -> DataFrame:
        return marked(events, self.contract.deduplicate, within=within)

    def _unfolded(self, events: DataFrame) -> DataFrame:
        inside = F.lit(True) if self._early else source.in_window(self.contract, self.table, self.window)
        return unfolded(events, self.contract, inside)

    def _valued(self, lines: DataFrame, types: StructType, any_text: bool) -> DataFrame:
        """The contract's columns instead of the source's. Where a row delivers no line, they mean nothing."""
        kept = [name for name in (*_COUNTED, ranges.BUCKET) if name in lines.columns]
        values = {column.name: self._treated(column, types, any_text) for column in self.contract.columns}
        return self._with_pads(lines).select(
            *kept, self._foreign(any_text).alias(_FOREIGN), *[value.alias(name) for name, value in values.items()]
        )

    def _treated(self, column: Column, types: StructType, any_text: bool) -> Expression:
        found = types[column.name].dataType
        value = columns.treated(column, found, any_text=any_text)
        if not columns.may_fail(column, found):
            return value
        # A filter may be what keeps an expression from dividing by zero, so it must not see what was filtered out.
        return F.when(F.col(outcomes.LINE_STATE) == outcomes.DELIVERED, value)

    def _foreign(self, any_text: bool) -> Expression:
        """Whether a value of a delivered row can't be hashed because it isn't ASCII."""
        found = _any([] if any_text else [is_foreign(columns.raw(column)) for column in self.contract.hashed])
        return F.when(F.col(outcomes.LINE_STATE) == outcomes.DELIVERED, found).otherwise(F.lit(False))

    def _finished(self, values: DataFrame, foreign: Expression) -> DataFrame:
        """What executors write and count: the contract's columns, and those of `fates`."""
        delivered = F.col(outcomes.LINE_STATE) == outcomes.DELIVERED
        broken = flags([foreign, *[rule.bad for rule in row_rules(self.contract)]])
        raised = [F.when(delivered, bits).alias(name) for name, bits in broken.items()]
        cells = [self._cell(column).alias(column.name) for column in self.contract.columns]
        return values.select(*cells, *[name for name in _COUNTED if name in values.columns], *raised)

    def _cell(self, column: Column) -> Expression:
        value = F.col(column.name)
        if column.type == "text" and self.contract.delivery.dialect == "excel":
            # One character more than fits, by which `csv_line` sees and counts that it is too long. Cut before it goes to
            # Python: batches are counted in rows, and a text may have megabytes.
            cut = F.substring(value, 1, csv.LONGEST_TEXT + 1)
            return F.when(F.octet_length(value) > csv.LONGEST_TEXT, cut).otherwise(value)
        return value.cast("string") if csv.written_by_spark(column) else value

    def _total_order(self) -> list[Expression]:
        rest = [column.name for column in self.contract.columns if column.name not in self.contract.delivery.order_by]
        return [F.col(name).asc_nulls_first() for name in (*self.contract.delivery.order_by, *rest)]

    def _with_pads(self, frame: DataFrame) -> DataFrame:
        return with_pads(frame, self.key) if self.key and self.contract.hashed else frame

    def _files(self) -> list[DataFile]:
        if not self._early:
            return sampling.files(self.spark, self.table, None, self.contract.source.event_time)
        start, end = (source.as_stored(one, self.contract, self.table) for one in (self.window.start, self.window.end))
        window = attrs.evolve(self.window, start=start, end=end)
        return sampling.files(self.spark, self.table, window, self.contract.source.event_time)

    @property
    def _parallelism(self) -> int:
        return self.spark.sparkContext.defaultParallelism


_COUNTED = (
    outcomes.FATE,
    outcomes.PARTITION,
    outcomes.OFFSET_MIN,
    outcomes.LINE_STATE,
    outcomes.EVENTS,
    outcomes.OFFSET_MAX,
    outcomes.ITEMS,
    outcomes.LINES,
)
_FOREIGN = "$foreign"


def _untouched(column: Column) -> bool:
    """Whether the file shows the field as the source orders it."""
    kept = column.personal is None or column.personal.treatment == "keep"
    return column.field is not None and kept and column.type in ("text", "integer", "date", "timestamp")


def _any(conditions: list[Expression]) -> Expression:
    result = F.lit(False)
    for condition in conditions:
        result = result | condition
    return result
