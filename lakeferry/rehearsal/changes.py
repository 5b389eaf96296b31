"""Changes of a deployment file that a rehearsal makes: one that adds what the file can have more of, and one
that Confluent Cloud refuses.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

import attrs

from config.deployments import deployment_file
from config.deployments.model import Deployment
from config.exports.check import NOT_JUDGED
from config.toml_model import BadFile

TOPIC: Final = "rehearsal_added"
EXPORT: Final = "rehearsal_copy"
_INTERVAL: Final = re.compile(r"^datagen_interval_ms = \d+", re.MULTILINE)
_NEW_INTERVAL: Final = "datagen_interval_ms = 250"
_NAME: Final = re.compile(r'^name\s*=\s*"[^"]*"', re.MULTILINE)
_SCHEMA: Final = """\
{"type": "record", "name": "RehearsalAdded", "fields": [{"name": "id", "type": "string"}]}
"""
#: Confluent Cloud refuses compression.type, which the file's check can't know. The other new topic is rolled
#: back.
_REFUSED: Final = """
[[topics]]
name = "rehearsal_refused"
config = { "compression.type" = "gzip" }

[[topics]]
name = "rehearsal_beside"
"""


@attrs.frozen
class Change:
    """The text of the file after the change, and the files that it needs, by their path in the project."""

    text: str
    files: dict[str, str]
    adds_topic: bool
    adds_export: bool

    def write_files(self, project: Path) -> None:
        for name, content in self.files.items():
            (project / name).write_text(content, encoding="utf-8")

    def remove_files(self, project: Path) -> None:
        for name in self.files:
            (project / name).unlink()


def explain_no_change(deployment: Deployment) -> str:
    """Return why nothing can be added to the file, "" if something can."""
    if deployment.confluent or deployment.exports:
        return ""
    return "the file has neither [confluent] nor an export that could be added"


def add(deployment: Deployment, text: str, project: Path) -> Change:
    """Return the file with one more topic, a copy of its first export, and another interval of Datagen."""
    files = {}
    added = ""
    if deployment.confluent:
        files[f"topics/{TOPIC}.avsc"] = _SCHEMA
        added += f'\n[[topics]]\nname = "{TOPIC}"\n{_write_table(deployment)}'
    if deployment.exports:
        export = deployment.exports[0]
        contract = (project / "exports" / f"{export.contract}.toml").read_text(encoding="utf-8")
        files[f"exports/{EXPORT}.toml"] = _NAME.sub(f'name = "{EXPORT}"', contract, count=1)
        added += f'\n[[exports]]\ncontract = "{EXPORT}"\ncron = "{export.cron}"\nzone = "{export.zone}"\n'
    changed = _INTERVAL.sub(_NEW_INTERVAL, text).rstrip("\n") + "\n" + added
    return Change(changed, files, bool(deployment.confluent), bool(deployment.exports))


def _write_table(deployment: Deployment) -> str:
    """Return a table of the kind that the other topics have, "" if they have none."""
    first = next((topic.tableflow for topic in deployment.topics if topic.tableflow), None)
    if first is None:
        return ""
    lines = ["[topics.tableflow]"]
    if first.is_managed:
        lines.append('storage = "managed"')
    elif first.shown_in_glue is not None:
        lines.append(f"in_glue = {str(first.shown_in_glue).lower()}")
    return "\n".join(lines) + "\n"


def refuse(text: str) -> str:
    """Return the file with two more topics, one of which Confluent Cloud refuses."""
    return text.rstrip("\n") + "\n" + _REFUSED


def find_problem(change: Change, project: Path) -> str:
    """Return why the changed file is not valid, "" if it is: a file may have as much as it can have."""
    try:
        deployment_file.parse(change.text, name="the changed file", root=project, judge=NOT_JUDGED)
    except BadFile as bad:
        return str(bad)
    return ""
