"""A rehearsal of each kind of deployment file, by the command that users call, in a clone of its own.

Each must pass, with the checks that apply to the kind, and say which don't.
"""

from __future__ import annotations

import pytest

from lakeferry.rehearsal.harness import copy_project
from tests.support import shipped
from tests.support.command import Clone
from tests.support.lake import ROOT

pytestmark = [pytest.mark.deep, pytest.mark.timeout(3600)]
DATA = ROOT / "tests" / "data"
TABLES = """
[source]
catalog_uri = "https://tableflow.eu-west-1.aws.confluent.cloud/iceberg/catalog/organizations/{}/environments/env-abc123"
cluster_id = "lkc-abc123"
tableflow_key_secret = "risk/tableflow"
"""
ORGANIZATION = "0d6c9a4e-1b7f-4c57-9d3e-2f1a6b8c7d90"
KEYS = """\
kafka_key_secret = "acme/kafka"
schema_registry_key_secret = "acme/registry"
tableflow_key_secret = "acme/tableflow"
flink_key_secret = "acme/flink"
"""
EXPORT = """
[[exports]]
contract = "daily_trades"
cron = "0 6,18 * * ? *"
zone = "America/New_York"
"""
PUBLISHED = "the schedule fires, and the job publishes the right rows"
SAME = "the same question gives the same rows everywhere"
#: Of every kind.
CLAIMS = {
    "init, secrets, doctor and plan lead to a deployment",
    "the real CDK deploys the unmodified templates",
    SAME,
    "doctor finds nothing wrong",
    "monitoring measures every hop",
    "logs finds what a name wrote",
    "an update changes what the file says and nothing else",
    "verify finds nothing wrong",
    "nothing is left over at any vendor",
}
#: Of files with exports.
EXPORTS = {
    PUBLISHED,
    "a second firing publishes nothing twice",
    "a failed run is reported by mail",
    "permissions that grow are shown before a deployment",
}
#: Of files with [confluent].
CONFLUENT = {
    "what somebody deleted is reported and created again",
    "a failed change rolls back completely",
    "an interrupted deploy stops nothing in AWS, and the next one does the rest",
}
ROTATION = {
    "every secret rotates while a reader reads",
    "a key is rotated and revoked by hand",
    "an interrupted rotate claims no result",
}
#: Of files whose statements are stateless, and whose topics have events of past windows.
EDITED = {
    "an edited Flink statement goes on where its old text stopped",
    "an edit that Flink refuses changes nothing",
    "one command writes past windows, and again it writes nothing",
}
#: Of files with links that open.
LINKS = {
    "the link in a mail opens the file",
    "links of others, old links and revoked links open nothing",
}


#: Of files that let people in, and whose mails have files.
PEOPLE = {
    "a person in Snowflake sees the views, and nothing personal",
    "a person in Athena sees some columns, and nothing personal",
    "small files are attached to the mail",
}
ATHENA = """\
lake_formation = true
athena_readers = ["arn:aws:iam::111122223333:role/analysts"]
"""


def read(name):
    return (DATA / f"{name}.toml").read_text()


def over_tables_in_confluents_storage():
    """A team that has a key for tables of another team, and no login of Confluent."""
    before, _, rest = read("existing").partition("[source]")
    topics = rest[rest.index("[[topics]]") :]
    return before + TABLES.format(ORGANIZATION) + "\n" + topics


def with_brought_keys():
    """A cluster of another team, to which the deployment brings all keys; its export reads a topic of the
    team.
    """
    text = read("existing_cluster").replace("glue_database", f"{KEYS}glue_database")
    text = text.replace(
        'name = "stock_trades"\nexisting = true', 'name = "stock_trades"\nexisting = true\n[topics.tableflow]'
    )
    return text + EXPORT


def let_people_in():
    """A deployment for production whose analysts get files and links by mail, views in Snowflake, and columns
    in Athena.
    """
    text = shipped.read("prod")
    text = text.replace(
        "[aws]", '[mail]\nsender = "Exports <exports@reports.example.com>"\n\n[aws]\n' + ATHENA
    )
    text = text.replace(
        "[snowflake]", '[snowflake]\ngrant_to_users = ["ANNA"]\ngrant_to_roles = ["ANALYSTS"]'
    )
    before, region, rest = text.partition('contract = "weekly_sales_by_region"')
    return before + region + '\nlink_days = 14\nlink_keeps = ["region"]' + rest


def make_workbooks(root):
    """Let an export of the project make workbooks too."""
    file = root / "project" / "exports" / "weekly_sales_by_region.toml"
    text = file.read_text()
    file.write_text(text.replace('dialect = "excel"', 'dialect = "excel"\nalso = ["xlsx"]', 1))


#: By kind: the file, and the claims that it needs besides CLAIMS.
KINDS = {
    "prod": (lambda: shipped.read("prod"), EXPORTS | CONFLUENT | ROTATION),
    "people": (let_people_in, EXPORTS | CONFLUENT | ROTATION | LINKS | PEOPLE),
    "orders": (lambda: shipped.read("orders"), EXPORTS | CONFLUENT | ROTATION | EDITED | LINKS),
    "existing": (lambda: read("existing"), EXPORTS),
    "borrowed": (over_tables_in_confluents_storage, EXPORTS),
    "stored": (lambda: read("managed"), EXPORTS | CONFLUENT | ROTATION),
    "shared": (lambda: read("existing_cluster"), CONFLUENT | ROTATION),
    "brought": (with_brought_keys, EXPORTS | CONFLUENT),
}


@pytest.mark.parametrize("kind", KINDS)
def test_a_file_of_this_kind_is_rehearsed(kind, tmp_path):
    write, claims = KINDS[kind]
    root = tmp_path / "clone"
    root.mkdir()
    copy_project(root)
    shipped.restore(root / "project")
    (root / ".venv-flink").symlink_to(ROOT / ".venv-flink")
    file = root / "project" / "deployments" / f"{kind}.toml"
    text = write()
    if kind == "people":
        make_workbooks(root)
    for stage in ("existing", "prod", "shared", "stored"):
        text = text.replace(f'stage = "{stage}"', f'stage = "{kind}"')
    file.write_text(text)
    result = Clone(root).run("rehearse", "--stage", kind, "--json", patience=3000)
    assert result.code == 0, result.err[-6000:]
    document = result.document
    seen = {check["claim"] for phase in document["phases"] for check in phase["checks"]}
    assert not CLAIMS - seen
    assert not claims - seen
    for phase in document["phases"]:
        assert all(result["why"] for result in phase["not_applicable"])
    assert file.read_text() == text
