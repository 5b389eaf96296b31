"""Athena's saved queries on each table, to look at it with."""

from __future__ import annotations

from typing import Final

from aws_cdk import aws_athena as athena

from stacks.base import LakeferryStack, words

_QUERIES: Final = {
    "First": ("the first 100 rows", 'SELECT * FROM "{database}"."{table}" LIMIT 100'),
    "Count": ("how many rows", 'SELECT count(*) AS "rows" FROM "{database}"."{table}"'),
    "Commits": ("when data came", 'SELECT * FROM "{database}"."{table}$snapshots" ORDER BY committed_at DESC'),
}


def named_queries(stack: LakeferryStack, *, database: str, workgroup: str) -> None:
    """Names are quoted: the database's has a hyphen."""
    for topic in stack.deployment.tables_in_glue:
        for name, (title, text) in _QUERIES.items():
            athena.CfnNamedQuery(
                stack,
                f"{words(topic.name)}{name}Query",
                name=f"{stack.deployment.prefix} {topic.name}: {title}",
                database=database,
                description=f"{topic.name}: {title}",
                query_string=text.format(database=database, table=topic.name),
                work_group=workgroup,
            )
