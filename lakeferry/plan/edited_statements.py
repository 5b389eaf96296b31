"""What becomes of an edited Flink statement, of its table, and of what reads the table."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping, Sequence
from enum import StrEnum

import attrs

from config.deployments.deployment_file import LoadedDeployment
from config.deployments.in_place_edits import Stateful, read_in_place_edit
from config.deployments.model import to_pascal_case
from lakeferry.plan import replacement
from lakeferry.plan.difference import Action, Change, Comparison
from lakeferry.plan.templates import TemplateResource
from lambdas.confluent.flink_successor import Shape


class Outcome(StrEnum):
    IN_PLACE = "edited in place"
    REFUSED = "refused"
    DROPPED = "dropped and read again"


@attrs.frozen
class EditedStatement:
    """`diff` has the changed lines of create.sql, and properties. `reason` is why the edit is refused.
    `reading` names the table, and what reads it.
    """

    name: str
    outcome: Outcome
    reason: str
    reading: tuple[str, ...]
    diff: tuple[str, ...]

    def __str__(self) -> str:
        if self.outcome is Outcome.IN_PLACE:
            return f"{self.outcome}: the new text goes on where the old one stops, and nothing is read again"
        if self.outcome is Outcome.REFUSED:
            return f"{self.outcome}, and nothing changes: {self.reason}"
        return (
            f"{self.outcome}: the table loses its rows, and the new text reads its topics from the beginning"
        )

    @property
    def consequence(self) -> str:
        """Return what becomes of the table and of what reads it."""
        verb = "lose their rows" if self.outcome is Outcome.DROPPED else "keep their rows"
        return f"{', '.join(self.reading)}: {verb}" if self.reading else ""


def is_edited(change: Change) -> bool:
    """Return whether the text or the properties of a deployed Flink statement change."""
    changed = {why.property.partition(".")[0] for why in change.why if not why.caused_by}
    is_changed = change.action in (Action.UPDATE, Action.RECREATE)
    return change.resource.kind == "flink_statement" and is_changed and bool(changed & {"sql", "properties"})


def explain_not_in_place(before: TemplateResource, after: TemplateResource) -> str:
    """Return why the edited statement can't go on where the deployed one stops, "" if it can."""
    if not after.properties.get("insert_sql"):
        return "its new query is not proved to be stateless"
    if not before.properties.get("insert_sql"):
        return "its deployed query is not proved to be stateless, or was deployed by an earlier release"
    return _read_shape(before).explain_difference(_read_shape(after))


def _read_shape(resource: TemplateResource) -> Shape:
    properties = resource.properties
    head = str(properties.get("head", ""))
    return Shape(head, properties.get("columns") or [], properties.get("reads") or [])


def list_edited(
    loaded: LoadedDeployment, comparison: Comparison, changes: Sequence[Change]
) -> list[EditedStatement]:
    names = {
        f"{to_pascal_case(statement.name)}Statement": statement.name
        for statement in loaded.deployment.statements
    }
    edited = []
    for change in changes:
        before = comparison.before(change.resource)
        if before is not None and is_edited(change) and change.resource.logical_id in names:
            edited.append(_describe(loaded, names[change.resource.logical_id], before, change.resource))
    return edited


def _describe(
    loaded: LoadedDeployment, name: str, before: TemplateResource, after: TemplateResource
) -> EditedStatement:
    outcome = Outcome.DROPPED
    reason = ""
    if replacement.is_edited_in_place(after):
        reason = explain_not_in_place(before, after)
        outcome = Outcome.REFUSED if reason else Outcome.IN_PLACE
    try:
        read_in_place_edit(loaded.sources.statement(name))
    except Stateful as stateful:
        reason = f"{reason}: {stateful}" if reason else ""
    return EditedStatement(
        name, outcome, reason, tuple(_list_reading(loaded, name)), tuple(_list_differences(before, after))
    )


def _list_reading(loaded: LoadedDeployment, name: str) -> Iterator[str]:
    """Yield the statement's topic, and what reads it."""
    deployment = loaded.deployment
    topics = {topic.name: topic for topic in deployment.topics if topic.statement == name}
    for topic in topics.values():
        yield f"topic {topic.name}"
        if topic.tableflow:
            yield f"its table {topic.table}"
        if topic.tableflow and topic.tableflow.snowflake_table:
            yield f"Snowflake table {topic.tableflow.snowflake_table}"
    for statement in deployment.statements:
        if name in statement.after:
            yield f"statement {statement.name}"
    for export in deployment.exports:
        contract = loaded.sources.plain_contract(export.contract)
        if contract is not None and contract.source.topic in topics:
            yield f"export {export.contract}"


def _list_differences(before: TemplateResource, after: TemplateResource) -> Iterator[str]:
    old_lines = str(before.properties.get("sql", "")).splitlines()
    new_lines = str(after.properties.get("sql", "")).splitlines()
    lines = list(difflib.unified_diff(old_lines, new_lines, lineterm="", n=1))
    yield from (line for line in lines[2:] if not line.startswith("@@"))
    properties: list[Mapping[str, str]] = [
        resource.properties.get("properties") or {} for resource in (before, after)
    ]
    for name in sorted({*properties[0], *properties[1]}):
        old, new = (of.get(name) for of in properties)
        if old != new:
            yield f"{name}: {old} → {new}"
