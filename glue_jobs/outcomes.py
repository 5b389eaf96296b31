"""The outcome of each event and each line, as columns of every row. The executors that write the file sum them.

An event is counted on exactly one row: the one whose `$outcome` is not null. A line is delivered, filtered or none. Rows of
lines stand for one event and one line each and leave out the columns that would say so; rows of groups have them all.
Executors import this module, so it needs no Spark.
"""

from __future__ import annotations

from typing import Final

KEPT: Final = 0
DUPLICATE: Final = 1
OUTSIDE: Final = 2
FILTERED: Final = 3
#: What counts call the outcome of an event.
EVENT_NAMES: Final = {KEPT: "kept", DUPLICATE: "duplicates", OUTSIDE: "outside_window", FILTERED: "filtered"}

DELIVERED: Final = 0
FILTERED_LINE: Final = 1
SUPPRESSED: Final = 2
#: What counts call the state of a line, or of a group of lines.
LINE_NAMES: Final = {DELIVERED: "delivered", FILTERED_LINE: "filtered", SUPPRESSED: "suppressed"}

OUTCOME: Final = "$outcome"
PARTITION: Final = "$partition"
OFFSET_MIN: Final = "$offset_min"
LINE_STATE: Final = "$line_state"
EVENTS: Final = "$events"
OFFSET_MAX: Final = "$offset_max"
ITEMS: Final = "$items"
LINES: Final = "$lines"
COUNTED: Final = (OUTCOME, PARTITION, OFFSET_MIN, LINE_STATE, EVENTS, OFFSET_MAX, ITEMS, LINES)

#: Columns of bits: one for each check of rows that the row fails.
FLAGS: Final = "$flags_"
FLAGS_PER_COLUMN: Final = 60


def flags_of(column: str, value: int) -> list[int]:
    """Return the numbers of the checks that a value of one of the columns of flags stands for."""
    first = int(column.removeprefix(FLAGS)) * FLAGS_PER_COLUMN
    return [first + bit for bit in range(value.bit_length()) if value >> bit & 1]
