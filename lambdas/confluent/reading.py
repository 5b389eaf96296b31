"""Tolerant reading of answers: fields may be absent, null or of another type, and none of that is a traceback."""

from __future__ import annotations

from typing import Any

from lambdas.confluent import errors as confluent_errors
from lambdas.shared.errors import Transient


def at(body: Any, *names: str) -> Any:
    """The value at a path of names; None where the path ends early."""
    for name in names:
        body = body.get(name) if isinstance(body, dict) else None
    return body


def text(body: Any, *names: str) -> str:
    """The value at a path of names as text; "" where there is none."""
    value = at(body, *names)
    return "" if value is None or isinstance(value, dict | list) else str(value)


def needed(body: Any, *names: str) -> str:
    """Raises Transient where the answer lacks what every answer of its kind has."""
    if found := text(body, *names):
        return found
    raise Transient(confluent_errors.UNEXPECTED, f"an answer lacks {'.'.join(names)}")


def objects(body: Any, *names: str) -> list[dict[str, Any]]:
    """The objects of the list at a path of names; empty where there is no list."""
    value = at(body, *names)
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []
