"""What becomes of each event and each line. Every row of a run carries these columns to its end, where they are summed.

An event is counted on exactly one row: the one whose `$fate` is not null. A line is delivered, filtered or none. Rows of
lines stand for one event and one line each and leave out the columns that would say so; rows of groups have them all.
"""

from __future__ import annotations

from typing import Final

KEPT: Final = 0
DUPLICATE: Final = 1
OUTSIDE: Final = 2
FILTERED: Final = 3

DELIVERED: Final = 0
LEFT_OUT: Final = 1
SUPPRESSED: Final = 2

FATE: Final = "$fate"
PARTITION: Final = "$partition"
OFFSET_MIN: Final = "$offset_min"
LINE_STATE: Final = "$line_state"
#: Columns of bits (see check.flags): a value beyond ASCII could not be hashed, then a bit for each rule.
FLAGS: Final = "$flags_"

EVENTS: Final = "$events"
OFFSET_MAX: Final = "$offset_max"
ITEMS: Final = "$items"
LINES: Final = "$lines"

FOREIGN: Final = 0
FIRST_RULE: Final = 1
