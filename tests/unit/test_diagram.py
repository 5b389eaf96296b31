"""Diagrams: they contain the templates' resources, and the page has the diagrams of the current templates."""

from __future__ import annotations

import copy
import json
import re

import pytest
from typer.testing import CliRunner

from lakeferry.__main__ import app
from lakeferry.cli import diagram as diagram_command
from lakeferry.deployment import diagram
from lakeferry.errors import CommandFailed
from lambdas import contract
from tests.support import shipped
from tests.support.assembly_kit import dev_templates
from tests.support.promises import promised


@pytest.fixture
def templates():
    return dev_templates()


def test_the_page_shows_the_current_templates(templates):
    """If this fails: `make synth`, `lakeferry diagram --write`, and check the difference."""
    diagram_command.require_fresh(templates)


@pytest.mark.parametrize(
    "change", ["another resource", "another reference", "another stack", "a resource less"]
)
def test_an_outdated_page_is_found(templates, change):
    changed = copy.deepcopy(templates)
    resources = changed["exports"]["Resources"]
    if change == "another resource":
        resources["More"] = {"Type": "AWS::S3::Bucket", "Properties": {}}
    elif change == "another reference":
        job = next(name for name, resource in resources.items() if resource["Type"] == "AWS::Glue::Job")
        queue = next(name for name, resource in resources.items() if resource["Type"] == "AWS::SQS::Queue")
        resources[job]["Properties"]["DefaultArguments"]["--queue"] = {"Ref": queue}
    elif change == "another stack":
        topic = next(resource for resource in resources.values() if resource["Type"] == "AWS::SNS::Topic")
        topic["Properties"]["DisplayName"] = {"Fn::ImportValue": "lakeferry-dev-snowflake:ExportsOutputRefX"}
    else:
        del resources[
            next(name for name, resource in resources.items() if resource["Type"] == "AWS::SQS::Queue")
        ]
    with pytest.raises(CommandFailed) as failed:
        diagram_command.require_fresh(changed)
    assert failed.value.code == "DIAGRAM-STALE"


def test_every_kind_of_both_vendors_is_in_a_box_of_that_vendor(templates):
    drawn = diagram.draw(templates)
    for part, vendor in (("confluent", "Confluent Cloud"), ("snowflake", "Snowflake")):
        kinds = {
            resource["Type"]
            for resource in templates[part]["Resources"].values()
            if resource["Type"].startswith("Custom::")
        }
        inside = re.search(rf'subgraph \w+\["{vendor}"\]\n(.*?)\n  end', drawn[part], re.DOTALL)[1]
        assert len(inside.splitlines()) == len(kinds - set(contract.OTHER_TYPES))


def test_arrows_join_existing_boxes_and_names_are_unique(templates):
    for mermaid in diagram.draw(templates).values():
        named = re.findall(r"^\s+(?:subgraph )?(\w+)\[", mermaid, re.MULTILINE)
        assert len(named) == len(set(named))
        arrows = re.findall(r"^  (\w+) (?:-->|-\.->|-->\|creates\|) (\w+)$", mermaid, re.MULTILINE)
        assert arrows
        assert {end for arrow in arrows for end in arrow} <= set(named)
        assert len(arrows) == mermaid.count("->")


def test_the_path_of_a_notification_is_drawn(templates):
    exports = diagram.draw(templates)["exports"]
    assert "aws_eventbridge_rule --> aws_lambda_function_notify" in exports
    assert "aws_lambda_function_notify --> aws_sns_topic" in exports
    assert "aws_glue_job -.-> stack_data" in exports


def test_the_functions_that_create_vendors_objects_are_drawn(templates):
    assert (
        "aws_lambda_function_confluentprovider -->|creates| at_confluent_cloud"
        in diagram.draw(templates)["confluent"]
    )


def test_an_arrow_that_a_longer_path_implies_is_left_out():
    a, b, c = (diagram.Box("AWS", name) for name in "abc")
    assert diagram._without_shortcuts({(a, b), (b, c), (a, c)}) == {(a, b), (b, c)}
    assert diagram._without_shortcuts({(a, b), (b, a)}) == {(a, b), (b, a)}, "a circle stays one"


def test_the_same_templates_in_another_order_give_the_same_pictures(templates):
    backwards = {
        part: {"Resources": dict(reversed(template["Resources"].items()))}
        for part, template in templates.items()
    }
    assert diagram.draw(backwards) == diagram.draw(templates)


@pytest.fixture
def assembly(templates, tmp_path):
    for part, template in templates.items():
        (tmp_path / f"lakeferry-dev-{part}.template.json").write_text(json.dumps(template))
    return tmp_path


def call(assembly, *words):
    return CliRunner().invoke(app, ["diagram", "--assembly", str(assembly), *words])


def test_the_command_prints_mermaid_and_checks_the_page(assembly):
    shipped.require_unedited()
    printed = call(assembly, "--stage", "dev")
    assert printed.exit_code == 0
    assert printed.stdout.count("flowchart LR") == len(diagram.PARTS)
    assert printed.stdout.count("%% ") == len(diagram.PARTS)
    assert call(assembly, "--check").exit_code == 0
    assert json.loads(call(assembly, "--json").stdout).keys() == promised("diagram")
    (assembly / "lakeferry-dev-data.template.json").write_text('{"Resources": {}}')
    stale = call(assembly, "--check", "--json")
    assert stale.exit_code == 1
    assert json.loads(stale.stdout)["code"] == "DIAGRAM-STALE"


def test_without_templates_the_message_names_the_command(tmp_path):
    answer = call(tmp_path, "--json")
    assert answer.exit_code == 3
    assert json.loads(answer.stdout)["hint"] == "Run make synth STAGE=dev"
