"""What can be said of one thing that was looked at."""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum
from typing import Any

import attrs

from lakeferry.error_translation import translate_aws_errors
from lakeferry.errors import CommandFailed
from lambdas.monitoring import errors as monitoring_errors
from lambdas.shared.errors import LakeferryError

#: What is not there yet, where nothing is wrong: no record has come, or Tableflow has not been there so far.
_NOT_YET = (monitoring_errors.NO_COMMIT.code, monitoring_errors.NO_TABLE.code)


class State(StrEnum):
    """`WAITING` is what is still to come, `LOOK` what a person may have to do; only `WRONG` and `NOT_ASKED` are no good end."""

    OK = "ok"
    WAITING = "waiting"
    LOOK = "look"
    WRONG = "wrong"
    NOT_ASKED = "not asked"


@attrs.frozen
class Seen:
    """`value` is in the unit of what was looked at; `told` says what is to be said beside it."""

    state: State
    value: float | None = None
    told: str = ""
    code: str = ""


def look(ask: Callable[[], Any]) -> Any:
    """What `ask` answers, or a Seen that says why nobody could."""
    try:
        with translate_aws_errors("asking AWS"):
            return ask()
    except CommandFailed as failure:
        return Seen(State.NOT_ASKED, told=failure.message, code=failure.code)
    except LakeferryError as error:
        state = State.WAITING if error.row.code in _NOT_YET else State.NOT_ASKED
        if error.row.code == monitoring_errors.NOT_REFRESHING.code:
            state = State.WRONG
        return Seen(state, told=error.what, code=error.row.code)


def spoken_hours(hours: float) -> str:
    """35 s, 4 min, 3.2 h, 2.1 days."""
    if hours < 1 / 60:
        return f"{hours * 3600:.0f} s"
    if hours < 1:
        return f"{hours * 60:.0f} min"
    return f"{hours:.1f} h" if hours < 48 else f"{hours / 24:.1f} days"
