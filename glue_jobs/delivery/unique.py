"""Count the rows whose unique key another row has too, while the finished file is read back.

The file is sorted. If `order_by` begins with columns of the key, rows with the same key are near each other,
and only rows with the same values in these columns are held in memory. Otherwise, the keys of all rows are.
"""

from __future__ import annotations

from itertools import takewhile
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc


class KeyCounter:
    """Counts rows (`rows`) that share their key with another row, and the values that they share (`keys`).

    `sorted_by` are the columns by which the file is sorted. Missing values are equal.
    """

    def __init__(self, key: list[str], sorted_by: list[str]) -> None:
        self.rows = 0
        self.keys = 0
        self._key = key
        self._sorted_by = list(takewhile(key.__contains__, sorted_by))
        self._held: list[pa.Table] = []

    def add(self, table: pa.Table) -> None:
        """Add the next rows of the file."""
        rows = table.select(self._key)
        if not rows.num_rows:
            return
        if self._held and not self._continues(rows):
            self.finish()
        # Rows that follow may have the key of one of the rows from here on.
        start = self._find_last_run(rows)
        if start:
            self._held.append(rows.slice(0, start))
            self.finish()
        self._held.append(rows.slice(start))

    def finish(self) -> None:
        """Count the rows that are still held, after the last one was added."""
        if not self._held:
            return
        aggregations: list[Any] = [([], "count_all")]
        rows = pa.concat_tables(self._held)
        counts = rows.group_by(self._key, use_threads=False).aggregate(aggregations)["count_all"]
        repeated = counts.filter(pc.greater(counts, 1))
        self.keys += len(repeated)
        self.rows += pc.sum(repeated).as_py() or 0
        self._held = []

    def _continues(self, rows: pa.Table) -> bool:
        """Return whether the first of the rows agrees with the last that is held in the columns of the
        order.
        """
        if not self._sorted_by:
            return True
        held = self._held[-1].select(self._sorted_by)
        last = held.slice(held.num_rows - 1).to_pylist()
        return bool(last == rows.select(self._sorted_by).slice(0, 1).to_pylist())

    def _find_last_run(self, rows: pa.Table) -> int:
        """Return the index of the first of the rows at the end that agree in the columns of the order."""
        start = 0
        for name in self._sorted_by:
            values = rows[name]
            last = values[-1]
            same = pc.equal(values, last) if last.is_valid else pc.is_null(values)
            differs = pc.invert(pc.fill_null(same, False))
            others = pc.indices_nonzero(differs)
            if len(others):
                start = max(start, others[-1].as_py() + 1)
        return start
