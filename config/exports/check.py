"""Checks for authors of contracts: expressions are valid, fields exist, types fit, and personal data has a
treatment.

The command line and the checks of deployment files use this module. Spark judges expressions and types, by
the code of the job (`glue_jobs.analyse`). Spark isn't imported here: a caller gives the function that asks
it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

from config.exports import contracts
from config.exports.allowed_functions import ICEBERG_FIELDS, KAFKA_FIELDS, RECORD_KEY, WINDOW_FIELDS
from config.exports.analysis import Analysis, AnalysisFinding, analysable, did_you_mean
from config.exports.contract import Column, Contract
from config.exports.topic_schema import REVIEWED_TAGS, TAGS, UNTAGGED, TopicSchema
from config.toml_model import Rule, read_text

Finding = tuple[str, str]

_TIMES = {
    "date",
    "timestamp-millis",
    "timestamp-micros",
    "local-timestamp-millis",
    "local-timestamp-micros",
}
_AMBIGUOUS = (
    "{} may mean a field of the topic or the metadata of Kafka or Iceberg. Remove it from the contract, or "
    "rename the field in the topic"
)


#: A text in an expression, a name that isn't that of a function, and a measure that only counts.
_LITERAL: Final = re.compile(r"'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\"")
_NAME: Final = re.compile(r"(?<![\w.])[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*+(?!\w|\s*\()")
_COUNT: Final = re.compile(r"\s*count\s*\([^()]*\)\s*", re.IGNORECASE)
#: A `*` that stands for fields. Between two values it multiplies.
_STAR: Final = re.compile(r"(?:^|[(,.])\s*\*")
_COUNTED_ROWS: Final = re.compile(r"\bcount\s*\(\s*\*\s*\)", re.IGNORECASE)
_NAME_FIELDS: Final = "`*` stands for all fields, also for personal ones. Name the fields that you need"


class NotJudged:
    """Stands for no judge: expressions and the types of columns are not checked."""


#: For callers that only read contracts. Whatever leads to a deployment or a run has a judge.
NOT_JUDGED: Final = NotJudged()
#: Returns what Spark finds in a contract for a table with the columns of the topic's schema.
Judge = Callable[[Contract, TopicSchema], Analysis]


def read_by_names(contract: Contract, schema: TopicSchema) -> Analysis:
    """Take each name in an expression for the field of this name. It is a judge for callers without Spark.

    It refuses `*` and finds no other mistake, and may name a field that the expression doesn't use.
    """
    findings = []
    reads: dict[str, list[str]] = {}
    counts = []
    for index, column in enumerate(contract.column):
        for kind, text in (("expression", column.expression), ("measure", column.measure)):
            if not text:
                continue
            key = f"column[{index}].{kind}"
            code = _LITERAL.sub("''", text).replace("`", "")
            if _STAR.search(_COUNTED_ROWS.sub("", code)):
                findings.append(AnalysisFinding(key, column.name, _NAME_FIELDS, "EXP-EXPRESSION"))
            names = _NAME.findall(code)
            fields = [_find_named_field(name, contract, schema) for name in names]
            reads[key] = list(dict.fromkeys(field for field in fields if field))
            if _COUNT.fullmatch(text):
                counts.append(key)
    return Analysis(findings, reads, counts)


def _find_named_field(name: str, contract: Contract, schema: TopicSchema) -> str | None:
    """Return the field that a name in an expression begins with. Spark ignores the case of letters."""
    lowered = name.lower()
    if contract.explode:
        alias = contract.explode.alias.lower()
        if lowered.partition(".")[0] == alias:
            lowered = f"{contract.explode.array}[]".lower() + lowered.removeprefix(alias)
    known = (*schema.fields, *KAFKA_FIELDS, *WINDOW_FIELDS, RECORD_KEY)
    spellings = {field.lower(): field for field in known}
    parts = lowered.split(".")
    prefixes = [".".join(parts[:length]) for length in range(len(parts), 0, -1)]
    return next((spellings[prefix] for prefix in prefixes if prefix in spellings), None)


def check_file(path: Path, schema: TopicSchema, judge: Judge | NotJudged) -> Contract:
    """Read a contract and check it against its topic's schema.

    Raises BadFile with all mistakes of both checks.
    """
    more_rules = (*contracts.name_rules(path), *rules(schema, judge))
    return contracts.parse(read_text(path, str(path)), name=str(path), more_rules=more_rules)


def rules(schema: TopicSchema, judge: Judge | NotJudged) -> tuple[Rule[Contract], ...]:
    checks: list[Rule[Contract]] = [
        lambda contract: _check_fields_exist(contract, schema),
        lambda contract: _check_event_time_is_a_time(contract, schema),
        lambda contract: _check_table_can_be_read(contract, schema),
        lambda contract: _check_tags_are_known(contract, schema),
        lambda contract: _check_personal_fields_are_treated(contract, schema),
    ]
    if not isinstance(judge, NotJudged):
        checks.append(lambda contract: _ask_judge(contract, schema, judge))
    return tuple(checks)


def _check_fields_exist(contract: Contract, schema: TopicSchema) -> Iterator[Finding]:
    if contract.source.topic != schema.topic:
        yield (
            "source.topic",
            f"this contract reads {contract.source.topic}, but the schema given is that of {schema.topic}",
        )
    for name in WINDOW_FIELDS:
        if name in schema.fields:
            yield (
                "source.topic",
                f"{schema.topic} has a field {name}, which is the name of the export's own column. Rename it",
            )
    for key, path in contract.fields():
        if _resolve(path, contract, schema) is None:
            yield key, f"the schema of {schema.topic} has no field {path}{did_you_mean(path, schema.fields)}"
        if _is_ambiguous(path, schema):
            yield key, _AMBIGUOUS.format(path)
    if contract.explode and (array := schema.fields.get(contract.explode.array)) and array.kind != "array":
        yield "explode.array", f"{contract.explode.array} is {array.kind}, not an array"


def _is_ambiguous(path: str, schema: TopicSchema) -> bool:
    """Return whether a path begins with a name that both a field of the topic and metadata have."""
    head = re.split(r"[.\[{]", path)[0]
    return head in (*KAFKA_FIELDS, *ICEBERG_FIELDS) and head in schema.fields


def _check_event_time_is_a_time(contract: Contract, schema: TopicSchema) -> Iterator[Finding]:
    field = schema.fields.get(contract.source.event_time)
    if field and field.kind not in _TIMES:
        yield (
            "source.event_time",
            f"{field.path} is {field.kind}, not a timestamp or a date. Name a field of these types, or "
            "kafka_timestamp",
        )


def _check_table_can_be_read(contract: Contract, schema: TopicSchema) -> Iterator[Finding]:
    if times := [field.path for field in schema.fields.values() if field.kind.startswith("time-")]:
        yield (
            "source.topic",
            f"{', '.join(times)}: a time of day, and Spark can't read an Iceberg table that has one. Send "
            "it as text or a number",
        )
    if contract.explode and contract.explode.alias in {path.partition(".")[0] for path in schema.fields}:
        yield "explode.as", f"{schema.topic} has a field {contract.explode.alias}. Give the item another name"
    elif contract.explode and contract.explode.alias in (*KAFKA_FIELDS, *WINDOW_FIELDS):
        yield (
            "explode.as",
            f"{contract.explode.alias} is a name of the job in expressions. Give the item another name",
        )


def _resolve(path: str, contract: Contract, schema: TopicSchema) -> str | None:
    """Return the path in the schema of the field that a contract names, or None if there is no such field."""
    head, _, path_in_item = path.partition(".")
    if contract.explode and head == contract.explode.alias:
        item = f"{contract.explode.array}[]"
        path = f"{item}.{path_in_item}" if path_in_item else item
    if path in KAFKA_FIELDS or path in WINDOW_FIELDS:
        return path
    return path if path in schema.fields or path == RECORD_KEY else None


def _check_tags_are_known(contract: Contract, schema: TopicSchema) -> Iterator[Finding]:
    """Without tags, each column needs a decision. That is one mistake, not one for each column."""
    undecided = [column.name for column in contract.column if column.personal is None]
    if schema.tags_unknown and undecided:
        yield (
            "source.topic",
            f"the schema of {schema.topic} was made from a table, which has no tags, so any field may be "
            'personal. Add "confluent:tags": ["PII"] to the personal fields in its file, then set its '
            f'"{TAGS}" to "{REVIEWED_TAGS}". Or add `personal` to these columns: {", ".join(undecided)}',
        )


def _check_personal_fields_are_treated(contract: Contract, schema: TopicSchema) -> Iterator[Finding]:
    """Check columns that copy a field. Only Spark knows the fields of an expression."""
    for index, column in enumerate(contract.column):
        if column.field and (path := _resolve(column.field, contract, schema)):
            yield from _find_untreated(index, column, [path], schema)


def _ask_judge(contract: Contract, schema: TopicSchema, judge: Judge) -> Iterator[Finding]:
    analysis = judge(analysable(contract), schema)
    for finding in analysis.findings:
        subject = f"{finding.label.removeprefix('column ')}: " if finding.key.endswith("]") else ""
        yield finding.key, f"{subject}{finding.message}"
    for key, paths in analysis.reads.items():
        yield from ((key, _AMBIGUOUS.format(path)) for path in paths if _is_ambiguous(path, schema))
    for index, column in enumerate(contract.column):
        for key in (f"column[{index}].expression", f"column[{index}].measure"):
            if key not in analysis.counts:
                yield from _find_untreated(index, column, analysis.reads.get(key, []), schema)


def _find_untreated(index: int, column: Column, paths: list[str], schema: TopicSchema) -> Iterator[Finding]:
    """Yield a finding if the column has a value of a personal field among `paths` and no treatment."""
    findings = {}
    for path in paths:
        for field in schema.personal_inside_or_around(path, as_text=column.type == "text"):
            findings[field] = schema.personal[field]
    carried = [f"{field}: {finding.why}" for field, finding in findings.items() if finding is not UNTAGGED]
    if any(path.startswith(("kafka_raw_key", "kafka_raw_value", "kafka_headers")) for path in paths):
        carried = ["the raw record"]
    elif RECORD_KEY in paths and RECORD_KEY not in schema.fields:
        carried.append("the key of the record")
    if carried and column.personal is None:
        yield (
            f"column[{index}]",
            f"{column.name} contains personal data ({'; '.join(carried)}) and has no `personal` entry. "
            'Add personal = { treatment = "hash", kind = … }, or drop, mask, generalise, or keep with a '
            "reason",
        )
