"""Compares what is deployed with what is wanted: which resource is made, changed, replaced or removed, and because of what.

A resource that is replaced gets another id, so what refers to it changes too, and may be replaced for that: this is followed
through all stacks, which the templates alone don't show.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from enum import StrEnum
from functools import cached_property
from typing import Any, Final

import attrs

from lakeferry.deployment.stacks import Stack
from lakeferry.plan import references, rules
from lakeferry.plan.references import Exports, Place
from lakeferry.plan.resources import Resource, of_template
from lakeferry.plan.templates import Wanted
from lambdas import contract
from lambdas.shared.properties import RESERVED
from lambdas.shared.redaction import redact

#: Beside properties, what CloudFormation acts on when it changes.
_POLICIES: Final = ("DeletionPolicy", "UpdateReplacePolicy")
_TYPE: Final = "Type"
_ABSENT: Final[Mapping[str, Any]] = {}


class Action(StrEnum):
    """`RENEWED` is deleted first and then made anew under its own name; `REPLACED` is made anew first. `KEPT` is left by its
    stack, and stays."""

    MADE = "made"
    CHANGED = "changed in place"
    REPLACED = "replaced"
    RENEWED = "deleted and made anew"
    DELETED = "deleted"
    KEPT = "given up, and stays"

    @property
    def loses(self) -> bool:
        return self in (Action.REPLACED, Action.RENEWED, Action.DELETED)


#: The same in the order in which they are told, the gravest first.
GRAVEST: Final = (Action.DELETED, Action.RENEWED, Action.REPLACED, Action.KEPT, Action.CHANGED, Action.MADE)


@attrs.frozen
class Why:
    """One property: from what to what, and what that does to the object: Action.CHANGED, REPLACED or RENEWED.

    `follows` names the resource that is replaced, where that is all that changes the value. `perhaps`: AWS decides.
    """

    property: str
    before: str
    after: str
    does: Action
    follows: str = ""
    perhaps: bool = False

    def __str__(self) -> str:
        if self.follows:
            return f"{self.property} follows {self.follows}"
        told = f"{self.property}: {self.before} → {self.after}"
        return f"{told} (AWS may replace it for that)" if self.perhaps else told


@attrs.frozen
class Change:
    """`loses` is what goes with the old object, "" for nothing."""

    resource: Resource
    action: Action
    why: tuple[Why, ...] = ()
    loses: str = ""


@attrs.frozen
class _Pair:
    before: Resource
    after: Resource


@attrs.frozen
class Comparison:
    """All stacks at once. `region` is the deployment's: AWS's types differ between regions."""

    region: str
    wanted: Sequence[Wanted]
    deployed: Mapping[str, Stack]

    def changes(self) -> list[Change]:
        """Of every stack that is wanted, in the order of deploying. What a stack has that nobody wants stays as it is."""
        replaced = self._replaced()
        found = [self._changed(pair, replaced) for pair in self._pairs()]
        by_place = {change.resource.place: change for change in found if change}
        return [change for stack in self.wanted for change in self._of_stack(stack, by_place)]

    def _of_stack(self, stack: Wanted, changed: Mapping[Place, Change]) -> Iterator[Change]:
        before, after = self._old(stack.name), {one.logical_id: one for one in of_template(stack.name, stack.template)}
        for logical_id, resource in after.items():
            if logical_id not in before:
                yield Change(resource, Action.MADE)
            elif resource.place in changed:
                yield changed[resource.place]
        for logical_id, resource in before.items():
            if logical_id not in after:
                kept = resource.stays_when_removed
                yield Change(resource, Action.KEPT if kept else Action.DELETED, loses="" if kept else self._lost(resource))

    def _old(self, stack: str) -> dict[str, Resource]:
        standing = self.deployed.get(stack)
        return {one.logical_id: one for one in of_template(stack, standing.template)} if standing else {}

    def _pairs(self) -> Iterator[_Pair]:
        for stack in self.wanted:
            before = self._old(stack.name)
            for resource in of_template(stack.name, stack.template):
                if resource.logical_id in before:
                    yield _Pair(before[resource.logical_id], resource)

    def _replaced(self) -> set[Place]:
        """Those that get another id, until no further one does."""
        pairs, found = list(self._pairs()), set[Place]()
        while True:
            more = {pair.after.place for pair in pairs if (one := self._changed(pair, found)) and one.action.loses}
            if more <= found:
                return found
            found |= more

    def _changed(self, pair: _Pair, replaced: set[Place]) -> Change | None:
        why = tuple(_Difference(pair, self.region, replaced, self._exports).whys())
        if not why:
            return None
        action = min((one.does for one in why), key=GRAVEST.index)
        stays = pair.before.stays_when_replaced
        return Change(pair.after, action, why, self._lost(pair.before) if action.loses and not stays else "")

    def _lost(self, resource: Resource) -> str:
        """Also which tables read a topic that a statement's undo drops: nothing in the template changes them."""
        lost = rules.lost(resource)
        if not lost or resource.kind != "flink_statement":
            return lost
        everything = [one for name in self.deployed for one in self._old(name).values()]
        over = [
            one for one in everything if one.kind == "tableflow_topic" and resource.logical_id in one.body.get("DependsOn", ())
        ]
        topics = {one.properties.get("topic") for one in over}
        over += [one for one in everything if one.kind == "snowflake_iceberg_table" and one.properties.get("table") in topics]
        names = ", ".join(f"{one.what} {one.name}" for one in over)
        return f"{lost}. Tables over the topic that it drops stop following it: {names}" if names else lost

    @cached_property
    def _exports(self) -> Exports:
        return references.exports({stack.name: stack.template for stack in self.wanted})


