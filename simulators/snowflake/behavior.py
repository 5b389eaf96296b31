"""Behavior of an account that a test may change: how long statements take, and how results are split and
truncated.
"""

from __future__ import annotations

import re
from typing import Any, Final

import attrs

_SETTINGS: Final = ("partition_rows", "most_rows", "prefix", "account_policy", "network_policies")


@attrs.define
class Slowness:
    """The next `times` statements whose text matches the regular expression `statement` anywhere take
    `seconds`.
    """

    statement: str
    seconds: float
    times: int = 1

    def __attrs_post_init__(self) -> None:
        re.compile(self.statement)


@attrs.define
class Behavior:
    """`partition_rows` is the size of a partition, `most_rows` the number of rows at which a result is
    truncated.

    `prefix` begins two property names in DESC CATALOG INTEGRATION, GLUE_AWS_… or API_AWS_…, which differ
    between accounts.

    With `account_policy`, the account has a network policy that allows no client, so only users with a policy
    of their own log in: a user's policy takes precedence (Snowflake's "Controlling network traffic with
    network policies"). `network_policies` has the owners of policies that allow all clients, by name.
    """

    partition_rows: int = 10_000
    most_rows: int = 1_000_000
    prefix: str = "GLUE"
    account_policy: bool = False
    network_policies: dict[str, str] = attrs.Factory(dict)
    slow: list[Slowness] = attrs.Factory(list)

    def change(self, changes: dict[str, Any]) -> None:
        """Change the behavior.

        Raises ValueError or TypeError, also re.error for an invalid regular expression.
        """
        slow = changes.pop("slow", None)
        for name, value in changes.items():
            if name not in _SETTINGS:
                raise ValueError(f"{name}: give {', '.join(_SETTINGS)} or slow")
            setattr(self, name, value)
        if slow is not None:
            self.slow = [Slowness(**entry) for entry in slow]

    def count_seconds(self, statement: str) -> float:
        """Return how many seconds the statement takes, and count it as one of its `times`."""
        for slowness in self.slow:
            if slowness.times > 0 and re.search(slowness.statement, statement):
                slowness.times -= 1
                return slowness.seconds
        return 0.0
