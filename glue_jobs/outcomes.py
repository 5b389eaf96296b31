"""Columns with the outcome of each event and each line. The executors that write the file add them up.

An event is counted on exactly one row: the one whose `$outcome` is not null. `$line_state` is null if a row
has no line. Without an aggregate, a row has at most one event and one line, and no columns for their numbers;
the rows of an aggregate have all columns. Executors import this module, so it doesn't import Spark.

Six words have one meaning each in this package:

- event: what a producer wrote to the topic, a row of the table. Deduplication keeps one of equal events.
- item: an element of the list that a contract explodes.
- line: what the contract's columns are computed from: an item of an event, or the event if nothing is
  exploded.
- group: the lines of an aggregate with the same keys.
- row: a row of a DataFrame, whatever it stands for.
- record: a record of the CSV file (RFC 4180), which a row becomes. A run's record is a document of `runs`.
"""

from __future__ import annotations

from typing import Final

KEPT: Final = 0
DUPLICATE: Final = 1
OUTSIDE: Final = 2
FILTERED: Final = 3
#: The names of events' outcomes in counts.
EVENT_NAMES: Final = {KEPT: "kept", DUPLICATE: "duplicates", OUTSIDE: "outside_window", FILTERED: "filtered"}

DELIVERED: Final = 0
FILTERED_LINE: Final = 1
SUPPRESSED: Final = 2
#: The names of the states of lines, or of groups of lines, in counts.
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

#: Prefix of columns of bits. Each bit stands for a check of rows and is set if the row fails it.
FLAGS: Final = "$flags_"
FLAGS_PER_COLUMN: Final = 60


def read_flags(column: str, value: int) -> list[int]:
    """Return the numbers of the failed checks in a value of a column of flags."""
    first = int(column.removeprefix(FLAGS)) * FLAGS_PER_COLUMN
    return [first + bit for bit in range(value.bit_length()) if value >> bit & 1]
