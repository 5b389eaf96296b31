"""Changes that CloudFormation or Confluent always refuses.

A plan reports them, and a plan with such a change isn't deployed.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

import attrs

from lakeferry.plan import edited_statements, ownership, references, replacement
from lakeferry.plan.difference import Action, Change, Comparison
from lakeferry.plan.references import ResourceId
from lakeferry.plan.templates import TemplateResource
from lambdas.confluent import errors
from lambdas.confluent.properties import CLUSTER_TYPES, MAX_CFU, STREAM_GOVERNANCE

#: The property with the name that a resource of this type has in the account, by types whose name the
#: templates set.
_NAMES: Final = {
    "AWS::Athena::WorkGroup": "Name",
    "AWS::CloudWatch::Alarm": "AlarmName",
    "AWS::CloudWatch::Dashboard": "DashboardName",
    "AWS::Glue::Job": "Name",
    "AWS::Glue::SecurityConfiguration": "Name",
    "AWS::IAM::Role": "RoleName",
    "AWS::Logs::LogGroup": "LogGroupName",
    "AWS::SNS::Topic": "TopicName",
    "AWS::Scheduler::ScheduleGroup": "Name",
    "AWS::SecretsManager::Secret": "Name",
}
#: Values in the order in which they can be raised. The resource types refuse a lower one, too.
_ONLY_RAISED: Final[Mapping[str, Mapping[str, Sequence[str]]]] = {
    "environment": {"stream_governance": STREAM_GOVERNANCE},
    "flink_compute_pool": {"max_cfu": [str(number) for number in MAX_CFU]},
    "kafka_cluster": {"type": CLUSTER_TYPES},
}


@attrs.frozen
class Refusal:
    """A change that is refused. `reason` says why, and in some cases what to do."""

    resource: TemplateResource
    reason: str

    def __str__(self) -> str:
        return f"{self.resource.what} {self.resource.name} of {self.resource.stack}: {self.reason}"


def find(comparison: Comparison, changes: Sequence[Change]) -> list[Refusal]:
    """Return those of `changes` that are refused."""
    by_confluent = [
        Refusal(change.resource, reason)
        for change in changes
        if (before := comparison.before(change.resource))
        and (reason := _explain_refusal_of_confluent(before, change))
    ]
    of_others = [
        Refusal(resource, reason) for resource, reason in ownership.list_refusals(comparison, changes)
    ]
    return [
        *_refuse_exports_in_use(comparison, changes),
        *_refuse_fixed_names(comparison, changes),
        *by_confluent,
        *of_others,
        *_refuse_for_tables_and_records(comparison, changes),
    ]


def _refuse_exports_in_use(comparison: Comparison, changes: Sequence[Change]) -> Iterator[Refusal]:
    """Yield the replaced, removed and repaired resources with a value that other deployed stacks import, and
    would change.

    CloudFormation refuses to change such a value, but only after it has created the new objects.
    """
    replaced = {change.resource.id: change.resource for change in changes if change.action is Action.REPLACE}
    removed = {
        change.resource.id: change.resource
        for change in changes
        if change.action in (Action.DELETE, Action.RETAIN)
    }
    repaired = {
        change.resource.id: change.resource
        for change in changes
        if change.gets_another_id and change.is_repair
    }
    affected = replaced | removed | repaired
    importers: dict[ResourceId, set[str]] = {}
    wanted = {stack.name: json.dumps(stack.template) for stack in comparison.wanted}
    still: dict[ResourceId, bool] = {}
    templates = {name: stack.template for name, stack in comparison.deployed.items()}
    deployed = {name: json.dumps(template) for name, template in templates.items()}
    for name, id in references.list_exports(templates).items():
        imported = json.dumps({"Fn::ImportValue": name})[1:-1]
        users = {stack for stack, text in deployed.items() if stack != id[0] and imported in text}
        if id in affected and users:
            importers.setdefault(id, set()).update(users)
            still[id] = still.get(id, False) or any(
                imported in wanted.get(stack, imported) for stack in users
            )
    for id, users in importers.items():
        consequence = "it would be replaced" if id in replaced else "it would leave the stack"
        if id in repaired:
            consequence = "it is missing, and a new one has another id"
        why = "Other stacks import a value of it, and CloudFormation refuses to change that"
        way = "" if still[id] else f". {_explain_order(sorted(users))}"
        yield Refusal(affected[id], f"{consequence}. {why}: {', '.join(sorted(users))}{way}")


def _explain_order(stacks: Sequence[str]) -> str:
    """Return how to deploy stacks that no longer import a value, before the stack that stops exporting it."""
    stage = stacks[0].split("-")[-2]
    command = f"python -m lakeferry.deployment.cdk deploy {' '.join(stacks)} --exclusively -c stage={stage}"
    return f"As the file is now, they no longer import it: run `{command}` first, then deploy"


def _refuse_fixed_names(comparison: Comparison, changes: Sequence[Change]) -> Iterator[Refusal]:
    """Yield AWS resources that would be replaced under the same name: the new one is created first, and the
    name is taken.
    """
    for change in changes:
        key = _NAMES.get(change.resource.type)
        before = comparison.before(change.resource)
        if key is None or before is None or change.action is not Action.REPLACE:
            continue
        name = change.resource.properties.get(key)
        if name and name == before.properties.get(key):
            causes = ", ".join(
                dict.fromkeys(why.property for why in change.why if why.effect is Action.REPLACE)
            )
            yield Refusal(
                change.resource,
                f"{causes} can't be changed: AWS replaces the object for that, and CloudFormation can't "
                "replace one whose name stays. Undo the change in the deployment file. For other values, "
                "destroy this deployment first",
            )


def _explain_refusal_of_confluent(before: TemplateResource, change: Change) -> str:
    """Return why the resource type's `update` would refuse the change, "" if it wouldn't."""
    after = change.resource
    if edited_statements.is_edited(change):
        return _explain_refusal_of_edit(before, after)
    if change.action is not Action.UPDATE:
        return ""
    if after.kind == "topic":
        old = int(_read_value(before, "partitions"))
        new = int(_read_value(after, "partitions"))
        if new < old:
            return f"partitions can't be lowered from {old} to {new}. {errors.CANT_CHANGE.remedy}"
    if (
        after.kind == "tableflow_topic"
        and _read_value(before, "data_retention_ms")
        and not _read_value(after, "data_retention_ms")
    ):
        return f"rows_days can't be removed, but can be 36500, a hundred years. {errors.CANT_CHANGE.remedy}"
    if (
        after.kind == "kafka_cluster"
        and _read_value(before, "max_ecku")
        and not _read_value(after, "max_ecku")
    ):
        return f"max_ecku can't be removed. {errors.CANT_CHANGE.remedy}"
    return _find_lowered(before, after)


def _explain_refusal_of_edit(before: TemplateResource, after: TemplateResource) -> str:
    """Return why a Flink statement's new text would be refused, "" if it wouldn't."""
    if replacement.is_edited_in_place(after):
        problem = edited_statements.explain_not_in_place(before, after)
        return f"{problem}. {errors.FLINK_NOT_IN_PLACE.remedy}" if problem else ""
    # Topics of the deployed statement count too: Tableflow for a topic that is removed is disabled only after
    # the statement's update, too late for the update to succeed.
    topics = before.properties.get("tableflow_topics") or after.properties.get("tableflow_topics")
    return f"Tableflow reads {', '.join(topics)}. {errors.FLINK_TABLEFLOW.remedy}" if topics else ""


def _find_lowered(before: TemplateResource, after: TemplateResource) -> str:
    """Return which property would be lowered that can only be raised, "" for none."""
    for name, order in _ONLY_RAISED.get(after.kind, {}).items():
        old = _read_value(before, name)
        new = _read_value(after, name)
        if old in order and new in order and order.index(new) < order.index(old):
            return f"{name} can't be lowered from {old} to {new}. {errors.CANT_CHANGE.remedy}"
    return ""


def _refuse_for_tables_and_records(comparison: Comparison, changes: Sequence[Change]) -> Iterator[Refusal]:
    """Yield topics whose new cleanup.policy needs another write mode of the table, and removed schemas whose
    topic stays.
    """
    stay = {
        (resource.kind, str(resource.properties.get("topic")))
        for resource in comparison.list_wanted()
        if comparison.before(resource)
    }
    for change in changes:
        resource = change.resource
        before = comparison.before(resource)
        if before and resource.kind == "topic" and change.action is Action.UPDATE:
            configs = [topic.properties.get("config") or {} for topic in (before, resource)]
            compacts = ["compact" in str(config.get("cleanup.policy")) for config in configs]
            if compacts[0] != compacts[1] and ("tableflow_topic", str(resource.properties["topic"])) in stay:
                yield Refusal(
                    resource,
                    "its cleanup.policy decides how Tableflow writes, and that can't change while "
                    "Tableflow is on. Remove [topics.tableflow], deploy, then change the policy and add it "
                    "again: the new table begins with the records that the topic still has",
                )
        topic = str(resource.properties.get("subject", "")).removesuffix("-value")
        if resource.kind == "schema" and change.action is Action.DELETE and ("topic", topic) in stay:
            yield Refusal(
                resource,
                f"topic {topic} stays, and nobody could read its records without the schema. Let Datagen "
                "write to another topic, or remove this topic first",
            )


def _read_value(resource: TemplateResource, name: str) -> str:
    value = resource.properties.get(name, replacement.find_default(resource, name))
    return "" if value is None else str(value)
