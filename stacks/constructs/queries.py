"""Saved queries in Athena for each table."""

from __future__ import annotations

from typing import Final

from aws_cdk import aws_athena as athena
from constructs import Construct

from config.deployments.model import Deployment, to_pascal_case

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


def create_named_queries(scope: Construct, *, deployment: Deployment, database: str, workgroup: str) -> None:
    """Create the queries. Names are quoted, because the database's name has a hyphen."""
    for topic in deployment.tables_in_glue:
        for name, (title, text) in QUERIES.items():
            athena.CfnNamedQuery(
                scope,
                f"{to_pascal_case(topic.name)}{name}Query",
                name=(
                    f"{deployment.prefix} "
                    f"{topic.name[: _LONGEST - len(deployment.prefix) - len(title) - 3]}: {title}"
                ),
                database=database,
                description=f"{topic.name}: {title}",
                query_string=text.format(database=database, table=topic.table),
                work_group=workgroup,
            )
