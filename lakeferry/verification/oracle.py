"""Say what the files of exports should have, by other means than the job: Spark SQL over the events as they
were produced or, of a real deployment, over a snapshot of the table, in a process of its own.
"""

from __future__ import annotations

import base64
import json
import os
import re
import subprocess
import sys
from collections.abc import Mapping, Sequence
from typing import Any, Final, Protocol

import attrs

from config.exports.contract import Contract
from config.exports.windows import Window
from lakeferry.errors import CommandFailed
from lakeferry.local.bootstrap import ROOT
from lakeferry.local.judge import CONVERTER

_WORKER: Final = "lakeferry.verification.oracle_worker"
_SECONDS: Final = 600
#: What docs/for-analysts.md, "The exact text", says of the apostrophes that guard against formulas: where a
#: text begins like one, and where one follows a separator inside it.
_BLANKS: Final = " '\"\u00a0\u3000"
_FORMULA: Final = "[=+\\-@＝＋－＠]"
_BEGINNING: Final = f"[{_BLANKS}]*(?:{_FORMULA}|[\\x00-\\x1f])"
_INSIDE: Final = f"([,;\t\r\n])([{_BLANKS}\\x00-\\x08\\x0b\\x0c\\x0e-\\x1f]*{_FORMULA})"


@attrs.frozen
class Record:
    """A record of a topic. `timestamp` is in milliseconds since 1970 UTC, `avro` the value without its
    schema. Both it and `key` are in Base64.
    """

    partition: int
    offset: int
    timestamp: int
    avro: str
    key: str | None = None


class WindowOfExport(Protocol):
    """The window of an export whose file is asked about."""

    @property
    def contract(self) -> Contract: ...

    @property
    def window(self) -> Window: ...


@attrs.frozen
class TableSnapshot:
    """A snapshot of an Iceberg table in the Glue Data Catalog."""

    database: str
    table: str
    snapshot_id: int


@attrs.frozen
class Question:
    """The events of a topic, and its exports. With `choose`, only events that can be published count.

    With `snapshot`, the events are those of the table, and there are no `records`.
    """

    topic: str
    schema: str
    records: Sequence[Record]
    dues: Sequence[WindowOfExport]
    choose: bool = False
    snapshot: TableSnapshot | None = None


@attrs.frozen
class ExpectedFile:
    """`rows` are cells; None is a missing value. `problems` say why the file would not be published."""

    rows: list[list[str | None]]
    problems: list[str]


@attrs.frozen
class Expected:
    """`chosen` are indexes of records. `problem` is set if no events can be chosen, because a contract fails
    on some of them.
    """

    chosen: list[int]
    files: dict[str, ExpectedFile]
    problem: str = ""


def ask(
    questions: Sequence[Question], key: bytes, environment: Mapping[str, str] | None = None
) -> list[Expected]:
    """Answer questions in one process. `key` is that of pseudonyms.

    `environment` has variables for the process in addition to those of this one. Raises CommandFailed.
    """
    if not questions:
        return []
    request = [_build_request(question, key) for question in questions]
    path = os.pathsep.join(filter(None, (str(ROOT), os.environ.get("PYTHONPATH"))))
    answer = subprocess.run(
        [sys.executable, "-m", _WORKER], input=json.dumps(request), capture_output=True, text=True,
        timeout=_SECONDS, env={**os.environ, **(environment or {}), "PYTHONPATH": path, "TZ": "UTC"},
    )  # fmt: skip
    if answer.returncode:
        last = answer.stderr.strip().splitlines()[-1:] or ["it said nothing"]
        raise CommandFailed(
            "NOT-SET-UP", f"Spark ended while it computed what exports should have: {last[0]}"
        )
    answers = json.loads(answer.stdout)
    return [_read(question, document) for question, document in zip(questions, answers, strict=True)]


def _build_request(question: Question, key: bytes) -> dict[str, Any]:
    return {
        "topic": question.topic,
        "schema": question.schema,
        "events": [attrs.asdict(record) for record in question.records],
        "contracts": [CONVERTER.unstructure(due.contract) for due in question.dues],
        "windows": [due.window.label for due in question.dues],
        "choose": question.choose,
        "snapshot": attrs.asdict(question.snapshot) if question.snapshot else None,
        "key": base64.b64encode(key).decode(),
    }


def _read(question: Question, document: dict[str, Any]) -> Expected:
    files = {}
    for due, file in zip(question.dues, document["files"], strict=False):
        files[due.contract.name] = ExpectedFile(file["rows"], file["problems"])
    return Expected(document["chosen"] or [], files, document["problem"])


def guard(text: str) -> str:
    """Return the text as a file has it, which no spreadsheet executes."""
    inside = re.sub(_INSIDE, r"\1'\2", text)
    return f"'{inside}" if re.match(_BEGINNING, text) else inside
