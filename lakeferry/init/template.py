"""Render a new deployment file, or the topics and exports that are added to an existing one."""

from __future__ import annotations

import json
from collections.abc import Iterable
from datetime import datetime
from typing import Final
from zoneinfo import ZoneInfo

from config.exports import contracts, cron
from config.exports.contract import Contract, Every
from config.project import PROJECT
from lakeferry.init.questions import (
    EXAMPLE,
    EXAMPLE_TOPICS,
    NEW,
    NONE,
    Answers,
    has_tables,
    has_tables_at_confluent,
    split_names,
    uses_existing_cluster,
)

TomlValue = str | bool | int | list[str]
CLOUD_KEY: Final = "lakeferry/confluent-cloud-key"
DEPLOYER: Final = "lakeferry/snowflake-deployer"
EXAMPLE_COMMENT: Final = (
    "# Trades from a Datagen connector, and a topic that a Flink statement derives from them.\n"
)
OWN_COMMENT: Final = (
    "# Your own producers write this topic with the Avro schema project/topics/{name}.avsc.\n"
)
_EXAMPLE: Final = """\
[[topics]]
name = "stock_trades"
partitions = 6
datagen = "STOCK_TRADES"

[topics.tableflow]
{first}
[[topics]]
name = "stock_trades_with_totals"
statement = "stock_trades_with_totals"

[topics.tableflow]
{second}
[[statements]]
name = "stock_trades_with_totals"
"""
_OWN: Final = """\
[[topics]]
name = "{name}"
partitions = 6

[topics.tableflow]
{table}"""
_EXISTING_TOPIC: Final = """\
[[topics]]
name = "{name}"
existing = true

[topics.tableflow]
{table}"""
_EXISTING_CLUSTER: Final = """\
[confluent]
cloud_key_secret = "{key}"  # filled by `lakeferry secrets set confluent`
environment_id = {environment}
environment_name = {name}
cluster_id = {cluster}
glue_database = {cluster}  # the database that the cluster's integration with Glue writes to
# kafka_key_secret = "…"  # a key that may describe the topics: `lakeferry doctor --discover` lists them
# schema_registry_key_secret = "…"
"""
_EXISTING: Final = """\
[[topics]]
name = "{name}"
"""


def to_toml(value: TomlValue) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, list):
        return "[" + ", ".join(map(to_toml, value)) + "]"
    return json.dumps(value, ensure_ascii=False)


def render_file(stage: str, answers: Answers) -> str:
    """Return the text of a new deployment file."""
    parts = [
        _write_identity(stage, answers),
        _write_aws(answers),
        _write_source(answers) if has_tables(answers) else _write_confluent(answers),
        write_topics(answers),
    ]
    if answers["snowflake"] != NONE and not has_tables(answers):
        parts.append(_write_snowflake(stage, answers))
    parts += [write_exports(answers), _write_alerts(answers)]
    return "\n".join(part for part in parts if part)


def write_topics(answers: Answers) -> str:
    """Return the topics in the answers with their tables; for the example, also its Flink statement."""
    if answers["topics"] == EXAMPLE:
        first, second = EXAMPLE_TOPICS
        first_table = _write_snowflake_table(first, answers)
        second_table = _write_snowflake_table(second, answers)
        return EXAMPLE_COMMENT + _EXAMPLE.format(first=first_table, second=second_table)
    names = split_names(answers["topics"])
    if has_tables(answers):
        return "\n".join(_EXISTING.format(name=name) for name in names)
    if uses_existing_cluster(answers):
        return "\n".join(
            _EXISTING_TOPIC.format(name=name, table=_write_snowflake_table(name, answers)) for name in names
        )
    return "\n".join(
        (OWN_COMMENT + _OWN).format(name=name, table=_write_snowflake_table(name, answers)) for name in names
    )


def write_exports(answers: Answers) -> str:
    """Return the exports whose contracts read the topics in the answers.

    Left out are contracts with mistakes, and those of an existing table whose schema isn't imported yet.
    """
    example = answers["topics"] == EXAMPLE
    topics = list(EXAMPLE_TOPICS) if example else split_names(answers["topics"])
    loaded, _ = contracts.load_all()
    if has_tables(answers) or uses_existing_cluster(answers):
        without_schema = find_topics_without_schema(topics)
        topics = [topic for topic in topics if topic not in without_schema]
    chosen = [contract for contract in loaded if contract.source.topic in topics]
    return "\n".join(_export(contract, answers) for contract in chosen)


def find_topics_without_schema(topics: Iterable[str]) -> list[str]:
    """Return the existing tables whose schema `lakeferry topics import` has not written yet."""
    return [topic for topic in topics if not (PROJECT / "topics" / f"{topic}.avsc").is_file()]


