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

    @property
    def peer_memory(self) -> str:
        """DuckDB's memory limit. With 1 GiB it runs out of memory at 20 M rows."""
        return "1GiB" if self.rows <= 5_000_000 else "4GiB"


GOAL = Shape(5_000_000, 256, 64)
ROWS = [Shape(rows, 256, 64) for rows in (1_000_000, 5_000_000, 20_000_000)]
FILES = [Shape(5_000_000, files, 64) for files in (64, 2048)]
SNAPSHOTS = [Shape(1_000_000, 100, commits) for commits in (1, 10, 100)]
#: Commits are added to it, so no other question may use this table.
NIGHTS = Shape(1_000_000, 64, 32)
