"""Group lines, and suppress groups that are so small that they could reveal something about single people.

Events are grouped too, by outcome, so that their counts still add up.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from config.exports.contract import Aggregate, Contract
from glue_jobs import outcomes
from glue_jobs.pseudonyms import person

_IS_EVENT = "$is_event"
_PERSON = "$person"
_PERSONS = "$persons"
_NEXT = "$next_smallest"


def duplicate_rows_for_counts(lines: DataFrame) -> DataFrame:
    """Duplicate each row that counts an event: one row for its line, one for the event.

    Rows of lines then have no outcome.
    """
    both = F.when(F.col(outcomes.OUTCOME).isNull(), F.array(F.lit(False))).otherwise(
        F.array(F.lit(False), F.lit(True))
    )
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


def group_rows(
    rows: DataFrame, contract: Contract, keys: dict[str, Column], measures: dict[str, Column]
) -> DataFrame:
    """Return one row for each group of delivered lines, and rows that count the events and the lines that are
    left out.

    `measures` must not fail in a line that isn't delivered. They aren't shown for a group of such lines,
    where a measure could divide by a count of 0.
    """
    delivered = F.col(outcomes.LINE_STATE) == outcomes.DELIVERED
    person_id = contract.aggregate.person_id if contract.aggregate else None
    spelling = F.lit(None).cast("string")
    if person_id:
        spelling = person(
            F.when(delivered, F.col(person_id).cast("string")), _choose_kind(contract, person_id)
        )
    is_event = F.col(_IS_EVENT)
    return (
        rows.withColumns({_PERSON: spelling} | {f"$key_{name}": value for name, value in keys.items()})
        .groupBy(
            outcomes.OUTCOME,
            outcomes.PARTITION,
            outcomes.LINE_STATE,
            *[F.col(f"$key_{name}").alias(name) for name in keys],
        )
        .agg(
            F.count_if(is_event).alias(outcomes.EVENTS),
            F.count_if(~is_event).alias(outcomes.LINES),
            F.sum(outcomes.ITEMS).alias(outcomes.ITEMS),
            F.min(F.when(is_event, F.col(outcomes.OFFSET_MIN))).alias(outcomes.OFFSET_MIN),
            F.max(F.when(is_event, F.col(outcomes.OFFSET_MIN))).alias(outcomes.OFFSET_MAX),
            F.countDistinct(_PERSON).alias(_PERSONS),
            *[F.when(delivered, value).alias(name) for name, value in measures.items()],
        )
    )


def _choose_kind(contract: Contract, person_id: str) -> str:
    """Return the kind of text that a person's id is: that of the column which hashes it, if there is one."""
    for column in contract.hashed:
        if column.personal and column.field == person_id:
            return column.personal.kind or "text"
    return "text"


def suppress_small_groups(groups: DataFrame, rule: Aggregate, keys: list[str]) -> DataFrame:
    """Mark groups with fewer people than the rule allows. If that is only one group, mark the next smallest
    too.

    Runs a query on `groups`, which should be cached.
    """
    if rule.person_id is None:
        return groups.drop(_PERSONS)
    delivered = F.col(outcomes.LINE_STATE) == outcomes.DELIVERED
    small = delivered & (F.col(_PERSONS) < rule.min_group_size)
    if groups.filter(small).limit(2).count() == 1:
        group = F.struct(_PERSONS, *keys)
        next_smallest = groups.filter(delivered & ~small).agg(F.min(group).alias(_NEXT))
        # Spark compares the groups, because Python would change bytes that are not valid UTF-8.
        groups = groups.crossJoin(F.broadcast(next_smallest))
        small = small | delivered & group.eqNullSafe(F.col(_NEXT))
    state = F.when(small, outcomes.SUPPRESSED).otherwise(F.col(outcomes.LINE_STATE))
    return groups.withColumn(outcomes.LINE_STATE, state).drop(_PERSONS, _NEXT)
