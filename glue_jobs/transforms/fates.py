"""What becomes of each event and each line. Every row of a run carries these columns to its end, where they are summed.

An event is counted on exactly one row: the one whose `_fate` is not null. A line is delivered, filtered or none.
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

FATE: Final = "_fate"
EVENTS: Final = "_events"
PARTITION: Final = "_partition"
OFFSET_MIN: Final = "_offset_min"
OFFSET_MAX: Final = "_offset_max"
ITEMS: Final = "_items"
LINE_STATE: Final = "_line_state"
LINES: Final = "_lines"
LINE: Final = "_line"
FOREIGN: Final = "_foreign"
CUT: Final = "_cut"
