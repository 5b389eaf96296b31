"""What a statement is, before anything is read: this is what StartQueryExecution waits for."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

import attrs
import sqlglot
from sqlglot import exp
from sqlglot.errors import ParseError, TokenError

from simulators.aws.athena.outcomes import NOT_SIMULATED, Malformed

DIALECT: Final = "trino"
#: SHOW and DESCRIBE have another parser at Athena: names are plain, in backticks or in double quotes.
_NAME: Final = r"[`\"]?(?P<{}>[^`\"\s.;]+)[`\"]?"
_TABLE: Final = rf"(?:{_NAME.format('database')}\.)?{_NAME.format('table')}"
_FORMS: Final[Mapping[str, str]] = {
    "databases": r"SHOW\s+(?:DATABASES|SCHEMAS)",
    "tables": rf"SHOW\s+TABLES(?:\s+IN\s+{_NAME.format('database')})?(?:\s+'(?P<pattern>[^']*)')?",
    "columns": rf"SHOW\s+COLUMNS\s+(?:IN|FROM)\s+{_TABLE}",
    "describe": rf"(?:DESCRIBE|DESC)\s+(?:TABLE\s+)?{_TABLE}",
}
#: Statements of Athena's that this engine doesn't run.
_OTHERS: Final = frozenset(
    "ALTER ANALYZE CREATE DEALLOCATE DELETE DESC DESCRIBE DROP EXECUTE EXPLAIN INSERT MERGE MSCK OPTIMIZE PREPARE SHOW "
    "UNLOAD UPDATE USE VACUUM".split()
)


@attrs.frozen
class Utility:
    """One statement of these, with the names in it."""

    form: str
    database: str
    table: str
    pattern: str


def statement(sql: str) -> exp.Query | Utility:
    """Raises Malformed for what Athena would not take, and for what is not simulated."""
    return _utility(sql) or _query(sql)


def _utility(sql: str) -> Utility | None:
    """None where it is something else."""
    for form, text in _FORMS.items():
        if found := re.fullmatch(rf"\s*{text}\s*;?\s*", sql, re.IGNORECASE):
            named = {name: (value or "") for name, value in found.groupdict().items()}
            database, table = (named.get(name, "").lower() for name in ("database", "table"))
            return Utility(form, database, table, named.get("pattern", ""))
    return None


def _query(sql: str) -> exp.Query:
    first = sql.split(maxsplit=1)[0].upper() if sql.strip() else ""
    if first in _OTHERS:
        raise Malformed(f"{NOT_SIMULATED}: {first}; only SELECT, SHOW and DESCRIBE are. Athena may well run this statement")
    try:
        found = [each for each in sqlglot.parse(sql, dialect=DIALECT) if each is not None]
    except ParseError as error:
        told = error.errors[0] if error.errors else {}
        place = f"line {told.get('line', 1)}:{told.get('col', 1)}"
        raise Malformed(f"{place}: mismatched input '{told.get('highlight', '')}'") from None
    except TokenError as error:
        raise Malformed(f"line 1:1: {str(error).splitlines()[0]}") from None
    if len(found) > 1:
        raise Malformed(f"Only one sql statement is allowed. Got: {sql}")
    if not found or not isinstance(found[0], exp.Query):
        raise Malformed(f"line 1:1: mismatched input '{first.lower() or '<EOF>'}'")
    return found[0]
