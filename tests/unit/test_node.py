"""Selects the Node that runs CDK: the machine's if CDK supports it, otherwise the packaged one."""

from __future__ import annotations

import json

import pytest

from lakeferry.deployment import cdk, node
from lakeferry.local.bootstrap import ROOT


def fake(folder, version):
    """Create a script that prints a version as Node does."""
    folder.mkdir(parents=True, exist_ok=True)
    binary = folder / "node"
    binary.write_text(f"#!/bin/sh\necho {version}\n")
    binary.chmod(0o755)
    return binary


@pytest.mark.parametrize("version", ["v22.1.0", "v24.19.0"])
def test_the_machines_node(tmp_path, version):
    binary = fake(tmp_path / "own", version)
    found = node.find(str(binary), tmp_path / "none")
    assert found.binary == binary
    assert found.npm == (str(tmp_path / "own" / "npm"),)


@pytest.mark.parametrize("version", ["v20.20.2", "v18.0.0", "v23.0.0", "rubbish", ""])
def test_an_unsupported_version_is_skipped(tmp_path, version):
    own = fake(tmp_path / "own", version)
    packaged = fake(tmp_path / "package" / "bin", "v24.0.0")
    found = node.find(str(own), tmp_path / "package")
    assert found.binary == packaged
    assert found.npm[1].endswith("npm-cli.js")


def test_without_node(tmp_path):
    with pytest.raises(node.NoNode, match="make setup"):
        node.find(str(tmp_path / "missing"), tmp_path / "none")


def test_the_package_that_is_installed_is_one_that_cdk_supports():
    assert node.find("").version in node.SUPPORTED


def test_an_installed_command_line_is_not_fetched_again(tmp_path):
    """npm would fail here, because there is no network."""
    (tmp_path / "package.json").write_text((ROOT / "package.json").read_text())
    there = tmp_path / "node_modules" / "aws-cdk"
    there.mkdir(parents=True)
    (there / "package.json").write_text(json.dumps({"version": cdk.read_pinned()}))
    dead = node.Node(tmp_path / "node", ("/nowhere/npm",), 24)
    assert cdk.ensure_command_line(dead, tmp_path) == there / "bin" / "cdk"


def test_a_failed_download_is_reported_in_one_sentence(tmp_path):
    (tmp_path / "package.json").write_text((ROOT / "package.json").read_text())
    offline = node.Node(tmp_path / "node", ("sh", "-c", "echo no route >&2; false"), 24)
    with pytest.raises(cdk.NoCommandLine, match="no route"):
        cdk.ensure_command_line(offline, tmp_path)


def test_the_pin_is_exact_and_the_lock_has_its_hash_and_no_registry():
    """The highest version was published by accident and doesn't work."""
    lock = json.loads((ROOT / "package-lock.json").read_text())["packages"]["node_modules/aws-cdk"]
    assert lock["version"] == cdk.read_pinned()
    assert cdk.read_pinned().startswith("2.")
    assert lock["integrity"].startswith("sha512-")
    assert "resolved" not in lock
