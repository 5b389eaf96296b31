"""Each resource type has a file for every step that docs/contributing/architecture.md lists for a new
type.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from lambdas.custom_resources.registry import RESOURCE_TYPES

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "contributing" / "architecture.md"
#: By the step's number, the text that its file has for a type. Step 4 is a folder; the life of step 5 tests
#: its rules.
EVIDENCE = {
    1: r'TYPE: ClassVar\[str\] = "{type}"',
    2: r"^def create\(.*^def is_ready\(.*^def update\(.*^def delete\(.*^def find_existing\(",
    3: r'^    "{type}": ResourceType\(',
    5: r'^    "{type}": Life\(',
    6: r"^## {type}$",
}


def steps():
    """Return the pattern of each step's file by the step's number."""
    section = PAGE.read_text().partition("## Add a resource type\n")[2].partition("\n## ")[0]
    return {
        int(number): path for number, path in re.findall(r"^\| (\d) \| `([^`]+)` \|", section, re.MULTILINE)
    }


def missing(root, resource_type):
    """Return the numbers of the steps that the tree in `root` lacks for a type."""
    _, vendor, _, module = RESOURCE_TYPES[resource_type].handler.__name__.split(".")
    lacking = []
    for number, pattern in steps().items():
        files = list(root.glob(pattern.replace("<vendor>", vendor).replace("<module>", module)))
        text = "\n".join(file.read_text() for file in files if file.is_file())
        evidence = EVIDENCE.get(number, "").replace("{type}", resource_type)
        if not files or not re.search(evidence, text, re.MULTILINE | re.DOTALL):
            lacking.append(number)
    return lacking


def test_the_page_lists_six_steps():
    assert list(steps()) == [1, 2, 3, 4, 5, 6]


@pytest.mark.parametrize("resource_type", RESOURCE_TYPES)
def test_each_resource_type_took_every_step(resource_type):
    assert missing(ROOT, resource_type) == []


def test_a_type_that_lacks_every_step_is_reported(tmp_path):
    for pattern in steps().values():
        if pattern.endswith(".py") or pattern.endswith(".md"):
            file = tmp_path / pattern.replace("<vendor>", "confluent").replace(
                "<module>", "service_account"
            ).replace("*", "")
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text("def create(): ...\n")
    assert missing(tmp_path, "service_account") == [1, 2, 3, 4, 5, 6]
