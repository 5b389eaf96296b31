"""Check edits of a Flink statement: the new text goes on where the old one stopped, and an edit that Flink
refuses changes nothing.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, Final

import attrs
import sqlglot
from sqlglot import exp

from config.deployments.in_place_edits import find_in_place_edit
from config.deployments.lineage import DIALECT
from lakeferry.deployment import stacks
from lakeferry.rehearsal import existing
from lakeferry.rehearsal.harness import Check, Harness, NotApplicable, Result, require, wait_until
from lakeferry.verification.claims import Claim
from lambdas.confluent.rest_client import build_path, get_path, get_text

_REFUSED: Final = "an edit that Flink refuses changes nothing"
#: A condition that each record meets, and one that Flink's planner refuses: the text is valid SQL.
_ALWAYS: Final = "\nWHERE TRUE"
_INVALID: Final = "\nWHERE CHAR_LENGTH(1) = 1"
#: Seconds of Confluent's clock until Flink has polled.
_FLINK_POLL: Final = 40.0
_OFFSET: Final = re.compile(r"partition:\d+,offset:(\d+)")


@attrs.frozen
class Copier:
    """A statement that can be edited in place and writes one record for each that it reads, without a
    condition. `query` is its query, in the file `file`.
    """

    file: Path
    text: str
    query: str
    reads: str
    writes: str

    def write_with(self, condition: str) -> None:
        self.file.write_text(self.text.replace(self.query, self.query + condition), encoding="utf-8")


@attrs.frozen
class Position:
    """The name of the statement that runs, how many records it has read, and how many its topic has."""

    statement: str
    read: int
    written: int


def edited_in_place(harness: Harness) -> list[Result]:
    """Edit a statement, then edit it in a way that Flink refuses: it writes as many records as it reads."""
    copier = _find_copier(harness)
    if copier is None:
        why = "no statement of the file can be edited in place and writes a record for each that it reads"
        return [NotApplicable(Claim.EDITED, why), NotApplicable(_REFUSED, why)]
    before = _find_position(harness, copier)
    copier.write_with(_ALWAYS)
    planned = harness.project.read("plan")
    require("in place" in planned, f"plan doesn't say that {copier.writes} is edited in place:\n{planned}")
    harness.project.run("deploy --yes")
    edited = _let_flow(harness, copier)
    require(edited.statement != before.statement, f"{before.statement} still runs after the edit")
    _require_as_many(before, edited)
    new = edited.read - before.read
    result = (
        f"{copier.writes}: {before.read} records before the edit; {new} read after it, and as many written"
    )
    return [Check(Claim.EDITED, result, {"after": new}), _refuse(harness, copier, edited)]


def _refuse(harness: Harness, copier: Copier, before: Position) -> Check:
    copier.write_with(_INVALID)
    failed = harness.project.run("deploy --yes", code=1)
    copier.write_with(_ALWAYS)
    require(failed["code"] == "DEPLOY-FAILED", f"the refused edit says {failed['code']}: {failed['message']}")
    require("CFL-FLINK-FAILED" in failed["message"], f"the message has no reason: {failed['message']}")
    after = _let_flow(harness, copier)
    _require_as_many(before, after)
    changes = harness.project.run("plan --check")["changes"]
    require(changes == [], f"after the refused edit, plan shows {changes}")
    new = after.read - before.read
    return Check(_REFUSED, f"{copier.writes}: {new} records read after it, and as many written")


def _find_copier(harness: Harness) -> Copier | None:
    sources = harness.ctx.loaded.sources
    topics = {topic.name for topic in harness.deployment.topics}
    for statement in harness.deployment.statements:
        text = sources.statement(statement.name)
        edit = find_in_place_edit(text)
        if edit is None or len(edit.reads) != 1 or not {text.table, *edit.reads} <= topics:
            continue
        _, _, query = edit.insert.partition("\n")
        if _copies_each_record(query):
            file = harness.project.folder / "flink" / statement.name / "create.sql"
            return Copier(file, text.create, query, edit.reads[0], text.table)
    return None


def _copies_each_record(query: str) -> bool:
    tree = sqlglot.parse_one(query, read=DIALECT)
    parts = {name for name, value in tree.args.items() if value}
    return parts == {"expressions", "from_"} and isinstance(tree.args["from_"].this, exp.Table)


def _let_flow(harness: Harness, copier: Copier) -> Position:
    """Write one more record for the statement, and return its position after it."""
    first, *_ = harness.read_topic(copier.reads).records
    now = int(harness.simulators.confluent_now() * 1000)
    existing.produce(harness.simulators, copier.reads, [attrs.evolve(first, timestamp=now)])
    harness.simulators.advance_confluent(_FLINK_POLL)
    return _find_position(harness, copier)


def _find_position(harness: Harness, copier: Copier) -> Position:
    """Return the position of the statement once it didn't change while it was read."""

    def look() -> Position | None:
        running = _find_running(harness, copier)
        written = len(harness.read_topic(copier.writes).records)
        is_same = running == _find_running(harness, copier)
        return Position(*running, written) if running and is_same else None

    position: Position = wait_until(look, f"no statement writes {copier.writes}")
    return position


def _find_running(harness: Harness, copier: Copier) -> tuple[str, int] | None:
    """Return the name of the statement that fills the topic, and how many records it has read."""
    ctx = harness.ctx
    vendor = ctx.confluent()
    plane = vendor.flink(ctx.region, ctx.secrets.read_key(ctx.confluent_secret("flink")))
    environment = stacks.require_part(ctx, "confluent").outputs["EnvironmentId"]
    parents = ("organizations", vendor.organization_id, "environments", environment)
    found = []
    for statement in plane.pages(build_path("sql", "v1", *parents, "statements")):
        is_running = get_text(statement, "status", "phase") == "RUNNING"
        if is_running and copier.query in get_text(statement, "spec", "statement"):
            offsets: Any = get_path(statement, "status", "latest_offsets") or {}
            read = sum(int(offset) for offset in _OFFSET.findall(";".join(offsets.values())))
            found.append((get_text(statement, "name"), read))
    return found[0] if len(found) == 1 else None


def _require_as_many(before: Position, after: Position) -> None:
    read = after.read - before.read
    written = after.written - before.written
    require(read > 0, f"{after.statement} read nothing after the change")
    require(read == written, f"{after.statement} read {read} records more, and its topic has {written} more")
