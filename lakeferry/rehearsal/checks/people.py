"""Check what people see whom the file lets in: they log in themselves, and try to see what is personal."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any, Final

import boto3
from botocore.exceptions import ClientError

from config.deployments.confluent_model import Topic
from config.deployments.shown_columns import Shown, find_shown_columns
from lakeferry.rehearsal import environments
from lakeferry.rehearsal.harness import (
    Check,
    CheckFailed,
    Harness,
    NotApplicable,
    Result,
    require,
    wait_until,
)
from lakeferry.verification.claims import Claim
from lambdas.shared.clock import Deadline, SystemClock
from lambdas.shared.errors import LakeferryError
from lambdas.shared.http import Session
from lambdas.snowflake import keypair, sql
from lambdas.snowflake.client import Login, Snowflake

_ENDED: Final = ("SUCCEEDED", "FAILED", "CANCELLED")
#: What Snowflake and Athena say of a table or column that is hidden. Another error proves nothing.
_HIDDEN: Final = re.compile("invalid identifier|not exist or not authorized|COLUMN_NOT_FOUND", re.IGNORECASE)
_NO_TABLE: Final = "people may see no table with rows of the file"


def see_views_in_snowflake(harness: Harness) -> list[Result]:
    """Log in as the first user of the file, and ask for the view, the table and each hidden column."""
    in_snowflake = [
        topic for topic in harness.deployment.tables if topic.tableflow and topic.tableflow.snowflake_table
    ]
    tables = list(list_shown_tables(harness, in_snowflake))
    if not tables:
        return [NotApplicable(Claim.SNOWFLAKE_PEOPLE, _NO_TABLE)]
    person, client = _log_in_to_snowflake(harness)
    views = sql.split(harness.output("snowflake", "ViewsSchemaName"))
    raw = sql.split(harness.output("snowflake", "SchemaName"))
    refused = 0
    names = []
    for topic, columns in tables:
        name = ((topic.tableflow and topic.tableflow.snowflake_table) or "").upper()
        names.append(name)
        view = sql.path((*views, name))
        rows = list(client.run(sql.statement("SELECT * FROM {view} LIMIT 3", view=view)))
        require(rows, f"{person} sees no row of the view {name}")
        hidden = _require_hidden(person, name, rows[0], columns)
        forbidden = [sql.statement("SELECT * FROM {table}", table=sql.path((*raw, name)))]
        for column in hidden:
            quoted = sql.identifier(column.upper())
            forbidden.append(sql.statement("SELECT {column} FROM {view}", column=quoted, view=view))
        for statement in forbidden:
            _require_refused(client, person, statement)
        refused += len(forbidden)
    return [
        Check(
            Claim.SNOWFLAKE_PEOPLE,
            f"{person} sees the views {', '.join(names)}; {refused} other queries are refused",
            {"refused": refused},
        )
    ]


def list_shown_tables(harness: Harness, topics: Iterable[Topic]) -> Iterator[tuple[Topic, Shown]]:
    """Yield the topics with records whose tables people may see, and the columns of each."""
    for topic in topics:
        columns = find_shown_columns(topic, harness.ctx.loaded.sources, harness.deployment)
        if isinstance(columns, Shown) and harness.read_topic(topic.name).records:
            yield topic, columns


def _require_hidden(person: str, table: str, seen: Iterable[str], columns: Shown) -> list[str]:
    """Return the hidden columns, none of which may be among those that were seen. Names are in lower case."""
    hidden = {column.lower() for column in columns.hidden}
    visible = sorted(hidden & {column.lower() for column in seen})
    require(not visible, f"{person} sees {', '.join(visible)} of {table}")
    return sorted(hidden)


def _log_in_to_snowflake(harness: Harness) -> tuple[str, Snowflake]:
    """Return the name of a user of the file, and a session in the people's role.

    An admin gives the user a key, as Snowflake's account would for its own users.
    """
    settings = harness.deployment.snowflake
    assert settings is not None, "the claim applies to files with grant_to_users only"
    person = sql.to_exact_name(settings.grant_to_users[0])
    pair = keypair.make()
    named = sql.identifier(person)
    environments.open_admin(harness.simulators).run(
        sql.statement(
            "ALTER USER {user} SET RSA_PUBLIC_KEY = {key}", user=named, key=sql.literal(pair.public)
        )
    )
    role = harness.output("snowflake", "PeopleRoleName")
    warehouse = harness.output("snowflake", "WarehouseName")
    login = Login(settings.account, person, sql.to_exact_name(role), sql.to_exact_name(warehouse))
    clock = SystemClock()
    session = Session(Deadline(clock, clock.time() + 60))
    return person, Snowflake(session, clock, login, pair, harness.simulators.snowflake["url"])


def _require_refused(client: Snowflake, person: str, statement: sql.Sql) -> None:
    try:
        client.run(statement)
    except LakeferryError as error:
        require(_HIDDEN.search(error.what), f"{statement} of {person} failed otherwise: {error.what}")
        return
    raise CheckFailed(f"{person} may ask: {statement}")


def see_columns_in_athena(harness: Harness) -> list[Result]:
    """Ask Athena with the first role of the file for the columns that it may see, and for each hidden one."""
    tables = list(list_shown_tables(harness, harness.deployment.tables_in_glue))
    if not tables:
        return [NotApplicable(Claim.ATHENA_PEOPLE, _NO_TABLE)]
    reader = harness.deployment.aws.athena_readers[0]
    person = reader.rpartition("/")[2]
    athena = _log_in_to_athena(harness, reader)
    refused = 0
    for topic, columns in tables:
        name = topic.table
        table = f'"{harness.database}"."{name}"'
        answer = _ask_athena(harness, athena, f"SELECT * FROM {table} LIMIT 3")  # noqa: S608
        require(not isinstance(answer, str), f"{person} can't query {name}: {answer}")
        require(len(answer["Rows"]) > 1, f"{person} sees no row of {name}")
        seen = [described["Name"] for described in answer["ResultSetMetadata"]["ColumnInfo"]]
        hidden = _require_hidden(person, name, seen, columns)
        for column in hidden:
            denied = _ask_athena(harness, athena, f'SELECT "{column}" FROM {table} LIMIT 3')  # noqa: S608
            require(isinstance(denied, str), f"{person} sees {column} of {name}")
            require(_HIDDEN.search(denied), f"a query of {column} by {person} failed otherwise: {denied}")
        refused += len(hidden)
    names = ", ".join(topic.table for topic, _ in tables)
    return [
        Check(
            Claim.ATHENA_PEOPLE,
            f"{person} sees {names}; queries of {refused} hidden columns are refused",
            {"refused": refused},
        )
    ]


def _log_in_to_athena(harness: Harness, reader: str) -> Any:
    """Return a client of Athena with the reader's role, to which its owner has attached the policy."""
    harness.ctx.client("iam").attach_role_policy(
        RoleName=reader.rpartition("/")[2], PolicyArn=harness.output("operations", "AthenaPeoplePolicyArn")
    )
    assumed = harness.ctx.client("sts").assume_role(RoleArn=reader, RoleSessionName="rehearsal")
    given = assumed["Credentials"]
    session = boto3.Session(given["AccessKeyId"], given["SecretAccessKey"], given["SessionToken"])
    return session.client("athena", region_name=harness.ctx.region)


def _ask_athena(harness: Harness, athena: Any, text: str) -> Any:
    """Return the result of a query, or the reason why Athena refused it."""
    workgroup = harness.output("operations", "AthenaPeopleWorkgroup")
    try:
        query_id = athena.start_query_execution(QueryString=text, WorkGroup=workgroup)["QueryExecutionId"]
    except ClientError as error:
        return str(error)

    def ended() -> dict[str, Any] | None:
        query = athena.get_query_execution(QueryExecutionId=query_id)["QueryExecution"]
        status: dict[str, Any] = query["Status"]
        return status if status["State"] in _ENDED else None

    status = wait_until(ended, "Athena's query has not ended")
    if status["State"] != "SUCCEEDED":
        return str(status.get("StateChangeReason") or status["State"])
    return athena.get_query_results(QueryExecutionId=query_id)["ResultSet"]


def forget_readers(harness: Harness) -> None:
    """Detach the policy from the role, as its owner does before somebody destroys the deployment."""
    readers = harness.deployment.aws.athena_readers
    if not readers:
        return
    harness.ctx.client("iam").detach_role_policy(
        RoleName=readers[0].rpartition("/")[2],
        PolicyArn=harness.output("operations", "AthenaPeoplePolicyArn"),
    )
