"""Parses Flink SQL statements into form, table, options and query.

It doesn't parse the query, which is left to the engine.
"""

from __future__ import annotations

import re
from typing import Final

from simulators.confluent.model import Form, ParsedStatement

_NAME: Final = r"(?:`[^`]+`|[\w-]+)"
_TABLE: Final = rf"(?P<table>{_NAME}(?:\s*\.\s*{_NAME}){{0,2}})"
_LITERAL: Final = r"'((?:[^']|'')*)'"
_FORMS: Final = (
    (
        "CREATE",
        rf"CREATE\s+TABLE\s+(?P<lenient>IF\s+NOT\s+EXISTS\s+)?{_TABLE}\s*(?P<frame>.*?)\bAS\s+(?P<query>(?:SELECT|WITH)\b.*)",
    ),
    ("DEFINE", rf"CREATE\s+TABLE\s+(?P<lenient>IF\s+NOT\s+EXISTS\s+)?{_TABLE}\s*(?P<frame>\(.*)"),
    (
        "INSERT",
        rf"INSERT\s+INTO\s+{_TABLE}\s*(?:\((?P<columns>[^()]*)\)\s*)?(?P<query>(?:SELECT|WITH)\b.*)",
    ),
    ("DROP", rf"DROP\s+TABLE\s+(?P<lenient>IF\s+EXISTS\s+)?{_TABLE}"),
    ("SELECT", r"(?P<query>(?:SELECT|WITH)\b.*)"),
)
_OPTIONS: Final[dict[str, str]] = {
    "changelog.mode": "append|upsert|retract",
    "connector": "confluent",
    "kafka.cleanup-policy": "delete|compact|delete-compact",
    "kafka.consumer.isolation-level": "read-committed|read-uncommitted",
    "kafka.max-message-size": r"\d+\s*\w*",
    "kafka.producer.compression.type": "none|gzip|snappy|lz4|zstd",
    "kafka.retention.size": r"\d+\s*\w*",
    "kafka.retention.time": r"\d+\s*\w*",
    "key.fields-prefix": r"\w*",
    "key.format": "raw|avro-registry|json-registry|proto-registry",
    "scan.bounded.mode": "unbounded|latest-offset|timestamp|specific-offsets",
    "scan.startup.mode": "earliest-offset|latest-offset|timestamp|specific-offsets|group-offsets",
    "value.fields-include": "all|except-key",
    "value.format": "raw|avro-registry|json-registry|proto-registry",
}


#: A string literal or a comment. Strings are matched so that `--` in them isn't taken for a comment.
_STRING_OR_COMMENT: Final = re.compile(r"('(?:[^']|'')*')|--[^\n]*|/\*.*?\*/", re.DOTALL)


class SqlError(Exception):
    """A statement fails. The message becomes the detail of its status."""


def parse(statement: str) -> ParsedStatement:
    """Parse a statement, but not its query. Raises SqlError."""
    text = _STRING_OR_COMMENT.sub(lambda match: match[1] or " ", statement).strip().removesuffix(";").strip()
    for form, pattern in _FORMS:
        if matched := re.fullmatch(pattern, text, re.IGNORECASE | re.DOTALL):
            part = matched.groupdict()
            frame = part.get("frame") or ""
            keys, buckets = _parse_distribution(frame)
            return ParsedStatement(
                Form[form],
                tuple(
                    part_name.strip().strip("`") for part_name in re.findall(_NAME, part.get("table") or "")
                ),
                (part.get("query") or "").strip(),
                bool(part.get("lenient")),
                _parse_options(frame),
                buckets,
                keys,
                _parse_columns(part.get("columns") or ""),
            )
    raise SqlError(f"SQL parse failed. Unsupported or incorrect statement: {text[:80]}")


def _parse_columns(names: str) -> tuple[str, ...]:
    return tuple(name.strip().strip("`") for name in names.split(",") if name.strip())


def _parse_distribution(frame: str) -> tuple[tuple[str, ...], int]:
    pattern = r"DISTRIBUTED\s+(?:BY\s+(?:HASH\s*)?\((?P<keys>[^)]*)\)\s*)?INTO\s+(?P<buckets>\d+)\s+BUCKETS"
    matched = re.search(pattern, frame, re.IGNORECASE)
    if not matched:
        return (), 0
    return tuple(key.strip(" `") for key in (matched["keys"] or "").split(",") if key.strip()), int(
        matched["buckets"]
    )


def _parse_options(frame: str) -> dict[str, str]:
    matched = re.search(r"\bWITH\s*\((?P<pairs>.*)\)", frame, re.IGNORECASE | re.DOTALL)
    if not matched:
        return {}
    pairs = re.findall(rf"{_LITERAL}\s*=\s*{_LITERAL}", matched["pairs"])
    if re.sub(rf"{_LITERAL}\s*=\s*{_LITERAL}|[\s,]", "", matched["pairs"]):
        raise SqlError("SQL parse failed. Table options must be 'key' = 'value' pairs")
    for name, value in pairs:
        if name not in _OPTIONS:
            raise SqlError(f"Unsupported options found for table. Unsupported options: {name}")
        if not re.fullmatch(_OPTIONS[name], value):
            raise SqlError(
                f"Invalid value for option '{name}': '{value}'. Expected: {_OPTIONS[name].replace('|', ', ')}"
            )
    return dict(pairs)
