"""Run a SELECT in Snowflake as the deployment's reader, which can only read.

The reader's key is in a secret: whoever may read the secret may ask.
"""

from __future__ import annotations

import math
from typing import Final

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


def query(ctx: DeploymentContext, sql: str) -> tuple[str, Answer]:
    """Return what was asked, and the rows. Raises CommandFailed."""
    schema = stacks.require_output(ctx, "snowflake", "SchemaName")
    client = _log_in(ctx, stacks.require_output(ctx, "snowflake", "ReaderSecretArn"))
    try:
        rows = list(client.run(snowflake_sql.Sql(sql)))
    except LakeferryError as error:
        raise CommandFailed("QUERY", f"Snowflake: {error.what}", f"The tables are in {schema}") from None
    columns = list(rows[0]) if rows else []
    return f"schema {schema}, as the reader", Answer(columns, [tuple(row.values()) for row in rows])


def _log_in(ctx: DeploymentContext, secret: str) -> Snowflake:
    """Raises CommandFailed if the caller may not read the reader's secret."""
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
        snowflake_sql.to_exact_name(texts["role"]),
        snowflake_sql.to_exact_name(texts["warehouse"]),
    )
    session = Session(Deadline(ctx.clock, math.inf), trust_environment=True)
    return Snowflake(session, ctx.clock, login, key, ctx.addresses.snowflake)
