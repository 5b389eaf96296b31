"""The reference of errors follows from the code, and the code raises nothing that isn't in it."""

from __future__ import annotations

import inspect
import re
from pathlib import Path

from lambdas.confluent import errors as confluent_errors
from lambdas.shared import errors
from lambdas.shared.errors import ErrorRow, LakeferryError
from lambdas.snowflake import errors as snowflake_errors

LAMBDAS = Path(errors.__file__).parents[1]


def test_every_row_is_whole_and_its_code_its_own():
    rows = (*errors.ERRORS, *confluent_errors.ERRORS, *snowflake_errors.ERRORS)
    assert len({row.code for row in rows}) == len(rows)
    for row in rows:
        assert re.fullmatch(r"(LF|NET|AWS|CFL|SNF)(-[A-Z]+)+", row.code), row
        assert row.cause.endswith("."), row
        assert row.remedy.endswith("."), row
        assert not row.title.endswith("."), row


def test_every_row_that_is_defined_is_in_the_reference():
    for module in (errors, confluent_errors):
        defined = {value for _, value in inspect.getmembers(module, lambda value: isinstance(value, ErrorRow))}
        assert defined == set(module.ERRORS)


def test_every_row_is_used():
    code = "".join(path.read_text() for path in LAMBDAS.rglob("*.py"))
    for module, alias in ((errors, "errors"), (confluent_errors, "confluent_errors")):
        names = [name for name, value in inspect.getmembers(module) if isinstance(value, ErrorRow)]
        own = Path(module.__file__).read_text()
        unused = [n for n in names if f"{alias}.{n}" not in code and len(re.findall(rf"\b{n}\b", own)) < 3]
        assert unused == []


def test_a_message_says_what_happened_why_and_what_to_do():
    error = LakeferryError(errors.UNREACHABLE, "GET /x: no answer")
    error.doing = "creating topic Trades: "
    assert str(error).startswith("NET-UNREACHABLE  creating topic Trades: GET /x: no answer. Likely cause: ")
    assert " What to do: " in str(error)


def test_the_hierarchy_in_the_docstring_is_the_one_in_the_code():
    drawn = re.findall(r"^[│├└─\s]*([A-Z]\w+)", errors.__doc__, re.MULTILINE)
    classes = {name for name, value in inspect.getmembers(errors, inspect.isclass) if issubclass(value, LakeferryError)}
    assert classes <= set(drawn)
    depth = {match[2]: len(match[1]) for match in re.finditer(r"^([│├└─\s]*)([A-Z]\w+)  ", errors.__doc__, re.MULTILINE)}
    for name in classes - {"LakeferryError"}:
        assert depth[name] == 4 * (len(getattr(errors, name).__mro__) - len(LakeferryError.__mro__)), name
