"""What the reference says of the Lambdas follows from here."""

from __future__ import annotations

from lambdas.confluent import errors as confluent
from lambdas.shared import errors
from lambdas.shared.errors import ErrorRow
from lambdas.snowflake import errors as snowflake


def all_errors() -> tuple[ErrorRow, ...]:
    """Every error that the Lambdas can tell, by code."""
    return tuple(sorted((*errors.ERRORS, *confluent.ERRORS, *snowflake.ERRORS)))
