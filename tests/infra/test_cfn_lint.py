"""cfn-lint finds nothing in the templates, and finds planted mistakes."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow
#: W3005 is about CDK's own redundant DependsOn.
IGNORED = "W3005"


@pytest.fixture(scope="module")
def findings(dev, prod, tmp_path_factory):
    """Return cfn-lint's findings by file name, for all templates and for one with planted mistakes."""
    template = json.loads(json.dumps(dev.templates["data"]))
    bucket = next(body for body in template["Resources"].values() if body["Type"] == "AWS::S3::Bucket")
    bucket["Properties"]["VersioningConfiguration"] = {"Status": "On"}
    bucket["Properties"]["Bucketname"] = "x"
    planted = tmp_path_factory.mktemp("planted") / "planted.json"
    planted.write_text(json.dumps(template))
    files = [
        file
        for assembly in (dev, prod)
        for file in sorted(assembly.folder.glob(f"{assembly.prefix}-*.template.json"))
    ]
    command = [
        Path(sys.executable).with_name("cfn-lint"),
        "--ignore-checks",
        IGNORED,
        "--format",
        "json",
        "--template",
        *files,
        planted,
    ]
    result = subprocess.run(command, capture_output=True, text=True, timeout=300)
    found = {file.name: [] for file in (*files, planted)}
    for load in json.loads(result.stdout):
        found[Path(load["Filename"]).name].append(f"{load['Rule']['Id']} {load['Message']}")
    return found


def test_the_linter_finds_nothing(findings):
    assert len(findings) == 11
    assert {name: value for name, value in findings.items() if value and name != "planted.json"} == {}


def test_the_linter_finds_planted_mistakes(findings):
    found = " ".join(findings["planted.json"])
    assert "E3030" in found
    assert "E3002" in found
