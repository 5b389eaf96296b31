"""Which columns of a table people may see who query it: those that nobody said, or has reason to think, are
personal.

A column is hidden as a whole if anything in it is personal. The columns that people may see are named one by
one, so that a column which a table gets later is hidden until somebody deploys again.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, TypeAlias

import attrs

from config.deployments.confluent_model import Topic
from config.deployments.model import Deployment
from config.deployments.sources import Missing, Sources
from config.exports.topic_schema import TopicSchema

#: Kafka's metadata without what may contain anything.
_SHOWN_METADATA: Final = ("topic", "partition", "leader-epoch", "offset", "timestamp", "timestamp-type")
#: The rest of it, with the reason why people don't see it.
_HIDDEN_METADATA: Final = {
    "headers": "headers may have anything",
    "raw-key": "it is the whole key",
    "raw-value": "it is the whole record",
}
#: The column with the record's key, unless the topic has a field of this name.
_KEY: Final = "key"
#: The two schemes by which Tableflow names the columns with Kafka's metadata.
_SCHEMES: Final = ("DEFAULT", "PORTABLE")


@attrs.frozen
class Shown:
    """The columns that people may see, and the hidden ones with the reason of each."""

    columns: tuple[str, ...]
    hidden: dict[str, str]


@attrs.frozen
class Unshown:
    """Nobody knows which columns of the table are personal, or all are. `reason` is part of a sentence."""

    reason: str


ShownColumns: TypeAlias = Shown | Unshown


def find_shown_columns(topic: Topic, sources: Sources, deployment: Deployment) -> ShownColumns:
    """Return what people may see of a topic's table."""
    from config.deployments import flink_origins, lineage  # noqa: PLC0415 - importing sqlglot takes a while

    try:
        schema = flink_origins.find_schema(topic, sources, deployment)
    except Missing as missing:
        return Unshown(str(missing))
    except lineage.Unknown as unknown:
        return Unshown(f"its statement doesn't show what schema Flink will register: {unknown}")
    if schema is None:
        return Unshown(f"it has no schema file, such as project/topics/{topic.name}.avsc")
    if schema.tags_unknown:
        return Unshown("nobody has said which of its fields are personal")
    return choose_columns(schema, (topic.tableflow.metadata_columns,) if topic.tableflow else _SCHEMES)


def choose_columns(schema: TopicSchema, schemes: Sequence[str] = _SCHEMES) -> ShownColumns:
    """Return what people may see of the table with this schema, whose tags are known. `schemes` are the ways
    in which the columns with Kafka's metadata may be called.

    Two columns whose names differ in capitals only are one name to Snowflake and Athena: either hides both.
    """
    reasons: dict[str, str] = {}
    for field in schema.type.fields:
        for path in schema.personal_inside_or_around(field.name):
            where = "" if path == field.name else f"{path}: "
            reasons.setdefault(field.name, where + schema.personal[path].why)
    hidden_names = {name.lower() for name in reasons}
    columns = [field.name for field in schema.type.fields if field.name.lower() not in hidden_names]
    for field in schema.type.fields:
        if field.name not in columns:
            reasons.setdefault(field.name, "its name differs from that of a hidden column in capitals only")
    if not columns:
        return Unshown("every field of it may be personal: " + next(iter(reasons.values()), "it has none"))
    shown = [*columns]
    hidden = {_KEY: "it is the record's key, of which no schema says what it has"}
    for scheme in schemes:
        shown += [_name_metadata(name, scheme) for name in _SHOWN_METADATA]
        hidden |= {_name_metadata(name, scheme): why for name, why in _HIDDEN_METADATA.items()}
    own_names = {field.name.lower() for field in schema.type.fields}
    besides = {name: why for name, why in hidden.items() if name not in own_names}
    return Shown(tuple(dict.fromkeys(shown)), reasons | besides)


def _name_metadata(name: str, scheme: str) -> str:
    return f"$${name}" if scheme == "DEFAULT" else f"cflt_metadata_{name.replace('-', '_')}"
