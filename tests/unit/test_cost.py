"""`lakeferry cost`: resources are counted like in the stacks, and priced by a table with dates and
sources.
"""

from __future__ import annotations

import json
from datetime import date

import attrs
import pytest
from typer.testing import CliRunner

from lakeferry.__main__ import app
from lakeferry.plan import cost
from lambdas import contract
from tests.support import shipped
from tests.support.assembly_kit import dev_templates


@pytest.fixture(scope="module")
def dev():
    return shipped.load("dev")


def counted(kind):
    return sum(
        resource["Type"] == kind
        for template in dev_templates().values()
        for resource in template["Resources"].values()
    )


@pytest.mark.parametrize(
    ("counts", "kind"),
    [
        (cost.count_secrets, "AWS::SecretsManager::Secret"), (cost.count_keys, "AWS::KMS::Key"),
        (lambda plan: cost.count_alarms(plan.deployment), "AWS::CloudWatch::Alarm"),
    ],
)  # fmt: skip
def test_resources_with_a_monthly_price_are_counted_as_in_the_stacks(dev, counts, kind):
    assert counts(dev) == counted(kind)


def test_the_counted_metrics_are_those_of_the_watch(dev):
    assert set(cost._metrics(dev.deployment)) <= set(contract.METRIC_DIMENSIONS)
    tables = 2 * 5
    exports = 2
    secrets = 2 * 9
    made_by_hand = 2
    clusters = 1
    metrics_by_name = tables + exports + secrets + made_by_hand + clusters
    assert cost.count_metrics(dev.deployment) == metrics_by_name + len(
        [*contract.METRIC_DIMENSIONS, contract.UNMEASURED]
    )


def changed(plan, **parts):
    return attrs.evolve(plan, deployment=attrs.evolve(plan.deployment, **parts))


def line(plan, start):
    return next(line for line in cost.estimate(plan).lines if line.what.startswith(start))


def test_elastic_clusters_and_flink_pools_widen_the_range(dev):
    plain = cost.estimate(dev)
    grown = changed(dev, confluent=attrs.evolve(dev.deployment.confluent, max_ecku=10, flink_max_cfu=50))
    assert cost.estimate(grown).low == plain.low
    assert line(grown, "Kafka").high == pytest.approx(10 * 730 * 0.75)
    assert line(grown, "Flink").high == pytest.approx(50 * 730 * 0.21)


def test_absent_resources_cost_nothing(dev):
    bare = changed(dev, statements=[], exports=[], snowflake=None)
    document = [item.what for item in (*cost.estimate(bare).lines, *cost.estimate(bare).rates)]
    assert not [name for name in document if "Flink" in name or "Glue job" in name or "Snowflake" in name]
    assert cost.count_secrets(bare) == cost.count_secrets(dev) - 2  # Snowflake's and Flink's
    without = changed(dev, alerts=attrs.evolve(dev.deployment.alerts, dashboard=False))
    assert [item.what for item in cost.estimate(dev).lines if item not in cost.estimate(without).lines] == [
        "Dashboard (1)"
    ]


@pytest.mark.parametrize(
    ("cron", "runs"),
    [
        ("15 1 * * ? *", 30),
        ("0 7 ? * MON *", 5),
        ("0 6 1 * ? *", 1),
        ("0 * * * ? *", 720),
        ("0 6 1 1 ? *", 0),
    ],
)
def test_runs_are_counted_from_the_schedule(dev, cron, runs):
    """The thirty days start on the first of June 2026, a Monday, at midnight."""
    export = attrs.evolve(dev.deployment.exports[0], cron=cron, zone="UTC")
    assert cost.count_runs(export) == runs


def test_more_and_larger_workers_raise_the_cost(dev):
    aws = attrs.evolve(dev.deployment.aws, glue_workers=4, glue_worker_type="G.2X")
    assert line(changed(dev, aws=aws), "Glue").high == pytest.approx(4 * line(dev, "Glue").high)


def test_an_hour_of_glue_6_costs_less(dev):
    newer = changed(dev, aws=attrs.evolve(dev.deployment.aws, glue_version="6.0"))
    assert line(newer, "Glue").high == pytest.approx(0.7 * line(dev, "Glue").high)


def test_every_price_has_a_day_and_a_page_and_is_used():
    used = {price.id for stage in ("dev", "prod") for price in cost.estimate(shipped.load(stage)).used}
    assert used | {"glue_6.0_dpu_hour"} == set(cost.load_prices())
    for price in cost.load_prices().values():
        assert price.usd > 0
        assert price.as_of >= date(2026, 1, 1)
        assert price.source.startswith("https://")


def test_the_command_prints_a_range_the_prices_and_what_is_not_included():
    answer = CliRunner().invoke(app, ["cost", "--stage", "dev"])
    assert answer.exit_code == 0
    printed = answer.stdout
    assert "total" in printed
    assert "Tableflow, which Confluent bills" in printed
    assert "Prices were read between 2026-" in printed


def test_json_prints_one_document():
    answer = CliRunner().invoke(app, ["cost", "--stage", "prod", "--json"])
    document = json.loads(answer.stdout)
    assert document["ok"]
    assert 0 < document["month"]["low"] < document["month"]["high"]
    assert sum(item["low"] for item in document["lines"]) == pytest.approx(document["month"]["low"], abs=0.01)
    assert document["left_out"]


def test_a_stage_without_a_file_is_an_input_error():
    answer = CliRunner().invoke(app, ["cost", "--stage", "nowhere", "--json"])
    assert answer.exit_code == 2
    assert json.loads(answer.stdout)["code"] == "DEPLOYMENT-FILE"
