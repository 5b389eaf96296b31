"""The command line in processes of its own, as people and programs call it."""

from __future__ import annotations

import pytest
from canary import Canary
from command import Clone

from lakeferry.output import Output
from rehearsal.harness import copy_project


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
    copy_project(root)
    return Clone(root)


@pytest.fixture
def voice() -> Output:
    return Output(quiet=True)
