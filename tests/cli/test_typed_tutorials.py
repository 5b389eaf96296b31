"""The commands of two tutorials, typed word for word on a terminal: an export of tables that exist, and a
table and an export of a topic on another team's cluster.

Only ids are replaced with those that the reader has. The tests of a tutorial depend on each other.
"""

from __future__ import annotations

import json
import os
import time

import pytest

from config.project import PROJECT, ROOT
from lakeferry.deployment.context import FUNCTIONS
from lakeferry.local import target
from lakeferry.rehearsal import environments
from lakeferry.rehearsal.harness import copy_project
from simulators.aws.server import EmbeddedAws
from tests.support.command import Clone
from tests.support.deployment_kit import Newcomer, bootstrap
from tests.support.existing_tables import BUCKET, DATABASE, Owner
from tests.support.typed_page import Reader, read_commands, read_tables

pytestmark = [pytest.mark.deep, pytest.mark.timeout(2400)]
STAGE = "shop"
TABLES_PAGE = ROOT / "docs" / "tutorial" / "exports-only.md"
CLUSTER_PAGE = ROOT / "docs" / "tutorial" / "existing-cluster.md"
_DAY = 86_400


@pytest.fixture(scope="module")
def analyst(tmp_path_factory):
    """Return a reader of the page about tables that exist, in the account that has them."""
    root = tmp_path_factory.mktemp("shop")
    copy_project(root)
    with EmbeddedAws(iam=True) as aws:
        variables = aws.environment(os.environ) | {FUNCTIONS: "local"}
        with target.set_environment(variables):
            Owner(aws).write_tables()
            (root / "project" / "topics" / "sales_orders.avsc").unlink()
            yield Reader(Newcomer(Clone(root), STAGE, variables), read_commands(TABLES_PAGE))


def take_defaults(count):
    return [("]: ", "\n")] * count


def test_the_commands_of_the_page_write_a_file_about_existing_tables(analyst):
    assert (DATABASE, BUCKET) == ("lkc-abc123", "acme-tableflow")
    analyst.skip("make setup")
    analyst.skip("source .venv/bin/activate")
    shown = analyst.type("lakeferry init", take_defaults(7))
    assert "topics import" in shown
    assert read_tables(TABLES_PAGE, "source") in analyst.user.file.read_text()
    # Those of tables that Confluent stores are another way.
    analyst.skip("aws secretsmanager create-secret")
    analyst.skip("rm key.json")
    analyst.skip("lakeferry init --stage shop --cluster")


def test_the_schema_is_imported_and_a_contract_is_checked(analyst):
    analyst.type("lakeferry topics import")
    schema = analyst.user.clone.root / "project" / "topics" / "sales_orders.avsc"
    assert '"lakeferry:tags": "unknown"' in schema.read_text()
    schema.write_text(schema.read_text().replace('"unknown"', '"reviewed"'))
    analyst.type("lakeferry export check")
    analyst.type("lakeferry init", [*take_defaults(10), ("yes or no [no]: ", "yes\n")])
    assert analyst.user.ctx.deployment.exports[0].contract == "weekly_sales"


def test_it_is_deployed_and_the_first_file_is_there(analyst):
    bootstrap(analyst.user.ctx, analyst.user.clone.root)
    analyst.type("lakeferry doctor")
    analyst.type("lakeferry plan")
    analyst.type("lakeferry deploy", [("Type yes", "yes\n")])
    assert "published" in analyst.type("lakeferry export run weekly_sales --stage shop")
    shown = analyst.type("lakeferry status")
    assert "weekly_sales" in shown
    assert analyst.commands == []


@pytest.fixture(scope="module")
def colleague(tmp_path_factory):
    """Return a reader of the page about a cluster that exists, with the ids and keys that its team gave."""
    root = tmp_path_factory.mktemp("cluster")
    copy_project(root)
    opened = environments.open_environment("ACME-ANALYTICS", time.time() - 3 * _DAY, flink=False)
    with opened as simulators, target.set_environment(simulators.variables):
        team = simulators.ask_confluent("POST", "/team", {})
        keys = {}
        for file, name in (("kafka-key.json", "kafka_key"), ("registry-key.json", "schema_registry_key")):
            key_id, _, secret = team[name].partition(":")
            keys[file] = {"apiKey": key_id, "apiSecret": secret}
        words = {
            "env-abc123": team["environment_id"],
            "lkc-abc123": team["cluster_id"],
            "eu-west-1": os.environ["AWS_REGION"],
            '"acme"': json.dumps(team["environment_name"]),
        }
        user = Newcomer(Clone(root), STAGE, simulators.variables)
        reader = Reader(user, read_commands(CLUSTER_PAGE), words, keys)
        yield reader, team, simulators


def test_the_file_of_the_page_and_three_keys_show_the_topics_of_the_cluster(colleague):
    reader, team, _ = colleague
    reader.skip("make setup")
    reader.skip("source .venv/bin/activate")
    reader.user.file.write_text(reader.fill_in(read_tables(CLUSTER_PAGE, "deployment")))
    reader.type("aws secretsmanager create-secret --name acme/kafka")
    reader.type("aws secretsmanager create-secret --name acme/registry")
    key_id, _, secret = team["deployer_key"].partition(":")
    reader.type("lakeferry secrets set confluent", [("id: ", f"{key_id}\n"), ("shown): ", f"{secret}\n")])
    assert "Sales.Trades" in reader.type("lakeferry doctor --discover")


def test_the_topic_is_added_with_its_schema(colleague):
    reader, _, _ = colleague
    reader.type("lakeferry topics import Sales.Trades")
    (topic,) = reader.user.ctx.deployment.topics
    assert (topic.name, topic.existing, topic.table) == ("Sales.Trades", True, "sales.trades")
    assert "[[topics]]" in reader.user.file.read_text()


def test_it_is_deployed_with_an_export_and_destroyed(colleague):
    reader, _, simulators = colleague
    project = reader.user.clone.root / "project"
    schema = project / "topics" / "Sales.Trades.avsc"
    schema.write_text(schema.read_text().replace('"unknown"', '"reviewed"'))
    daily = (PROJECT / "exports" / "daily_trades.toml").read_text()
    contract = daily.replace('"daily_trades"', '"daily_shop"').replace('"stock_trades"', '"Sales.Trades"')
    contract = contract.replace('zone = "America/New_York"', 'zone = "Europe/Berlin"')
    (project / "exports" / "daily_shop.toml").write_text(contract)
    with reader.user.file.open("a") as file:
        file.write("\n" + read_tables(CLUSTER_PAGE, "[exports]"))
    bootstrap(reader.user.ctx, reader.user.clone.root)
    before = simulators.confluent_objects()
    reader.type("lakeferry doctor")
    reader.type("lakeferry plan")
    reader.type("lakeferry deploy", [("Type yes", "yes\n")])
    assert "Sales.Trades" in simulators.confluent_objects()["tableflow_topics"]
    assert reader.commands == []
    reader.commands.append("lakeferry destroy --stage shop")  # the page's last sentence
    reader.type("lakeferry destroy", [("to continue", f"{STAGE}\n")])
    assert simulators.confluent_objects() == before
