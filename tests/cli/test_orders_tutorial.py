"""The commands of the tutorial about nested orders, typed word for word on a terminal of the stand-ins, with
real Flink. The tests depend on each other.
"""

from __future__ import annotations

import base64
import collections
import csv
import io
import json
import time
import urllib.request

import boto3
import fastavro
import pytest

from config.project import ROOT
from lakeferry.local import target
from lakeferry.rehearsal import environments
from lakeferry.rehearsal.harness import copy_project
from tests.support import docs_reader, shipped
from tests.support.command import Clone
from tests.support.deployment_kit import Newcomer, bootstrap
from tests.support.typed_page import Reader, read_commands

pytestmark = [pytest.mark.deep, pytest.mark.timeout(3000)]
STAGE = "orders"
PAGE = ROOT / "docs" / "tutorial" / "nested-orders.md"
WEEKS = ("2026-W44", "2026-W45", "2026-W46", "2026-W47")
CREATE = "project/flink/store_orders_flat/create.sql"
#: Confluent commits a table about every five minutes; twice that, so that all of it is in the table.
SETTLED = 700


class Team:
    """The reader of the page, with the stand-ins that the reader's commands call."""

    def __init__(self, reader, simulators):
        self.reader = reader
        self.simulators = simulators
        self.before = simulators.confluent_objects()

    @property
    def bucket(self):
        return self.reader.user.output("data", "LakeBucketName")

    def follow_the_links_in_mails(self):
        for mail in self.simulators.ask_aws("GET", "/mail"):
            if mail["kind"] == "confirmation":
                urllib.request.urlopen(mail["link"]).close()

    def let_monitoring_measure(self):
        """Fire the schedule of monitoring, as if a quarter of an hour had passed."""
        prefix = self.reader.user.ctx.deployment.prefix
        created = boto3.client("cloudformation").describe_stack_resources(StackName=f"{prefix}-operations")
        for resource in created["StackResources"]:
            if resource["ResourceType"] == "AWS::Scheduler::Schedule":
                fired = {"name": resource["PhysicalResourceId"]}
                self.simulators.ask_aws("POST", "/schedules/fire", fired)

    def read_files(self):
        """Return the visible manifests and the rows of each week's newest CSV file."""
        s3 = boto3.client("s3")
        keys = [
            found["Key"]
            for page in s3.get_paginator("list_objects_v2").paginate(Bucket=self.bucket, Prefix="exports/")
            for found in page.get("Contents", [])
        ]
        rows = {}
        for week in WEEKS:
            files = sorted(key for key in keys if f"/data/{week}/" in key and key.endswith(".csv"))
            if files:
                text = s3.get_object(Bucket=self.bucket, Key=files[-1])["Body"].read().decode("utf-8-sig")
                rows[week] = list(csv.DictReader(io.StringIO(text, newline="")))
        return rows

    def read_orders(self):
        """Return how many lines each order of the topic has, by its number and the week of its day."""
        answer = self.simulators.ask_confluent("POST", "/records", {"topic": "store_orders"})
        schema = fastavro.parse_schema(json.loads(answer["schema"]))
        orders = {}
        for record in answer["records"]:
            value = io.BytesIO(base64.b64decode(record["avro"]))
            order = fastavro.schemaless_reader(value, schema)
            year, week, _ = order["date"].isocalendar()
            orders[order["store_order_id"], f"{year}-W{week}"] = len(order["order_lines"])
        return orders


@pytest.fixture(scope="module")
def team(tmp_path_factory):
    root = tmp_path_factory.mktemp("orders")
    copy_project(root)
    shipped.restore(root / "project")
    (root / ".venv-flink").symlink_to(ROOT / ".venv-flink")
    with (
        environments.open_environment("", time.time() - 7200) as simulators,
        target.set_environment(simulators.variables),
    ):
        user = Newcomer(Clone(root), STAGE, simulators.variables)
        yield Team(Reader(user, read_commands(PAGE)), simulators)


def test_the_contract_is_checked_before_anything_exists(team):
    team.reader.skip("make setup")
    team.reader.skip("source .venv/bin/activate")
    shown = team.reader.type("lakeferry export check weekly_store_orders")
    assert "Personal data: region (keep), customer_since (keep)" in shown


def test_it_is_deployed(team):
    key = environments.get_cloud_key(team.simulators)
    answers = [("id: ", f"{key['apiKey']}\n"), ("shown): ", f"{key['apiSecret']}\n")]
    team.reader.type("lakeferry secrets set confluent", answers)
    bootstrap(team.reader.user.ctx, team.reader.user.clone.root)
    team.reader.type("lakeferry doctor")
    team.reader.type("lakeferry plan")
    team.reader.type("lakeferry deploy", [("Type yes", "yes\n")])
    team.simulators.advance_confluent(SETTLED)
    team.simulators.advance_confluent(SETTLED)
    assert "store_orders_flat" in team.reader.type("lakeferry status")
    team.follow_the_links_in_mails()


def test_four_weeks_are_written_by_one_command(team):
    team.reader.type("lakeferry export backfill weekly_store_orders")
    team.reader.type("lakeferry export list")
    rows = team.read_files()
    assert tuple(rows) == WEEKS
    assert all(row["region"].startswith("Region_") for row in rows[WEEKS[0]])
    assert not {"customer", "userid", "gender"} & set(rows[WEEKS[0]][0])
    require_each_order_once(team)


def test_after_an_edit_of_the_statement_each_order_is_there_once(team):
    (edit,) = (fence.text for fence in docs_reader.fences(PAGE) if fence.language == "sql")
    file = team.reader.user.clone.root / CREATE
    lines = file.read_text().splitlines(keepends=True)
    (place,) = (index for index, line in enumerate(lines) if "regionid" in line)
    lines[place] = edit
    file.write_text("".join(lines))
    assert "in place" in team.reader.type("lakeferry plan")
    team.reader.type("lakeferry deploy", [("Type yes", "yes\n")])
    team.simulators.advance_confluent(SETTLED)
    team.simulators.advance_confluent(SETTLED)
    team.reader.user.call(
        "export", "restate", "weekly_store_orders", "--stage", STAGE, "--windows", WEEKS[-1]
    )
    rows = team.read_files()
    require_each_order_once(team)
    regions = {row["region"] for row in rows[WEEKS[-1]]}
    assert {region.startswith("Region_") for region in regions} == {True, False}, "old rows stay"


def test_verify_finds_nothing_and_destroy_leaves_nothing(team):
    team.reader.type("lakeferry export run")
    team.let_monitoring_measure()
    team.reader.type("lakeferry verify")
    team.reader.type("lakeferry destroy", [("to continue", f"{STAGE}\n")])
    assert team.reader.commands == []
    assert team.simulators.confluent_objects() == team.before


def require_each_order_once(team):
    """Each order of the files has its lines once, in the week of its day, and the files have most orders."""
    lines = collections.Counter()
    for week, rows in team.read_files().items():
        for row in rows:
            lines[int(row["order_id"]), week] += 1
    made = team.read_orders()
    assert lines == {order: made[order] for order in lines}
    assert len(lines) > 0.5 * len(made)
