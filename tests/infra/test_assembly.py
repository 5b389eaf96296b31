"""What deploying needs of CDK's bootstrap is what the templates ask for, and the assembly is read as it is written."""

from __future__ import annotations

from lakeferry.deploying import preflight
from lakeferry.planning import templates


def test_the_bootstrap_that_is_asked_for_is_the_one_that_the_templates_need(dev):
    assert templates.bootstrap_version(dev.folder) == preflight.BOOTSTRAP_VERSION


def test_the_assembly_is_read_with_its_templates_tags_and_protection(dev, prod):
    for assembly, is_protected in ((dev, False), (prod, True)):
        names = [f"{assembly.prefix}-{part}" for part in ("data", "confluent", "snowflake", "exports", "operations")]
        wanted = templates.read(assembly.folder, names)
        assert {one.name.removeprefix(f"{assembly.prefix}-"): one.template for one in wanted} == assembly.templates
        assert {one.is_protected for one in wanted} == {is_protected}
        assert {one.tags["stage"] for one in wanted} == {assembly.prefix.rpartition("-")[2]}
