"""Draw the infrastructure as Mermaid flowcharts, from the synthesised templates: one for each stack, with the
vendors' objects.

A box represents all resources of one type. An arrow points from a resource to a resource that it needs
because it refers to it in the template, directly or through resources that aren't shown. Permissions, logs
and CDK's own resources are left out.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import attrs

from lambdas import contract

PARTS: Final = ("data", "confluent", "snowflake", "exports", "operations")
_CUSTOM: Final = "Custom::Lakeferry"
_CONFLUENT: Final = "Confluent Cloud"
_SNOWFLAKE: Final = "Snowflake"
_AWS: Final = "AWS"
_ORDER: Final = (_AWS, _CONFLUENT, _SNOWFLAKE)
#: AWS resource types that are shown, with their titles.
_SHOWN: Final = {
    "AWS::Athena::WorkGroup": "Athena workgroup",
    "AWS::Athena::NamedQuery": "Athena named query",
    "AWS::Budgets::Budget": "Budget",
    "AWS::CloudWatch::Alarm": "CloudWatch alarm",
    "AWS::CloudWatch::Dashboard": "CloudWatch dashboard",
    "AWS::DynamoDB::Table": "DynamoDB table: state of resources",
    "AWS::Events::Rule": "EventBridge rule",
    "AWS::Glue::Database": "Glue database",
    "AWS::Glue::Job": "Glue job",
    "AWS::KMS::Key": "KMS key",
    "AWS::S3::Bucket": "S3 bucket",
    "AWS::Scheduler::Schedule": "EventBridge schedule",
    "AWS::SecretsManager::RotationSchedule": "Rotation schedule",
    "AWS::SecretsManager::Secret": "Secret",
    "AWS::SNS::Topic": "SNS topic",
    "AWS::SQS::Queue": "SQS dead-letter queue",
    contract.AGGREGATE_TABLE_TYPE: "Glue table of aggregates",
}
_FUNCTION_TITLE: Final = "Lambda function"
_ROLE = "AWS::IAM::Role"
_FUNCTION = "AWS::Lambda::Function"
#: Keys whose references aren't drawn, because almost every resource would point to the same ones: the
#: provider's function, the permissions of a role.
_IGNORED_KEYS: Final = ("ServiceToken", "Policies", "DependsOn", "Tags", "Metadata")
#: Resource types that are not shown and whose references aren't followed, because they would connect
#: everything with everything.
_NOT_FOLLOWED: Final = (
    "AWS::IAM::Policy",
    "AWS::Lambda::Permission",
    "AWS::S3::BucketPolicy",
    "AWS::KMS::Key",
)
_HASH_SUFFIX: Final = re.compile(r"[0-9A-F]{8}$")

Template = Mapping[str, Any]


class NoTemplates(Exception):
    """Nothing was synthesised for this stage."""


@attrs.frozen(order=True)
class Box:
    """A box of the flowchart. `where` is the system: AWS, Confluent Cloud or Snowflake."""

    where: str
    title: str


def read(prefix: str, folder: Path) -> dict[str, Template]:
    """Return the templates of a deployment by part. Raises NoTemplates."""
    files = {part: folder / f"{prefix}-{part}.template.json" for part in PARTS}
    templates = {
        part: json.loads(file.read_text(encoding="utf-8")) for part, file in files.items() if file.is_file()
    }
    if not templates:
        raise NoTemplates(f"{folder} has no templates of {prefix}")
    return templates


def draw(templates: Mapping[str, Template]) -> dict[str, str]:
    """Return a Mermaid flowchart for each part."""
    return {part: _draw_flowchart(templates[part]) for part in PARTS if part in templates}


def _draw_flowchart(template: Template) -> str:
    resources = template["Resources"]
    boxes = {name: box for name, resource in resources.items() if (box := _find_box(name, resource))}
    arrows = set(_find_arrows(resources, boxes))
    inside = sorted(_without_shortcuts({(start, end) for start, end in arrows if isinstance(end, Box)}))
    outside = sorted((start, end) for start, end in arrows if isinstance(end, str))
    others = sorted({end for _, end in outside})
    lines = [
        "flowchart LR",
        *_draw_groups(Counter(boxes.values())),
        *(f'  {_build_id(stack)}[["stack {stack}"]]' for stack in others),
    ]
    lines += [
        f"  {_build_id(function)} -->|creates| {_group(where)}"
        for function, where in sorted(set(_find_creators(resources, boxes)))
    ]
    lines += [f"  {_build_id(start)} --> {_build_id(end)}" for start, end in inside]
    lines += [f"  {_build_id(start)} -.-> {_build_id(end)}" for start, end in outside]
    return "\n".join(lines) + "\n"


def _without_shortcuts(arrows: set[tuple[Box, Box]]) -> set[tuple[Box, Box]]:
    """Remove an arrow if a longer path leads to the same box: otherwise almost every box would point to the
    environment.
    """
    following: dict[Box, set[Box]] = {}
    for start, end in arrows:
        following.setdefault(start, set()).add(end)

    def leads(start: Box, end: Box, seen: set[Box]) -> bool:
        seen.add(start)
        return any(
            node == end or (node not in seen and leads(node, end, seen)) for node in following.get(start, ())
        )

    kept = set()
    for start, end in arrows:
        others = following[start] - {end}
        if not any(leads(node, end, {start}) for node in others):
            kept.add((start, end))
    return kept


def _find_creators(resources: Mapping[str, Template], boxes: Mapping[str, Box]) -> Iterator[tuple[Box, str]]:
    """Yield the functions that create the vendors' objects, each with the vendor."""
    for name, box in boxes.items():
        if box.where != _AWS:
            token = resources[name]["Properties"].get("ServiceToken")
            for maker in _find_targets_of_value(resources, boxes, token, {name}):
                if isinstance(maker, Box) and maker.title.startswith(_FUNCTION_TITLE):
                    yield maker, box.where


