"""Saved queries in Athena for each table."""

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


#: The most characters that a name may have (Athena API reference, CreateNamedQuery).
_LONGEST: Final = 128


def create_named_queries(
    scope: Construct, *, prefix: str, tables: Mapping[str, str], database: str, workgroup: str
) -> None:
    """Create the queries on `tables`, which has each table's name by its topic. Names are quoted, because the
    database's name has a hyphen.
    """
    for topic, table in tables.items():
        for name, (title, text) in QUERIES.items():
            athena.CfnNamedQuery(
                scope,
                f"{to_pascal_case(topic)}{name}Query",
                name=(f"{prefix} {topic[: _LONGEST - len(prefix) - len(title) - 3]}: {title}"),
                database=database,
                description=f"{topic}: {title}",
                query_string=text.format(database=database, table=table),
                work_group=workgroup,
            )
