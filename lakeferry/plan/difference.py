"""Compare deployed templates with synthesised ones: which resource is created, updated, replaced or deleted,
and why.

A resource that is replaced gets another physical id. This changes the resources that refer to it, which may
have to be replaced too. The templates don't show these changes, so they are followed through all stacks.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from enum import StrEnum
from functools import cached_property
from typing import Any, Final

import attrs

from lakeferry.deployment.stacks import Stack
from lakeferry.plan import references, replacement
from lakeferry.plan.references import Exports, ResourceId
from lakeferry.plan.replacement import Rule
from lakeferry.plan.templates import SynthesizedStack, TemplateResource, list_resources
from lambdas import contract
from lambdas.shared.properties import RESERVED
from lambdas.shared.redaction import redact

#: Attributes of resources, other than properties, that are compared.
_POLICIES: Final = ("DeletionPolicy", "UpdateReplacePolicy")
_TYPE: Final = "Type"
#: The name in a plan of what `deploy --repair` changes.
OBJECT: Final = "object"
_ABSENT: Final[Mapping[str, Any]] = {}


class Action(StrEnum):
    """What a deployment does to an object.

    `REPLACE` creates the new object first. `RECREATE` deletes the old object first, because both have the
    same name. `RETAIN` removes the object from its stack without deleting it.
    """

    CREATE = "create"
    UPDATE = "update"
    REPLACE = "replace"
    RECREATE = "recreate"
    DELETE = "delete"
    RETAIN = "retain"

    @property
    def deletes(self) -> bool:
        return self in (Action.REPLACE, Action.RECREATE, Action.DELETE)


#: In the order of display, the most severe first.
GRAVEST: Final = (Action.DELETE, Action.RECREATE, Action.REPLACE, Action.RETAIN, Action.UPDATE, Action.CREATE)


@attrs.frozen
class Why:
    """A changed property, and the effect of the change on the object: Action.UPDATE, REPLACE or RECREATE.

    `caused_by` names a resource whose replacement is the only reason why the value changes. `conditional`
    means that AWS decides whether it replaces the object.
    """

    property: str
    before: str
    after: str
    effect: Action
    caused_by: str = ""
    conditional: bool = False

    def __str__(self) -> str:
        if self.caused_by:
            return f"{self.property} changes because {self.caused_by} is replaced"
        change = f"{self.property}: {self.before} → {self.after}"
        return f"{change} (AWS may replace it for that)" if self.conditional else change


@attrs.frozen
class Change:
    """A change of a resource. `data_loss` is what is deleted with the old object, "" for nothing."""

    resource: TemplateResource
    action: Action
    why: tuple[Why, ...] = ()
    data_loss: str = ""

    @property
    def is_repair(self) -> bool:
        return any(why.property == OBJECT for why in self.why)

    @property
    def gets_another_id(self) -> bool:
        """Return whether what refers to the object changes too."""
        return self.action.deletes or (self.is_repair and self.resource.kind in replacement.ASSIGNED_IDS)


@attrs.frozen
class _Pair:
    before: TemplateResource
    after: TemplateResource


@attrs.frozen
class Comparison:
    """The comparison of all synthesised stacks with the deployed ones."""

    wanted: Sequence[SynthesizedStack]
    deployed: Mapping[str, Stack]

    def changes(self) -> list[Change]:
        """Return the changes of the synthesised stacks, in the order of deployment.

        Other deployed stacks don't change.
        """
        replaced = self._find_replaced()
        changed = [self._compare_pair(pair, replaced) for pair in self._pair_resources()]
        by_id = {change.resource.id: change for change in changed if change}
        return [change for stack in self.wanted for change in self._compare_stack(stack, by_id)]

    def list_wanted(self) -> list[TemplateResource]:
        """Return the resources of all synthesised stacks."""
        return [resource for stack in self.wanted for resource in list_resources(stack.name, stack.template)]

    def before(self, resource: TemplateResource) -> TemplateResource | None:
        """Return the deployed resource, None for a new one."""
        return self._read_deployed(resource.stack).get(resource.logical_id)

    def _compare_stack(
        self, stack: SynthesizedStack, changed: Mapping[ResourceId, Change]
    ) -> Iterator[Change]:
        before = self._read_deployed(stack.name)
        after = {resource.logical_id: resource for resource in list_resources(stack.name, stack.template)}
        for logical_id, resource in after.items():
            if logical_id not in before:
                yield Change(resource, Action.CREATE)
            elif resource.id in changed:
                yield changed[resource.id]
        for logical_id, resource in before.items():
            if logical_id not in after:
                stays = resource.stays_when_removed
                yield Change(
                    resource,
                    Action.RETAIN if stays else Action.DELETE,
                    data_loss="" if stays else self._describe_loss(resource),
                )

    def _read_deployed(self, stack: str) -> dict[str, TemplateResource]:
        deployed = self.deployed.get(stack)
        if deployed is None:
            return {}
        return {resource.logical_id: resource for resource in list_resources(stack, deployed.template)}

    def _pair_resources(self) -> Iterator[_Pair]:
        for stack in self.wanted:
            before = self._read_deployed(stack.name)
            for resource in list_resources(stack.name, stack.template):
                if resource.logical_id in before:
                    yield _Pair(before[resource.logical_id], resource)

    def _find_replaced(self) -> set[ResourceId]:
        """Return the resources that get another id.

        One replacement may cause others, so this is repeated until none is added.
        """
        pairs = list(self._pair_resources())
        replaced = set[ResourceId]()
        while True:
            changed = [change for pair in pairs if (change := self._compare_pair(pair, replaced))]
            renamed = {change.resource.id for change in changed if change.gets_another_id}
            if renamed <= replaced:
                return replaced
            replaced |= renamed

    def _compare_pair(self, pair: _Pair, replaced: set[ResourceId]) -> Change | None:
        why = tuple(_Difference(pair, replaced, self.exports).whys())
        if not why:
            return None
        action = min((reason.effect for reason in why), key=GRAVEST.index)
        stays = pair.before.stays_when_replaced
        lost = self._describe_loss(pair.before) if action.deletes and not stays else ""
        return Change(
            pair.after, action, why, lost + replacement.describe_replacement(pair.before) if lost else ""
        )

    def _describe_loss(self, resource: TemplateResource) -> str:
        """Return what is lost with a resource.

        For a Flink statement whose undo.sql drops a topic, this includes the tables over the topic, although
        the template doesn't change these.
        """
        lost = replacement.describe_loss(resource)
        if not lost or resource.kind != "flink_statement":
            return lost
        everything = [deployed for name in self.deployed for deployed in self._read_deployed(name).values()]
        tableflow_topics = (candidate for candidate in everything if candidate.kind == "tableflow_topic")
        over = [topic for topic in tableflow_topics if resource.logical_id in topic.body.get("DependsOn", ())]
        topics = {table.properties.get("topic") for table in over}
        snowflake_tables = (
            candidate for candidate in everything if candidate.kind == "snowflake_iceberg_table"
        )
        over += [table for table in snowflake_tables if table.properties.get("table") in topics]
        names = ", ".join(f"{table.what} {table.name}" for table in over)
        return f"{lost}. Tables over the topic that it drops stop following it: {names}" if names else lost

    @cached_property
    def exports(self) -> Exports:
        return references.list_exports({stack.name: stack.template for stack in self.wanted})


@attrs.frozen
class _Difference:
    """The differences of one resource. `replaced` has the resources that are known to get another id."""

    pair: _Pair
    replaced: set[ResourceId]
    given: Exports

    def whys(self) -> Iterator[Why]:
        before = self.pair.before
        after = self.pair.after
        if before.type != after.type:
            yield Why(_TYPE, before.type, after.type, Action.REPLACE)
            return
        for name in _POLICIES:
            if before.body.get(name) != after.body.get(name):
                yield self._build_why(name, before.body.get(name), after.body.get(name), Action.UPDATE)
        for name in dict.fromkeys([*before.properties, *after.properties]):
            if not (after.kind and name in RESERVED):
                yield from self._compare_property(name)
        if (
            after.kind
            and (repair := after.properties.get(contract.REPAIR))
            and repair != before.properties.get(contract.REPAIR)
        ):
            yield Why(OBJECT, "missing", "created again", Action.UPDATE)

    def _compare_property(self, name: str) -> Iterator[Why]:
        fallback = replacement.find_default(self.pair.after, name)
        before = self.pair.before.properties.get(name, fallback)
        after = self.pair.after.properties.get(name, fallback)
        caused_by = next((id[1] for id in self._find_references(after) if id in self.replaced), "")
        is_same = replacement.is_same(self.pair.after, name, before, after)
        if is_same and not caused_by:
            return
        rule = replacement.find_rule(self.pair.after)
        effect, conditional = self._decide_effect(name, before, after, rule)
        if is_same:
            yield attrs.evolve(
                self._build_why(name, before, after, effect), conditional=conditional, caused_by=caused_by
            )
            return
        for path, old, new in _find_differences(name, before, after):
            yield attrs.evolve(self._build_why(path, old, new, effect), conditional=conditional)

    def _decide_effect(self, name: str, before: Any, after: Any, rule: Rule) -> tuple[Action, bool]:
        """Return the effect of a changed property on the object, and whether AWS may replace the object
        because of it.
        """

        def touched(paths: tuple[tuple[str, ...], ...]) -> bool:
            mine = [path[1:] for path in paths if path[0] == name]
            for path in mine:
                new = _read_at(after, path)
                if _read_at(before, path) != new:
                    return True
                if any(id in self.replaced for id in self._find_references(new)):
                    return True
            return False

        if touched(rule.replaced):
            return Action.REPLACE, False
        if touched(rule.recreated):
            return Action.RECREATE, False
        return Action.UPDATE, touched(rule.conditional)

    def _find_references(self, value: Any) -> Iterator[ResourceId]:
        return references.find_references(self.pair.after.stack, value, self.given)

    def _build_why(self, path: str, before: Any, after: Any, effect: Action) -> Why:
        old, new = references.format_both(before, after, self.given)
        return Why(path, redact(old), redact(new), effect)


def _read_at(value: Any, path: tuple[str, ...]) -> Any:
    for name in path:
        value = value.get(name) if isinstance(value, Mapping) else value
    return value


def _find_differences(path: str, before: Any, after: Any) -> Iterator[tuple[str, Any, Any]]:
    """Yield each path at which two values differ, with both values."""
    if replacement.as_strings(before) == replacement.as_strings(after):
        return
    if _is_plain(before) and _is_plain(after):
        for name in dict.fromkeys([*before, *after]):
            yield from _find_differences(f"{path}.{name}", before.get(name), after.get(name))
    elif isinstance(before, list) and isinstance(after, list) and len(before) == len(after):
        for number, (old, new) in enumerate(zip(before, after, strict=True)):
            yield from _find_differences(f"{path}[{number}]", old, new)
    elif isinstance(before, list) and isinstance(after, list):
        removed = [item for item in before if item not in after]
        added = [item for item in after if item not in before]
        yield path, removed or None, added or None
    else:
        yield path, before, after


def _is_plain(value: Any) -> bool:
    return isinstance(value, Mapping) and not references.is_function(value)