def schedule(answers: Answers, every: Every) -> str:
    """Return a cron expression with six fields.

    For a time of day, it starts the export more than once for each window.
    """
    hour, colon, minute = answers["schedule"].partition(":")
    return cron.more_often(int(minute), [int(hour)], every) if colon else answers["schedule"]


def list_recipients(answers: Answers) -> list[str]:
    return [] if answers["recipients"] == NONE else split_names(answers["recipients"])


def to_snowflake_name(topic: str) -> str:
    return topic.upper().replace(".", "_").replace("-", "_")


def _write_identity(stage: str, answers: Answers) -> str:
    on_destroy = "keep" if stage == "prod" else "delete"
    return f"""\
#:schema ../../docs/reference/deployment.schema.json
# Written by `lakeferry init`; change it as you like. docs/reference/deployment-file.md lists all keys; dev.toml and prod.toml are
# examples. It contains names of secrets, never the secrets themselves.

[deployment]
name = {to_toml(answers["name"])}
stage = {to_toml(stage)}
owner = {to_toml(answers["owner"])}
# `lakeferry destroy` with "keep" retains buckets, Glue tables and the pseudonymisation key; with "delete" it removes them.
on_destroy = "{on_destroy}"
"""


def _write_aws(answers: Answers) -> str:
    return f"""\
[aws]
region = {to_toml(answers["region"])}
# account = "111122223333"  # CDK refuses to deploy to any other
"""


def _write_confluent(answers: Answers) -> str:
    exists = answers["environment"] != NEW
    identity, name = (answers["environment"], answers["environment_name"]) if exists else ("env-…", "…")
    comment = "" if exists else "# "
    if uses_existing_cluster(answers):
        return _EXISTING_CLUSTER.format(
            key=CLOUD_KEY,
            environment=to_toml(identity),
            name=to_toml(name),
            cluster=to_toml(answers["cluster"]),
        )
    return f"""\
[confluent]
cloud_key_secret = "{CLOUD_KEY}"  # filled by `lakeferry secrets set confluent`
{comment}environment_id = {to_toml(identity)}
{comment}environment_name = {to_toml(name)}
cluster_type = "Standard"
flink_max_cfu = 5
"""


def _write_source(answers: Answers) -> str:
    if has_tables_at_confluent(answers):
        return f"""\
[source]
catalog_uri = {to_toml(answers["tables"])}
cluster_id = {to_toml(answers["cluster"])}
tableflow_key_secret = {to_toml(answers["tableflow_key"])}  # its owner may read the topics, and no more
"""
    return f"""\
[source]
glue_database = {to_toml(answers["tables"])}
tableflow_bucket = {to_toml(answers["bucket"])}
"""


def _write_snowflake(stage: str, answers: Answers) -> str:
    prefix = to_snowflake_name(f"{answers['name']}_{stage}")
    return f"""\
[snowflake]
account = {to_toml(answers["snowflake"])}
key_secret = "{DEPLOYER}"  # filled by `lakeferry secrets set snowflake`
warehouse_size = "XSMALL"
# Names that are unique in the account. A new name after the first deployment makes a new object in place of
# the old one.
warehouse = "{prefix}"
database = "{prefix}"
schema = "TABLES"  # with all columns; people use the views
people_role = "{prefix}_PEOPLE"
raw_role = "{prefix}_RAW"
# grant_to_users = ["ANNA"]  # who gets the people's role; grant_to_roles = […] for roles
"""


def _write_alerts(answers: Answers) -> str:
    return f"""\
[alerts]
engineers = {to_toml(split_names(answers["engineers"]))}
monthly_budget_usd = 100
"""


def _write_snowflake_table(topic: str, answers: Answers) -> str:
    return "" if answers["snowflake"] == NONE else f'snowflake_table = "{to_snowflake_name(topic)}"\n'


def _export(contract: Contract, answers: Answers) -> str:
    """Return an export. If the deployment creates the topics, its first window is today's: there are no older
    events.
    """
    first_day = ""
    if not has_tables(answers) and not uses_existing_cluster(answers):
        day = datetime.now(ZoneInfo(answers["zone"])).date()
        first_day = f"first_day = {day}  # a new deployment has no events of earlier windows\n"
    return f"""\
[[exports]]
contract = "{contract.name}"
cron = {to_toml(schedule(answers, contract.window.every))}  # minute, hour, day of month, month, day of week, year
zone = {to_toml(answers["zone"])}
recipients = {to_toml(list_recipients(answers))}
{first_day}"""
