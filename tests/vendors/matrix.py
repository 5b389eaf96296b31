"""One life of one resource, with one fault at one of its calls; and which calls and faults there are."""

from __future__ import annotations

import itertools
import random
from typing import NamedTuple

import confluent_lives
import confluent_views
import snowflake_lives
import snowflake_views
from confluent_environment import Organization
from lake_environment import Lakeside
from snowflake_environment import Account
from wire import Killed

from lambdas.custom_resources import registry

CONFLUENT, SNOWFLAKE = confluent_lives.LIVES, snowflake_lives.LIVES
LIVES = {**CONFLUENT, **SNOWFLAKE}
VIEWS = {**confluent_views.VIEWS, **snowflake_views.VIEWS}
#: Seconds between two questions of CloudFormation's framework: fewer calls than with its five, and the same sorts of them.
EVERY = 60
#: One call kills once, so that more are a mistake of the test.
_DEATHS = 20
_HTML = {"shape": "html"}

#: What the wire or the vendor does at one call. Those of LISTS only to answers that are lists.
FAULTS = {
    "500 before the effect": {"fault": "error", "status": 500},
    "502 from a proxy": {"fault": "error", "status": 502, **_HTML},
    "503 before the effect": {"fault": "error", "status": 503},
    "504 from a proxy": {"fault": "error", "status": 504, **_HTML},
    "500 after the effect": {"fault": "effect_then_error", "status": 500},
    "504 after the effect": {"fault": "effect_then_error", "status": 504, **_HTML},
    "reset before the effect": {"fault": "reset"},
    "reset after the effect": {"fault": "effect_then_reset"},
    "slow body": {"fault": "hang", "after_bytes": 5},
    "answer breaks off": {"fault": "truncate", "after_bytes": 5},
    "truncated JSON": {"fault": "cut"},
    "HTML instead of JSON": {"fault": "effect_then_error", "status": 200, **_HTML},
    "429 with Retry-After": {"fault": "error", "status": 429, "reply_headers": {"Retry-After": "40"}},
    "429 with the reset header": {"fault": "error", "status": 429, "reply_headers": {"X-RateLimit-Reset": "40"}},
    "429 without a header": {"fault": "error", "status": 429},
    "401 for a while": {"fault": "error", "status": 401, "times": 2},
    "403 for a while": {"fault": "error", "status": 403, "times": 2},
    "stale read": {"fault": "stale"},
}
LISTS = {
    "empty page": {"fault": "empty_list"},
    "repeated item": {"fault": "repeat_item"},
}
#: What only one vendor says.
OWN = {
    registry.CONFLUENT: {"409": {"fault": "error", "status": 409}},
    registry.SNOWFLAKE: {
        "408 before the effect": {"fault": "error", "status": 408},
        "408 after the effect": {"fault": "effect_then_error", "status": 408},
    },
}
_EVERYTHING = {**FAULTS, **LISTS, **OWN[registry.CONFLUENT], **OWN[registry.SNOWFLAKE]}
#: The caller's own process dies.
KILLS = {"killed before the effect": "before", "killed after the effect": "after"}
#: What only happens to reads.
_OF_READS = ("stale read",)


class Pair(NamedTuple):
    kind: str
    call: int
    fault: str


class Past(NamedTuple):
    """A vendor's world with what a kind needs, frozen; the properties, and what was there already."""

    org: Organization | Account
    frozen: object
    given: dict[str, object]
    base: frozenset[tuple[str, str]]


def _world(kind):
    if kind in snowflake_lives.LAKESIDE:
        return Lakeside
    return Account if kind in SNOWFLAKE else Organization


def past(kind, **options):
    org = _world(kind)(**options)
    given = LIVES[kind].properties(org)
    frozen = org.freeze()
    return Past(org, frozen, given, frozenset(org.objects()))


def live(before, kind, call=0, fault=""):
    """Raises AssertionError where there is more or less at the end of a step than there shall be, or something else."""
    org, life = before.org, LIVES[kind]
    org.thaw(before.frozen)
    if fault in KILLS:
        org.wire.killed_at = call, KILLS[fault]
    elif fault:
        org.disturb(**_EVERYTHING[fault], nth=call)
    resource = _Surviving(org, kind, before)
    try:
        resource.live(life)
    finally:
        org.wire.killed_at = 0, ""
    assert not org.leaks()
    return list(org.wire.calls)


