"""From events to lines: fates are dealt, filters applied, and an array unfolded into rows."""

from __future__ import annotations

from functools import reduce

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from exports.contract import Contract
from glue_jobs import outcomes
from glue_jobs.transforms.deduplicate import COUNTS


def unfolded(frame: DataFrame, contract: Contract, inside: Column) -> DataFrame:
    """One row a line, with the fate of its event and its own state. Takes the place of the column `$counts`.

    `inside` tells events of the window, where that is decided late. An event without lines keeps one row; an event is
    counted on its first.
    """
    fate = _fate(contract, inside)
    about = {outcomes.FATE: fate, outcomes.PARTITION: F.col("kafka_partition"), outcomes.OFFSET_MIN: F.col("kafka_offset")}
    if contract.explode is None:
        return frame.withColumns(about | {outcomes.LINE_STATE: _state(contract, fate == outcomes.KEPT)}).drop(COUNTS)
    # Null where the event isn't kept, so that its array is never unfolded.
    items = F.when(fate == outcomes.KEPT, F.col(contract.explode.array))
    about[outcomes.ITEMS] = F.greatest(F.coalesce(F.size(items), F.lit(0)), F.lit(0)).cast("bigint")
    rows = frame.withColumns(about).select("*", F.posexplode_outer(items).alias("$position", contract.explode.alias))
    first = F.col("$position").isNull() | (F.col("$position") == 0)
    once = {name: F.when(first, F.col(name)) for name in (outcomes.FATE, outcomes.ITEMS)}
    state = {outcomes.LINE_STATE: _state(contract, F.col("$position").isNotNull())}
    return rows.withColumns(once | state).drop(COUNTS, "$position")


def _fate(contract: Contract, inside: Column) -> Column:
    passes = _all([one.where for one in contract.filter if one.on == "events"])
    return (
        F.when(~F.col(COUNTS), outcomes.DUPLICATE)
        .when(~F.coalesce(inside, F.lit(False)), outcomes.OUTSIDE)
        .when(~passes, outcomes.FILTERED)
        .otherwise(outcomes.KEPT)
    )


def _state(contract: Contract, is_line: Column) -> Column:
    passes = _all([one.where for one in contract.filter if one.on == "lines"])
    return F.when(is_line, F.when(passes, outcomes.DELIVERED).otherwise(outcomes.LEFT_OUT))


def _all(conditions: list[str]) -> Column:
    """All of them hold; null counts as not holding, as in SQL's WHERE."""
    each = [F.coalesce(F.expr(text), F.lit(False)) for text in conditions]
    return reduce(lambda left, right: left & right, each, F.lit(True))
