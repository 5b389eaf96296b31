"""The page of what the stand-ins assume."""

from __future__ import annotations

from typing import Final

from dev.docs.markdown import format_code, format_page, format_table
from lakeferry.verification.assumptions import load_assumptions

_ABOUT: Final = """\
The tests and rehearsals run against an embedded AWS and simulators of Confluent Cloud and Snowflake. These assumptions of theirs can be
settled by a call that only reads. `lakeferry verify --assumptions --stage prod` makes the calls in your accounts, and shows where the
answer is another one: [how](../how-to/verify.md#ask-what-the-simulators-assume). Differences that are known are on the page of the
[simulators](../how-to/try-the-simulators.md#differences-from-confluent-cloud)."""


def build_page() -> str:
    rows = [
        [
            f"{format_code(entry.id)}: {entry.assumed}",
            entry.call,
            format_code(entry.stand_in),
            f"<{entry.source}>",
        ]
        for entry in load_assumptions()
    ]
    table = format_table(["assumption", "call", "the simulator answers", "source"], rows)
    return format_page("What the simulators assume", _ABOUT, table)
