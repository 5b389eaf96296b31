"""Deployment files: shipped ones are valid, and all mistakes are reported together with key and line."""

from __future__ import annotations

import json
import random
import re
import shutil
import string
import tomllib
from pathlib import Path

import attrs
import pytest
from openapi_schema_validator import OAS31Validator

from config import toml_model
from config.deployments import deployment_file, secret_patterns
from config.deployments.confluent_model import Topic
from config.deployments.model import Deployment
from config.deployments.rules import (
    RULES,
    exports_match_topics,
    exports_run_again_for_each_window,
    topics_have_one_writer,
    write_modes_match_cleanup_policies,
)
from config.deployments.sources import Missing, Sources
from config.exports.check import NOT_JUDGED
from config.project import PROJECT, ROOT
from config.toml_model import BadFile
from config.toml_schema import build_json_schema
from tests.support import shipped

DEV = shipped.read("dev")


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    """A project with the shipped files and two more exports: one of months, and one of a topic that Flink
    creates.
    """
    folder = tmp_path_factory.mktemp("project")
    for name in ("exports", "topics", "flink"):
        shutil.copytree(PROJECT / name, folder / name, ignore=shutil.ignore_patterns("*.py", "__pycache__"))
    shutil.copy(ROOT / "cdk.json", folder)
    daily = (PROJECT / "exports" / "daily_trades.toml").read_text()
    for export, changes in {
        "monthly_trades": {
            'every = "day"': 'every = "month"',
            "restate_for_days = 3": "restate_for_days = 14",
        },
        "daily_totals": {'topic = "stock_trades"': 'topic = "stock_trades_with_totals"'},
    }.items():
        text = daily.replace('name = "daily_trades"', f'name = "{export}"')
        for old, new in changes.items():
            assert old in text
            text = text.replace(old, new)
        (folder / "exports" / f"{export}.toml").write_text(text)
    for statement, (create, undo) in {
        "careless": ("CREATE TABLE `mine` AS SELECT 1", "DROP TABLE IF EXISTS `cat`.`db`.`theirs`"),
        "filler": ("INSERT INTO `theirs` SELECT 1", "-- DROP TABLE a\ndrop table theirs"),
        "opaque": (
            "CREATE TABLE stock_trades_with_totals AS SELECT TURN(side) AS side FROM stock_trades",
            "DROP TABLE stock_trades_with_totals",
        ),
        "alone": ("CREATE TABLE `mine` AS SELECT 1", "DROP TABLE `mine`"),
    }.items():
        (folder / "flink" / statement).mkdir()
        (folder / "flink" / statement / "create.sql").write_text(create)
        (folder / "flink" / statement / "undo.sql").write_text(undo)
    return folder


STATEMENT = '[[statements]]\nname = "stock_trades_with_totals"'


def also(statement):
    """Return the change of the file that adds a statement."""
    return STATEMENT, f'{STATEMENT}\n\n[[statements]]\nname = "{statement}"'


def mistakes(text, root=PROJECT):
    """Return the messages by key."""
    with pytest.raises(BadFile) as bad:
        deployment_file.parse(text, name="dev.toml", root=root, judge=NOT_JUDGED)
    lines = text.splitlines()
    for problem in bad.value.problems:
        assert 0 <= problem.line <= len(lines)
    found = {}
    for problem in bad.value.problems:
        found[problem.key] = f"{found.get(problem.key, '')}\n{problem.message}".strip()
    return found


def changed(*pairs):
    text = DEV
    for old, new in pairs:
        assert old in text, old
        text = text.replace(old, new, 1)
    return text


def test_topics_of_an_existing_cluster_are_valid(root):
    text = changed(*OVER_TOPIC, ('name = "stock_trades"', 'name = "Stock.Trades"'))
    without_export = text[: text.index("[[exports]]")] + text[text.index("[alerts]") :]
    read = deployment_file.parse(
        without_export.replace('schema = "', "# "), name="x", root=root, judge=NOT_JUDGED
    ).deployment
    assert [topic.table for topic in read.topics] == ["stock.trades", "stock_trades_with_totals"]
    assert read.uses_existing_cluster


@pytest.mark.parametrize("stage", ["dev", "prod"])
def test_shipped_files_are_valid(stage):
    plan = shipped.load(stage)
    assert plan.deployment.prefix == f"lakeferry-{stage}"
    assert plan.deployment.exports


def test_data_is_kept_by_default():
    """I20."""
    assert deployment_file.parse(
        changed(('on_destroy = "delete"', "")), name="x", judge=NOT_JUDGED
    ).deployment.keeps_data


