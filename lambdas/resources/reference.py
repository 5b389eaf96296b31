"""What the reference says of the Lambdas follows from here."""

from __future__ import annotations

from lambdas.confluent import error_rows as confluent
from lambdas.core import errors
from lambdas.core.errors import ErrorRow
from lambdas.snowflake import error_rows as snowflake


def all_errors() -> tuple[ErrorRow, ...]:
    """Every error that the Lambdas can tell, by code."""
    return tuple(sorted((*errors.ERRORS, *confluent.ERRORS, *snowflake.ERRORS)))