@attrs.frozen
class _Difference:
    """Of one resource. `replaced` are those that get another id, as far as is known."""

    pair: _Pair
    region: str
    replaced: set[Place]
    given: Exports

    def whys(self) -> Iterator[Why]:
        before, after = self.pair.before, self.pair.after
        if before.type != after.type:
            yield Why(_TYPE, before.type, after.type, Action.REPLACED)
            return
        for name in _POLICIES:
            if before.body.get(name) != after.body.get(name):
                yield self._why(name, before.body.get(name), after.body.get(name), Action.CHANGED)
        for name in dict.fromkeys([*before.properties, *after.properties]):
            if not (after.kind and name in RESERVED):
                yield from self._of_property(name)
        if after.kind and (repair := after.properties.get(contract.REPAIR)) and repair != before.properties.get(contract.REPAIR):
            yield Why("object", "missing", "created again", Action.CHANGED)

    def _of_property(self, name: str) -> Iterator[Why]:
        fallback = rules.default(self.pair.after, name)
        before, after = (one.properties.get(name, fallback) for one in (self.pair.before, self.pair.after))
        follows = next((place[1] for place in self._led(after) if place in self.replaced), "")
        is_same = rules.same(self.pair.after, name, before, after)
        if is_same and not follows:
            return
        rule = rules.of(self.pair.after, self.region)
        does, perhaps = self._effect(name, before, after, rule)
        if is_same:
            yield attrs.evolve(self._why(name, before, after, does), perhaps=perhaps, follows=f"{follows}, which is replaced")
            return
        for path, old, new in _differing(name, before, after):
            yield attrs.evolve(self._why(path, old, new, does), perhaps=perhaps)

    def _effect(self, name: str, before: Any, after: Any, rule: rules.Rule) -> tuple[Action, bool]:
        """What a property's change does, and whether AWS decides about more."""

        def touched(paths: tuple[tuple[str, ...], ...]) -> bool:
            mine = [path[1:] for path in paths if path[0] == name]
            return any(self._differs(_at(before, path), _at(after, path)) for path in mine)

        if touched(rule.replaced):
            return Action.REPLACED, False
        if touched(rule.renewed):
            return Action.RENEWED, False
        return Action.CHANGED, touched(rule.perhaps)

    def _differs(self, before: Any, after: Any) -> bool:
        return bool(before != after) or any(place in self.replaced for place in self._led(after))

    def _led(self, value: Any) -> Iterator[Place]:
        return references.of(self.pair.after.stack, value, self.given)

    def _why(self, path: str, before: Any, after: Any, does: Action) -> Why:
        old, new = references.both(before, after, self.given)
        return Why(path, redact(old), redact(new), does)


def _at(value: Any, path: tuple[str, ...]) -> Any:
    for name in path:
        value = value.get(name) if isinstance(value, Mapping) else value
    return value


def _differing(path: str, before: Any, after: Any) -> Iterator[tuple[str, Any, Any]]:
    """Every path at which two values differ, with what is there."""
    if rules.as_text(before) == rules.as_text(after):
        return
    if _is_plain(before) and _is_plain(after):
        for name in dict.fromkeys([*before, *after]):
            yield from _differing(f"{path}.{name}", before.get(name), after.get(name))
    elif isinstance(before, list) and isinstance(after, list) and len(before) == len(after):
        for number, (old, new) in enumerate(zip(before, after, strict=True)):
            yield from _differing(f"{path}[{number}]", old, new)
    elif isinstance(before, list) and isinstance(after, list):
        gone, come = ([each for each in one if each not in other] for one, other in ((before, after), (after, before)))
        yield path, gone or None, come or None
    else:
        yield path, before, after


def _is_plain(value: Any) -> bool:
    return isinstance(value, Mapping) and not references.is_function(value)