#: The change to dev.toml, the reported key, and words in the message.
SOURCE = '[source]\nglue_database = "lkc-abc123"\ntableflow_bucket = "acme-tableflow"'
#: dev.toml with [source] in place of [confluent]: the first pair of its texts to replace.
OVER_SOURCE = (
    re.search(r"\[confluent\].*?\n\n\[\[topics\]\]", DEV, re.DOTALL)[0],
    f"{SOURCE}\n\n[[topics]]",
)
_CATALOG = "https://tableflow.eu-west-1.aws.confluent.cloud/iceberg/catalog/organizations"
CATALOG_SOURCE = f"""[source]
catalog_uri = "{_CATALOG}/9bb441c4-edef-46ac-8a41-c49e44a3fd9a/environments/env-abc123"
cluster_id = "lkc-abc123"
tableflow_key_secret = "acme/tableflow"
"""
REGISTRY_URL = 'schema_registry_url = "https://psrc-abc12.eu-west-1.aws.confluent.cloud"'
REGISTRY_KEY = 'schema_registry_key_secret = "acme/registry"'
#: The same over tables in Confluent's storage.
OVER_CATALOG = (OVER_SOURCE[0], f"{CATALOG_SOURCE}\n\n[[topics]]")
#: dev.toml on an existing cluster: texts to replace. Its topics are still new, and one has Datagen.
OVER_CLUSTER = (
    ('# environment_id = "env-…" ', 'environment_id = "env-abc123" #'),
    ('# environment_name = "…"', 'environment_name = "shared"\ncluster_id = "lkc-abc123"'),
)
#: The same with its first topic as an existing one.
OVER_TOPIC = (
    *OVER_CLUSTER,
    ("flink_max_cfu = 5", 'glue_database = "lkc-abc123"'),
    (
        re.search(r"partitions = 6\nconfig = .*\ndatagen = .*\ndatagen_interval_ms = 500", DEV)[0],
        "existing = true",
    ),
)
#: The beginning of a table, without the last key that it needs.
NETWORK = '[network]\nsubnets = { subnet-0a1b2c3d = "eu-west-1a" }\n'
RECIPIENT = 'recipients = ["analysts@example.com"]'
READER = "arn:aws:iam::111122223333:role/analysts"
MANY = [f"analyst{number}@example.com" for number in range(101)]
SIX_GROUPS = [f"sg-0a1b2c3{digit}" for digit in range(6)]
KEY = "arn:aws:kms:us-east-1:111122223333:key/11111111-1111-4111-8111-111111111111"
WRONG = {
    "a table that would be dropped": (
        ((STATEMENT, f'{STATEMENT}\non_edit = "drop_and_reread"'),),
        "statements[0].on_edit",
        "which has [topics.tableflow], and Confluent refuses that",
    ),
    "a person who is named twice": (
        (("auto_suspend_seconds = 60", 'auto_suspend_seconds = 60\ngrant_to_users = ["ANNA", "anna"]'),),
        "snowflake.grant_to_users",
        "has anna twice",
    ),
    "views in a schema of Snowflake's": (
        (("auto_suspend_seconds = 60", 'auto_suspend_seconds = 60\nviews_schema = "public"'),),
        "snowflake.views_schema",
        "Snowflake creates PUBLIC in every database",
    ),
    "aggregates in Snowflake that nobody keeps": (
        (('contract = "daily_trades"', 'contract = "weekly_sales"'),),
        "snowflake.aggregates",
        "no export keeps its aggregates as a table",
    ),
    "a table of a topic with the name of aggregates": (
        (('snowflake_table = "STOCK_TRADES"', 'snowflake_table = "Daily_Trades"'),),
        "topics[0].tableflow.snowflake_table",
        "Daily_Trades is the name of the table with the aggregates of daily_trades too",
    ),
    "readers in Athena without Lake Formation": (
        (("glue_workers = 2", f'glue_workers = 2\nathena_readers = ["{READER}"]'),),
        "aws.athena_readers",
        "needs lake_formation = true",
    ),
    "an identity of somebody else": (
        (("[alerts]", '[mail]\nsender = "exports@example.com"\nidentity = "other.org"\n\n[alerts]'),),
        "mail.identity",
        "does not cover the sender",
    ),
    "a link to a column that is not kept": (
        ((RECIPIENT, f'{RECIPIENT}\nlink_days = 14\nlink_keeps = ["symbol"]'),),
        "exports[0].link_keeps",
        "symbol is no column of daily_trades that keeps its values",
    ),
    "more links than a topic has filters for": (
        ((RECIPIENT, f"recipients = {json.dumps(MANY)}\nlink_days = 14"),),
        "exports[0].recipients",
        "with link_days an export can have 100",
    ),
    "a key that is brought to a new cluster": (
        (('cluster_type = "Standard"', 'kafka_key_secret = "acme/kafka"'),),
        "confluent.kafka_key_secret",
        "is only for an existing cluster",
    ),
    "an existing cluster without its environment": (
        (('cluster_type = "Standard"', 'cluster_id = "lkc-abc123"\nglue_database = "lkc-abc123"'),),
        "confluent.cluster_id",
        "needs environment_id",
    ),
    "an existing cluster that would be changed": (
        (*OVER_TOPIC, ('cluster_type = "Standard"', "deletion_protection = true")),
        "confluent.deletion_protection",
        "lkc-abc123 exists: Lakeferry doesn't change it",
    ),
    "an existing topic in a new cluster": (
        (('datagen = "STOCK_TRADES"', "existing = true"),),
        "topics[0].existing",
        "can only exist in an existing cluster",
    ),
    "an existing topic that would be changed": (
        (*OVER_TOPIC, ("existing = true", "existing = true\npartitions = 12")),
        "topics[0].partitions",
        "Lakeferry doesn't change stock_trades, which exists",
    ),
    "test data in an existing cluster": (
        OVER_CLUSTER,
        "topics[0].datagen",
        "the connector would need rights on the whole cluster",
    ),
    "tables in Glue without an integration": (
        OVER_CLUSTER,
        "confluent.glue_database",
        'set glue_database = "lkc-abc123"',
    ),
    "a log of errors that other teams share": (
        (*OVER_TOPIC, ('on_error = "SUSPEND"', 'on_error = "LOG"')),
        "topics[0].tableflow.error_log_topic",
        "Choose a name of your own",
    ),
    "topics that differ in capitals": (
        (*OVER_TOPIC, ("[alerts]", '[[topics]]\nname = "Stock_Trades"\nexisting = true\n\n[alerts]')),
        "topics[2].name",
        "would be one table (stock_trades) in Glue",
    ),
    "an undo that drops another table": (
        (also("careless"),),
        "statements[1].name",
        "undo.sql drops theirs, and create.sql creates mine",
    ),
    "an undo of a statement that creates nothing": (
        (also("filler"),),
        "statements[1].name",
        "undo.sql drops theirs",
    ),
    "a table in a shared environment that is no topic": (
        (
            also("alone"),
            ('# environment_id = "env-…" ', 'environment_id = "env-abc123" #'),
            ('# environment_name = "…"', 'environment_name = "shared"'),
        ),
        "statements[1].name",
        "no topic of this file says so",
    ),
    "an adopted table that isn't declared": (
        (
            (
                'name = "stock_trades_with_totals"\nstatement',
                'name = "stock_trades_with_totals"\nadopt = ["subject"]\nstatement',
            ),
        ),
        "topics[1].adopt",
        "a statement registers the schema",
    ),
    "an unknown key": (
        (("glue_workers = 2", "glue_wokers = 2"),),
        "aws.glue_wokers",
        "Did you mean glue_workers",
    ),
    "a wrong type": ((("glue_workers = 2", 'glue_workers = "2"'),), "aws.glue_workers", "whole number"),
    "a version of Glue that can't run the job": (
        (("glue_workers = 2", 'glue_workers = 2\nglue_version = "4.0"'),),
        "aws.glue_version",
        "none of",
    ),
    "a budget where CloudFormation has none": (
        (('region = "eu-west-1"', 'region = "eu-central-2"'), ("[alerts]", "[alerts]\nbudget = true")),
        "alerts.budget",
        "CloudFormation has no budgets in eu-central-2",
    ),
    "a boundary of another account": (
        (
            (
                "[aws]",
                '[aws]\naccount = "111122223333"\npermissions_boundary = '
                '"arn:aws:iam::444455556666:policy/edge"',
            ),
        ),
        "aws.permissions_boundary",
        "a policy of another account",
    ),
    "true for a number": (
        (("log_retention_days = 14", "log_retention_days = true"),),
        "aws.log_retention_days",
        "none of",
    ),
    "a setting that is no text": (
        (('"retention.ms" = "604800000"', '"retention.ms" = 604800000'),),
        "topics[0].config.retention.ms",
        "text in quotes",
    ),
    "a missing table": ((("[alerts]", "[alarms]"),), "alerts", "missing"),
    "capitals in a topic": (
        (('name = "stock_trades"', 'name = "Stock_Trades"'),),
        "topics[0].name",
        "could become one table",
    ),
    "a topic without schema": (
        (('datagen = "STOCK_TRADES"', ""), ('name = "stock_trades"', 'name = "bare"')),
        "topics[0].tableflow",
        "has no schema",
    ),
    "a schema that isn't there": (
        (('datagen = "STOCK', 'schema = "topics/none.avsc"\ndatagen = "STOCK'),),
        "topics[0].schema",
        "not a file",
    ),
    "a schema from elsewhere": (
        (('datagen = "STOCK', 'schema = "../../etc/passwd"\ndatagen = "STOCK'),),
        "topics[0].schema",
        "not a file",
    ),
    "a schema that is none": (
        (('datagen = "STOCK', 'schema = "cdk.json"\ndatagen = "STOCK'),),
        "topics[0].schema",
        "not an Avro record",
    ),
    "data from a schema that isn't there": (
        (('datagen = "STOCK_TRADES"', 'datagen = "schema"'), ('name = "stock_trades"', 'name = "bare"')),
        "topics[0].datagen",
        "project/topics/bare.avsc",
    ),
    "a write mode that can't be": (
        (("snapshots_days = 7", 'snapshots_days = 7\nwrite_mode = "UPSERT"'),),
        "topics[0].tableflow.write_mode",
        "cleanup.policy=delete",
    ),
    "a compacted topic that appends": (
        (('"retention.ms" = "604800000"', '"cleanup.policy" = "compact"'),),
        "topics[0].tableflow.write_mode",
        "mode UPSERT",
    ),
    "a table of upserts in Snowflake": (
        (
            ('"retention.ms" = "604800000"', '"cleanup.policy" = "compact"'),
            ("snapshots_days = 7", 'snapshots_days = 7\nwrite_mode = "UPSERT"'),
        ),
        "topics[0].tableflow.snowflake_table",
        "equality deletes",
    ),
    "managed storage in Glue": (
        (("snapshots_days = 7", 'snapshots_days = 7\nstorage = "managed"\nin_glue = true'),),
        "topics[0].tableflow.in_glue",
        "no table of managed storage",
    ),
    "a table for Delta only": (
        (("snapshots_days = 7", 'snapshots_days = 7\nformats = ["DELTA"]'),),
        "topics[0].tableflow.formats",
        "nothing that is deployed reads a Delta table",
    ),
    "a table for Delta too": (
        (("snapshots_days = 7", 'snapshots_days = 7\nformats = ["ICEBERG", "DELTA"]'),),
        "topics[0].tableflow.formats",
        "can't have DELTA",
    ),
    "one table out of Glue while another is in it": (
        (('snowflake_table = "STOCK_TRADES_WITH_TOTALS"', "in_glue = false"),),
        "topics[1].tableflow.in_glue",
        "while stock_trades is in Glue: Tableflow's catalog integration is the whole cluster's",
    ),
    "rows that go while an export may still publish them": (
        (
            ("snapshots_days = 7", "snapshots_days = 7\nrows_days = 30"),
            ('contract = "daily_trades"', 'contract = "monthly_trades"'),
        ),
        "topics[0].tableflow.rows_days",
        "must be at least 46: export monthly_trades publishes a window of 31 days again for 14 days after "
        "its end",
    ),
    "an export of a topic whose statement does not show its schema": (
        (
            ('contract = "daily_trades"', 'contract = "daily_totals"'),
            ('statement = "stock_trades_with_totals"', 'statement = "opaque"'),
            ('[[statements]]\nname = "stock_trades_with_totals"', '[[statements]]\nname = "opaque"'),
        ),
        "exports[0].contract",
        "stock_trades_with_totals has no schema file, and its statement doesn't show what schema Flink will "
        "register: project/flink/opaque/create.sql: the type of side isn't known: TURN computes it. Write it "
        "as CAST(… AS its type). Write the Avro schema",
    ),
    "a table in Snowflake without Snowflake": (
        (("enabled = true", "enabled = false"),),
        "topics[0].tableflow.snowflake_table",
        "not enabled",
    ),
    "a bucket with dots": (
        (("glue_workers = 2", 'glue_workers = 2\ntableflow_bucket = "a.b.c"'),),
        "aws.tableflow_bucket",
        "has a dot",
    ),
    "one bucket for both": (
        (("glue_workers = 2", 'glue_workers = 2\ntableflow_bucket = "one"\nlake_bucket = "one"'),),
        "aws.lake_bucket",
        "nobody else",
    ),
    "one bucket that exists for both": (
        (
            (
                "glue_workers = 2",
                'glue_workers = 2\nexisting_tableflow_bucket = "one"\nexisting_lake_bucket = "one"',
            ),
        ),
        "aws.existing_lake_bucket",
        "nobody else",
    ),
    "a bucket that exists and is created": (
        (("glue_workers = 2", 'glue_workers = 2\nlake_bucket = "one"\nexisting_lake_bucket = "two"'),),
        "aws.existing_lake_bucket",
        "can't be combined with lake_bucket",
    ),
    "a network without a subnet": (
        (("[confluent]", '[network]\nsubnets = {}\nsecurity_groups = ["sg-0a1b2c3d"]\n\n[confluent]'),),
        "network.subnets",
        "Name a private subnet",
    ),
    "a network without a security group": (
        (("[confluent]", f"{NETWORK}security_groups = []\n\n[confluent]"),),
        "network.security_groups",
        "Name a security group",
    ),
    "a security group twice": (
        (("[confluent]", f'{NETWORK}security_groups = ["sg-0a1b2c3d", "sg-0a1b2c3d"]\n\n[confluent]'),),
        "network.security_groups",
        "twice",
    ),
    "more security groups than a function can have": (
        (("[confluent]", f"{NETWORK}security_groups = {SIX_GROUPS}\n\n[confluent]"),),
        "network.security_groups",
        "can have 5",
    ),
    "a subnet of another region": (
        (
            (
                "[confluent]",
                f"{NETWORK.replace('eu-west-1a', 'eu-west-2a')}security_groups = []\n\n[confluent]",
            ),
        ),
        "network.subnets.subnet-0a1b2c3d",
        "the deployment is in eu-west-1",
    ),
    "a subnet that has a name instead of an id": (
        (
            (
                "[confluent]",
                f"{NETWORK.replace('subnet-0a1b2c3d', 'private')}security_groups = []\n\n[confluent]",
            ),
        ),
        "network.subnets.private",
        "a subnet's id",
    ),
    "a proxy with a login": (
        (
            (
                "[confluent]",
                f'{NETWORK}security_groups = ["sg-0a1b2c3d"]\nproxy = "http://me:pw@proxy:80"\n\n[confluent]',
            ),
        ),
        "network.proxy",
        "without a login",
    ),
    "a KMS key of another region": (
        (("[confluent]", f'[encryption]\nlogs = "{KEY}"\n\n[confluent]'),),
        "encryption.logs",
        "is a key in us-east-1",
    ),
    "an unknown zone": (
        (('zone = "America/New_York"', 'zone = "Mars/Olympus"'),),
        "exports[0].zone",
        "not a time zone",
    ),
    "a cron of five parts": (
        (('cron = "15 1,9 * * ? *"', 'cron = "15 1,9 * * *"'),),
        "exports[0].cron",
        "5 parts, not 6",
    ),
    "an export that isn't there": (
        (('contract = "daily_trades"', 'contract = "nothing"'),),
        "exports[0].contract",
        "no export of this name",
    ),
    "an export of a topic that isn't there": (
        (('contract = "daily_trades"', 'contract = "weekly_sales"'),),
        "exports[0].contract",
        "not a topic of this file",
    ),
    "a contract's column that the schema lacks": (
        (('datagen = "STOCK', 'schema = "topics/store_orders.avsc"\ndatagen = "STOCK'),),
        "exports[0].contract",
        "has no field symbol",
    ),
    "an export of a topic without a table": (
        (
            ("[topics.tableflow]\nsnapshots_days = 7\non_error", "on_error"),
            ("on_error", "# on_error"),
            ("snowflake_table", "# "),
        ),
        "exports[0].contract",
        "reads stock_trades, which is no table that exports can read",
    ),
    "a cluster without roles on topics": (
        (('cluster_type = "Standard"', 'cluster_type = "Basic"'),),
        "confluent.cluster_type",
        "'Basic' must be Standard: Confluent has no roles on single topics of a Basic cluster",
    ),
    "a topic with another name than its statement's table": (
        (('name = "stock_trades_with_totals"\nstatement', 'name = "totals"\nstatement'),),
        "topics[1].name",
        "totals must be stock_trades_with_totals, the table that "
        "project/flink/stock_trades_with_totals/create.sql creates",
    ),
    "two topics of one statement": (
        (
            (
                "[[statements]]",
                '[[topics]]\nname = "totals"\nstatement = "stock_trades_with_totals"\n\n[[statements]]',
            ),
        ),
        "topics[2].statement",
        "stock_trades_with_totals is the statement of topic stock_trades_with_totals already, and it "
        "creates one topic",
    ),
    "topics with one id": (
        (("[[statements]]", '[[topics]]\nname = "stock.trades"\n\n[[statements]]'),),
        "topics[2].name",
        "stock.trades and stock_trades become the same id (StockTrades) in the templates. Rename one",
    ),
    "statements with one id": (
        (("[snowflake]\n", '[[statements]]\nname = "stock_trades_with__totals"\n\n[snowflake]\n'),),
        "statements[1].name",
        "stock_trades_with__totals and stock_trades_with_totals become the same id (StockTradesWithTotals)",
    ),
    "exports with one id": (
        (
            (
                "[alerts]",
                '[[exports]]\ncontract = "daily__trades"\ncron = "0 6,14 * * ? *"\nzone = "UTC"\n\n[alerts]',
            ),
        ),
        "exports[1].contract",
        "daily__trades and daily_trades become the same id (DailyTrades) in the templates. Rename one",
    ),
    "an owner that AWS refuses as a tag": (
        (('owner = "data-platform team"', 'owner = "R&D (data)"'),),
        "deployment.owner",
        "'R&D (data)' can't be the value of a tag: letters, digits, blanks and . : / = + @ _ -",
    ),
    "a tag's name that AWS refuses": (
        (('cost-centre = "data-platform"', '"cost#centre" = "x"'),),
        "deployment.tags.cost#centre",
        "'cost#centre' can't be the name of a tag: 1 to 128 letters, digits, blanks and . : / = + @ _ -",
    ),
    "tags that IAM takes for one": (
        (('cost-centre = "data-platform"', 'Team = "x"\nteam = "x"'),),
        "deployment.tags.team",
        "differs from Team in capitals only, and IAM takes both for one tag",
    ),
    "more exports than the policies have room for": (
        (
            (
                "[alerts]",
                "".join(
                    f'[[exports]]\ncontract = "e{n}"\ncron = "0 6 * * ? *"\nzone = "UTC"\n' for n in range(50)
                )
                + "[alerts]",
            ),
        ),
        "exports",
        "there are 51, and a deployment can have 50: the policies of the dead-letter queue and of the "
        "function that sends mails",
    ),
    "nobody who gets alarms": (
        (('engineers = ["engineers@example.com"]', "engineers = []"),),
        "alerts.engineers",
        "is empty: alarms and the AWS budget need at least one address",
    ),
    "an engineer twice": (
        (('["engineers@example.com"]', '["engineers@example.com", "Engineers@example.com"]'),),
        "alerts.engineers",
        "has Engineers@example.com twice. Remove one",
    ),
    "one run for each window": (
        (('cron = "15 1,9 * * ? *"', 'cron = "15 1 * * ? *"'),),
        "exports[0].cron",
        "only once before its next window ends",
    ),
    "a recipient twice": (
        (('["analysts@example.com"]', '["analysts@example.com", "analysts@example.com"]'),),
        "exports[0].recipients",
        "has analysts@example.com twice. Remove one",
    ),
    "an address that is none": (
        (('"analysts@example.com"', '"analysts@example.com\\nBcc: all@example.com"'),),
        "exports[0].recipients",
        "not a mail address",
    ),
    "a topic twice": (
        (('name = "stock_trades_with_totals"\nstatement', 'name = "stock_trades"\nstatement'),),
        "topics[1].name",
        "twice",
    ),
    "an export twice": (
        (
            (
                "[alerts]",
                '[[exports]]\ncontract = "daily_trades"\ncron = "0 6,14 * * ? *"\nzone = "UTC"\nrecipients '
                "= []\n\n[alerts]",
            ),
        ),
        "exports[1].contract",
        "daily_trades is used twice",
    ),
    "a statement twice": (
        (("[snowflake]\n", '[[statements]]\nname = "stock_trades_with_totals"\n\n[snowflake]\n'),),
        "statements[1].name",
        "stock_trades_with_totals is used twice",
    ),
    "one table of Snowflake for two topics": (
        (('snowflake_table = "STOCK_TRADES_WITH_TOTALS"', 'snowflake_table = "stock_trades"'),),
        "topics[1].tableflow.snowflake_table",
        "STOCK_TRADES is used twice",
    ),
    "more tags than AWS takes": (
        (('cost-centre = "data-platform"', "\n".join(f'tag{number} = "x"' for number in range(41))),),
        "deployment.tags",
        "there are 41",
    ),
    "a tag of AWS's own": (
        (('cost-centre = "data-platform"', '"aws:x" = "x"'),),
        "deployment.tags.aws:x",
        "is taken",
    ),
    "a statement that isn't there": (
        (('[[statements]]\nname = "stock_trades_with_totals"', '[[statements]]\nname = "nothing"'),),
        "statements[0].name",
        "create.sql does not exist",
    ),
    "a statement that this file lacks": (
        (('statement = "stock_trades_with_totals"', 'statement = "other"'),),
        "topics[1].statement",
        "not a statement of this file",
    ),
    "a statement before what it reads": (
        (
            (
                '[[statements]]\nname = "stock_trades_with_totals"',
                '[[statements]]\nname = "stock_trades_with_totals"\nafter = ["later"]',
            ),
        ),
        "statements[0].after",
        "not a statement above this one",
    ),
    "two who write a topic": (
        (
            (
                'statement = "stock_trades_with_totals"',
                'statement = "stock_trades_with_totals"\ndatagen = "STOCK_TRADES"',
            ),
        ),
        "topics[1].datagen",
        "only one can write it",
    ),
    "half of an environment": (
        (('cluster_type = "Standard"', 'environment_id = "env-abc"'),),
        "confluent.environment_id",
        "go together",
    ),
    "two zones with one unit": (
        (
            (
                'cluster_type = "Standard"',
                'cluster_type = "Standard"\navailability = "MULTI_ZONE"\nmax_ecku = 1',
            ),
        ),
        "confluent.max_ecku",
        "needs 2 at least",
    ),
    "tables that exist beside a cluster that is created": (
        (('cluster_type = "Standard"', 'cluster_type = "Standard"\n\n' + SOURCE),),
        "source",
        "Keep one",
    ),
    "no origin of the tables": (
        (("[confluent]", "[aws.x]"),),
        "confluent",
        "and so is [source]",
    ),
    "a topic that exists and is created": (
        (OVER_SOURCE,),
        "topics[0].tableflow",
        "Remove tableflow",
    ),
    "statements over tables that exist": (
        (OVER_SOURCE,),
        "statements",
        "nothing is created in Confluent Cloud",
    ),
    "Snowflake over tables that exist": (
        (OVER_SOURCE,),
        "snowflake",
        "exports only",
    ),
    "a second bucket of tables that exist": (
        (OVER_SOURCE, ('region = "eu-west-1"', 'region = "eu-west-1"\ntableflow_bucket = "another"')),
        "aws.tableflow_bucket",
        "source.tableflow_bucket",
    ),
    "a key in another region": (
        (
            (
                OVER_SOURCE[0],
                OVER_SOURCE[1].replace(
                    "[[topics]]",
                    'kms_key = "arn:aws:kms:us-east-1:111122223333:key/1234abcd-12ab"\n\n[[topics]]',
                    1,
                ),
            ),
        ),
        "source.kms_key",
        "is a key in us-east-1",
    ),
    "half of the keys of tables in Glue": (
        ((OVER_SOURCE[0], OVER_SOURCE[1].replace('tableflow_bucket = "acme-tableflow"', "")),),
        "source.tableflow_bucket",
        "set glue_database and tableflow_bucket",
    ),
    "half of the keys of tables in Confluent's storage": (
        ((OVER_CATALOG[0], OVER_CATALOG[1].replace('cluster_id = "lkc-abc123"', "")),),
        "source.cluster_id",
        "set catalog_uri, cluster_id, tableflow_key_secret",
    ),
    "the address of a registry without a key": (
        ((OVER_SOURCE[0], OVER_SOURCE[1].replace("[[topics]]", f"{REGISTRY_URL}\n\n[[topics]]", 1)),),
        "source.schema_registry_key_secret",
        "remove both to take schemas from the tables",
    ),
    "the key of a registry without an address": (
        ((OVER_SOURCE[0], OVER_SOURCE[1].replace("[[topics]]", f"{REGISTRY_KEY}\n\n[[topics]]", 1)),),
        "source.schema_registry_url",
        "set schema_registry_url and schema_registry_key_secret",
    ),
    "a registry of somebody else": (
        (
            (
                OVER_SOURCE[0],
                OVER_SOURCE[1].replace(
                    "[[topics]]",
                    f"{REGISTRY_URL.replace('confluent.cloud', 'example.com')}\n{REGISTRY_KEY}\n\n[[topics]]",
                    1,
                ),
            ),
        ),
        "source.schema_registry_url",
        "the endpoint of Schema Registry",
    ),
    "tables in Glue and in Confluent's storage": (
        ((OVER_CATALOG[0], OVER_CATALOG[1].replace("[source]", SOURCE)),),
        "source.glue_database",
        "neither in Glue nor in your bucket",
    ),
    "a catalog in another region": (
        ((OVER_CATALOG[0], OVER_CATALOG[1].replace("eu-west-1", "us-east-2")),),
        "source.catalog_uri",
        'Set aws.region = "us-east-2"',
    ),
    "a catalog of somebody else": (
        ((OVER_CATALOG[0], OVER_CATALOG[1].replace("aws.confluent.cloud", "example.com")),),
        "source.catalog_uri",
        "REST Catalog Endpoint",
    ),
    "the bucket of tables that exist for exports": (
        (OVER_SOURCE, ('region = "eu-west-1"', 'region = "eu-west-1"\nlake_bucket = "acme-tableflow"')),
        "aws.lake_bucket",
        "nobody else may write",
    ),
    "a tag that is taken": (
        (('cost-centre = "data-platform"', 'Stage = "x"'),),
        "deployment.tags.Stage",
        "is taken",
    ),
    "keys that live too long": (
        (("grace_days = 7", "grace_days = 30"),),
        "rotation.grace_days",
        "less than every_days",
    ),
    "the deployer as reader": (
        (('warehouse_size = "XSMALL"', 'user_name = "lakeferry"'),),
        "snowflake.user_name",
        "the deployer's",
    ),
    "a name with capitals": (
        (('name = "lakeferry"', 'name = "Lakeferry"'),),
        "deployment.name",
        "lower-case letters",
    ),
    "a stage with a hyphen": (
        (('stage = "dev"', 'stage = "de-v"'),),
        "deployment.stage",
        "lower-case letters",
    ),
    "a region that is none": (
        (('region = "eu-west-1"', 'region = "europe"'),),
        "aws.region",
        "not an AWS region",
    ),
    "a region with a wrong number": (
        (('region = "eu-west-1"', 'region = "eu-west-9"'),),
        "aws.region",
        "Did you mean eu-west-",
    ),
    "a quickstart that is misspelt": (
        (('datagen = "STOCK_TRADES"', 'datagen = "STOK_TRADES"'),),
        "topics[0].datagen",
        "Did you mean STOCK_TRADES?",
    ),
    "too many workers": ((("glue_workers = 2", "glue_workers = 1000"),), "aws.glue_workers", "at most"),
    "a name of a megabyte": (
        (('owner = "data-platform team"', f'owner = "{"x" * 100}"\nname2 = "{"y " * 100_000}"'),),
        "deployment.name2",
        "unknown key",
    ),
}


