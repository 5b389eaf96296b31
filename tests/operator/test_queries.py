"""`lakeferry query --stage --engine snowflake`: the deployment's reader asks, and what is missing is named."""

from __future__ import annotations

import itertools
import json

import boto3
import pytest

from lakeferry.errors import CommandFailed
from lakeferry.queries import hiding, snowflake
from lambdas.snowflake import keypair, sql
from tests.support.leftovers import QUEUE
from tests.support.stand_ins import Stacks

_numbers = itertools.count(1)


@pytest.fixture
def asking(stand_ins, ctx):
    """A deployment with a reader in Snowflake, and the name of the reader's secret."""
    pair = keypair.make()
    admin = stand_ins.admin()
    number = next(_numbers)
    for statement in (
        f"CREATE ROLE READS_{number}",
        f"CREATE ROLE PEOPLE_{number}",
        f"CREATE DATABASE SALES_{number}",
        f"CREATE SCHEMA SALES_{number}.VIEWS",
        f"CREATE SECURE VIEW SALES_{number}.VIEWS.STOCK_TRADES AS SELECT 7 AS PRICE",
        f"CREATE WAREHOUSE READING_{number} INITIALLY_SUSPENDED=TRUE",
        f"CREATE USER READER_{number} TYPE=SERVICE RSA_PUBLIC_KEY='{pair.public}'",
        f"GRANT ROLE READS_{number} TO USER READER_{number}",
        f"GRANT ROLE PEOPLE_{number} TO USER READER_{number}",
        f"GRANT USAGE ON WAREHOUSE READING_{number} TO ROLE READS_{number}",
        f"GRANT USAGE ON WAREHOUSE READING_{number} TO ROLE PEOPLE_{number}",
        f"GRANT USAGE ON DATABASE SALES_{number} TO ROLE PEOPLE_{number}",
        f"GRANT USAGE ON SCHEMA SALES_{number}.VIEWS TO ROLE PEOPLE_{number}",
        f"GRANT SELECT ON VIEW SALES_{number}.VIEWS.STOCK_TRADES TO ROLE PEOPLE_{number}",
    ):
        admin.run(sql.Sql(statement))
    name = f"{ctx.deployment.prefix}/snowflake/reader"
    fields = {
        "account": stand_ins.snow.credentials["account"],
        "user": f"READER_{number}",
        "role": f"READS_{number}",
        "warehouse": f"READING_{number}",
        "privateKey": pair.private_pem.reveal(),
    }
    boto3.client("secretsmanager").create_secret(Name=name, SecretString=json.dumps(fields))
    outputs = {
        "SchemaName": f"SALES_{number}.PUBLIC",
        "ReaderSecretArn": name,
        "ViewsSchemaName": f"SALES_{number}.VIEWS",
        "PeopleRoleName": f"PEOPLE_{number}",
    }
    Stacks(ctx).make("snowflake", {"Queue": QUEUE}, outputs=outputs)
    return ctx, name, f"SALES_{number}"


def test_the_reader_asks_and_a_missing_right_is_named(asking):
    ctx, secret, database = asking
    source, answer = snowflake.query(ctx, "SELECT 1 AS N, 'a' AS T", snowflake.READER)
    assert source == f"schema {database}.PUBLIC, as the reader"
    assert ([name.upper() for name in answer.columns], answer.rows) == (["N", "T"], [("1", "a")])
    with pytest.raises(CommandFailed) as refused:
        snowflake.query(ctx, f"SELECT * FROM {database}.PUBLIC.NOTHING", snowflake.READER)
    assert (refused.value.code, f"{database}.PUBLIC" in refused.value.hint) == ("QUERY", True)
    boto3.client("secretsmanager").delete_secret(SecretId=secret, ForceDeleteWithoutRecovery=True)
    with pytest.raises(CommandFailed) as denied:
        snowflake.query(ctx, "SELECT 1", snowflake.PEOPLE)
    assert denied.value.code == "QUERY-DENIED"
    assert "secretsmanager:GetSecretValue" in denied.value.hint


def test_people_ask_the_views_and_hidden_columns_are_named(asking):
    ctx, _, database = asking
    sql_text = "SELECT * FROM STOCK_TRADES"
    source, answer = snowflake.query(ctx, sql_text, snowflake.PEOPLE)
    assert source == f"schema {database}.VIEWS, in the people's role"
    assert ([name.upper() for name in answer.columns], answer.rows) == (["PRICE"], [("7",)])
    shown = hiding.describe_tables(ctx, lambda topic: topic.tableflow.snowflake_table)
    assert {"account", "userid"} <= snowflake.list_hidden(sql_text, shown)["stock_trades"].keys()
    with pytest.raises(CommandFailed, match="does not exist or not authorized"):
        snowflake.query(ctx, sql_text, snowflake.READER)
