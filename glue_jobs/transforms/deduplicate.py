"""Many events about one thing become one, without dropping a row: each event learns whether it is the one that counts."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from exports.contract import Deduplicate

COUNTS = "$counts"
#: Kafka's own order, which is that of the offsets: a producer whose clock is behind dates its later event earlier. The rest
#: only keeps events of several partitions from tying.
_TIE_BREAKS = ("kafka_offset", "kafka_timestamp", "kafka_partition")


def unkeyed(rule: Deduplicate | None) -> Column:
    """Events that name nothing: a part of the key is null or blank."""
    if rule is None:
        return F.lit(False)
    missing = [F.col(path).isNull() | (F.btrim(F.col(path).cast("string")) == "") for path in rule.key]
    return F.greatest(*missing, F.lit(False)) if len(missing) > 1 else missing[0]


def marked(frame: DataFrame, rule: Deduplicate | None, *, within: tuple[str, ...] = ()) -> DataFrame:
    """Adds `$counts`: true for the one event of each key that survives.

    `within` names columns that the key determines and by which `frame` is already partitioned, so that no second
    shuffle is needed. Rows come out ordered by `within`, then key.
    """
    if rule is None:
        return frame.withColumn(COUNTS, F.lit(True))
    order = [F.col(path) for path in dict.fromkeys((*rule.order, *_TIE_BREAKS))]
    # Nulls come first, so that an event without a value never wins against one that has it.
    directed = [column.asc_nulls_first() if rule.keep == "latest" else column.desc_nulls_first() for column in order]
    of_key = Window.partitionBy(*within, *rule.key).orderBy(*directed)
    # The last row of each key has no row after it. Cheaper than a rank: nothing is sorted before the shuffle.
    return frame.withColumn(COUNTS, F.lead(F.lit(1)).over(of_key).isNull())
