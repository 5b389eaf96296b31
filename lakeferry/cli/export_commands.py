"""`lakeferry export …`."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import attrs

from exports import check as checks
from exports import contract as contracts
from exports import topic_schema
from exports.toml_model import BadFile
from lakeferry.errors import CommandFailed
from lakeferry.local import export as exporting
from lakeferry.local import target as world
from lakeferry.local.bootstrap import ROOT
from lakeferry.output import Output, command


def run(output: Output, words: list[str], out: Path | None, master: str) -> dict[str, Any]:
    if out:
        world.require_writable(out)
    with world.current() as target, exporting.spark(output, master):
        output.info(f"Working in {target.source}")
        record = exporting.run(output, target, words, "export")
        files = exporting.download(target, record, out) if out else []
    if not record.windows:
        output.print("No window needs anything: all that are closed are published, and none may still change.")
    output.table(["export", "window", "state", "rows", "totals"], exporting.summary(record))
    for line in exporting.left_out(record):
        output.print(line)
    for note in exporting.notes(record):
        output.print(note)
    if record.windows_left:
        output.print(f"{record.windows_left} older windows are still missing; run again to publish more of them.")
    for file in files:
        output.print(f"wrote {world.relative(file)}")
    output.print(f"Record: s3://{target.bucket}/{target.prefix}/{record.key}")
    if failure := exporting.trouble(record):
        raise failure
    return {"source": target.source, **attrs.asdict(record)}


def check(output: Output, file: Path, schema: Path | None) -> dict[str, Any]:
    """Raises CommandFailed with every mistake."""
    try:
        topic = _topic(file) or contracts.load(str(file)).source.topic
        contract = checks.check_file(file, topic_schema.load(schema or _shipped_schema(topic), topic))
    except BadFile as bad:
        mistakes = [attrs.asdict(problem) for problem in bad.problems]
        raise CommandFailed("EXP-CONTRACT", str(bad), "Correct the contract", details=mistakes) from None
    except topic_schema.BadSchema as error:
        hint = "Give the topic's Avro schema with --schema FILE"
        raise CommandFailed("EXP-SCHEMA", str(error), hint) from None
    treated = [f"{c.name} ({c.personal.treatment})" for c in contract.column if c.personal]
    output.print(f"{file}: {contract.title}, {len(contract.columns)} columns, every {contract.window.every.replace('_', ' ')}.")
    output.print(f"Personal data: {', '.join(treated) or 'none'}.")
    if contract.window.applies == "after_deduplication":
        output.print("The window comes after deduplication: each run reads the whole table.")
    own = f" --events EVENTS.jsonl --topic {topic} --schema {schema}" if schema else ""
    output.print(f"Next: {command()} demo --export {file}{own}")
    return {"name": contract.name, "columns": [column.name for column in contract.columns], "personal": treated}


def _shipped_schema(topic: str) -> Path:
    """Raises CommandFailed where none ships for this topic."""
    shipped = {path.stem: path for path in sorted((ROOT / "topics").glob("*.avsc"))}
    if topic not in shipped:
        hint = f"Give its Avro schema with --schema FILE. Topics shipped: {', '.join(shipped)}"
        raise CommandFailed("EXP-SCHEMA", f"no topic {topic} ships with Lakeferry", hint)
    return shipped[topic]


def _topic(file: Path) -> str | None:
    """The topic that a contract reads, if that much of the file can be read: then all of its mistakes are told together."""
    try:
        topic = tomllib.loads(file.read_text(encoding="utf-8"))["source"]["topic"]
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return topic if isinstance(topic, str) else None


def listed(output: Output) -> dict[str, Any]:
    found = [contracts.load(name) for name in contracts.shipped()]
    rows = [[c.name, c.title, c.source.topic, c.window.every.replace("_", " "), c.grain] for c in found]
    output.table(["export", "title", "topic", "window", "grain"], rows)
    return {"exports": [{"name": c.name, "title": c.title, "topic": c.source.topic} for c in found]}
