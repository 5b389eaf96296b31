"""Exports over tables that exist: from `init` to a file, and back, beside a cluster that is somebody else's.

Nothing of Confluent runs here, and no key of it exists. The tests depend on each other: each continues where
the previous one ended, as in docs/tutorial/exports-only.md.
"""

from __future__ import annotations

import csv
import gzip
import io
import json
import os
import urllib.request
from datetime import UTC, datetime

import attrs
import pytest

from config.exports import cron
from lakeferry.deployment.context import FUNCTIONS
from lakeferry.local import target
from lakeferry.rehearsal.harness import copy_project
from lakeferry.verification import recomputation, windows
from lakeferry.verification import tables as verified
from simulators.aws.server import EmbeddedAws
from simulators.core import control
from tests.support.command import Clone
from tests.support.deployment_kit import Newcomer, bootstrap
from tests.support.existing_tables import BUCKET, DATABASE, Owner
from tests.support.promises import promised

pytestmark = [pytest.mark.deep, pytest.mark.timeout(2400)]
STAGE = "shop"
WINDOW = (windows.FILES, windows.ROWS, windows.COLUMNS, windows.PERSONAL)
ANSWERS = (
    *("--tables", DATABASE, "--bucket", BUCKET),
    *("--topics", "sales_orders", "--zone", "Europe/Berlin"),
)


@attrs.frozen
class Analyst(Newcomer):
    """A user of the other team."""

    aws: EmbeddedAws


@pytest.fixture(scope="module")
def aws():
    with EmbeddedAws(iam=True) as aws:
        yield aws


@pytest.fixture(scope="module")
def analyst(aws, tmp_path_factory):
    root = tmp_path_factory.mktemp("shop")
    copy_project(root)
    variables = aws.environment(os.environ) | {FUNCTIONS: "local"}
    with target.set_environment(variables):
        yield Analyst(Clone(root), STAGE, variables, aws)


@pytest.fixture(scope="module")
def owner(analyst, aws):
    owner = Owner(aws)
    owner.write_tables()
    (analyst.clone.root / "project" / "topics" / "sales_orders.avsc").unlink()
    return owner


@pytest.fixture(scope="module")
def before(owner):
    return owner.fingerprint()


def test_init_asks_for_the_tables_and_for_no_key(analyst, before):
    document = analyst.call("init", "--stage", STAGE, "--yes", *ANSWERS)
    assert (document["written"], document["not_stored"]) == (True, [])
    assert analyst.ctx.deployment.exports == []
    assert document["next"][0] == f"topics import --stage {STAGE}"


def test_the_tables_are_listed(analyst):
    tables = analyst.call("topics", "list", "--stage", STAGE)["tables"]
    assert [(table["name"], table["iceberg"], table["in_file"]) for table in tables] == [
        ("plain", False, False),
        ("sales_orders", True, True),
        ("stock_trades", True, False),
    ]


def test_the_schema_of_an_export_in_the_file_can_be_imported(analyst):
    """The mistake of the file is that the schema is missing, and its advice can be followed."""
    written = analyst.file.read_text()
    export = '\n[[exports]]\ncontract = "weekly_sales"\ncron = "0 6,18 * * ? *"\nzone = "Europe/Berlin"\n'
    analyst.file.write_text(written + export)
    refused = analyst.call("plan", "--stage", STAGE, code=2)
    advice = f"lakeferry topics import sales_orders --stage {STAGE}"
    assert advice in refused["message"]
    assert analyst.call(*advice.split()[1:])["topics"][0]["state"] == "written"
    (analyst.clone.root / "project" / "topics" / "sales_orders.avsc").unlink()
    analyst.file.write_text(written)


def test_nothing_of_an_imported_schema_leaves_before_somebody_has_looked(analyst):
    (imported,) = analyst.call("topics", "import", "--stage", STAGE)["topics"]
    assert imported["state"] == "written"
    refused = analyst.call("export", "check", "weekly_sales", code=2)
    assert "has no tags" in refused["message"]


def test_a_contract_is_checked_before_anything_is_deployed(analyst):
    schema = analyst.clone.root / "project" / "topics" / "sales_orders.avsc"
    schema.write_text(schema.read_text().replace('"unknown"', '"reviewed"'))
    analyst.call("export", "check", "weekly_sales")
    analyst.call("init", "--stage", STAGE, "--yes")
    assert [export.contract for export in analyst.ctx.deployment.exports] == [
        "weekly_sales",
        "weekly_sales_by_region",
    ]


