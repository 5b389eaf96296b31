"""Refuse everything but one SELECT before it is sent."""

from __future__ import annotations

import logging
from typing import Final

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from lakeferry.errors import CommandFailed

#: What a SELECT may contain in no place. Snowflake's pipe operator and functions in its FROM clause could
#: call procedures.
_FORBIDDEN: Final = (exp.DDL, exp.DML, exp.Command, exp.Into, exp.TableFromRows)
#: Functions of Snowflake that may change something: system functions, and values of sequences.
_SYSTEM: Final = "SYSTEM$"
_SEQUENCE: Final = ("NEXTVAL",)
# sqlglot logs what it reads as a command, which is refused here.
logging.getLogger("sqlglot").setLevel(logging.ERROR)


def require_select(sql: str, dialect: str) -> None:
    """Raises CommandFailed for anything but one SELECT, and for what can't be read as one."""
    try:
        parsed = sqlglot.parse(sql, dialect=dialect, error_level=sqlglot.ErrorLevel.RAISE)
    except SqlglotError as error:
        reason = " ".join(str(error).split(".")[0].split())
        raise CommandFailed(
            "QUERY-READ-ONLY", f"the text can't be read as one SELECT of {dialect}: {reason}"
        ) from None
    statements = [statement for statement in parsed if statement is not None]
    if len(statements) != 1 or not isinstance(statements[0], exp.Query):
        raise CommandFailed("QUERY-READ-ONLY", "only one SELECT is allowed")
    (select,) = statements
    if any(True for _ in select.find_all(*_FORBIDDEN)):
        raise CommandFailed("QUERY-READ-ONLY", "the SELECT contains something that could write")
    names = [str(node.this).upper() for node in select.find_all(exp.Anonymous, exp.Identifier)]
    changing = [name for name in names if name.startswith(_SYSTEM) or name in _SEQUENCE]
    if changing:
        raise CommandFailed("QUERY-READ-ONLY", f"{changing[0]} may change something")