def _draw_groups(members: Mapping[Box, int]) -> Iterator[str]:
    for where in _ORDER:
        inside = sorted(box for box in members if box.where == where)
        if inside:
            yield f'  subgraph {_group(where)}["{where}"]'
            for box in inside:
                count = f" × {members[box]}" if members[box] > 1 else ""
                yield f'    {_build_id(box)}["{box.title}{count}"]'
            yield "  end"


def _find_box(name: str, resource: Template) -> Box | None:
    """Return the box of a resource, None if the resource isn't shown."""
    kind = resource["Type"]
    if kind in _SHOWN:
        return Box(_AWS, _SHOWN[kind])
    if kind == _FUNCTION and str(resource["Properties"].get("Handler", "")).startswith("lambdas."):
        return Box(_AWS, f"{_FUNCTION_TITLE} {_HASH_SUFFIX.sub('', name).removesuffix('Function')}")
    if kind == _ROLE and _trusts_a_vendor(resource):
        return Box(_AWS, f"Role {_HASH_SUFFIX.sub('', name)}")
    if kind.startswith(_CUSTOM) and kind not in contract.OTHER_TYPES:
        words = (
            re.sub(r"(?<!^)(?=[A-Z])", " ", kind.removeprefix(_CUSTOM))
            .replace("Api", "API")
            .replace("Acl", "ACL")
        )
        vendor = _SNOWFLAKE if words.startswith(_SNOWFLAKE) else _CONFLUENT
        return Box(
            vendor,
            words.removeprefix(f"{_SNOWFLAKE} ").capitalize().replace("Api", "API").replace("Acl", "ACL"),
        )
    return None


def _trusts_a_vendor(role: Template) -> bool:
    statements = role["Properties"]["AssumeRolePolicyDocument"]["Statement"]
    return any("AWS" in statement.get("Principal", {}) for statement in statements)


def _find_arrows(
    resources: Mapping[str, Template], boxes: Mapping[str, Box]
) -> Iterator[tuple[Box, Box | str]]:
    for name, box in boxes.items():
        for needed in _find_targets(resources, boxes, name, {name}):
            if needed != box:
                yield box, needed


def _find_targets(
    resources: Mapping[str, Template], boxes: Mapping[str, Box], name: str, seen: set[str]
) -> Iterator[Box | str]:
    """Yield the boxes that a resource refers to; for another stack, yield the name of its part."""
    return _find_targets_of_value(resources, boxes, resources[name].get("Properties", {}), seen)


def _find_targets_of_value(
    resources: Mapping[str, Template], boxes: Mapping[str, Box], value: Any, seen: set[str]
) -> Iterator[Box | str]:
    """Yield what a value refers to. References of resources that aren't shown are followed."""
    for reference in _find_references(value):
        if "::" in reference:
            continue
        if ":" in reference:
            yield reference.partition(":")[0].rsplit("-", 1)[-1]
        elif reference in boxes:
            yield boxes[reference]
        elif (
            reference in resources
            and reference not in seen
            and resources[reference]["Type"] not in (*_NOT_FOLLOWED, _ROLE)
        ):
            seen.add(reference)
            yield from _find_targets(resources, boxes, reference, seen)


def _find_references(value: Any) -> Iterator[str]:
    """Yield logical ids, pseudo parameters (AWS::Region), and names of other stacks' exports, which contain
    one colon.
    """
    if isinstance(value, list):
        for item in value:
            yield from _find_references(item)
    elif isinstance(value, Mapping):
        for key, inner in value.items():
            if key in ("Ref", "Fn::ImportValue") and isinstance(inner, str):
                yield inner
            elif key == "Fn::GetAtt":
                yield inner[0] if isinstance(inner, list) else str(inner).partition(".")[0]
            elif key not in _IGNORED_KEYS:
                yield from _find_references(inner)


def _group(where: str) -> str:
    return "at_" + re.sub(r"[^a-z0-9]+", "_", where.lower())


def _build_id(thing: Box | str) -> str:
    words = f"{thing.where} {thing.title}" if isinstance(thing, Box) else f"stack {thing}"
    return re.sub(r"[^a-z0-9]+", "_", words.lower()).strip("_")
