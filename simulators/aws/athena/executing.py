"""A statement that was accepted, from its tables to its result in the bucket."""

from __future__ import annotations

from sqlglot import exp

from simulators.aws.athena import output, selecting, utilities
from simulators.aws.athena.catalog import Lake
from simulators.aws.athena.outcomes import Asked, Rows
from simulators.aws.athena.parsing import Utility


def run(asked: Asked, statement: exp.Query | Utility) -> Rows:
    """Raises Failed and Cancelled."""
    lake = Lake()
    found = utilities.run(asked, statement, lake) if isinstance(statement, Utility) else selecting.run(asked, statement, lake)
    output.write(asked, found)
    return found