@pytest.mark.sampled(20)
@pytest.mark.parametrize("what", WRONG)
def test_each_mistake_is_reported_with_its_key(what, root):
    pairs, key, words = WRONG[what]
    found = mistakes(changed(*pairs), root)
    assert words in found.get(key, ""), found


def test_a_topic_may_have_no_table():
    plain = '[[topics]]\nname = "plain"\npartitions = 1\n\n[[statements]]'
    deployment = deployment_file.parse(
        changed(("[[statements]]", plain)), name="x", judge=NOT_JUDGED
    ).deployment
    assert [topic.name for topic in deployment.topics if topic.tableflow is None] == ["plain"]


def test_forty_tags_are_allowed():
    tags = "\n".join(f'tag{number} = "x"' for number in range(40))
    assert (
        len(
            deployment_file.parse(
                changed(('cost-centre = "data-platform"', tags)), name="x", judge=NOT_JUDGED
            ).deployment.identity.tags
        )
        == 40
    )


def test_all_mistakes_are_reported_at_once_each_with_its_line():
    text = changed(
        ("glue_workers = 2", "glue_wokers = 2"),
        ('name = "stock_trades"', 'name = "STOCK"'),
        ('zone = "America/New_York"', 'zone = "Nowhere"'),
        ("every_days = 30", "every_days = 0"),
        ('cost-centre = "data-platform"', 'Stage = "x"'),
    )
    with pytest.raises(BadFile) as bad:
        deployment_file.parse(text, name="dev.toml", judge=NOT_JUDGED)
    lines = text.splitlines()
    messages = {problem.key: lines[problem.line - 1] for problem in bad.value.problems}
    assert messages["aws.glue_wokers"].startswith("glue_wokers")
    assert messages["topics[0].name"].startswith("name")
    assert messages["exports[0].zone"].startswith("zone")
    assert messages["deployment.tags.Stage"].startswith("Stage"), "an unknown key hides no finding of a rule"
    assert messages["rotation.every_days"].startswith("every_days")
    assert str(bad.value).startswith(f"dev.toml: {len(bad.value.problems)} mistakes\n")


