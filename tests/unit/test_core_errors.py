"""Errors of the functions: messages have cause and remedy, and the documented hierarchy is the real one."""

from __future__ import annotations

import inspect
import re

from lambdas.shared import errors
from lambdas.shared.errors import LakeferryError


def test_a_message_has_cause_and_remedy():
    error = LakeferryError(errors.UNREACHABLE, "GET /x: no answer")
    error.doing = "creating topic Trades: "
    assert str(error).startswith(
        "NET-UNREACHABLE  creating topic Trades: GET /x: no answer. What to do: Look at"
    )


def test_the_hierarchy_in_the_docstring_is_the_one_in_the_code():
    drawn = re.findall(r"^[│├└─\s]*([A-Z]\w+)", errors.__doc__, re.MULTILINE)
    classes = {
        name
        for name, value in inspect.getmembers(errors, inspect.isclass)
        if issubclass(value, LakeferryError)
    }
    assert classes <= set(drawn)
    depth = {
        match[2]: len(match[1])
        for match in re.finditer(r"^([│├└─\s]*)([A-Z]\w+)  ", errors.__doc__, re.MULTILINE)
    }
    for name in classes - {"LakeferryError"}:
        assert depth[name] == 4 * (len(getattr(errors, name).__mro__) - len(LakeferryError.__mro__)), name
