"""Change single values of an existing deployment file. Everything else in it, including comments, stays as it
is.

The text must be valid TOML. Tables are named as in messages about files: `confluent`, `topics[0].tableflow`.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Sequence
from typing import Final

from config.deployments.model import Deployment
from config.exports import contracts
from config.toml_lines import find_key_lines
from lakeferry.init import template
from lakeferry.init.questions import (
    EXAMPLE,
    EXAMPLE_TOPICS,
    NEW,
    NONE,
    Answers,
    has_tables_at_confluent,
    split_names,
)
from lakeferry.init.template import TomlValue, to_toml

_HEADER: Final = re.compile(r"\s*\[\[?\s*([^\]]+?)\s*\]\]?\s*(#.*)?$")


def update(text: str, before: Deployment, defaults: Answers, answers: Answers) -> str:
    """Return the file's text with the answers that differ from `defaults`, the answers that describe the
    existing file.
    """
    changed = {key for key, answer in answers.items() if answer != defaults[key]}
    for table, key in (("deployment", "name"), ("deployment", "owner"), ("aws", "region")):
        if key in changed:
            text = set_value(text, table, key, answers[key])
    text = (
        _update_source(text, answers, changed)
        if before.source
        else _update_environment(text, answers, changed)
    )
    if "snowflake" in changed:
        text = _update_snowflake(text, before, answers)
    text = _update_exports(text, before, answers, changed)
    if "engineers" in changed:
        text = set_value(text, "alerts", "engineers", split_names(answers["engineers"]))
    if "topics" in changed:
        return _update_topics(text, before, answers)
    if (before.source or before.uses_existing_cluster) and not before.exports:
        # When the file was written, the schemas of its topics were not known.
        names = ", ".join(topic.name for topic in before.topics)
        text = "\n".join(filter(None, (text, template.write_exports({**answers, "topics": names}))))
    return text


def _update_source(text: str, answers: Answers, changed: set[str]) -> str:
    """Change where the tables are. They stay in Glue or in Confluent's storage."""
    of_answers = {"tables": "glue_database", "bucket": "tableflow_bucket"}
    if has_tables_at_confluent(answers):
        of_answers = {
            "tables": "catalog_uri",
            "cluster": "cluster_id",
            "tableflow_key": "tableflow_key_secret",
        }
    for answer, key in of_answers.items():
        if answer in changed:
            text = set_value(text, "source", key, answers[answer])
    return text


def _update_environment(text: str, answers: Answers, changed: set[str]) -> str:
    """Change the environment and the cluster that exist."""
    if changed & {"environment", "environment_name"}:
        if answers["environment"] == NEW:
            text = remove_key(
                remove_key(text, "confluent", "environment_id"), "confluent", "environment_name"
            )
        else:
            text = set_value(text, "confluent", "environment_name", answers["environment_name"])
            text = set_value(text, "confluent", "environment_id", answers["environment"])
    if "cluster" in changed:
        text = set_value(text, "confluent", "cluster_id", answers["cluster"])
        text = set_value(text, "confluent", "glue_database", answers["cluster"])
    return text


def _update_topics(text: str, before: Deployment, answers: Answers) -> str:
    """Keep the topics that the answers name, add the new ones, and remove the others with their statements
    and exports.
    """
    example = answers["topics"] == EXAMPLE
    names = EXAMPLE_TOPICS if example else split_names(answers["topics"])
    remaining = [topic for topic in before.topics if topic.name in names]
    if example and len(remaining) < len(names):  # the example's topics belong together
        remaining = []
    topics = {topic.name for topic in remaining}
    statements = {topic.statement for topic in remaining}
    unused = {topic.statement for topic in before.topics} - statements
    for topic in before.topics:
        if topic.name not in topics:
            comment = (
                template.EXAMPLE_COMMENT
                if topic.name in EXAMPLE_TOPICS
                else template.OWN_COMMENT.format(name=topic.name)
            )
            text = text.replace(comment, "")
    text = remove_tables(text, "topics", [topic.name not in topics for topic in before.topics])
    text = remove_tables(text, "statements", [statement.name in unused for statement in before.statements])
    sources = [contracts.load(export.contract).source.topic for export in before.exports]
    text = remove_tables(text, "exports", [source not in topics for source in sources])
    added = [name for name in names if name not in topics]
    if not added:
        return text
    new = answers if example else {**answers, "topics": ", ".join(added)}
    return "\n".join(part for part in (text, template.write_topics(new), template.write_exports(new)) if part)