def test_data_may_be_generated_from_a_schema_that_exists():
    assert deployment_file.parse(
        changed(('datagen = "STOCK_TRADES"', 'datagen = "schema"')), name="dev.toml", judge=NOT_JUDGED
    )


def test_mistakes_of_an_export_are_reported_with_their_own_lines():
    found = mistakes(changed(('datagen = "STOCK', 'schema = "topics/store_orders.avsc"\ndatagen = "STOCK')))
    assert re.search(
        r"project/exports/daily_trades\.toml, line \d+, column\[\d+\]", found["exports[0].contract"]
    )


@pytest.mark.parametrize(
    ("sql", "table"),
    [
        ("CREATE TABLE `a.b-c` AS SELECT 1", "a.b-c"),
        ("-- CREATE TABLE x\n/* CREATE TABLE y */ create table if not exists\n a_1(b INT)", "a_1"),
        ("CREATE TABLE `env`.`cluster`.`a` AS SELECT 1", "a"),
        ("CREATE TABLE env.cluster.a AS SELECT 1", "a"),
        ("CREATE TABLE IF NOT EXISTS a-- comment\n(b INT)", "a"),
        ("CREATE TABLE IF NOT EXISTS a/* x */ (b INT)", "a"),
        ("/* 1 */" * 40 + "INSERT INTO a SELECT 1", ""),
        ("INSERT INTO a SELECT 1", ""),
        ("CREATE /* odd */ TABLE a AS SELECT 1", ""),
    ],
)
def test_the_table_of_a_statement_is_read_where_it_can_be(tmp_path, sql, table):
    folder = tmp_path / "flink" / "some"
    folder.mkdir(parents=True)
    (folder / "create.sql").write_text(sql)
    (folder / "undo.sql").write_text("")
    assert Sources(tmp_path, NOT_JUDGED).statement("some").table == table


