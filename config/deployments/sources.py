"""The files that a deployment names, read once: schemas of topics, Flink's statements, contracts of
exports.
"""

from __future__ import annotations

import functools
import re
import tomllib
from pathlib import Path
from typing import Final

import attrs

from config.deployments.confluent_model import Topic
from config.exports import check, contracts
from config.exports.avro_schema import BadSchema
from config.exports.check import Judge, NotJudged
from config.exports.contract import Contract
from config.exports.topic_schema import TopicSchema
from config.exports.topic_schema import load as load_schema
from config.toml_model import BadFile

#: The name of the table that a statement creates, after comments: `table`, or catalog.database.table.
_TABLE: Final = re.compile(
    r"(?:\s|--[^\n]*\n|/\*(?:(?!\*/).)*\*/)*+CREATE\s+TABLE\s+(?:IF\s+NOT\s+EXISTS\s+)?(?!IF\b)"
    r"(?:(?:`[^`]+`|\w+)\.){0,2}(?:`([^`]+)`|(\w+))(?=[\s(;]|--|/\*|$)",
    re.IGNORECASE | re.DOTALL,
)
#: How many partitions a statement's topic has, and how many without such a clause (Confluent's "Flink SQL
#: Examples").
_BUCKETS: Final = re.compile(r"\bINTO\s+(\d+)\s+BUCKETS\b", re.IGNORECASE)
_DEFAULT_BUCKETS: Final = 6
#: The same for the table that a statement inserts into.
_INSERT: Final = re.compile(
    r"(?:\s|--[^\n]*\n|/\*(?:(?!\*/).)*\*/)*+INSERT\s+(?:INTO|OVERWRITE)\s+"
    r"(?:(?:`[^`]+`|\w+)\.){0,2}(?:`([^`]+)`|(\w+))(?=[\s(;]|--|/\*|$)",
    re.IGNORECASE | re.DOTALL,
)
#: A comment, or a text or name in quotes, which may have what looks like one.
_COMMENT: Final = re.compile(r"""('(?:[^']|'')*'|`[^`]*`|"[^"]*")|--[^\n]*|/\*(?:(?!\*/).)*\*/""", re.DOTALL)
#: The names of the tables that a statement drops.
_DROP: Final = re.compile(
    r"\bDROP\s+(?:MATERIALIZED\s+|TEMPORARY\s+)?TABLE\s+(?:IF\s+EXISTS\s+)?"
    r"(?:(?:`[^`]+`|\w+)\s*\.\s*){0,2}(?:`([^`]+)`|([\w-]+))",
    re.IGNORECASE,
)
_OPTION: Final = re.compile(
    r"'(changelog\.mode|kafka\.cleanup-policy|value\.fields-include)'\s*=\s*'([^']*)'"
)


class Missing(Exception):
    """A file doesn't exist or can't be used. The message is one sentence."""


@attrs.frozen
class StatementText:
    """`table` is the table that create.sql creates, "" where that can't be read.

    `options` are those of its options that decide how Tableflow writes the topic, and with which columns.
    `partitions` is the number
    of the topic's partitions. `dropped` are the tables that undo.sql drops. `inserts_into` is the table that
    it fills without creating it, "" if there is none.
    """

    create: str
    undo: str
    properties: dict[str, str]
    table: str
    options: dict[str, str]
    partitions: int
    inserts_into: str = ""
    dropped: tuple[str, ...] = ()


@attrs.frozen
class Sources:
    """`root` is the folder of topics/, flink/ and exports/. `judge` asks Spark about contracts."""

    root: Path
    judge: Judge | NotJudged

    def schema_file(self, topic: Topic) -> Path | None:
        """Return the file of the topic's schema, or None if it has none.

        Raises Missing if the named file doesn't exist.
        """
        if topic.schema_file is None:
            default_file = self.root / "topics" / f"{topic.name}.avsc"
            return default_file if default_file.is_file() else None
        named_file = self.root / topic.schema_file
        if not named_file.resolve().is_relative_to(self.root.resolve()) or not named_file.is_file():
            raise Missing(f"{topic.schema_file} is not a file in the project's folder")
        return named_file

    def schema(self, topic: Topic) -> TopicSchema | None:
        """Return the topic's schema, or None if it has none. Raises Missing if the file can't be used."""
        file = self.schema_file(topic)
        try:
            return load_schema(file, topic.name) if file else None
        except BadSchema as bad:
            raise Missing(str(bad).replace(f"{self.root}/", "project/")) from None

    def schema_text(self, topic: Topic) -> str:
        file = self.schema_file(topic)
        return file.read_text(encoding="utf-8") if file else ""

    def statement(self, name: str) -> StatementText:
        """Return the texts of a Flink statement. Raises Missing."""
        return _read_statement(self.root / "flink" / name)

    def partitions(self, topic: Topic) -> int:
        """Return the number of the topic's partitions when it is created. Raises Missing."""
        return self.statement(topic.statement).partitions if topic.statement else topic.new_partitions

    def contract(self, name: str, schema: TopicSchema | None) -> Contract:
        """Return the export's contract, checked against the topic's schema if that is given.

        Raises BadFile.
        """
        file = self.root / "exports" / f"{name}.toml"
        more_rules = (*contracts.name_rules(file), *(check.rules(schema, self.judge) if schema else ()))
        if not file.is_file():
            return contracts.load(name)
        return contracts.parse(
            file.read_text(encoding="utf-8"), name=f"project/exports/{name}.toml", more_rules=more_rules
        )

    def plain_contract(self, name: str) -> Contract | None:
        """Return the contract, not checked against a schema; None if it can't be read."""
        try:
            return self.contract(name, None)
        except BadFile:
            return None


@functools.cache
def _read_statement(folder: Path) -> StatementText:
    texts = {}
    for name in ("create.sql", "undo.sql"):
        try:
            texts[name] = (folder / name).read_text(encoding="utf-8")
        except OSError:
            raise Missing(f"project/flink/{folder.name}/{name} does not exist") from None
    extra = folder / "properties.toml"
    try:
        properties = tomllib.loads(extra.read_text(encoding="utf-8")) if extra.is_file() else {}
    except tomllib.TOMLDecodeError as error:
        raise Missing(f"project/flink/{folder.name}/properties.toml is not TOML: {error}") from None
    create = texts["create.sql"]
    undo = texts["undo.sql"]
    code = remove_comments(create)
    buckets = _BUCKETS.search(code)
    drops = _DROP.findall(remove_comments(undo))
    return StatementText(
        create=create,
        undo=undo,
        properties={name: str(value) for name, value in properties.items()},
        table=_find_name(_TABLE, create),
        inserts_into=_find_name(_INSERT, create),
        dropped=tuple(quoted or plain for quoted, plain in drops),
        options=dict(_OPTION.findall(code)),
        partitions=int(buckets[1]) if buckets else _DEFAULT_BUCKETS,
    )


def remove_comments(sql: str) -> str:
    """Return the statement with a space for each comment. Texts and names in quotes stay as they are."""
    return _COMMENT.sub(lambda found: found[1] or " ", sql)


def _find_name(pattern: re.Pattern[str], sql: str) -> str:
    """Return the name at the beginning of the SQL, quoted or not, or "" if there is none."""
    found = pattern.match(sql)
    return next(filter(None, found.groups())) if found else ""