def test_it_deploys_three_stacks_without_a_key_of_confluent(analyst):
    bootstrap(analyst.ctx, analyst.clone.root)
    checks = analyst.call("doctor", "--stage", STAGE)["checks"]
    assert [check for check in checks if check["result"] == "fail"] == []
    assert {check["group"] for check in checks}.isdisjoint({"Confluent", "Snowflake", "Confluent → AWS"})
    analyst.call("deploy", "--stage", STAGE, "--yes")
    assert analyst.ctx.stacks == [f"lakeferry-{STAGE}-{part}" for part in ("data", "exports", "operations")]
    assert analyst.call("plan", "--check", "--stage", STAGE)["changes"] == []
    secrets = analyst.ctx.client("secretsmanager").list_secrets()["SecretList"]
    assert len(secrets) == 1, [secret["Name"] for secret in secrets]


def test_the_schedule_publishes_a_file(analyst):
    export = analyst.ctx.deployment.exports[0]
    due = cron.parse(export.cron, export.zone).after(datetime(2026, 11, 17, tzinfo=UTC))
    scheduler = analyst.ctx.client("scheduler")
    group = analyst.ctx.deployment.prefix
    job = analyst.output("exports", "WeeklySalesJobName")
    name = next(
        schedule["Name"]
        for schedule in scheduler.list_schedules(GroupName=group)["Schedules"]
        if job in scheduler.get_schedule(GroupName=group, Name=schedule["Name"])["Target"]["Input"].split('"')
    )
    request = {"group": group, "name": name, "at": due.isoformat()}
    control.call(analyst.aws.url, "POST", "/schedules/fire", request)
    run = analyst.wait_for_run(job)
    assert run["JobRunState"] == "SUCCEEDED", run.get("ErrorMessage")
    bucket = analyst.output("data", "LakeBucketName")
    s3 = analyst.ctx.client("s3")
    manifest = json.loads(
        s3.get_object(Bucket=bucket, Key="exports/weekly_sales/manifests/2026-W46.json")["Body"].read()
    )
    (key,) = [file["key"] for file in manifest["files"] if file["role"] == "data"]
    content = s3.get_object(Bucket=bucket, Key=key)["Body"].read()
    text = gzip.decompress(content) if key.endswith(".gz") else content
    rows = list(csv.DictReader(io.StringIO(text.decode("utf-8-sig"))))
    assert len(rows) == manifest["rows"]["lines"]["delivered"] > 100


def test_a_missing_window_is_published_by_a_command(analyst):
    """The schedule ran when only the first of the two weeks was over."""
    words = ("weekly_sales", "--stage", STAGE, "--windows", "2026-W46..W47")
    document = analyst.call("export", "backfill", *words)
    assert document.keys() == promised("export backfill")
    assert [(window["window"], window["state"]) for window in document["windows"]] == [
        ("2026-W47", "published")
    ]
    (run,) = document["runs"]
    assert (run["state"], run["asked"]) == ("done", {"windows": "2026-W47", "only": "missing"})
    assert analyst.call("export", "backfill", *words)["runs"] == []


def test_published_windows_are_computed_again_by_a_command(analyst):
    words = ("weekly_sales", "--stage", STAGE, "--windows", "2026-W46..W47")
    document = analyst.call("export", "restate", *words)
    assert [(window["window"], window["state"], window["generation"]) for window in document["windows"]] == [
        ("2026-W46", "unchanged", 1),
        ("2026-W47", "unchanged", 1),
    ]


def test_the_job_is_run_by_a_command_which_ends_with_its_record(analyst):
    document = analyst.call("export", "run", "weekly_sales", "--stage", STAGE, "--windows", "2026-W47")
    assert document.keys() == promised("export run")
    assert [(window["window"], window["state"]) for window in document["windows"]] == [
        ("2026-W47", "unchanged")
    ]
    refused = analyst.call("export", "run", "weekly_sales", "--stage", STAGE, "--windows", "2026-W44", code=2)
    assert (refused["code"], "to 2026-10-26, and deploy" in refused["message"]) == ("EXP-WINDOWS", True)


def test_status_shows_what_can_be_seen_without_a_key(analyst):
    document = analyst.call("status", "--stage", STAGE)
    assert analyst.call("status", "--stage", STAGE, "--drift")["drift"] == []
    (table,) = document["tables"]
    assert {name for name, hop in table.items() if isinstance(hop, dict)} == {"iceberg", "glue"}


