"""Statements broken at random: each is run or refused with a number, and none makes the simulator fail."""

import random
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from simulators.core.clock import Clock
from simulators.snowflake import engine
from simulators.snowflake.account import ADMIN, Account
from simulators.snowflake.errors import SqlError
from simulators.snowflake.model import Membership, User
from simulators.snowflake.parser import Cursor, count_statements
from simulators.snowflake.results import Result
from simulators.snowflake.session import Session

DATA = Path(__file__).resolve().parents[1] / "data" / "snowflake"
STATEMENTS = [
    line for name in ("deploy", "destroy") for line in (DATA / f"{name}.sql").read_text().splitlines()
]
PIECES = st.sampled_from(
    [
        "'",
        '"',
        ";",
        "--",
        "/*",
        "*/",
        "$$",
        "(",
        ")",
        "=",
        ",",
        ".",
        "\\",
        "\n",
        "\0",
        "é",
        "’",
        "NULL",
        "IN",
        "LIKE",
        "X",
        "1",
        "-1",
        "''",
    ]
)


def session():
    account = Account("XY12345", Clock(0, 1_793_610_000), random.Random(1), None, region="eu-west-1")
    user = User(name=("ADMIN",), owner=ADMIN, created=0.0, secondary_roles=False)
    account.add(user)
    account.memberships.append(Membership(ADMIN, user.key, "", 0.0))
    return Session(account, user, ADMIN, warehouse="W")


@st.composite
def broken(draw):
    """A statement with a piece inserted, deleted or replaced."""
    words = draw(st.sampled_from(STATEMENTS)).split(" ")
    for _ in range(draw(st.integers(1, 3))):
        at = draw(st.integers(0, len(words) - 1))
        match draw(st.sampled_from(["in", "out", "over", "inside"])):
            case "in":
                words.insert(at, draw(PIECES))
            case "out" if len(words) > 1:
                del words[at]
            case "inside":
                cut = draw(st.integers(0, len(words[at])))
                words[at] = words[at][:cut] + draw(PIECES) + words[at][cut:]
            case _:
                words[at] = draw(PIECES)
    return " ".join(words)


@pytest.fixture(scope="module")
def running():
    """With everything of the file in it, as far as it goes without keys."""
    filled = session()
    for statement in STATEMENTS[
        : STATEMENTS.index('REVOKE SELECT ON ALL ICEBERG TABLES IN DATABASE "LDB" FROM ROLE "READER"')
    ]:
        try:
            engine.execute(filled, statement.replace("{arn}", "arn:aws:iam::000000000000:role/r"), {})
        except SqlError:
            assert "{" in statement or '"U"' in statement
    return filled


@settings(max_examples=600)
@given(statement=broken())
def test_a_broken_statement_is_run_or_refused(running, statement):
    try:
        result = engine.execute(running, statement, {})
    except SqlError as error:
        result = error
    assert isinstance(result, Result) or (len(result.code) == 6 and result.message)


@given(text=st.text(max_size=40))
def test_a_name_or_a_string_holds_whatever_it_is_given(text):
    quoted = '"' + text.replace('"', '""') + '"'
    literal = "'" + text.replace("\\", "\\\\").replace("'", "''") + "'"
    if text:
        cursor = Cursor(f"{quoted} {literal}")
        assert (cursor.identifier(), cursor.string()) == (text, text)
        cursor.end()
    assert count_statements(f"CREATE ROLE X COMMENT={literal}") == 1
