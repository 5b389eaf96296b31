"""Fixtures for tests that run the command line as a process of its own."""

from __future__ import annotations

import pytest

from lakeferry.output import Output
from lakeferry.rehearsal.harness import copy_project
from tests.support import shipped
from tests.support.canary import Canary
from tests.support.command import Clone


@pytest.fixture(scope="session", autouse=True)
def no_secret_is_written_down(tmp_path_factory):
    """Check at the end that no file of these tests and no output of a command holds a key in any form."""
    yield
    canary = Canary()
    canary.look_below(tmp_path_factory.getbasetemp())
    assert not canary.found


@pytest.fixture(scope="session")
def clone(tmp_path_factory) -> Clone:
    """Copy the project, so that a demo doesn't write into the developer's checkout.

    The copy shares the installed packages.
    """
    root = tmp_path_factory.mktemp("clone")
    copy_project(root)
    shipped.restore(root / "project")
    return Clone(root)


@pytest.fixture
def quiet_output() -> Output:
    return Output(quiet=True)
