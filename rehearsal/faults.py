"""Faults at random calls of all three vendors, the same for the same seed."""

from __future__ import annotations

import random
from typing import Any, Final

import attrs

from rehearsal.environments import SimulatedEnvironment
from simulators.nemesis import NemesisClient

AWS: Final = "AWS"
CONFLUENT: Final = "Confluent"
SNOWFLAKE: Final = "Snowflake"
VENDORS: Final = (AWS, CONFLUENT, SNOWFLAKE)
Calls = dict[str, int]
_SHAPES: Final = {AWS: ("aws-json", "html"), CONFLUENT: ("json", "html"), SNOWFLAKE: ("json", "html")}
_ONCE: Final = ("error", "effect_then_error", "reset", "effect_then_reset", "truncate")
_STATUSES: Final = (400, 403, 429, 500, 502, 503)
#: How many calls in a row an outage takes: more than a client tries again, and an end before patience is at its end.
_OUTAGE: Final = {AWS: 12, CONFLUENT: 40, SNOWFLAKE: 25}
#: Single faults of a step at each vendor.
_SINGLE: Final = 3
_NEVER: Final = 10**9


@attrs.frozen
class Plan:
    """Rules by vendor; `outage` names the one that is down for a while, if one is."""

    rules: dict[str, list[dict[str, Any]]]
    outage: str

    @property
    def describe(self) -> str:
        return f"{sum(map(len, self.rules.values()))} rules" + (f", {self.outage} down for a while" if self.outage else "")


def plan(seed: int, step: str, calls: Calls) -> Plan:
    """`calls` is how many the step makes at each vendor by itself: faults are spread over all of it."""
    chance = random.Random(f"{seed}/{step}")  # noqa: S311  (to be repeated, not to be unguessable)
    rules = {vendor: [_single(chance, vendor, count) for _ in range(_SINGLE)] for vendor, count in calls.items()}
    outage = chance.choice((*calls, ""))
    if outage:
        rules[outage].append(_down(chance, outage, calls[outage]))
    return Plan(rules, outage)


def _single(chance: random.Random, vendor: str, calls: int) -> dict[str, Any]:
    return {
        "fault": chance.choice(_ONCE),
        "nth": chance.randint(1, max(1, calls)),
        "status": chance.choice(_STATUSES),
        "shape": chance.choice(_SHAPES[vendor]),
        "after_bytes": chance.randint(0, 40),
    }


def _down(chance: random.Random, vendor: str, calls: int) -> dict[str, Any]:
    nth = chance.randint(1, max(1, calls // 2))
    status, shape = chance.choice((500, 503)), _SHAPES[vendor][0]
    return {"fault": "error", "nth": nth, "times": _OUTAGE[vendor], "status": status, "shape": shape}


@attrs.define
class Injector:
    """Puts rules in place at each vendor, and counts what they hit."""

    worlds: SimulatedEnvironment

    def inject(self, wanted: Plan) -> None:
        for vendor, client in self._clients():
            client.rule(*wanted.rules[vendor])

    def count(self) -> None:
        """Hits nothing."""
        for _, client in self._clients():
            client.rule({"fault": "error", "nth": _NEVER})

    def stop(self) -> tuple[Calls, Calls]:
        """How many calls were seen and how many hit, by vendor."""
        seen, hits = {}, {}
        for vendor, client in self._clients():
            rules = client.state()["rules"]
            seen[vendor], hits[vendor] = max(int(rule["seen"]) for rule in rules), sum(int(rule["hits"]) for rule in rules)
            client.clear()
        return seen, hits

    def _clients(self) -> list[tuple[str, NemesisClient]]:
        worlds = self.worlds
        addresses = {AWS: worlds.aws.url, CONFLUENT: worlds.confluent["url"], SNOWFLAKE: worlds.snowflake["url"]}
        return [(vendor, NemesisClient(url)) for vendor, url in addresses.items()]
