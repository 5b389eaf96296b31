"""What is rehearsed: a deployment file with the project that it belongs to, and the copy of both that is
deployed into the simulators.
"""

from __future__ import annotations

import re
from datetime import date, datetime, timedelta
from pathlib import Path
from typing import Final

import attrs

from config.deployments import deployment_file
from config.deployments.deployment_file import LoadedDeployment
from config.deployments.export_model import Export
from config.deployments.model import Deployment
from config.exports import cron
from config.exports.check import NOT_JUDGED
from config.exports.contract import Contract
from config.exports.windows import Window, find_next_window, find_window, window_at
from config.project import DEFAULT_STAGE, PROJECT
from lakeferry.deployment.context import load_deployment
from lakeferry.errors import CommandFailed
from simulators.aws import settings

#: A project with one deployment, which shows most of what a file can ask for. Users don't edit it.
EXAMPLE: Final = Path(__file__).with_name("example")
#: How many windows lie before the rehearsed one, where the topic has events of past windows.
_PAST_WINDOWS: Final = 3
_WORD: Final = re.compile(r"[\w.-]+")
#: How many windows back to look for one whose export was already due.
_WINDOWS: Final = 500
_ADOPT: Final = re.compile(r"^adopt\s*=\s*\[[^\]]*\][^\n]*\n", re.MULTILINE)
_EXPORTS: Final = re.compile(r"^\[\[exports\]\]\s*(?:#.*)?$", re.MULTILINE)
_TABLE: Final = re.compile(r"^\s*\[", re.MULTILINE)
_FIRST_DAY: Final = re.compile(r"^first_day\s*=.*$", re.MULTILINE)


@attrs.frozen
class Subject:
    """A deployment file without mistakes. `project` is the folder of deployments/, exports/, topics/ and
    flink/.
    """

    loaded: LoadedDeployment
    project: Path

    @property
    def stage(self) -> str:
        return self.loaded.deployment.identity.stage

    @property
    def is_example(self) -> bool:
        return self.project == EXAMPLE

    @property
    def file(self) -> Path:
        return self.project / "deployments" / f"{self.stage}.toml"


def load_stage(stage: str) -> Subject:
    """Load the file of a stage. Raises CommandFailed with every mistake."""
    return Subject(load_deployment(stage), PROJECT)


def load_example() -> Subject:
    file = EXAMPLE / "deployments" / f"{DEFAULT_STAGE}.toml"
    return Subject(deployment_file.load(file, EXAMPLE, judge=NOT_JUDGED), EXAMPLE)


@attrs.frozen
class Due:
    """An export, the window of it that is rehearsed, and the first time after it at which it is due."""

    export: Export
    contract: Contract
    window: Window
    time: datetime


def list_due(loaded: LoadedDeployment, now: datetime) -> list[Due]:
    """Return the rehearsed window of each export, in the order of their ends: the first one, or a later one
    that is due by `now` if the topic has events of past windows.
    """
    found = []
    for export in loaded.deployment.exports:
        contract = loaded.sources.contract(export.contract, None)
        window = find_window(export.first_day or contract.window.first, contract.window)
        if _has_past_events(loaded, contract.source.topic):
            window = _find_later_window(export, contract, window, now)
        time = _find_due_time(export, window)
        if time is not None:
            found.append(Due(export, contract, window, time))
    return sorted(found, key=lambda due: due.window.end)


def _has_past_events(loaded: LoadedDeployment, name: str) -> bool:
    """Return whether Datagen makes the topic's events, or those that its statement reads, from a schema of
    the project: their times are then those of the schema.
    """
    topics = {topic.name: topic for topic in loaded.deployment.topics}
    found: set[str] = set()
    names = {name}
    while names:
        found |= names
        texts = [
            loaded.sources.statement(statement).create
            for reader in sorted(names)
            if (topic := topics.get(reader)) and (statement := topic.statement)
        ]
        words = set(_WORD.findall("\n".join(texts)))
        names = (topics.keys() & words) - found
    return any(topics[source].datagen == "schema" for source in topics.keys() & found)


def _find_later_window(export: Export, contract: Contract, first: Window, now: datetime) -> Window:
    window = first
    for _ in range(_PAST_WINDOWS):
        following = find_next_window(window, contract.window)
        time = _find_due_time(export, following)
        if time is None or time > now:
            break
        window = following
    return window


def _find_due_time(export: Export, window: Window) -> datetime | None:
    return cron.parse(export.cron, export.zone).after(window.end)


