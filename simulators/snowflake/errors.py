"""What Snowflake refuses: its number, its SQL state, its words."""

from __future__ import annotations

from typing import Final

from simulators.snowflake.names import Name, shown

COMPILATION: Final = "SQL compilation error:\n"
ACCESS: Final = "SQL access control error:\n"
#: Not a number of Snowflake's: what it would do is more than this stand-in knows.
NOT_SIMULATED: Final = "000000"


class SqlError(Exception):
    """A statement that failed."""

    def __init__(self, code: str, state: str, message: str) -> None:
        super().__init__(message)
        self.code, self.state, self.message = code, state, message


class CallRefused(Exception):
    """A call that never became a statement: its HTTP status, and Snowflake's number."""

    def __init__(self, status: int, code: str, message: str) -> None:
        super().__init__(message)
        self.status, self.code, self.message = status, code, message


def syntax(message: str) -> SqlError:
    return SqlError("001003", "42000", COMPILATION + message)


def missing(kind: str, name: Name | str) -> SqlError:
    """Snowflake says the same of what isn't there and of what the role may not see."""
    return SqlError("002003", "02000", f"{COMPILATION}{_title(kind)} '{_text(name)}' does not exist or not authorized.")


def exists(name: Name | str) -> SqlError:
    return SqlError("002002", "42710", f"{COMPILATION}Object '{_text(name)}' already exists.")


def denied(kind: str, name: Name | str) -> SqlError:
    text = shown(name[-1:]) if isinstance(name, tuple) else name
    return SqlError("003001", "42501", f"{ACCESS}Insufficient privileges to operate on {kind.lower()} '{text}'.")


def invalid_property(name: str, kind: str) -> SqlError:
    return SqlError("001420", "22023", f"{COMPILATION}invalid property '{name}' for '{kind}'")


def invalid_value(value: str, name: str) -> SqlError:
    return SqlError("001008", "22023", f"{COMPILATION}invalid value [{value}] for parameter '{name}'")


def missing_options(names: str) -> SqlError:
    return SqlError("002029", "42601", f"{COMPILATION}Missing option(s): [{names}]")


def unsupported(what: str) -> SqlError:
    return SqlError("000002", "0A000", f"Unsupported feature '{what}'.")


def in_use(kind: str, name: Name, users: list[str]) -> SqlError:
    """Snowflake's own number for this isn't known."""
    message = f"{_title(kind)} '{shown(name)}' cannot be dropped or replaced because it is used by {', '.join(users)}."
    return SqlError("090106", "22000", COMPILATION + message)


def not_simulated(what: str) -> SqlError:
    return SqlError(NOT_SIMULATED, "0A000", f"not simulated: {what}")


def _title(kind: str) -> str:
    return kind[:1].upper() + kind[1:].lower()


def _text(name: Name | str) -> str:
    return name if isinstance(name, str) else shown(name)