def test_monitoring_measures_everything_without_a_key(analyst):
    client = analyst.ctx.client("lambda")
    (name,) = [
        function["FunctionName"]
        for function in client.list_functions()["Functions"]
        if "-operations-Watch" in function["FunctionName"]
    ]
    measured = json.loads(client.invoke(FunctionName=name, Payload=b"{}")["Payload"].read())
    assert (measured["unmeasured"], measured["measured"] > 0) == ({}, True)


def test_verify_finds_nothing_wrong_and_changes_nothing(analyst, owner, before):
    analyst.call("export", "run", "weekly_sales_by_region", "--stage", STAGE)
    for mail in json.load(urllib.request.urlopen(f"{analyst.aws.url}/_simulator/mail")):
        if mail["kind"] == "confirmation":
            urllib.request.urlopen(mail["link"]).close()
    s3 = analyst.ctx.client("s3")
    bucket = analyst.output("data", "LakeBucketName")
    keys = [item["Key"] for item in s3.list_objects_v2(Bucket=bucket)["Contents"]]
    words = ("verify", "--stage", STAGE, "--out", str(analyst.clone.root / "evidence"), "--last", "2")
    document = analyst.call(*words)
    assert {*document} == promised("verify")
    passed = {(finding["claim"], finding["about"]) for finding in document["findings"]
              if finding["outcome"] == "passed"}  # fmt: skip
    for label in ("2026-W46", "2026-W47"):
        for claim in (*WINDOW, recomputation.RECOMPUTED):
            assert (claim, f"weekly_sales {label}") in passed
    for claim in (verified.GLUE_SHOWS, verified.ATHENA_SHOWS):
        assert (claim, "sales_orders") in passed
    assert [item["Key"] for item in s3.list_objects_v2(Bucket=bucket)["Contents"]] == keys
    assert owner.fingerprint() == before


def test_the_assumptions_hold_and_the_probe_reports_glue(analyst, owner, before):
    out = str(analyst.clone.root / "evidence")
    held = analyst.call("verify", "--assumptions", "--stage", STAGE, "--out", out)
    outcomes = {finding["about"]: finding["outcome"] for finding in held["findings"]}
    assert outcomes.pop("s3-missing-object") == "passed"
    assert {name for name, outcome in outcomes.items() if outcome == "not asked"} == {
        *("confluent-missing-environment", "confluent-missing-cluster"),
        *("snowflake-missing-volume", "snowflake-region"),
    }
    probed = analyst.call("verify", "--glue-probe", "weekly_sales", "--stage", STAGE, "--out", out)
    assert {"in Glue: Spark starts", "in Glue: wrong values fail"} <= {
        finding["claim"] for finding in probed["findings"]
    }
    assert owner.fingerprint() == before


def test_a_query_of_the_stage_gives_the_same_rows_on_each_engine(analyst, owner, before):
    sql = 'SELECT count(*) AS n, count(DISTINCT order_id) AS orders FROM "sales_orders"'
    answers = {}
    for engine in ("athena", "duckdb"):
        document = analyst.call("query", sql, "--stage", STAGE, "--engine", engine)
        assert (document.keys(), document["columns"]) == (promised("query"), ["n", "orders"])
        answers[engine] = [int(cell) for cell in document["rows"][0]]
    assert answers["athena"] == answers["duckdb"]
    printed = analyst.clone.run("query", sql, "--stage", STAGE, "--csv", changes=analyst.variables)
    assert printed.out == f"n,orders\n{','.join(map(str, answers['athena']))}\n"
    refused = analyst.call("query", 'DROP TABLE "sales_orders"', "--stage", STAGE, code=2)
    assert refused["code"] == "QUERY-READ-ONLY"
    absent = analyst.call("query", "SELECT 1", "--stage", STAGE, "--engine", "snowflake", code=2)
    assert absent["code"] == "NO-SNOWFLAKE"
    assert owner.fingerprint() == before


def test_destroy_leaves_the_other_team_as_it_was(analyst, owner, before):
    assert owner.fingerprint() == before
    analyst.call("destroy", "--stage", STAGE, "--confirm", STAGE)
    assert owner.fingerprint() == before
    left = analyst.call("inventory", "--stage", STAGE)
    assert [item for item in left["items"] if item["verdict"] in ("orphaned", "unknown")] == []
