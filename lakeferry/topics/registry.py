"""Schemas in Schema Registry, with the tags of their fields: of an existing cluster, or of the topics of
`[source]`.
"""

from __future__ import annotations

import json
from typing import Any, Final

from config.deployments.source_model import RegistrySource
from config.exports import topic_schema
from config.exports.avro_schema import BadSchema
from config.exports.topic_schema import TAGS, UNKNOWN_TAGS
from lakeferry.deployment.context import DeploymentContext
from lakeferry.errors import CommandFailed
from lambdas.confluent.rest_client import RestClient, build_path, get_path, get_text
from lambdas.shared.errors import Denied, LakeferryError
from lambdas.shared.http import Session

AVRO: Final = "AVRO"
UNKNOWN: Final = "unknown"
NONE: Final = "none"


def open_registry(ctx: DeploymentContext, source: RegistrySource) -> RestClient:
    """Return a client of the registry that `[source]` names.

    Raises CommandFailed if the key's secret can't be read, or the registry refuses the key or doesn't answer.
    """
    try:
        key = ctx.secrets.read_key(source.key_secret)
        session = Session(ctx.deadline, trust_environment=True)
        url = ctx.addresses.registry or source.url
        registry = RestClient(session, ctx.clock, url, key, denied_patience=0.0)
        # An account without a role on any subject gets an empty list, so only a wrong key is refused.
        registry.get("/subjects")
    except LakeferryError as error:
        place = f"Schema Registry {source.url}, with the key in {source.key_secret}"
        raise CommandFailed("REGISTRY-UNREADABLE", f"{place}: {error.what}") from None
    return registry


def read_latest(registry: RestClient | None, subject: str) -> dict[str, Any] | str:
    """Return the latest version of a subject, NONE or UNKNOWN."""
    if registry is None:
        return UNKNOWN
    try:
        return registry.read(build_path("subjects", subject, "versions", "latest")) or NONE
    except Denied:
        return UNKNOWN


def read_type(version: dict[str, Any]) -> str:
    return get_text(version, "schemaType") or AVRO


def read_schema(registry: RestClient | None, topic: str) -> dict[str, Any]:
    """Return the Avro schema of the topic's values. Raises CommandFailed, LakeferryError.

    It has the tags of the registered schema, and says that they are unknown: a field without one may have
    it in the subject's metadata or in Stream Catalog, or nobody has looked at it. A person decides.
    """
    subject = f"{topic}-value"
    latest = read_latest(registry, subject)
    if latest == UNKNOWN:
        why = "there is none yet" if registry is None else "Schema Registry refuses the key"
        raise CommandFailed("NO-REGISTRY-KEY", f"no key can read subject {subject}: {why}")
    if not isinstance(latest, dict):
        raise CommandFailed("NO-SCHEMA", f"Schema Registry has no subject {subject}")
    kind = read_type(latest)
    if kind != AVRO:
        raise CommandFailed("NO-SCHEMA", f"the schema of {topic} is {kind}, and contracts need Avro")
    if get_path(latest, "references"):
        raise CommandFailed("NO-SCHEMA", f"the schema of {topic} refers to schemas of other subjects")
    document = json.loads(get_text(latest, "schema"))
    if not isinstance(document, dict):
        raise CommandFailed("NO-SCHEMA", f"the schema of {topic} is not a record")
    # The producers' document may say that its tags were reviewed. It was not by whoever imports it.
    document.pop(TAGS, None)
    try:
        topic_schema.from_avro(document, topic)
    except BadSchema as bad:
        raise CommandFailed("NO-SCHEMA", str(bad)) from None
    return {TAGS: UNKNOWN_TAGS, **document}
