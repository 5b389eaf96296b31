"""The launcher refuses a MiniStack that is not the one that the patches were written for."""

import importlib
import sys

import pytest

from simulators.aws import settings
from simulators.aws.hooks import Hook, HookMissing, Patch, apply
from simulators.aws.launcher import StartFailed, require_version
from simulators.aws.server import AWS_PYTHON


@pytest.fixture
def library(tmp_path, monkeypatch):
    (tmp_path / "a_library.py").write_text(
        "def greet(name):\n    return f'hello {name}'\n\ndef part():\n    return 'bye'\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    yield importlib.import_module("a_library")
    del sys.modules["a_library"]


def louder(original, name):
    return original(name).upper()


def patch(name, parameters):
    created = Patch("louder")
    created.replaces("a_library", name, parameters)(louder)
    return created


def test_of_two_patches_on_one_function_the_later_stands_in_front(library):
    def twice(original, name):
        return original(name) * 2

    second = Patch("twice")
    second.replaces("a_library", "greet", "name")(twice)
    apply([patch("greet", "name"), second])
    assert library.greet("you") == "HELLO YOUHELLO YOU"


def test_a_hook_that_is_gone_is_named_and_nothing_is_replaced(library):
    with pytest.raises(HookMissing, match=r"a_library\.leave is gone .*Pin the MiniStack"):
        apply([patch("greet", "name"), patch("leave", "name")])
    assert library.greet("you") == "hello you"


def test_a_hook_with_other_parameters_is_named(library):
    with pytest.raises(
        HookMissing,
        match=r"a_library\.greet now takes \(name\), not \(name title\)".replace(" title", ", title"),
    ):
        apply([patch("greet", "name title")])


def test_a_module_that_is_gone_is_named():
    with pytest.raises(HookMissing, match=r"no_such_module\.f is gone"):
        Hook("no_such_module", "f", ()).find()


def test_another_version_is_refused():
    require_version(settings.read_pinned_version())
    with pytest.raises(StartFailed, match=r"MiniStack is 0\.0\.1, the patches are for .*Run `make setup`"):
        require_version("0.0.1")


def test_the_pin_is_what_is_installed():
    (installed,) = (AWS_PYTHON.parents[1] / "lib").glob("python3*/site-packages/ministack-*.dist-info")
    assert installed.name == f"ministack-{settings.read_pinned_version()}.dist-info"
