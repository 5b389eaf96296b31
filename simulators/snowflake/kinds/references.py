"""Names that stand in strings: 'V', 'D.S.T', 'LDB."lkc-1"."t"'."""

from __future__ import annotations

from typing import Any

from simulators.snowflake.grammar import Cursor
from simulators.snowflake.model import Domain
from simulators.snowflake.session import Session


def by_literal(session: Session, domain: Domain, text: str) -> Any:
    """The thing that the string names. As Any: its class follows from the domain. Raises SqlError."""
    cursor = Cursor(text)
    name = cursor.name()
    cursor.end()
    return session.resolve(domain, name)
