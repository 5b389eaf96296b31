"""The events of a window become lines: the latest event of each key is marked, its array is exploded, and
each event and line gets its outcome.
"""

from __future__ import annotations

from functools import reduce

from pyspark.sql import Column as Expression
from pyspark.sql import DataFrame
from pyspark.sql import Window as SparkWindow
from pyspark.sql import functions as F

from config.exports.contract import Contract, Deduplicate
from glue_jobs import columns, outcomes
from glue_jobs.table_fields import OFFSET, PARTITION, TIMESTAMP

_IS_LATEST = "$is_latest"
POSITION = "$position"
#: Kafka's order, which is that of the offsets. Timestamps come second, because a producer whose clock is slow
#: gives a later event an earlier one; they and the partition only break ties between partitions.
_TIE_BREAKS = (OFFSET, TIMESTAMP, PARTITION)


def with_latest_flag(
    events: DataFrame, rule: Deduplicate | None, *, within: tuple[str, ...] = ()
) -> DataFrame:
    """Add `$is_latest`, which is true for the one event of each key that is kept.

    `within` names columns that the key determines and by which `events` is already partitioned, so that no
    second shuffle is needed. The result is sorted by `within`, then by key.
    """
    if rule is None:
        return events.withColumn(_IS_LATEST, F.lit(True))
    order = [F.col(path) for path in dict.fromkeys((*rule.order, *_TIE_BREAKS))]
    # Nulls come first, so that an event without a value is never preferred to one with a value: the last one
    # is kept.
    if rule.keep == "latest":
        directed = [column.asc_nulls_first() for column in order]
    else:
        directed = [column.desc_nulls_first() for column in order]
    of_key = SparkWindow.partitionBy(*within, *rule.key).orderBy(*directed)
    # The last row of each key has no next row. This is cheaper than a rank, because nothing is sorted before
    # the shuffle.
    return events.withColumn(_IS_LATEST, F.lead(F.lit(1)).over(of_key).isNull())


def to_lines(events: DataFrame, contract: Contract, inside: Expression) -> DataFrame:
    """Return one row for each line, with the outcome of its event and its own state. Removes the column
    `$is_latest`.

    `inside` marks events of the window if the window is applied after deduplication. An event without lines
    keeps one row. An event is counted on its first row.
    """
    of_events = [filter_.where for filter_ in contract.filter if filter_.on == "events"]
    of_lines = [filter_.where for filter_ in contract.filter if filter_.on == "lines"]
    outcome = (
        F.when(~F.col(_IS_LATEST), outcomes.DUPLICATE)
        .when(~F.coalesce(inside, F.lit(False)), outcomes.OUTSIDE)
        .when(~_combine_conditions(of_events), outcomes.FILTERED)
        .otherwise(outcomes.KEPT)
    )
    is_kept = outcome == outcomes.KEPT
    counted = {
        outcomes.OUTCOME: outcome,
        outcomes.PARTITION: F.col(PARTITION),
        outcomes.OFFSET_MIN: F.col(OFFSET),
    }
    state = F.when(_combine_conditions(of_lines), outcomes.DELIVERED).otherwise(outcomes.FILTERED_LINE)
    if contract.explode is None:
        return events.withColumns(counted | {outcomes.LINE_STATE: F.when(is_kept, state)}).drop(_IS_LATEST)
    # Null where the event isn't kept, so that its array is never exploded.
    items = F.when(is_kept, F.col(contract.explode.array))
    counted[outcomes.ITEMS] = F.coalesce(F.size(items), F.lit(0)).cast("bigint")
    exploded = events.withColumns(counted).select(
        "*", F.posexplode_outer(items).alias(POSITION, contract.explode.alias)
    )
    first = F.col(POSITION).isNull() | (F.col(POSITION) == 0)
    once = {name: F.when(first, F.col(name)) for name in (outcomes.OUTCOME, outcomes.ITEMS)}
    return exploded.withColumns(
        once | {outcomes.LINE_STATE: F.when(F.col(POSITION).isNotNull(), state)}
    ).drop(_IS_LATEST)


def has_null_key(rule: Deduplicate | None) -> Expression:
    """Return whether a part of the key is null, or has no visible character."""
    key = rule.key if rule else []
    missing = [columns.is_blank(F.col(path).cast("string")) for path in key]
    return F.coalesce(reduce(lambda left, right: left | right, missing, F.lit(False)), F.lit(True))


def _combine_conditions(conditions: list[str]) -> Expression:
    """Return whether all conditions are true. Null counts as false, as in SQL's WHERE."""
    met = [F.coalesce(F.expr(text), F.lit(False)) for text in conditions]
    return reduce(lambda left, right: left & right, met, F.lit(True))
