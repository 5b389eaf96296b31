"""How long a trouble is waited for. Anything that may pass is; nothing is waited for longer than CloudFormation would."""

from __future__ import annotations

import math
from typing import Final

from lambdas.custom_resources.reconcile import Looking
from lambdas.custom_resources.request import DELETE
from lambdas.custom_resources.state import Row
from lambdas.shared import errors
from lambdas.shared.errors import (
    Denied,
    Faulty,
    GaveUp,
    LakeferryError,
    NotYet,
    Outdated,
    Overtaken,
    RateLimited,
    Refused,
    Transient,
)

#: What hangs on an object may take this long to go, also where the vendor answers 400 instead of 409.
DELETE_PATIENCE: Final = 1200.0
#: A key that removes things is not new, so a 401 or 403 doesn't come of that.
DELETE_DENIED_PATIENCE: Final = 300.0


def weigh(error: LakeferryError, row: Row, now: float, limit: float) -> None:
    """Returns where it is to be waited on. Raises GaveUp, or the error itself where waiting is no use.

    `limit` is the kind's own patience for a whole request, in seconds. Notes in the row since when the trouble lasts.
    """
    if isinstance(error, Overtaken):
        raise error
    if isinstance(error, RateLimited):
        row.progress.not_before = now + error.wait
    if isinstance(error, NotYet) and not isinstance(error, Looking):
        row.progress.refused_since.clear()
    lasting = _lasting(error, row, now)
    patience = _patience(error, row)
    if patience <= 0:
        raise error
    if lasting >= patience or now - row.since >= limit:
        raise GaveUp(error.row, f"{error.what}; waited for {max(lasting, now - row.since) / 60:.0f} minutes")


def weigh_slowness(row: Row, now: float, limit: float) -> None:
    """Raises GaveUp where an object that shows no fault has been coming into being, or going, for too long."""
    row.progress.refused_since.clear()
    if now - row.since >= limit:
        what = "it is still there" if row.verb == DELETE else "it is not ready"
        raise GaveUp(errors.WAITING, f"{what} after {(now - row.since) / 60:.0f} minutes")


def _lasting(error: LakeferryError, row: Row, now: float) -> float:
    """Seconds since this trouble came first. Curing a fault makes other troubles in between, which don't end it."""
    progress = row.progress
    if isinstance(error, Outdated | Transient):
        return now - row.since
    if isinstance(error, Faulty):
        if progress.faulty_since is None:
            progress.faulty_since = now
        return now - progress.faulty_since
    return now - progress.refused_since.setdefault(error.row.code, now)


def _patience(error: LakeferryError, row: Row) -> float:
    if isinstance(error, Outdated | Transient):
        return math.inf
    if error.row is errors.STORAGE:
        return error.patience
    if row.verb == DELETE and isinstance(error, Denied):
        return DELETE_DENIED_PATIENCE
    if row.verb == DELETE and isinstance(error, Refused):
        return DELETE_PATIENCE
    return error.patience
