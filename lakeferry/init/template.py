"""The text of a new deployment file, and of the topics and exports that answers bring into one that exists."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date, datetime
from typing import Final
from zoneinfo import ZoneInfo

import attrs

from exports import contracts
from lakeferry.init.questions import EXAMPLE, NEW, NONE, Answers, names
from lakeferry.init.toml_edit import to_toml

CLOUD_KEY: Final = "lakeferry/confluent-cloud-key"
DEPLOYER: Final = "lakeferry/snowflake-deployer"
_CRONS: Final = {"day": "* * ? *", "iso_week": "? * MON *", "month": "1 * ? *"}
_EXAMPLE: Final = """\
# Trades that a Datagen connector makes, and a topic that a Flink statement makes of them.
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
# Its Avro schema: topics/{name}.avsc. Producers of your own write it.
[[topics]]
name = "{name}"
partitions = 6

[topics.tableflow]
{table}"""


@attrs.frozen
class Export:
    """`every` is how long its windows are."""

    name: str
    topic: str
    every: str


def render_file(stage: str, answers: Answers) -> str:
    """A file for a stage that has none."""
    parts = [_identity(stage, answers), _aws(answers), _confluent(answers), topics(answers)]
    parts += [_snowflake(answers)] if answers["snowflake"] != NONE else []
    parts += [exports(answers), _alerts(answers)]
    return "\n".join(part for part in parts if part)


def topics(answers: Answers) -> str:
    """The topics that were named, with their tables, and the statements of the example."""
    if answers["topics"] == EXAMPLE:
        return _EXAMPLE.format(first=_shown("stock_trades", answers), second=_shown("stock_trades_with_totals", answers))
    return "\n".join(_OWN.format(name=name, table=_shown(name, answers)) for name in names(answers["topics"]))


def exports(answers: Answers) -> str:
    """Those that ship for the topics."""
    return "\n".join(_export(one, answers) for one in _shipped(answers))


def schedule(answers: Answers, every: str) -> str:
    """Six fields of cron. A time alone counts on the day on which a window of this length is over."""
    hour, colon, minute = answers["schedule"].partition(":")
    return f"{int(minute)} {int(hour)} {_CRONS[every]}" if colon else answers["schedule"]


def recipients(answers: Answers) -> list[str]:
    return [] if answers["recipients"] == NONE else names(answers["recipients"])


def _identity(stage: str, answers: Answers) -> str:
    return f"""\
#:schema ../docs/reference/deployment.schema.json
# Made by `lakeferry init`, and yours to change: all keys stand in docs/reference/deployment-file.md, and examples in dev.toml
# and prod.toml. Secrets never stand here, only their names.

[deployment]
name = {to_toml(answers["name"])}
stage = {to_toml(stage)}
owner = {to_toml(answers["owner"])}
# "keep" leaves buckets, tables of ours and the pseudonymisation key; "delete" leaves nothing.
on_destroy = "{"keep" if stage == "prod" else "delete"}"
"""


def _aws(answers: Answers) -> str:
    return f"""\
[aws]
region = {to_toml(answers["region"])}
# account = "111122223333"  # then CDK deploys to no other one
"""


def _confluent(answers: Answers) -> str:
    exists = answers["environment"] != NEW
    identity, name = (answers["environment"], answers["environment_name"]) if exists else ("env-…", "…")
    sign = "" if exists else "# "
    return f"""\
[confluent]
cloud_key_secret = "{CLOUD_KEY}"  # filled by `lakeferry secrets set confluent`
{sign}environment_id = {to_toml(identity)}
{sign}environment_name = {to_toml(name)}
cluster_type = "Standard"
flink_max_cfu = 5
"""


def _snowflake(answers: Answers) -> str:
    return f"""\
[snowflake]
account = {to_toml(answers["snowflake"])}
key_secret = "{DEPLOYER}"  # filled by `lakeferry secrets set snowflake`
warehouse_size = "XSMALL"
"""


def _alerts(answers: Answers) -> str:
    return f"""\
[alerts]
engineers = {to_toml(names(answers["engineers"]))}
monthly_budget_usd = 100
"""


def _shown(topic: str, answers: Answers) -> str:
    return "" if answers["snowflake"] == NONE else f'snowflake_table = "{snowflake_name(topic)}"\n'


def snowflake_name(topic: str) -> str:
    return topic.upper().replace(".", "_").replace("-", "_")


def _export(export: Export, answers: Answers) -> str:
    return f"""\
[[exports]]
contract = "{export.name}"
cron = {to_toml(schedule(answers, export.every))}  # minute, hour, day of month, month, day of week, year
zone = {to_toml(answers["zone"])}
recipients = {to_toml(recipients(answers))}
first_day = {_today(answers["zone"])}  # of the windows before it, a new deployment has no events
"""


def _today(zone: str) -> date:
    return datetime.now(ZoneInfo(zone)).date()


def _shipped(answers: Answers) -> Iterator[Export]:
    wanted = ["stock_trades", "stock_trades_with_totals"] if answers["topics"] == EXAMPLE else names(answers["topics"])
    for name in contracts.shipped():
        found = contracts.load(name)
        if found.source.topic in wanted:
            yield Export(name, found.source.topic, found.window.every)