@attrs.frozen
class Adapted:
    """The text of the copy, what it says, and one sentence for each thing that differs from the user's
    file.
    """

    text: str
    loaded: LoadedDeployment
    differences: tuple[str, ...]


def adapt(subject: Subject, now: datetime) -> Adapted:
    """Return the text of the deployment file that the simulators can take.

    The embedded AWS has one account, and an export needs a window that has ended. Raises CommandFailed for an
    export that is never due, and for what a rehearsal doesn't make.
    """
    _require_possible(subject.loaded.deployment)
    text = subject.file.read_text(encoding="utf-8")
    differences = []
    for account in sorted(_list_accounts(subject.loaded.deployment)):
        text = text.replace(account, settings.ACCOUNT)
        differences.append(f"the account is {settings.ACCOUNT} instead of {account}")
    text, adopted = _ADOPT.subn("", text)
    if adopted:
        differences.append("nothing is adopted: the simulators have no objects of an earlier deployment")
    days = _list_first_days(subject.loaded, now)
    for index, day in sorted(days.items(), reverse=True):
        text = _set_first_day(text, index, day)
        differences.append(
            f"exports[{index}].first_day is {day}: the export's first window has not ended, or its schedule "
            "has not come since"
        )
    name = f"project/deployments/{subject.stage}.toml"
    loaded = deployment_file.parse(text, name=name, root=subject.project, judge=NOT_JUDGED)
    return Adapted(text, loaded, tuple(differences))


def _require_possible(deployment: Deployment) -> None:
    """Raise CommandFailed for what other departments have, and a rehearsal can't make for them."""
    aws = deployment.aws
    named = {
        "network": deployment.network is not None,
        "encryption": bool(deployment.encryption.keys),
        "aws.existing_tableflow_bucket": aws.existing_tableflow_bucket is not None,
        "aws.existing_lake_bucket": aws.existing_lake_bucket is not None,
        "aws.bootstrap_qualifier": aws.bootstrap_qualifier is not None,
    }
    keys = [key for key, is_named in named.items() if is_named]
    if keys:
        raise CommandFailed(
            "REHEARSAL-FILE",
            f"{', '.join(keys)}: a rehearsal doesn't make networks, KMS keys, buckets and bootstraps that "
            "exist",
            "Rehearse a copy of the file without them, under another stage; nothing was started",
        )


def _list_accounts(deployment: Deployment) -> set[str]:
    """Return the accounts of the file that stand for the deployment's own."""
    accounts = {deployment.aws.account or settings.ACCOUNT}
    if deployment.aws.permissions_boundary:
        accounts.add(deployment.aws.permissions_boundary.split(":")[4])
    accounts |= {reader.split(":")[4] for reader in deployment.aws.athena_readers}
    return accounts - {settings.ACCOUNT}


def _list_first_days(loaded: LoadedDeployment, now: datetime) -> dict[int, date]:
    """Return an earlier first day, by the index of the export, for those whose first window isn't due yet."""
    days = {}
    for index, export in enumerate(loaded.deployment.exports):
        contract = loaded.sources.contract(export.contract, None)
        window = find_window(export.first_day or contract.window.first, contract.window)
        time = _find_due_time(export, window)
        if time is None or time > now:
            days[index] = _find_earlier_day(index, export, contract, now)
    return days


def _find_earlier_day(index: int, export: Export, contract: Contract, now: datetime) -> date:
    window = window_at(now, contract.window)
    for _ in range(_WINDOWS):
        window = find_window(window.first_day - timedelta(days=1), contract.window)
        time = _find_due_time(export, window)
        if time is not None and time <= now:
            return window.first_day
    raise CommandFailed(
        "REHEARSAL-FILE",
        f"exports[{index}].cron: {export.cron} does not come after any window of {export.contract} that has "
        "ended",
        "Give the export a schedule that comes after its windows",
    )


def _set_first_day(text: str, index: int, day: date) -> str:
    """Set the key in the table of the export with this index."""
    tables = list(_EXPORTS.finditer(text))
    if index >= len(tables):
        raise CommandFailed(
            "REHEARSAL-FILE",
            f"exports[{index}].first_day would have to be earlier for a rehearsal, and the file does not "
            "have [[exports]] in a line of its own",
            "Write each export as a table [[exports]]",
        )
    start = tables[index].end()
    following = _TABLE.search(text, start)
    end = following.start() if following else len(text)
    body = _FIRST_DAY.sub("", text[start:end])
    return f"{text[:start]}\nfirst_day = {day}{body}{text[end:]}"
