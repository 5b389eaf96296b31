"""Group lines, and suppress groups that are so small that they could reveal something about single people.

Events are grouped too, by outcome, so that their counts still add up.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from exports.contract import Aggregate, Contract
from glue_jobs import outcomes

_IS_EVENT = "$is_event"
_PERSONS = "$persons"
_NEXT = "$next_smallest"


def lines_and_events(lines: DataFrame) -> DataFrame:
    """Duplicate each row that counts an event: one row for its line, one for the event. Rows of lines then have no outcome."""
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
    """Return one row for each group of delivered lines, and rows that count the events and the lines that are left out."""
    delivered = F.col(outcomes.LINE_STATE) == outcomes.DELIVERED
    person_id = contract.aggregate.person_id if contract.aggregate else None
    counted = _count_people(F.col(person_id)) if person_id else F.lit(None).cast("bigint")
    # Measures get only fields of delivered lines, because a filter may be what prevents a division by zero. In other groups all
    # fields are null and a measure could divide by a count of 0, so it isn't computed there.
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
            *[F.when(delivered, value).alias(name) for name, value in measures.items()],
        )
    )


def _count_people(id_: Column) -> Column:
    """Count ids, ignoring case, white space around them, and blank ids. A count that is too low suppresses more, never less."""
    spelling = F.lower(F.btrim(id_.cast("string"), F.lit(" \t\r\n")))
    return F.countDistinct(F.when(spelling != "", spelling))


def suppressed(groups: DataFrame, rule: Aggregate, keys: list[str]) -> DataFrame:
    """Mark groups with fewer people than the rule allows. If that is only one group, mark the next smallest too.

    Runs a query on `groups`, which should be cached.
    """
    if rule.person_id is None:
        return groups.drop(_PERSONS)
    shown = F.col(outcomes.LINE_STATE) == outcomes.DELIVERED
    small = shown & (F.col(_PERSONS) < rule.min_group_size)
    if groups.filter(small).limit(2).count() == 1:
        group = F.struct(_PERSONS, *keys)
        next_smallest = groups.filter(shown & ~small).agg(F.min(group).alias(_NEXT))
        # Spark compares the groups, because Python would change bytes that are not valid UTF-8.
        groups = groups.crossJoin(F.broadcast(next_smallest))
        small = small | shown & group.eqNullSafe(F.col(_NEXT))
    state = F.when(small, outcomes.SUPPRESSED).otherwise(F.col(outcomes.LINE_STATE))
    return groups.withColumn(outcomes.LINE_STATE, state).drop(_PERSONS, _NEXT)