def _update_exports(text: str, before: Deployment, answers: Answers, changed: set[str]) -> str:
    for index, export in enumerate(before.exports):
        table = f"exports[{index}]"
        if "schedule" in changed:
            cron = template.schedule(answers, contracts.load(export.contract).window.every)
            text = set_value(text, table, "cron", cron)
        if "zone" in changed:
            text = set_value(text, table, "zone", answers["zone"])
        if "recipients" in changed:
            text = set_value(text, table, "recipients", template.list_recipients(answers))
    return text


def _update_snowflake(text: str, before: Deployment, answers: Answers) -> str:
    """Turn Snowflake off or set the account.

    If it was off, add `snowflake_table` to every topic that Snowflake can read.
    """
    if answers["snowflake"] == NONE:
        for index in range(len(before.topics)):
            text = remove_key(text, f"topics[{index}].tableflow", "snowflake_table")
        return set_value(text, "snowflake", "enabled", False)
    if before.snowflake is None:
        text = set_value(text, "snowflake", "key_secret", template.DEPLOYER)
    elif not before.snowflake.enabled:
        text = set_value(text, "snowflake", "enabled", True)
    text = set_value(text, "snowflake", "account", answers["snowflake"])
    if before.uses_snowflake:
        return text
    for index, topic in enumerate(before.topics):
        table = f"topics[{index}].tableflow"
        readable = topic.tableflow and topic.tableflow.in_glue and topic.tableflow.write_mode == "APPEND"
        if readable and has_table(text, table):
            text = set_value(text, table, "snowflake_table", template.to_snowflake_name(topic.name))
    return text


def set_value(text: str, table: str, key: str, value: TomlValue) -> str:
    """Set a value and keep the comment on its line. A new key becomes the first key of its table."""
    lines = text.splitlines()
    numbers = find_key_lines(text)
    if (line := numbers.get(f"{table}.{key}")) is not None:
        start, end = _find_span(lines, line - 1)
        comment = _find_comment(lines[start]) if end == start + 1 else ""
        lines[start:end] = [f"{key} = {to_toml(value)}{comment}"]
    elif has_table(text, table):
        lines.insert(numbers[table], f"{key} = {to_toml(value)}")
    else:
        lines += ["", f"[{table}]", f"{key} = {to_toml(value)}"]
    return _join(lines)


def has_table(text: str, table: str) -> bool:
    """Return whether the table has its own header, below which a key can be inserted."""
    line = find_key_lines(text).get(table)
    return line is not None and _HEADER.match(text.splitlines()[line - 1]) is not None


def remove_key(text: str, table: str, key: str) -> str:
    lines = text.splitlines()
    line = find_key_lines(text).get(f"{table}.{key}")
    if line is not None:
        start, end = _find_span(lines, line - 1)
        del lines[start:end]
    return _join(lines)


def remove_tables(text: str, name: str, unwanted: Sequence[bool]) -> str:
    """Remove each `[[name]]` that is unwanted, in the order of the file, with its subtables.

    Comments before the next table are kept.
    """
    remaining: list[str] = []
    lines = text.splitlines()
    inside = False
    index = -1
    for number, line in enumerate(lines):
        if header := _HEADER.match(line):
            index += header[1] == name
            inside = (header[1] == name or header[1].startswith(f"{name}.")) and unwanted[index]
        if not inside or not _table_continues(lines, number):
            remaining.append(line)
    return re.sub(r"\n{3,}", "\n\n", _join(remaining))


def _table_continues(lines: list[str], number: int) -> bool:
    """Return whether this line or a later one belongs to the current table.

    Comments after its last key don't.
    """
    for line in lines[number:]:
        if _HEADER.match(line) and line is not lines[number]:
            return False
        if line.strip() and not line.lstrip().startswith("#"):
            return True
    return False


def _find_span(lines: list[str], start: int) -> tuple[int, int]:
    """Return the first line of a key and the line after the end of its value, which may be a list on several
    lines.
    """
    for end in range(start + 1, len(lines) + 1):
        if _is_toml("\n".join(lines[start:end])):
            return start, end
    raise ValueError(f"no value begins at line {start + 1}")


def _find_comment(line: str) -> str:
    """Return the comment after the value, with the spaces before it."""
    for at, char in enumerate(line):
        if char == "#" and _is_toml(line[:at]):
            return line[len(line[:at].rstrip()) :]
    return ""


def _is_toml(text: str) -> bool:
    try:
        tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        return False
    return True


def _join(lines: list[str]) -> str:
    return "\n".join(lines).strip("\n") + "\n"
