"""From events to lines: fates are dealt, filters applied, and an array unfolded into rows."""

from __future__ import annotations

from functools import reduce

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from exports.contract import Contract
from glue_jobs.transforms import fates
from glue_jobs.transforms.deduplicate import COUNTS


def with_fates(frame: DataFrame, contract: Contract, inside: Column) -> DataFrame:
    """Adds the event's fate and what is counted of it. `inside` tells events of the window, where that is decided late."""
    passes = _all(one.where for one in contract.filter if one.on == "events")
    fate = (
        F.when(~F.col(COUNTS), fates.DUPLICATE)
        .when(~F.coalesce(inside, F.lit(False)), fates.OUTSIDE)
        .when(~passes, fates.FILTERED)
        .otherwise(fates.KEPT)
    )
    about = {fates.FATE: fate, fates.PARTITION: F.col("kafka_partition"), fates.OFFSET_MIN: F.col("kafka_offset")}
    return frame.withColumns(about).drop(COUNTS)


def unfolded(frame: DataFrame, contract: Contract) -> DataFrame:
    """One row a line, with the line's state. An event without lines keeps one row, and is counted on its first."""
    if contract.explode is None:
        return _with_state(frame, contract, _kept())
    array, alias = F.col(contract.explode.array), contract.explode.alias
    # Null where the event isn't kept, so that its array is never unfolded.
    items = F.when(_kept(), array)
    counted = frame.withColumn(fates.ITEMS, F.greatest(F.coalesce(F.size(items), F.lit(0)), F.lit(0)).cast("bigint"))
    rows = counted.select("*", F.posexplode_outer(items).alias("_position", alias))
    first = F.col("_position").isNull() | (F.col("_position") == 0)
    once = {name: F.when(first, F.col(name)) for name in (fates.FATE, fates.ITEMS)}
    return _with_state(rows.withColumns(once), contract, F.col("_position").isNotNull())


def _with_state(frame: DataFrame, contract: Contract, is_line: Column) -> DataFrame:
    passes = _all(one.where for one in contract.filter if one.on == "lines")
    return frame.withColumn(fates.LINE_STATE, F.when(is_line, F.when(passes, fates.DELIVERED).otherwise(fates.LEFT_OUT)))


def _kept() -> Column:
    return F.col(fates.FATE) == fates.KEPT


def _all(conditions: object) -> Column:
    """All of them hold; null counts as not holding, as in SQL's WHERE."""
    each = [F.coalesce(F.expr(text), F.lit(False)) for text in conditions]  # type: ignore[attr-defined]
    return reduce(lambda left, right: left & right, each, F.lit(True))