@pytest.mark.parametrize(
    ("clause", "partitions"),
    [("", 6), (" DISTRIBUTED BY HASH(`id`) INTO 3 BUCKETS", 3), ("\ndistributed into\n12 buckets", 12)],
)
def test_the_partitions_of_a_topic_are_those_of_its_statement_or_of_the_file(tmp_path, clause, partitions):
    """Without a clause, Confluent creates six, whatever the deployment file says."""
    folder = tmp_path / "flink" / "some"
    folder.mkdir(parents=True)
    (folder / "create.sql").write_text(f"CREATE TABLE a{clause} AS SELECT 1")
    (folder / "undo.sql").write_text("")
    assert (
        Sources(tmp_path, NOT_JUDGED).partitions(Topic(name="a", partitions=9, statement="some"))
        == partitions
    )
    assert Sources(tmp_path, NOT_JUDGED).partitions(Topic(name="a", partitions=9)) == 9


def test_a_topic_may_have_any_name_where_the_table_of_its_statement_can_not_be_read(tmp_path):
    shutil.copytree(PROJECT / "flink", tmp_path / "flink")
    file = tmp_path / "flink" / "stock_trades_with_totals" / "create.sql"
    file.write_text(file.read_text().replace("CREATE TABLE", "CREATE /* odd */ TABLE"))
    deployment = deployment_file.parse(DEV, name="x", judge=NOT_JUDGED).deployment
    topics = [deployment.topics[0], attrs.evolve(deployment.topics[1], name="totals")]
    assert (
        list(topics_have_one_writer(attrs.evolve(deployment, topics=topics), Sources(tmp_path, NOT_JUDGED)))
        == []
    )


