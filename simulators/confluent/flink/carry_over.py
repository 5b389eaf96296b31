"""Where a statement with `sql.tables.initial-offset-from` begins to read: where another statement stopped.

The rules are those of "Carry-over Offsets in Confluent Cloud for Apache Flink"
(docs.confluent.io/cloud/current/flink/operate-and-deploy/carry-over-offsets.html): the new statement waits
for the other one to stop, for at most six hours, and then fails; both are in the same organization,
environment and region; the statement must be stateless, as determined by the system, so that it has no
aggregates, windows, LAG, pattern matching or upsert sink.

Where the page says nothing, this is the strictest reading: a statement that doesn't exist, or that failed or
completed instead of being stopped, gives no offsets, nor does one that was stopped before it read; and both
statements read the same topics.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from simulators.confluent.flink.sql import SqlError
from simulators.confluent.model import Plan, Statement
from simulators.confluent.organization import Organization

PROPERTY: Final = "sql.tables.initial-offset-from"
#: Seconds for which a statement waits for the other one to stop.
_PATIENCE: Final = 6 * 3600.0


def is_waiting(org: Organization, statement: Statement) -> bool:
    """Return whether the statement still waits for the one whose offsets it takes over.

    Raises SqlError if it waits in vain.
    """
    name = statement.properties.get(PROPERTY)
    if name is None:
        return False
    other = org.statements.get((statement.environment, name))
    if other is None or other.phase == "DELETING":
        raise SqlError(f"Statement '{name}' in '{PROPERTY}' does not exist")
    if other.phase in ("FAILED", "COMPLETED"):
        raise SqlError(f"Statement '{name}' in '{PROPERTY}' is {other.phase}, not STOPPED")
    if other.phase == "STOPPED":
        return False
    if org.clock.now() - statement.created >= _PATIENCE:
        raise SqlError(f"Statement '{name}' in '{PROPERTY}' was not stopped within 6 hours")
    return True


def find_start(org: Organization, statement: Statement, plan: Plan) -> Mapping[str, Mapping[int, int]]:
    """Return the offset from which each partition of each topic is read; nothing to read from the beginning.

    Raises SqlError if the offsets of the other statement can't be used.
    """
    name = statement.properties.get(PROPERTY)
    if name is None:
        return {}
    other = org.statements[statement.environment, name]
    if not plan.is_stateless:
        raise SqlError(f"'{PROPERTY}' can be used by stateless statements only")
    if other.run is None:
        raise SqlError(f"Statement '{name}' in '{PROPERTY}' has no offsets")
    if not other.run.is_stateless:
        raise SqlError(f"Statement '{name}' in '{PROPERTY}' is not stateless")
    start = other.run.offsets()
    if set(start) != set(plan.sources):
        read = ", ".join(sorted(start))
        raise SqlError(f"Statement '{name}' in '{PROPERTY}' reads other tables: {read}")
    return start


def format_offsets(offsets: Mapping[str, Mapping[int, int]]) -> dict[str, str]:
    """Return the offsets as `status.latest_offsets` has them (flink-gateway/v1)."""
    return {
        topic: ";".join(f"partition:{partition},offset:{offset}" for partition, offset in sorted(of.items()))
        for topic, of in offsets.items()
    }
