"""What changed answers change in a deployment file that exists. All else in it stays as it is."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from deployments.model import Deployment
from lakeferry.init import template, toml_edit
from lakeferry.init.questions import KEEP, NEW, NONE, Answers, names


def edited(text: str, before: Deployment, defaults: Answers, answers: Answers) -> str:
    """`defaults` are the answers that the file gives itself; only those that differ from them change anything."""
    changed = {key for key, answer in answers.items() if answer != defaults[key]}
    if "environment_name" in changed:
        changed.add("environment")
    for key, change in _CHANGES.items():
        if key in changed:
            text = change(text, before, answers)
    return text


def _set(table: str, key: str, answer: str) -> Callable[[str, Deployment, Answers], str]:
    return lambda text, before, answers: toml_edit.set_value(text, table, key, answers[answer])


def _environment(text: str, before: Deployment, answers: Answers) -> str:
    if answers["environment"] == NEW:
        for key in ("environment_id", "environment_name"):
            text = toml_edit.without(text, "confluent", key)
        return text
    text = toml_edit.set_value(text, "confluent", "environment_name", answers["environment_name"])
    return toml_edit.set_value(text, "confluent", "environment_id", answers["environment"])


def _snowflake(text: str, before: Deployment, answers: Answers) -> str:
    """Without an account nothing is shown there; with one for the first time, every table that can be."""
    if answers["snowflake"] == NONE:
        for index, _ in enumerate(before.topics):
            text = toml_edit.without(text, f"topics[{index}].tableflow", "snowflake_table")
        return toml_edit.set_value(text, "snowflake", "enabled", False)
    if before.snowflake is None:
        text = toml_edit.set_value(text, "snowflake", "key_secret", template.DEPLOYER)
    elif not before.snowflake.enabled:
        text = toml_edit.set_value(text, "snowflake", "enabled", True)
    text = toml_edit.set_value(text, "snowflake", "account", answers["snowflake"])
    return text if before.uses_snowflake or answers["topics"] != KEEP else _shown(text, before)


def _shown(text: str, before: Deployment) -> str:
    for index, topic in enumerate(before.topics):
        shown = topic.tableflow and topic.tableflow.in_glue and topic.tableflow.write_mode == "APPEND"
        if shown and toml_edit.has_table(text, place := f"topics[{index}].tableflow"):
            text = toml_edit.set_value(text, place, "snowflake_table", template.snowflake_name(topic.name))
    return text


def _topics(text: str, before: Deployment, answers: Answers) -> str:
    """Other topics come with their own statements and exports."""
    for name in ("topics", "statements", "exports"):
        text = toml_edit.without_tables(text, name)
    return "\n".join(part for part in (text, template.topics(answers), template.exports(answers)) if part)


def _schedule(text: str, before: Deployment, answers: Answers) -> str:
    for index, export in _exports(before, answers):
        every = _window(export)
        text = toml_edit.set_value(text, f"exports[{index}]", "cron", template.schedule(answers, every))
    return text


def _zone(text: str, before: Deployment, answers: Answers) -> str:
    for index, _ in _exports(before, answers):
        text = toml_edit.set_value(text, f"exports[{index}]", "zone", answers["zone"])
    return text


def _recipients(text: str, before: Deployment, answers: Answers) -> str:
    for index, _ in _exports(before, answers):
        text = toml_edit.set_value(text, f"exports[{index}]", "recipients", template.recipients(answers))
    return text


def _engineers(text: str, before: Deployment, answers: Answers) -> str:
    return toml_edit.set_value(text, "alerts", "engineers", names(answers["engineers"]))


def _exports(before: Deployment, answers: Answers) -> list[tuple[int, str]]:
    """Those that stay; new ones are made with the answers already."""
    return [(index, export.contract) for index, export in enumerate(before.exports)] if answers["topics"] == KEEP else []


def _window(contract: str) -> str:
    from exports import contracts  # noqa: PLC0415 - only where the schedule changes

    return contracts.load(contract).window.every


_CHANGES: Final[dict[str, Callable[[str, Deployment, Answers], str]]] = {
    "name": _set("deployment", "name", "name"),
    "owner": _set("deployment", "owner", "owner"),
    "region": _set("aws", "region", "region"),
    "environment": _environment,
    "snowflake": _snowflake,
    "schedule": _schedule,
    "zone": _zone,
    "recipients": _recipients,
    "engineers": _engineers,
    "topics": _topics,
}
