"""Deployments and their files for tests of single rules."""

from __future__ import annotations

import json

from config.deployments.confluent_model import Confluent
from config.deployments.export_model import Export
from config.deployments.model import Alerts, Aws, Deployment, Identity
from config.deployments.snowflake_model import Snowflake
from config.deployments.source_model import Source
from config.exports.contracts import parse
from config.toml_model import BadFile
from tests.support import samples

IDENTITY = Identity(name="lake", stage="dev", owner="somebody")
ALERTS = Alerts(engineers=["engineers@example.com"])
CONFLUENT = Confluent(cloud_key_secret="acme/cloud")
SNOWFLAKE = Snowflake(account="org-account", key_secret="acme/snowflake")
GLUE = Source(glue_database="lkc-a", tableflow_bucket="acme-tables")


def deployment(**parts):
    """Return a valid deployment with other parts."""
    given = {"identity": IDENTITY, "aws": Aws(region="eu-west-1"), "confluent": CONFLUENT, "alerts": ALERTS}
    return Deployment(**given | parts)


def export(contract, **keys):
    return Export(contract=contract, **{"cron": "0 6,14 * * ? *", "zone": "UTC"} | keys)


def write_statement(sources, name, create, undo=""):
    folder = sources.root / "flink" / name
    folder.mkdir()
    (folder / "create.sql").write_text(create)
    (folder / "undo.sql").write_text(undo)


def write_contract(sources, name, *columns, topic="things", more="", **window):
    """Write a contract with an id and these columns. `window` are keys of its window."""
    text = samples.HEAD.format(first="id", delivery="").replace('name = "things"', f'name = "{name}"')
    text = text.replace('topic = "things"', f'topic = "{topic}"')
    for key, value in window.items():
        line = f'{key} = "{value}"' if isinstance(value, str) else f"{key} = {value}"
        text = (
            text.replace('every = "day"', line)
            if key == "every"
            else text.replace("from =", f"{line}\nfrom =")
        )
    columns = (("id", "text"), *columns)
    text += "".join(
        samples.COLUMN.format(column, kind, "T", "\n".join(keys)) for column, kind, *keys in columns
    )
    (sources.root / "exports" / f"{name}.toml").write_text(text + more)


def write_schema(sources, topic):
    """Write the schema of a topic with an id and a time."""
    moment = {"type": "long", "logicalType": "timestamp-millis"}
    fields = [{"name": "id", "type": "string"}, {"name": "at", "type": moment}]
    text = json.dumps({"type": "record", "name": "T", "fields": fields})
    (sources.root / "topics" / f"{topic}.avsc").write_text(text)


def find_in_contract(*columns, delivery="", more=""):
    """Return what is wrong with a contract of these columns, by key; {} for a valid one.

    A column is (name, type), or (name, type, more keys of its table).
    """
    text = samples.HEAD.format(first=columns[0][0], delivery=delivery)
    text += "".join(
        samples.COLUMN.format(name, kind, name.capitalize(), "\n".join(keys)) for name, kind, *keys in columns
    )
    try:
        parse(text + more, name="things.toml")
    except BadFile as bad:
        found = {}
        for problem in bad.problems:
            found.setdefault(problem.key, []).append(problem.message)
        return found
    return {}
