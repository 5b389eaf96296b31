"""For each resource type of Snowflake, what confluent_lives.py has for Confluent's."""

from __future__ import annotations

import json

from lambdas.shared.secrets import reveal_fields
from lambdas.snowflake import secret_fields
from lambdas.snowflake.secret_fields import Connection
from tests.support.lake_environment import NAMESPACE
from tests.support.lives import Life
from tests.support.snowflake_environment import deployer_key

ROLE = "arn:aws:iam::000000000000:role/snow"


def database(account):
    return account.make("snowflake_database", "Database", name="LAKE")["name"]


def schema(account):
    return account.make("snowflake_schema", "Schema", database=database(account), name="RAW")["full_name"]


def reader(account):
    return account.make("snowflake_role", "Reader")["name"]


def _grant(account):
    return {
        "privilege": "SELECT",
        "on": "ICEBERG TABLES IN SCHEMA",
        "name": schema(account),
        "to_role": reader(account),
    }


def _user(account):
    role = reader(account)
    # Making a key pair takes a second. The secret has a pair of this user already, which is kept.
    held = secret_fields.build_fields(
        deployer_key(), Connection(account.account.identifier, "LAKE_READER", "127.0.0.1")
    )
    account.secrets.values["reader-key"] = json.dumps(reveal_fields(held))
    warehouse = account.make("snowflake_warehouse", "Reading")["name"]
    own = {"name": "LAKE_READER", "secret": "reader-key", "role": role, "warehouse": warehouse}
    return {**own, "namespace": schema(account)}


def _volume(account):
    return {"base_url": "s3://lake/topics/v1/", "role_arn": ROLE}


def _integration(account):
    return {
        "role_arn": ROLE,
        "region": "eu-west-1",
        "account_id": "000000000000",
        "namespace": "lkc-1",
        "refresh_seconds": 60,
    }


def _trust(account):
    return {**account.trust_properties(), "namespace": NAMESPACE}


def _volume_and_integration(account):
    return {
        name: value for name, value in account.trust_properties().items() if name in ("volume", "integration")
    }


def _table(account):
    database(account)
    account.make("snowflake_schema", "Schema", database="LAKE", name="RAW")
    return {
        "database": "LAKE",
        "schema": "RAW",
        "name": "THINGS",
        "table": "things",
        **_volume_and_integration(account),
    }


def _view(account):
    """A view of a table with the columns of the topic `things`, and one that the table doesn't have yet."""
    table = account.make("snowflake_iceberg_table", "Table", **_table(account))["full_name"]
    account.make("snowflake_schema", "Shown", database="LAKE", name="SHOWN")
    columns = ["n", "$$offset", "later"]
    return {"database": "LAKE", "schema": "SHOWN", "name": "THINGS", "table": table, "columns": columns}


def _linked(account):
    return {
        **_volume_and_integration(account),
        "namespaces": [NAMESPACE],
        "name": "LINKED",
        "sync_seconds": 300,
    }


#: Resource types that need a table in a bucket.
LAKESIDE = {
    "snowflake_trust": Life(_trust, {}, {}, {}),
    "snowflake_iceberg_table": Life(
        _table, {"table": "others", "namespace": NAMESPACE}, {"name": "OTHERS"}, {"ICEBERG TABLE": 1},
    ),
    "snowflake_view": Life(_view, {"columns": ["$$topic"]}, {"name": "OTHERS"}, {"VIEW": 1}),
    "snowflake_linked_database": Life(
        _linked, {"sync_seconds": 600}, {"name": "ANOTHER"}, {"DATABASE": 1}, ("SCHEMA", "ICEBERG TABLE"),
    ),
}  # fmt: skip
LIVES = {
    **LAKESIDE,
    "snowflake_warehouse": Life(
        lambda account: {"size": "XSMALL"},
        {"size": "MEDIUM", "auto_suspend_seconds": 120}, {"name": "OTHER_W"}, {"WAREHOUSE": 1},
    ),
    "snowflake_database": Life(lambda account: {"name": "SALES"}, {}, {"name": "ORDERS"}, {"DATABASE": 1}, ("SCHEMA",)),
    "snowflake_schema": Life(
        lambda account: {"database": database(account), "name": "RAW"}, {}, {"name": "CLEAN"}, {"SCHEMA": 1},
    ),
    "snowflake_role": Life(lambda account: {}, {}, {"name": "OTHER_R"}, {"ROLE": 1}),
    "snowflake_grant": Life(_grant, {}, {"on": "SCHEMA", "privilege": "USAGE"}, {}, ("FUTURE GRANT", "GRANT")),
    "snowflake_user": Life(_user, {"namespace": "LAKE"}, {}, {"USER": 1}),
    "snowflake_external_volume": Life(_volume, {}, {"base_url": "s3://lake/other/v1/"}, {"EXTERNAL VOLUME": 1}),
    "snowflake_catalog_integration": Life(_integration, {"refresh_seconds": 300}, {"namespace": "lkc-2"}, {"INTEGRATION": 1}),
}  # fmt: skip
