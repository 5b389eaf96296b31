"""Groups instead of lines, none of them so small that it speaks of single people.

Events are grouped too, by outcome, so that counts still add up at the end.
"""

from __future__ import annotations

from functools import reduce

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from exports.contract import Aggregate, Contract
from glue_jobs import outcomes

_IS_EVENT = "$is_event"
_PERSONS = "$persons"


def lines_and_events(lines: DataFrame) -> DataFrame:
    """Double each row that counts an event: once as its line, once as the event. Lines then carry no outcome."""
    both = F.when(F.col(outcomes.OUTCOME).isNull(), F.array(F.lit(False))).otherwise(F.array(F.lit(False), F.lit(True)))
    rows = lines.withColumn(_IS_EVENT, F.explode(both))
    event = F.col(_IS_EVENT)
    is_kept = (F.col(outcomes.OUTCOME) == outcomes.KEPT).cast("bigint")
    items = F.col(outcomes.ITEMS) if outcomes.ITEMS in lines.columns else is_kept
    about = {
        outcomes.OUTCOME: F.when(event, F.col(outcomes.OUTCOME)),
        outcomes.PARTITION: F.when(event, F.col(outcomes.PARTITION)),
        outcomes.ITEMS: F.when(event, items),
        outcomes.LINE_STATE: F.when(~event, F.col(outcomes.LINE_STATE)),
    }
    return rows.withColumns(about).filter(event | F.col(outcomes.LINE_STATE).isNotNull())


def grouped(rows: DataFrame, contract: Contract, keys: dict[str, Column], measures: dict[str, Column]) -> DataFrame:
    """Return one row a group of delivered lines, and rows that count events and lines left out."""
    delivered = F.col(outcomes.LINE_STATE) == outcomes.DELIVERED
    person_id = contract.aggregate.person_id if contract.aggregate else None
    counted = F.countDistinct(F.col(person_id)) if person_id else F.lit(None).cast("bigint")
    # Keys and measures see nothing but delivered lines: a filter may be what keeps them from dividing by zero.
    guarded = {name: F.when(delivered, F.col(name)) for name in rows.columns if not name.startswith("$")}
    is_event = F.col(_IS_EVENT)
    return (
        rows.withColumns(guarded)
        .withColumns({f"$key_{name}": value for name, value in keys.items()})
        .groupBy(outcomes.OUTCOME, outcomes.PARTITION, outcomes.LINE_STATE, *[F.col(f"$key_{name}").alias(name) for name in keys])
        .agg(
            F.count_if(is_event).alias(outcomes.EVENTS),
            F.count_if(~is_event).alias(outcomes.LINES),
            F.sum(outcomes.ITEMS).alias(outcomes.ITEMS),
            F.min(F.when(is_event, F.col(outcomes.OFFSET_MIN))).alias(outcomes.OFFSET_MIN),
            F.max(F.when(is_event, F.col(outcomes.OFFSET_MIN))).alias(outcomes.OFFSET_MAX),
            counted.alias(_PERSONS),
            *[value.alias(name) for name, value in measures.items()],
        )
    )


def suppressed(groups: DataFrame, rule: Aggregate, keys: list[str]) -> DataFrame:
    """Marks groups of fewer people than the rule allows, and where that is one group alone, the next smallest too.

    Runs a query on `groups`, which should be persisted.
    """
    if rule.person_id is None:
        return groups.drop(_PERSONS)
    shown = F.col(outcomes.LINE_STATE) == outcomes.DELIVERED
    small = shown & (F.col(_PERSONS) < rule.min_group_size)
    if groups.filter(small).limit(2).count() == 1:
        small = small | _next_smallest(groups, shown & ~small, keys)
    state = F.when(small, outcomes.SUPPRESSED).otherwise(F.col(outcomes.LINE_STATE))
    return groups.withColumn(outcomes.LINE_STATE, state).drop(_PERSONS)


def _next_smallest(groups: DataFrame, among: Column, keys: list[str]) -> Column:
    order = [F.col(name).asc_nulls_first() for name in (_PERSONS, *keys)]
    group = groups.filter(among).orderBy(*order).select(*keys).head()
    if group is None:
        return F.lit(False)
    same = [F.col(name).eqNullSafe(F.lit(group[name])) for name in keys]
    return among & reduce(lambda left, right: left & right, same, F.lit(True))