def test_names_with_different_ids_are_valid():
    assert deployment_file.parse(
        changed(("[[statements]]", '[[topics]]\nname = "stocktrades"\n\n[[statements]]')),
        name="x",
        judge=NOT_JUDGED,
    )


SECRETS = {
    "a private key": "-----BEGIN " + "PRIVATE KEY-----",
    "a secret of Confluent": "cflt" + "aB3x" * 15,
    "an access key": "AKIA" + "ABCDEFGH12345678",
    "a secret access key": "aB3/" * 10,
    "another secret access key": "wJalrXUtnFEMI/" + "K7MDENG/bPxRfiCYEXAMPLEKEY",
    "a secret of a key with few slashes": "wJalrXUtnFEMIbPxRfiCYqT9+"
    + "K7MDENGzQ4hV2sLp0cXaGd8/RmYtUoWk3EnBjZf",
    "a secret of a key that begins like a path": "/Tn0x/"
    + "kQ9vJ4mXz/b7RtLpW2/cYsHd6GfA8/uEoKi3NqV5jBw1ZrM+Px4TgCyU0SaIlO8",
    "a secret of base64's other alphabet": "the/data/platform/of/my/team/aB3"
    + "xY9-kQ9vJ4mXz_b7RtLpW2cYsHd6GfA8uEoKi3NqV5j",
    "a secret in a link": "https://hooks.example.com/x?token="
    + "wJalrXUtnFEMIK7MDENGb"
    + "PxRfiCYEXAMPLEKEY",
    "a secret after a link": "https://wiki.example.com/x,token:"
    + "wJalrXUtnFEMIK7MDENGb"
    + "PxRfiCYEXAMPLEKEY",
    "a short secret with padding": "wJalrXUtnFEMIK7MD" + "ENGbPxRfiCYzA==",
    "a long mixed text": "aB3xY9" * 6,
}
#: What people write into a deployment file: names of secrets, tags, addresses.
HARMLESS = (
    'cloud_key_secret = "Prod/DataPlatform/confluent-cloud-key-01"',
    'cost-centre = "CC4711/DataPlatform/StreamingIngestion"',
    "# https://wiki.example.com/spaces/DATA/pages/12345678/Lakeferry-runbook",
    "# https://git.example.com/Data-Platform/Lakeferry/blob/main/docs/RunBook_2026.md",
    'cloud_key_secret = "LakeferryConfluentCloudKeyOfTheDataPlatform2026"',
)


