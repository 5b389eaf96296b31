"""From a pinned table to the events of a window: one version for everything, files pruned by time, names normalised."""

from __future__ import annotations

import difflib
from collections.abc import Iterator
from datetime import UTC, datetime, time, timedelta
from zoneinfo import ZoneInfo

import attrs
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from exports.contract import Contract
from exports.expressions import WINDOW_FIELDS
from exports.windows import Window
from glue_jobs.contract import CATALOG
from glue_jobs.errors import SourceProblem
from glue_jobs.table_metadata import NORMALISED, PinnedTable

#: Iceberg's name of a timestamp without a zone: Avro's local-timestamp-millis and -micros.
_LOCAL = "timestamp"
#: Clocks of producers run ahead at times; an event dated further ahead of the table's last commit can't be right.
_AHEAD = timedelta(days=1)


@attrs.frozen
class Plausible:
    """Event times outside [earliest, latest) date no event."""

    earliest: datetime
    latest: datetime


def plausible(contract: Contract, table: PinnedTable) -> Plausible:
    """Both bounds are moments, whatever the type of the event time."""
    earliest = datetime.combine(contract.source.earliest, time(), UTC)
    return Plausible(earliest, table.committed_at + _AHEAD)


def events(spark: SparkSession, table: PinnedTable) -> DataFrame:
    """All events of the pinned snapshot, in its own schema, with Kafka's metadata as kafka_…."""
    source = ".".join(quoted(part) for part in (CATALOG, table.database, table.name))
    # Not .option("snapshot-id"): that reads old data through the table's newest schema.
    frame = spark.sql(f"SELECT * FROM {source} VERSION AS OF {table.snapshot_id}")  # noqa: S608 - quoted, and a number
    return frame.select([F.col(quoted(name)).alias(NORMALISED.get(name, name)) for name in frame.columns])


def of_interest(contract: Contract, table: PinnedTable, window: Window, limits: Plausible) -> Column:
    """Events of the window and events that can't be dated: what the file pruning lets through, and what is counted."""
    return in_window(contract, table, window) | undated(contract, table, limits)


def in_window(contract: Contract, table: PinnedTable, window: Window) -> Column:
    moment = F.col(contract.source.event_time)
    return (moment >= _bound(window.start, contract, table)) & (moment < _bound(window.end, contract, table))


def undated(contract: Contract, table: PinnedTable, limits: Plausible) -> Column:
    moment = F.col(contract.source.event_time)
    earliest, latest = (_bound(limit, contract, table) for limit in (limits.earliest, limits.latest))
    return moment.isNull() | (moment < earliest) | (moment >= latest)


def as_stored(moment: datetime, contract: Contract, table: PinnedTable) -> datetime:
    """The moment as the event time holds it, in UTC or, where the field has no zone, as a clock in the window's zone shows it."""
    if table.fields[contract.source.event_time].type == _LOCAL:
        return moment.astimezone(ZoneInfo(contract.window.zone)).replace(tzinfo=UTC)
    return moment


def _bound(moment: datetime, contract: Contract, table: PinnedTable) -> Column:
    literal = instant(as_stored(moment, contract, table))
    return literal.cast("timestamp_ntz") if table.fields[contract.source.event_time].type == _LOCAL else literal


def require_fields(contract: Contract, table: PinnedTable) -> None:
    """Raises SourceProblem where a field of the contract is gone, was renamed, or is another field of the same name."""
    problems = [problem for path in named_fields(contract) if (problem := _problem(path, contract, table))]
    problems += [f"{name} is the name of the export's own column" for name in WINDOW_FIELDS if name in table.fields]
    if contract.explode and contract.explode.alias in table.columns:
        problems.append(f"a field {contract.explode.alias} has the name that explode.as gives to an item")
    _require_none(problems, table)


def require_same_fields(paths: list[str], contract: Contract, table: PinnedTable) -> None:
    """Raises SourceProblem where a field is another one of the same name. `paths` are as expressions write them."""
    read = [table_path(path, contract) for path in paths]
    inside = [field for field in table.fields for path in read if _is_inside(field, path)]
    _require_none([problem for path in dict.fromkeys([*read, *inside]) if (problem := _replaced(path, contract, table))], table)


def _require_none(problems: list[str], table: PinnedTable) -> None:
    if problems:
        raise SourceProblem(
            "EXP-SCHEMA-CHANGED",
            f"table {table.database}.{table.name} no longer has what the contract reads: " + "; ".join(dict.fromkeys(problems)),
            "Change the contract (and its version), or put the field back",
        )


def named_fields(contract: Contract) -> Iterator[str]:
    """The fields that the contract names outright, as paths of the table; what expressions name, Spark's parser knows."""
    yield contract.source.event_time
    if contract.deduplicate:
        yield from contract.deduplicate.key
        yield from contract.deduplicate.order
    if contract.explode:
        yield contract.explode.array
    if contract.aggregate and contract.aggregate.people:
        yield table_path(contract.aggregate.people, contract)
    for column in contract.column:
        if column.field:
            yield table_path(column.field, contract)


def table_path(path: str, contract: Contract) -> str:
    """The table's path of what expressions reach through the unfolded array's alias."""
    head, _, rest = path.partition(".")
    if contract.explode and head == contract.explode.alias:
        return f"{contract.explode.array}[].{rest}" if rest else f"{contract.explode.array}[]"
    return path


def _problem(path: str, contract: Contract, table: PinnedTable) -> str | None:
    field = table.fields.get(path)
    if field is None:
        if renamed := table.renamed_to(path):
            return f"{path} was renamed to {renamed}"
        close = difflib.get_close_matches(path, table.fields, n=1)
        return f"{path} is gone" if path in table.former else f"{path} does not exist" + (f" ({close[0]}?)" if close else "")
    return _replaced(path, contract, table)


def _replaced(path: str, contract: Contract, table: PinnedTable) -> str | None:
    """The problem where `path`, or a record or array that it is in, was dropped and added again."""
    again = [field for field in table.fields if _is_inside(path, field) and len(table.former[field]) > 1]
    if not again or any(_is_inside(path, meant) for meant in contract.source.replaced_fields):
        return None
    return (
        f"{again[0]} was dropped and added again, so older events would read as null (list it in source.replaced_fields if meant)"
    )


def _is_inside(path: str, outer: str) -> bool:
    return path == outer or path.startswith((f"{outer}.", f"{outer}[]"))


def instant(moment: datetime) -> Column:
    """A literal."""
    return F.lit(f"{moment.astimezone(UTC):%Y-%m-%d %H:%M:%S.%f}").cast("timestamp")


def quoted(name: str) -> str:
    """An identifier of Spark SQL."""
    return "`" + name.replace("`", "``") + "`"
