"""The command line in processes of its own, as people and programs call it."""

from __future__ import annotations

import shutil

import pytest
from canary import Canary
from command import PARTS, Clone
from lake import ROOT

from lakeferry.deployment import cdk, node
from lakeferry.output import Output
from stacks.assets import glue_zip


@pytest.fixture(scope="session", autouse=True)
def no_secret_is_written_down(tmp_path_factory):
    """At the end: no file that the tests here have made, and nothing that a command has said, holds a key in any form."""
    yield
    canary = Canary()
    canary.look_below(tmp_path_factory.getbasetemp())
    assert not canary.found


@pytest.fixture(scope="session")
def clone(tmp_path_factory) -> Clone:
    """A checkout of its own: what a demo leaves in the tree is not the developer's. It shares what set-up has made."""
    root = tmp_path_factory.mktemp("clone")
    for part in PARTS:
        if (ROOT / part).is_file():
            shutil.copy(ROOT / part, root / part)
        else:
            shutil.copytree(ROOT / part, root / part, ignore=shutil.ignore_patterns("__pycache__"))
    glue_zip()  # into build/; the processes of the clone don't get the settings of this machine's package index
    for made in (".venv", ".venv-aws", ".jars", "build"):
        (root / made).symlink_to(ROOT / made)
    return Clone(root)


@pytest.fixture(scope="session")
def deployable(clone) -> Clone:
    """The same with what CDK needs."""
    for part in ("package.json", "package-lock.json"):
        shutil.copy(ROOT / part, clone.root / part)
    cdk.command_line(node.find())  # fetched where it isn't there yet
    (clone.root / "node_modules").symlink_to(ROOT / "node_modules")
    return clone


@pytest.fixture
def voice() -> Output:
    return Output(quiet=True)
