"""The deployment file, and the names that it leads to."""

from __future__ import annotations

import json
from typing import Final

from deployments.check import Plan
from deployments.model import Topic
from lakeferry.cli.output import CommandFailed
from lakeferry.health.model import Check, Group

GROUP: Final = Group("file")
_MOST: Final = 5


def with_mistakes(failure: CommandFailed) -> list[Check]:
    return [GROUP.fail("deployment file", failure.message, failure.hint)]


def look(plan: Plan) -> list[Check]:
    told = plan.deployment
    counts = f"{len(told.topics)} topics, {len(told.tables)} tables, {len(told.exports)} exports"
    return [GROUP.ok("deployment file", f"deployments/{told.deployment.stage}.toml: {counts}"), names(plan)]


def names(plan: Plan) -> Check:
    """Of topics no others are taken; Glue shows fields in small letters, whatever the schema says."""
    tables = plan.deployment.tables
    found = [f"{topic.name}.{field}" for topic in tables for field in _fields(plan, topic) if field != field.lower()]
    if not found:
        return GROUP.ok("names in small letters", "all topics, and all fields of schemas that are here")
    shown = ", ".join(found[:_MOST]) + (" …" if found[_MOST:] else "")
    fix = "Write them in the schema with small letters and underscores"
    told = f"fields with capitals: {shown}; Glue shows them in small letters, and Snowflake finds them only as Glue does"
    return GROUP.warn("names in small letters", told, fix)


def _fields(plan: Plan, topic: Topic) -> list[str]:
    schema = json.loads(plan.sources.schema_text(topic) or "{}")
    return [str(field.get("name", "")) for field in schema.get("fields", [])]
