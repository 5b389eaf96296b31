"""Run a SELECT in Snowflake with the login of the deployment's reader, which can only read.

The reader's key is in a secret: whoever may read the secret may ask. By default, the reader asks in the
people's role, which can use the views only.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Final

import attrs
import sqlglot
from sqlglot import exp

from config.deployments.shown_columns import Shown, ShownColumns
from lakeferry.deployment import stacks
from lakeferry.deployment.context import DeploymentContext
from lakeferry.error_translation import as_failure, translate_aws_errors
from lakeferry.errors import CommandFailed
from lakeferry.local.query import Answer
from lambdas.shared.clock import Deadline
from lambdas.shared.errors import LakeferryError
from lambdas.shared.http import Session
from lambdas.shared.redaction import Secret
from lambdas.snowflake import secret_fields
from lambdas.snowflake import sql as snowflake_sql
from lambdas.snowflake.client import Login, Snowflake

_ABSENT: Final = Secret("", redacted=False)


@attrs.frozen
class Asker:
    """A role of the reader's: the output with its name, or "" for the reader's default role, the output with
    the schema in which names without one are looked up, and words for messages.
    """

    role: str
    schema: str
    words: str


READER: Final = Asker("", "SchemaName", "as the reader")
PEOPLE: Final = Asker("PeopleRoleName", "ViewsSchemaName", "in the people's role")


def query(ctx: DeploymentContext, sql: str, asker: Asker) -> tuple[str, Answer]:
    """Return what was asked, and the rows. Raises CommandFailed."""
    schema = stacks.require_output(ctx, "snowflake", asker.schema)
    role = stacks.require_output(ctx, "snowflake", asker.role) if asker.role else ""
    client = _log_in(ctx, stacks.require_output(ctx, "snowflake", "ReaderSecretArn"), role, schema)
    try:
        rows = list(client.run(snowflake_sql.Sql(sql)))
    except LakeferryError as error:
        raise CommandFailed("QUERY", f"Snowflake: {error.what}", f"The tables are in {schema}") from None
    columns = list(rows[0]) if rows else []
    return f"schema {schema}, {asker.words}", Answer(columns, [tuple(row.values()) for row in rows])


def list_hidden(sql: str, tables: Mapping[str, ShownColumns]) -> dict[str, dict[str, str]]:
    """Return the hidden columns of the tables whose names are in the SELECT. Snowflake itself hides them."""
    names = {node.name.lower() for node in sqlglot.parse_one(sql, dialect="snowflake").find_all(exp.Table)}
    hidden: dict[str, dict[str, str]] = {}
    for table, columns in tables.items():
        if table in names and isinstance(columns, Shown):
            hidden[table] = columns.hidden
    return hidden


def _log_in(ctx: DeploymentContext, secret: str, role: str, schema: str) -> Snowflake:
    """Log in in this role or, without one, in the reader's default role.

    Raises CommandFailed if the caller may not read the reader's secret.
    """
    try:
        with translate_aws_errors(f"reading secret {secret}"):
            fields = ctx.secrets.read(secret)
            key = secret_fields.read_pair(ctx.secrets, secret)
    except LakeferryError as error:
        failure = as_failure(error)
        needs = "You need secretsmanager:GetSecretValue on the secret, and kms:Decrypt on its key"
        raise CommandFailed("QUERY-DENIED", failure.message, needs) from None
    values = {name: fields.get(name, _ABSENT) for name in ("account", "user", "role", "warehouse")}
    texts = {name: value.reveal() if isinstance(value, Secret) else value for name, value in values.items()}
    login = Login(
        texts["account"],
        texts["user"],
        snowflake_sql.to_exact_name(role or texts["role"]),
        snowflake_sql.to_exact_name(texts["warehouse"]),
        snowflake_sql.split(schema),
    )
    session = Session(Deadline(ctx.clock, math.inf), trust_environment=True)
    return Snowflake(session, ctx.clock, login, key, ctx.addresses.snowflake)