@pytest.mark.parametrize("what", SECRETS)
@pytest.mark.parametrize("line", ['cloud_key_secret = "{}"', '# my key: "{}"', 'owner2 = "{}"'])
def test_a_secret_is_refused_anywhere_and_never_repeated(what, line):
    """I13."""
    text = DEV.replace('cloud_key_secret = "lakeferry/confluent-cloud-key"', line.format(SECRETS[what]))
    with pytest.raises(BadFile) as bad:
        deployment_file.parse(text, name="dev.toml", judge=NOT_JUDGED)
    (problem,) = bad.value.problems
    assert "Secrets Manager" in problem.message
    assert SECRETS[what] in text.splitlines()[problem.line - 1]
    assert SECRETS[what][:12] not in str(bad.value)


@pytest.mark.parametrize("line", HARMLESS)
def test_names_tags_and_addresses_are_not_taken_for_secrets(line):
    assert list(secret_patterns.find_secrets(line, names_only=True)) == []


def test_nearly_every_random_secret_is_found():
    """Forty characters, as an AWS secret access key has, and the 64 of Confluent's; both may have slashes."""
    signs = string.ascii_letters + string.digits + "+/"
    drawn = random.Random(1)
    for length, least in ((40, 0.995), (64, 0.999)):
        secrets = ["".join(drawn.choices(signs, k=length)) for _ in range(2000)]
        hits = [
            secret
            for secret in secrets
            if list(secret_patterns.find_secrets(f'owner = "{secret}"', names_only=True))
        ]
        assert len(hits) >= least * len(secrets)


def test_names_in_shipped_files_are_not_taken_for_secrets():
    for file in (PROJECT / "deployments").glob("*.toml"):
        assert not list(secret_patterns.find_secrets(file.read_text(), names_only=True))


def test_an_invalid_stage_opens_no_file(tmp_path):
    for stage in ("../dev", "nope", "", "dev/../dev", "DEV", "x" * 1_000_000, "d\0v", "🙂"):
        with pytest.raises(BadFile) as bad:
            deployment_file.load_stage(stage, judge=NOT_JUDGED)
        assert len(str(bad.value)) < 300


def test_a_files_stage_must_match_its_name(tmp_path):
    (tmp_path / "test.toml").write_text(DEV)
    with pytest.raises(BadFile, match="but the file is that of stage 'test'"):
        deployment_file.load_stage("test", tmp_path, judge=NOT_JUDGED)


def test_the_schema_for_editors_has_the_same_model():
    schema = build_json_schema(Deployment, title="x", description="y")
    validator = OAS31Validator(schema)
    for stage in ("dev", "prod"):
        validator.validate(tomllib.loads(shipped.read(stage)))
    assert not validator.is_valid(tomllib.loads(changed(("glue_workers = 2", "glue_wokers = 2"))))
    assert not validator.is_valid(
        tomllib.loads(changed(('"retention.ms" = "604800000"', '"retention.ms" = 604800000')))
    )


@pytest.mark.parametrize("days", [46, 400])
def test_a_retention_longer_than_the_time_of_publishing_is_valid(root, days):
    text = changed(
        ("snapshots_days = 7", f"snapshots_days = 7\nrows_days = {days}"),
        ('"daily_trades"', '"monthly_trades"'),
    )
    assert (
        deployment_file.parse(text, name="dev.toml", root=root, judge=NOT_JUDGED)
        .deployment.tables[0]
        .tableflow.rows_days
        == days
    )


@pytest.mark.slow
def test_every_rule_has_a_mistake_that_it_finds(root):
    """A rule that finds nothing is not tested."""
    texts = [changed(*pairs) for pairs, _, _ in WRONG.values()]
    silent = [rule.__name__ for rule in RULES if not any(_finds_more(rule, text, root) for text in texts)]
    assert silent == []


def _finds_more(rule, text, root):
    """Return whether the rule adds problems to those of `text`."""
    return _count(text, [lambda deployment: rule(deployment, Sources(root, NOT_JUDGED))]) > _count(text, [])


def _count(text, rules):
    try:
        toml_model.read(Deployment, text, rules, name="x")
    except BadFile as bad:
        return len(bad.problems)
    return 0


