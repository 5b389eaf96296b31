"""The tables that are measured."""

from __future__ import annotations

import attrs


@attrs.frozen
class Shape:
    """A table: how many rows in how many files, added by how many commits."""

    rows: int
    files: int
    commits: int

    @property
    def name(self) -> str:
        return f"sales_{self.rows // 1000}k_{self.files}f_{self.commits}c"

    @property
    def label(self) -> str:
        return f"{self.rows / 1e6:g} M rows, {self.files} files, {self.commits} snapshots"


GOAL = Shape(5_000_000, 256, 64)
GROWTH = [
    *[Shape(rows, 256, 64) for rows in (1_000_000, 5_000_000, 20_000_000)],
    *[Shape(5_000_000, files, 64) for files in (64, 2048)],
    *[Shape(1_000_000, 100, commits) for commits in (1, 10, 100)],
]
