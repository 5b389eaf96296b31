"""`lakeferry cost`: resources are counted like in the stacks, and priced by a table with dates and
sources.
"""

from __future__ import annotations

import json
from datetime import date

import attrs
import pytest
from typer.testing import CliRunner

from config.deployments import deployment_file
from config.deployments.model import Prices
from config.exports.check import NOT_JUDGED
from config.toml_model import BadFile
from lakeferry.__main__ import app
from lakeferry.plan import confluent_prices, cost
from lambdas import contract
from lambdas.confluent.client import Confluent
from lambdas.shared.clock import Deadline, SystemClock
from lambdas.shared.http import Session
from lambdas.shared.redaction import ApiKey, Secret
from tests.support import shipped
from tests.support.assembly_kit import dev_templates
from tests.support.scripted_server import Scripted


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
    assert "Unknown, and in no total:" in printed
    assert "Tableflow topics" in printed
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


class TestWhatConfluentPublishesNoPriceOf:
    def with_prices(self, dev, **given):
        deployment = attrs.evolve(dev.deployment, prices=Prices(**given))
        return attrs.evolve(dev, deployment=deployment)

    def test_it_is_unknown_and_in_no_total(self, dev):
        without = cost.estimate(dev)
        assert len(without.unknown) == 4
        assert all("unknown" in sentence and "prices." in sentence for sentence in without.unknown)
        known = cost.estimate(self.with_prices(dev, tableflow_topic_hour="0.10", tableflow_gb="0.04"))
        tables = len([topic for topic in dev.deployment.topics if topic.tableflow])
        assert known.low - without.low == pytest.approx(tables * 73.0)
        assert len(known.unknown) == 2
        assert all("connector" in sentence for sentence in known.unknown)
        assert [rate.low for rate in known.rates if rate.what.startswith("a GB that Tableflow")] == [0.04]

    @pytest.mark.parametrize("text", ["0,10", "-1", "free", "$0.10", ""])
    def test_a_price_of_another_form_is_refused(self, text):
        file = shipped.read("dev") + f'\n[prices]\ntableflow_gb = "{text}"\n'
        with pytest.raises(BadFile, match=r"prices\.tableflow_gb.*a price in US dollars"):
            deployment_file.parse(file, name="dev.toml", judge=NOT_JUDGED)

    def test_bills_give_what_was_paid_for_a_unit(self):
        lines = [
            {"line_type": kind, "quantity": quantity, "amount": amount, "unit": "Topic-hour"}
            for kind, quantity, amount in (
                ("TABLEFLOW_NUM_TOPICS", 48, 4.8),
                ("TABLEFLOW_NUM_TOPICS", 24, 1.2),
                ("TABLEFLOW_NUM_TOPICS", 0, 5),
                ("KAFKA_STORAGE", 1, 1),
            )
        ]
        found = confluent_prices.find_prices(lines, "bills")
        assert found.keys() == {"tableflow_topic_hour"}
        price = found["tableflow_topic_hour"]
        assert (price.low, price.high) == pytest.approx((0.05, 0.1))
        assert price.source == "bills, per Topic-hour"

    def test_the_bills_of_a_month_are_read_page_by_page(self):
        line = {"line_type": "TABLEFLOW_NUM_TOPICS", "quantity": 10, "amount": 1, "unit": "hour"}
        with Scripted() as api:
            pages = [
                (
                    200,
                    {
                        "data": [{**line, "id": "1"}],
                        "metadata": {"next": f"{api.url}/billing/v1/costs?page_token=b"},
                    },
                ),
                (200, {"data": [{**line, "id": "2", "amount": 2}], "metadata": {}}),
            ]
            api.answers["GET /billing/v1/costs"] = pages
            clock = SystemClock()
            session = Session(Deadline(clock, clock.time() + 60))
            key = ApiKey("key", Secret("planted", redacted=False))
            found = confluent_prices.read_billed(Confluent(session, clock, key, api.url), date(2026, 11, 28))
            sent = api.sent[0].query
        price = found["tableflow_topic_hour"]
        assert (price.low, price.high) == pytest.approx((0.1, 0.2))
        assert (sent["start_date"], sent["end_date"]) == ("2026-10-29", "2026-11-28")