@pytest.mark.parametrize(
    ("mode", "expected_message"),
    [("upsert", "Tableflow writes in mode UPSERT"), ("retract", "which Tableflow refuses")],
)
def test_a_table_that_appends_needs_a_statement_that_appends(tmp_path, mode, expected_message):
    shutil.copytree(PROJECT / "flink", tmp_path / "flink")
    file = tmp_path / "flink" / "stock_trades_with_totals" / "create.sql"
    file.write_text(file.read_text().replace("'changelog.mode' = 'append'", f"'changelog.mode' = '{mode}'"))
    deployment = deployment_file.parse(DEV, name="x", judge=NOT_JUDGED).deployment
    ((key, message),) = write_modes_match_cleanup_policies(deployment, Sources(tmp_path, NOT_JUDGED))
    assert (key, expected_message in message) == ("topics[1].tableflow.write_mode", True)
    without_table = [attrs.evolve(deployment.topics[0], tableflow=None), *deployment.topics[1:]]
    found = list(
        write_modes_match_cleanup_policies(
            attrs.evolve(deployment, topics=without_table), Sources(tmp_path, NOT_JUDGED)
        )
    )
    assert found == [(key, message)]


def test_files_must_be_kept_longer_than_windows_are_published_again(tmp_path):
    """Otherwise each run would publish a window again because its files are deleted."""
    for folder in ("topics", "flink", "exports"):
        shutil.copytree(PROJECT / folder, tmp_path / folder)
    contract = tmp_path / "exports" / "daily_trades.toml"
    contract.write_text(contract.read_text().replace("restate_for_days = 3", "restate_for_days = 90"))
    kept = 'contract = "daily_trades"\nkeep_days = {}'
    for days, wrong in ((90, ["exports[0].keep_days"]), (91, [])):
        deployment = deployment_file.parse(
            changed(('contract = "daily_trades"', kept.format(days))), name="x", judge=NOT_JUDGED
        ).deployment
        assert [key for key, _ in exports_match_topics(deployment, Sources(tmp_path, NOT_JUDGED))] == wrong


BY_STATUS = """
[[topics]]
name = "store_orders"
datagen = "schema"

[[topics]]
name = "orders_by_status"
statement = "orders_by_status"
tableflow = {}

[[statements]]
name = "orders_by_status"

[[exports]]
contract = "daily_by_status"
cron = "15 1,9 * * ? *"
zone = "America/New_York"
recipients = ["analysts@example.com"]
"""


def test_an_export_of_a_topic_that_flink_fills_with_tagged_fields_needs_treatments(root, tmp_path):
    """The schema that Flink derives has no tags: those of the statement's source count."""
    shutil.copytree(root, tmp_path / "project")
    folder = tmp_path / "project"
    statement = folder / "flink" / "orders_by_status"
    statement.mkdir()
    (statement / "create.sql").write_text(
        "CREATE TABLE orders_by_status AS SELECT customer.userid, customer.gender, status FROM store_orders"
    )
    (statement / "undo.sql").write_text("DROP TABLE orders_by_status")
    daily = (PROJECT / "exports" / "daily_trades.toml").read_text()
    text = (
        daily[: daily.index("[[column]]")]
        .replace("daily_trades", "daily_by_status")
        .replace("stock_trades", "orders_by_status")
        .replace('unique = ["symbol", "side", "hour"]', "")
    )
    column = '[[column]]\nname = "{0}"\ntype = "text"\ntitle = "T"\ndescription = "D."\n{1}\n'
    columns = "".join(column.format(name, "nullable = true") for name in ("userid", "gender", "status"))
    contract = folder / "exports" / "daily_by_status.toml"
    contract.write_text(text + columns + '[delivery]\norder_by = ["status"]\n')
    found = mistakes(DEV + BY_STATUS, folder)["exports[1].contract"].splitlines()
    assert [line.partition(": ")[2].partition(" contains personal data")[0] for line in found] == [
        "userid",
        "gender",
    ]
    dropped = "".join(
        column.format(name, 'personal = { treatment = "drop" }') for name in ("userid", "gender")
    )
    contract.write_text(text + dropped + column.format("status", "") + '[delivery]\norder_by = ["status"]\n')
    assert deployment_file.parse(DEV + BY_STATUS, name="dev.toml", root=folder, judge=NOT_JUDGED)


@pytest.mark.parametrize(
    ("every", "expression", "suggested"),
    [
        ("iso_week", "0 6 ? * MON *", "0 6 * * ? *"),
        ("iso_week", "0 6 ? * TUE *", "0 6 * * ? *"),
        ("iso_week", "0 6 1 * ? *", "0 6 * * ? *"),
        ("month", "30 7 1 * ? *", "30 7 * * ? *"),
        ("quarter", "0 6 1 1,4,7,10 ? *", "0 6 * * ? *"),
        ("day", "15 1 * * ? *", "15 1,9 * * ? *"),
        ("day", "0 20 ? * MON-FRI *", "0 4,20 * * ? *"),
        ("iso_week", "0 6 ? * MON,TUE *", None),
        ("iso_week", "0 6,8 ? * MON *", None),
        ("iso_week", "0 6 * * ? *", None),
        ("month", "0 6 ? * MON *", None),
        ("quarter", "0 6 1 * ? *", None),
        ("day", "0 * * * ? *", None),
        ("day", "0 6,14 ? * MON-FRI *", None),
    ],
)
def test_a_schedule_with_one_run_for_each_window_is_refused(every, expression, suggested):
    """A second run before the next window ends retries a window that failed or had to wait.

    The suggestion has one.
    """
    loaded = deployment_file.parse(DEV, name="x", judge=NOT_JUDGED)
    contract = loaded.sources.contract("daily_trades", None)
    contract = attrs.evolve(contract, window=attrs.evolve(contract.window, every=every))

    @attrs.frozen
    class Changed(Sources):
        def plain_contract(self, name):
            return contract

    export = loaded.deployment.exports[0]
    deployment = attrs.evolve(loaded.deployment, exports=[attrs.evolve(export, cron=expression)])
    found = list(exports_run_again_for_each_window(deployment, Changed(PROJECT, NOT_JUDGED)))
    if suggested is None:
        assert found == []
        return
    ((key, message),) = found
    assert (key, f'"{suggested}"' in message) == ("exports[0].cron", True)
    better = attrs.evolve(deployment, exports=[attrs.evolve(export, cron=suggested)])
    assert list(exports_run_again_for_each_window(better, Changed(PROJECT, NOT_JUDGED))) == []


def test_a_schema_is_found_also_in_a_project_whose_folder_is_given_as_a_relative_path(root, monkeypatch):
    monkeypatch.chdir(root.parent)
    (root.parent / "elsewhere.avsc").write_text("{}")
    topic = deployment_file.parse(DEV, name="dev.toml", judge=NOT_JUDGED).deployment.topics[0]
    sources = Sources(Path(root.name), NOT_JUDGED)
    inside = attrs.evolve(topic, schema_file="topics/stock_trades.avsc")
    assert sources.schema_file(inside) == Path(root.name) / "topics" / "stock_trades.avsc"
    with pytest.raises(Missing, match="is not a file in the project's folder"):
        sources.schema_file(attrs.evolve(topic, schema_file="../elsewhere.avsc"))
