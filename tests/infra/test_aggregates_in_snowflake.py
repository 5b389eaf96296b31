"""Aggregates in Snowflake: a table and a view for each that an export keeps, with rights on their files
alone.
"""

from __future__ import annotations

import json
import shutil

import attrs
import pytest

from lambdas import contract
from tests.infra.test_order import before
from tests.support.assembly_kit import synthesise
from tests.support.policies import Reader


@pytest.fixture(scope="module")
def without(dev, tmp_path_factory):
    """Dev whose file says that aggregates stay out of Snowflake."""
    snowflake = attrs.evolve(dev.plan.deployment.snowflake, aggregates=False)
    plan = attrs.evolve(dev.plan, deployment=attrs.evolve(dev.plan.deployment, snowflake=snowflake))
    return synthesise(plan, tmp_path_factory.mktemp("without"))


def the(assembly, kind, logical_id):
    return assembly.resources(f"Custom::Lakeferry{kind}", "snowflake")["snowflake", logical_id]


def test_the_table_is_created_in_glue_before_snowflake_shows_it(dev):
    template = dev.templates["snowflake"]
    (((_, logical_id), in_glue),) = dev.resources(contract.AGGREGATE_TABLE_TYPE).items()
    assert {logical_id, "AggregatesTrust"} <= before(template, "DailyTradesAggregates")
    assert "DailyTradesAggregates" in before(template, "DailyTradesAggregatesShown")
    assert in_glue["job"] == "lakeferry-dev-aggregate-tables"
    assert in_glue["export"] == "daily_trades"
    jobs = {job["Name"]: job for job in dev.resources("AWS::Glue::Job", "exports").values()}
    job = jobs[in_glue["job"]]
    assert job["DefaultArguments"]["--prepare-table"] == "true"
    assert job["Role"] == jobs["lakeferry-dev-daily_trades"]["Role"], "the same role writes the same tables"


def test_other_columns_are_another_request(dev):
    (in_glue,) = dev.resources(contract.AGGREGATE_TABLE_TYPE).values()
    columns = dev.plan.sources.plain_contract("daily_trades").columns
    assert in_glue["columns"] == [f"{column.name} {column.type}" for column in columns]


def test_people_see_the_columns_of_the_files_and_of_the_window(dev):
    table = the(dev, "SnowflakeIcebergTable", "DailyTradesAggregates")
    view = the(dev, "SnowflakeView", "DailyTradesAggregatesShown")
    assert (table["name"], table["table"], view["name"]) == ("DAILY_TRADES", "daily_trades", "DAILY_TRADES")
    delivered = {column.name for column in dev.plan.sources.plain_contract("daily_trades").columns}
    assert set(view["columns"]) == delivered | {"window", "window_start", "window_end", "run_id"}
    assert "ViewsSchema" in json.dumps(view["schema"])


@pytest.mark.parametrize(
    "personal",
    ['{ treatment = "keep", reason = "The analysts may see it." }', '{ treatment = "hash", kind = "text" }'],
)
def test_people_do_not_see_a_column_that_comes_from_personal_data(dev, tmp_path, personal):
    """Older windows in the table may have another treatment than the contract has now."""
    project = tmp_path / "project"
    shutil.copytree(dev.plan.sources.root, project)
    contract_file = project / "exports" / "daily_trades.toml"
    text = contract_file.read_text()
    side = '[[column]]\nname = "side"\n'
    assert side in text
    contract_file.write_text(text.replace(side, f"{side}personal = {personal}\n"))
    plan = attrs.evolve(dev.plan, sources=attrs.evolve(dev.plan.sources, root=project))
    assembly = synthesise(plan, tmp_path / "out")
    assert assembly.failure == ""
    view = the(assembly, "SnowflakeView", "DailyTradesAggregatesShown")
    assert "symbol" in view["columns"]
    assert "side" not in view["columns"]


def test_snowflake_may_read_the_aggregates_and_no_file_of_an_export(dev):
    grants = [grant for grant in Reader(dev).grants() if "SnowflakeRole" in grant.role]
    of_objects = {
        resource for grant in grants for resource in grant.resources if "s3:GetObject" in grant.actions
    }
    assert {resource.partition(".Arn>")[2] for resource in of_objects} == {"/*", "/warehouse/*"}


def test_without_them_nothing_of_it_is_created(without):
    assert without.failure == ""
    assert without.resources(contract.AGGREGATE_TABLE_TYPE) == {}
    assert len(without.resources("AWS::Glue::Job")) == 1
    assert len(without.resources("Custom::LakeferrySnowflakeExternalVolume")) == 1
    texts = json.dumps(without.templates["snowflake"])
    assert "warehouse/" not in texts
    assert "Aggregates" not in texts
