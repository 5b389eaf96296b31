"""What a plan says about edited Flink statements, and about what reads their tables."""

from __future__ import annotations

import copy

import pytest

from config.deployments import deployment_file
from config.exports.check import NOT_JUDGED
from config.toml_model import BadFile
from lakeferry.deployment.stacks import Stack
from lakeferry.output import Output
from lakeferry.plan import edited_statements, render
from lakeferry.plan.cost import Estimate
from lakeferry.plan.difference import Comparison
from lakeferry.plan.edited_statements import Outcome
from lakeferry.plan.render import Plan
from lakeferry.plan.templates import SynthesizedStack
from tests.support import shipped
from tests.support.assembly_kit import dev_templates

STATEMENT = "StockTradesWithTotalsStatement"
STACK = "lakeferry-dev-confluent"


def edit(**properties):
    """Return the plan's statement after its properties changed."""
    deployed = {f"lakeferry-dev-{part}": template for part, template in dev_templates().items()}
    wanted = copy.deepcopy(deployed)
    wanted[STACK]["Resources"][STATEMENT]["Properties"].update(properties)
    stacks = {
        name: Stack(name, f"arn:{name}", "CREATE_COMPLETE", template=template)
        for name, template in deployed.items()
    }
    comparison = Comparison([SynthesizedStack(name, template) for name, template in wanted.items()], stacks)
    return edited_statements.list_edited(shipped.load("dev"), comparison, comparison.changes())


def other_text():
    sql = dev_templates()["confluent"]["Resources"][STATEMENT]["Properties"]["sql"]
    return sql.replace("`quantity` * `price` AS", "`quantity` * `price` + 1 AS")


def show(found, capsys):
    plan = Plan("lakeferry-dev", "1", "eu-west-1", [], [], [], Estimate([], []), [], [], statements=found)
    render.show(Output(), plan)
    return capsys.readouterr().out, render.build_document(plan)["statements"]


def test_an_edit_in_place(capsys):
    found = edit(sql=other_text())
    printed, (document,) = show(found, capsys)
    assert (
        "edited in place: the new text goes on where the old one stops, and nothing is read again" in printed
    )
    assert "  -  `quantity` * `price` AS `total_price`\n" in printed
    assert "  +  `quantity` * `price` + 1 AS `total_price`\n" in printed
    assert "table stock_trades_with_totals" in printed
    assert "Snowflake table" in printed
    assert "keep their rows" in printed
    assert (document["name"], document["outcome"]) == ("stock_trades_with_totals", "edited in place")


def test_a_refused_edit(capsys):
    found = edit(sql=other_text(), reads=["returns"])
    printed, (document,) = show(found, capsys)
    assert "refused, and nothing changes: it reads other tables (returns, stock_trades)" in printed
    assert document["outcome"] == "refused"


def test_an_edit_that_drops_the_table(capsys):
    (found,) = edit(sql=other_text(), drop_on_edit=True)
    assert found.outcome is Outcome.DROPPED
    printed, _ = show([found], capsys)
    assert "dropped and read again: the table loses its rows" in printed


def test_edited_properties_are_shown():
    (found,) = edit(properties={"sql.state-ttl": "7 d"})
    assert found.diff == ("sql.state-ttl: None → 7 d",)


def test_what_is_not_edited_is_not_shown():
    assert edit() == []
    assert edit(keep_table=False) == []


DROPS = '[[statements]]\nname = "stock_trades_with_totals"\non_edit = "drop_and_reread"\n'


@pytest.mark.parametrize(
    ("table", "more", "message"),
    [
        ("tableflow = {}\n", "", "would drop stock_trades_with_totals, which has"),
        (
            "",
            '[[statements]]\nname = "stock_trades_by_minute"\nafter = ["stock_trades_with_totals"]\n',
            "would drop the table that statement stock_trades_by_minute reads",
        ),
        ("", "", ""),
    ],
)
def test_a_table_that_somebody_reads_cant_be_dropped_by_an_edit(tmp_path, table, more, message):
    text = shipped.read("dev").replace('[[statements]]\nname = "stock_trades_with_totals"\n', DROPS + more)
    text = text.replace('[topics.tableflow]\nsnowflake_table = "STOCK_TRADES_WITH_TOTALS"\n', table)
    file = tmp_path / "dev.toml"
    file.write_text(text)
    try:
        deployment_file.load(file, judge=NOT_JUDGED)
        found = ""
    except BadFile as bad:
        found = str(bad)
    assert ("drop_and_reread" in found) is bool(message)
    assert message in found
