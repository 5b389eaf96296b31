"""Snowflake's errors: code, SQLSTATE and message."""

from __future__ import annotations

from typing import Final

from simulators.snowflake.model import Name, to_sql_name

COMPILATION: Final = "SQL compilation error:\n"
ACCESS: Final = "SQL access control error:\n"
#: Not one of Snowflake's codes: the statement needs something that this simulator doesn't implement.
NOT_SIMULATED: Final = "000000"


class SqlError(Exception):
    """A statement failed."""

    def __init__(self, code: str, state: str, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.state = state
        self.message = message


class CallRefused(Exception):
    """A call was refused before a statement ran. `status` is the HTTP status, `code` is Snowflake's."""

    def __init__(self, status: int, code: str, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.code = code
        self.message = message


def syntax(message: str) -> SqlError:
    return SqlError("001003", "42000", COMPILATION + message)


def missing(object_type: str, name: Name | str) -> SqlError:
    """Return the error for an object that doesn't exist or that the role may not see: Snowflake doesn't tell
    which.
    """
    return SqlError(
        "002003",
        "02000",
        f"{COMPILATION}{_capitalize_type(object_type)} '{_to_text(name)}' does not exist or not authorized.",
    )


def exists(name: Name | str) -> SqlError:
    return SqlError("002002", "42710", f"{COMPILATION}Object '{_to_text(name)}' already exists.")


def denied(object_type: str, name: Name | str) -> SqlError:
    text = to_sql_name(name[-1:]) if isinstance(name, tuple) else name
    return SqlError(
        "003001", "42501", f"{ACCESS}Insufficient privileges to operate on {object_type.lower()} '{text}'."
    )


def invalid_property(name: str, object_type: str) -> SqlError:
    return SqlError("001420", "22023", f"{COMPILATION}invalid property '{name}' for '{object_type}'")


def invalid_value(value: str, name: str) -> SqlError:
    return SqlError("001008", "22023", f"{COMPILATION}invalid value [{value}] for parameter '{name}'")


def missing_options(names: str) -> SqlError:
    return SqlError("002029", "42601", f"{COMPILATION}Missing option(s): [{names}]")


def unsupported(feature: str) -> SqlError:
    return SqlError("000002", "0A000", f"Unsupported feature '{feature}'.")


def in_use(object_type: str, name: Name, users: list[str]) -> SqlError:
    """Return the error for a volume or integration that is in use.

    Snowflake's real code for it isn't known.
    """
    message = (
        f"{_capitalize_type(object_type)} '{to_sql_name(name)}' cannot be dropped or replaced "
        f"because it is used by {', '.join(users)}."
    )
    return SqlError("090106", "22000", COMPILATION + message)


def not_simulated(feature: str) -> SqlError:
    return SqlError(NOT_SIMULATED, "0A000", f"not simulated: {feature}")


def _capitalize_type(object_type: str) -> str:
    return object_type[:1].upper() + object_type[1:].lower()


def _to_text(name: Name | str) -> str:
    return name if isinstance(name, str) else to_sql_name(name)
