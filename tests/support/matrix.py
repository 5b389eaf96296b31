"""The life of one resource with one fault at one of its calls, and the list of all calls and faults."""

from __future__ import annotations

import itertools
import random
from typing import NamedTuple

from lambdas.custom_resources import registry
from tests.support import confluent_lives, confluent_views, neighbours, snowflake_lives, snowflake_views
from tests.support.confluent_environment import SCHEMA, Organization
from tests.support.lake_environment import Lakeside
from tests.support.neighbours import Neighbours
from tests.support.snowflake_environment import Account
from tests.support.wire import Killed

CONFLUENT = confluent_lives.LIVES
SNOWFLAKE = snowflake_lives.LIVES
LIVES = {**CONFLUENT, **SNOWFLAKE}
VIEWS = {**confluent_views.VIEWS, **snowflake_views.VIEWS}
#: Seconds between two calls of `is_complete`. CDK's framework waits five; a longer interval means fewer calls
#: of the same kinds.
EVERY = 60
#: The limit of kills in one life. More than one per call would be a mistake of the test.
_DEATHS = 20
_HTML = {"shape": "html"}

#: Faults of the network or the vendor at one call. Those of LISTS are for responses that are lists.
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
    "429 with the reset header": {
        "fault": "error",
        "status": 429,
        "reply_headers": {"X-RateLimit-Reset": "40"},
    },
    "429 without a header": {"fault": "error", "status": 429},
    "401 for a while": {"fault": "error", "status": 401, "times": 2},
    "403 for a while": {"fault": "error", "status": 403, "times": 2},
    "stale read": {"fault": "stale"},
}
LISTS = {
    "empty page": {"fault": "empty_list"},
    "repeated item": {"fault": "repeat_item"},
}
#: Faults of one vendor only.
OWN = {
    registry.CONFLUENT: {"409": {"fault": "error", "status": 409}},
    registry.SNOWFLAKE: {
        "408 before the effect": {"fault": "error", "status": 408},
        "408 after the effect": {"fault": "effect_then_error", "status": 408},
    },
}
_EVERYTHING = {**FAULTS, **LISTS, **OWN[registry.CONFLUENT], **OWN[registry.SNOWFLAKE]}
#: Faults that kill the caller's process.
KILLS = {"killed before the effect": "before", "killed after the effect": "after"}
#: Faults that only reads can have.
_OF_READS = ("stale read",)


class Pair(NamedTuple):
    kind: str
    call: int
    fault: str


class Past(NamedTuple):
    """A vendor's frozen environment with what a type needs, the type's properties, and the objects that
    existed before. `contents` are their fields, also of what other teams have.
    """

    org: Organization | Account
    frozen: object
    given: dict[str, object]
    base: frozenset[tuple[str, str]]
    contents: dict[object, str]


def _environment_class(kind):
    if kind in snowflake_lives.LAKESIDE:
        return Lakeside
    return Account if kind in SNOWFLAKE else Organization


def past(kind, **options):
    org = _environment_class(kind)(**options)
    given = LIVES[kind].properties(org)
    if kind in CONFLUENT:
        has_none = not org.simulation.organization.catalog_integrations
        with_catalog = has_none and kind != "catalog_integration"
        Neighbours(org.simulation.organization, SCHEMA).create_all(with_catalog=with_catalog)
    frozen = org.freeze()
    return Past(org, frozen, given, frozenset(org.objects()), _describe(org, kind))


def _describe(org, kind):
    """Return what the organization has; nothing of Snowflake, whose lives have neighbours of their own."""
    return neighbours.describe(org.simulation.organization) if kind in CONFLUENT else {}


def live(before, kind, call=0, fault=""):
    """Run a life with one fault.

    Raises AssertionError if the objects at the end of a step differ from the wanted ones.
    """
    org = before.org
    life = LIVES[kind]
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
    """A resource whose Lambda function may be killed and is then invoked again, as Lambda does."""

    def __init__(self, org, kind, before):
        self.org = org
        self.kind = kind
        self.before = before
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
        left = {item for item in self.org.objects() - self.before.base if item[0] not in life.beside}
        assert not left, f"left behind: {left}"
        lost = self.before.base - self.org.objects()
        assert not lost, f"objects of others are gone: {lost}"
        self.require_same_neighbours()

    def require_same_neighbours(self):
        """Raise AssertionError if anything that existed before was changed."""
        changed = neighbours.find_changed(self.before.contents, _describe(self.org, self.kind))
        assert not changed, f"objects of others were changed: {changed}"

    def change(self, life, properties):
        one = self.resource
        old = one.properties
        one.properties = {**one.properties, **properties}
        replaced = one.physical_id
        one.physical_id = self.run(one.event("Update", old))
        if one.physical_id != replaced:
            goes = {
                **one.event("Delete", PhysicalResourceId=replaced),
                "ResourceProperties": {"kind": self.kind, **old},
            }
            self.run(goes)
        self.require(life)

    def require(self, life):
        self.org.settle()
        new = sorted(kind for kind, _ in self.org.objects() - self.before.base if kind not in life.beside)
        wanted = sorted(itertools.chain.from_iterable([kind] * count for kind, count in life.shown.items()))
        assert new == wanted, f"found {new}, expected {wanted}"
        found, expected = VIEWS[self.kind](self.org, self.before.base, self.resource.properties)
        assert found == expected, f"found {found}, expected {expected}"
        self.require_same_neighbours()

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
    """Return the calls of an undisturbed life with their numbers.

    Without `every`, only the first and last of similar calls.
    """
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
        for fault in (
            *FAULTS,
            *OWN[registry.RESOURCE_TYPES[kind].vendor],
            *(LISTS if call.has_list else ()),
            *KILLS,
        ):
            if fault not in reads:  # a stale answer is a fault of reads
                yield Pair(kind, number, fault)


class Outcome(NamedTuple):
    """The result for one type: the pairs that were tried and their errors, the number of kinds of calls and
    of different exchanges, and violations of the vendor's specification.
    """

    kind: str
    pairs: list[Pair]
    wrong: dict[Pair, str]
    sorts: int
    exchanges: int
    against_contract: list[str]


#: The number of pairs that `make test` draws per type, fewer where an embedded AWS is needed. `make nightly`
#: tries all.
_DRAWN = {**dict.fromkeys(LIVES, 8), **dict.fromkeys(snowflake_lives.LAKESIDE, 4)}


def campaign(kind, *, seed=None):
    """Try the pairs drawn with `seed`. Without a seed, try every fault at every call."""
    before = past(kind)
    wrong = {}
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
