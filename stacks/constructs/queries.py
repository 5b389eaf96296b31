"""Saved queries in Athena for each table of a topic, and for each table of aggregates."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from aws_cdk import aws_athena as athena
from constructs import Construct

from config.deployments.model import to_pascal_case

QUERIES: Final = {
    "First": ("the first 100 rows", 'SELECT * FROM "{database}"."{table}" LIMIT 100'),
    "Count": ("how many rows", 'SELECT count(*) AS "rows" FROM "{database}"."{table}"'),
    "Commits": (
        "when data came",
        'SELECT * FROM "{database}"."{table}$snapshots" ORDER BY committed_at DESC',
    ),
}


#: Of tables of aggregates, which have each published window's rows.
AGGREGATE_QUERIES: Final = {
    "Newest": (
        "the newest window",
        'SELECT * FROM "{database}"."{table}" WHERE window_start = '
        '(SELECT max(window_start) FROM "{database}"."{table}")',
    ),
    "Windows": (
        "rows of each window",
        'SELECT "window", run_id, count(*) AS "rows" FROM "{database}"."{table}" GROUP BY 1, 2 ORDER BY 1',
    ),
}

#: The most characters that a name may have (Athena API reference, CreateNamedQuery).
_LONGEST: Final = 128


def create_named_queries(
    scope: Construct,
    *,
    prefix: str,
    tables: Mapping[str, str],
    database: str,
    workgroup: str,
    queries: Mapping[str, tuple[str, str]] = QUERIES,
) -> None:
    """Create the queries on `tables`, which has each table's name by its topic or its export.

    Names are quoted, because the name of a topic's database has a hyphen.
    """
    for topic, table in tables.items():
        for name, (title, text) in queries.items():
            athena.CfnNamedQuery(
                scope,
                f"{to_pascal_case(topic)}{name}Query",
                name=(f"{prefix} {topic[: _LONGEST - len(prefix) - len(title) - 3]}: {title}"),
                database=database,
                description=f"{topic}: {title}",
                query_string=text.format(database=database, table=table),
                work_group=workgroup,
            )
