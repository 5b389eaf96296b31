"""`lakeferry query --stage --engine snowflake`: the deployment's reader asks, and what is missing is named."""

from __future__ import annotations

import json

import boto3
import pytest

from lakeferry.errors import CommandFailed
from lakeferry.queries import snowflake
from lambdas.snowflake import keypair, sql
from tests.support.leftovers import QUEUE
from tests.support.stand_ins import Stacks


@pytest.fixture
def asking(stand_ins, ctx):
    """A deployment with a reader in Snowflake, and the name of the reader's secret."""
    pair = keypair.make()
    admin = stand_ins.admin()
    for statement in (
        "CREATE ROLE READS_ONLY",
        "CREATE WAREHOUSE READING INITIALLY_SUSPENDED=TRUE",
        f"CREATE USER READER_OF_TESTS TYPE=SERVICE RSA_PUBLIC_KEY='{pair.public}'",
        "GRANT ROLE READS_ONLY TO USER READER_OF_TESTS",
        "GRANT USAGE ON WAREHOUSE READING TO ROLE READS_ONLY",
    ):
        admin.run(sql.Sql(statement))
    name = f"{ctx.deployment.prefix}/snowflake/reader"
    fields = {
        "account": stand_ins.snow.credentials["account"],
        "user": "READER_OF_TESTS",
        "role": "READS_ONLY",
        "warehouse": "READING",
        "privateKey": pair.private_pem.reveal(),
    }
    boto3.client("secretsmanager").create_secret(Name=name, SecretString=json.dumps(fields))
    outputs = {"SchemaName": "SALES.PUBLIC", "ReaderSecretArn": name}
    Stacks(ctx).make("snowflake", {"Queue": QUEUE}, outputs=outputs)
    return ctx, name


def test_the_reader_asks_and_a_missing_right_is_named(asking):
    ctx, secret = asking
    source, answer = snowflake.query(ctx, "SELECT 1 AS N, 'a' AS T")
    assert source == "schema SALES.PUBLIC, as the reader"
    assert ([name.upper() for name in answer.columns], answer.rows) == (["N", "T"], [("1", "a")])
    with pytest.raises(CommandFailed) as refused:
        snowflake.query(ctx, "SELECT * FROM SALES.PUBLIC.NOTHING")
    assert (refused.value.code, "SALES.PUBLIC" in refused.value.hint) == ("QUERY", True)
    boto3.client("secretsmanager").delete_secret(SecretId=secret, ForceDeleteWithoutRecovery=True)
    with pytest.raises(CommandFailed) as denied:
        snowflake.query(ctx, "SELECT 1")
    assert denied.value.code == "QUERY-DENIED"
    assert "secretsmanager:GetSecretValue" in denied.value.hint
