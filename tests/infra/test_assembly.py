"""The bootstrap version that deployments require is the templates', and the assembly is read correctly."""

from __future__ import annotations

import json

import pytest

from lakeferry.health import aws
from lakeferry.plan import templates
from tests.support import shipped
from tests.support.assembly_kit import synthesise


@pytest.mark.slow
def test_the_required_bootstrap_version_is_the_templates(dev):
    artifacts = json.loads((dev.folder / "manifest.json").read_text())["artifacts"].values()
    needed = [
        int(artifact.get("properties", {}).get("requiresBootstrapStackVersion") or 0)
        for artifact in artifacts
    ]
    assert max(needed) == aws.BOOTSTRAP


def test_the_assembly_is_read_with_its_templates_tags_and_protection(dev, prod):
    for assembly, is_protected in ((dev, False), (prod, True)):
        names = [
            f"{assembly.prefix}-{part}"
            for part in ("data", "confluent", "snowflake", "exports", "operations")
        ]
        wanted = templates.read_stacks(assembly.folder, names)
        assert {
            column.name.removeprefix(f"{assembly.prefix}-"): column.template for column in wanted
        } == assembly.templates
        assert {column.is_protected for column in wanted} == {is_protected}
        assert {column.tags["stage"] for column in wanted} == {assembly.prefix.rpartition("-")[2]}


def test_a_repair_changes_the_resources_that_it_names_and_nothing_else(dev, tmp_path):
    named = "1764000000:lakeferry-dev-confluent/StockTradesTopic,lakeferry-dev-snowflake/Warehouse"
    repaired = synthesise(shipped.load("dev"), tmp_path, repair=named)
    assert repaired.failure == ""
    changed = {}
    for part, template in repaired.templates.items():
        for logical_id, body in template["Resources"].items():
            before = dev.templates[part]["Resources"][logical_id]
            if body != before:
                changed[logical_id] = {
                    name: value
                    for name, value in body["Properties"].items()
                    if value != before["Properties"].get(name)
                }
    assert changed == {"StockTradesTopic": {"repair": "1764000000"}, "Warehouse": {"repair": "1764000000"}}