class _Surviving:
    """A resource whose Lambda may be killed: what died is asked again, as Lambda would."""

    def __init__(self, org, kind, before):
        self.org, self.kind, self.before = org, kind, before
        self.resource = org.resource(kind, "It", **before.given)

    def live(self, life):
        one = self.resource
        for _ in range(2):
            one.physical_id = self.run(one.event("Create"))
            self.require(life)
        self.change(life, {})
        for changed in (life.changed, life.moved):
            if changed:
                self.change(life, changed)
        for _ in range(2):
            self.run(one.event("Delete"))
        self.org.settle()
        left = {each for each in self.org.objects() - self.before.base if each[0] not in life.beside}
        assert not left, f"left behind: {left}"
        lost = self.before.base - self.org.objects()
        assert not lost, f"what others had is gone: {lost}"

    def change(self, life, properties):
        one = self.resource
        old, one.properties = one.properties, {**one.properties, **properties}
        replaced, one.physical_id = one.physical_id, self.run(one.event("Update", old))
        if one.physical_id != replaced:
            goes = {**one.event("Delete", PhysicalResourceId=replaced), "ResourceProperties": {"kind": self.kind, **old}}
            self.run(goes)
        self.require(life)

    def require(self, life):
        self.org.settle()
        new = sorted(kind for kind, _ in self.org.objects() - self.before.base if kind not in life.beside)
        wanted = sorted(itertools.chain.from_iterable([kind] * count for kind, count in life.shown.items()))
        assert new == wanted, f"there is {new}, and not {wanted}"
        found, shall = VIEWS[self.kind](self.org, self.before.base, self.resource.properties)
        assert found == shall, f"there is {found}, and not {shall}"

    def run(self, event):
        for _ in range(_DEATHS):
            try:
                return self.resource.run(event, every=EVERY)
            except Killed:
                self.org.wire.killed_at = 0, ""
                self.org.invocations.documents.dead = None
                self.org.clock.sleep(EVERY)
        raise AssertionError(f"killed {_DEATHS} times")


def calls_of(before, kind, *, every=False):
    """Calls of an undisturbed life, with their numbers. Without `every`, of calls that are alike the first and the last."""
    sent = live(before, kind)
    if every:
        return list(enumerate(sent, start=1))
    alike = {}
    for number, call in enumerate(sent, start=1):
        alike.setdefault(call.sort, []).append(number)
    chosen = sorted({number for numbers in alike.values() for number in (numbers[0], numbers[-1])})
    return [(number, sent[number - 1]) for number in chosen]


def pairs_of(kind, calls):
    for number, call in calls:
        reads = () if call.reads else _OF_READS
        for fault in (*FAULTS, *OWN[registry.RESOURCE_TYPES[kind].vendor], *(LISTS if call.has_list else ()), *KILLS):
            if fault not in reads:  # a stale answer to a write would be a lie of another sort
                yield Pair(kind, number, fault)


class Outcome(NamedTuple):
    """Of one kind: the pairs that were tried, what was wrong after which of them; how many sorts of calls an undisturbed life
    has, different exchanges on the wire, and what of them the vendor's files don't allow."""

    kind: str
    pairs: list[Pair]
    wrong: dict[Pair, str]
    sorts: int
    exchanges: int
    against_contract: list[str]


#: How many pairs of each type `make test` draws; fewer of those that need an embedded AWS. `make nightly` tries all.
_DRAWN = {**dict.fromkeys(LIVES, 10), **dict.fromkeys(snowflake_lives.LAKESIDE, 4)}


def campaign(kind, *, seed=None):
    """Try the pairs that are drawn with `seed`; without one, every fault at every call."""
    before, wrong = past(kind), {}
    calls = calls_of(before, kind, every=seed is None)
    pairs = list(pairs_of(kind, calls))
    if seed is not None:
        pairs = random.Random(f"{seed} {kind}").sample(pairs, _DRAWN[kind])
    for pair in pairs:
        try:
            live(before, *pair)
        except Exception as error:
            wrong[pair] = f"{type(error).__name__}: {error}"[:600]
    before.org.close()
    checked = before.org.checked
    return Outcome(
        kind,
        pairs,
        wrong,
        len({call.sort for _, call in calls}),
        len(checked.seen) if checked else 0,
        checked.broken if checked else [],
    )
