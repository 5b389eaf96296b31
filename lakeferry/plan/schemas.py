"""Ask Schema Registry beforehand whether it would register the schemas that a deployment changes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

import attrs

from lakeferry.deployment.context import DeploymentContext
from lakeferry.errors import CommandFailed
from lakeferry.plan.difference import Action, Change, Comparison
from lakeferry.plan.refusals import Refusal
from lakeferry.plan.templates import TemplateResource
from lambdas.confluent.errors import SCHEMA_INCOMPATIBLE
from lambdas.confluent.rest_client import RestClient, build_path
from lambdas.shared.errors import SECRET_SHAPE, LakeferryError, NotFound

_DEFAULT_TYPE: Final = "AVRO"
#: The field of a key's secret that lambdas.confluent.secret_fields writes.
_ENVIRONMENT: Final = "environmentId"


@attrs.frozen
class Answers:
    """What a vendor says. `unasked` has one sentence for each object that it could not be asked about."""

    refusals: tuple[Refusal, ...] = ()
    unasked: tuple[str, ...] = ()


def ask(ctx: DeploymentContext, comparison: Comparison, changes: Iterable[Change]) -> Answers:
    """Ask about each deployed schema whose text changes, with the deployment's own key of the registry."""
    schemas = [change.resource for change in changes if _is_edited(comparison, change)]
    if not schemas:
        return Answers()
    try:
        registry = _open_registry(ctx)
        return Answers(tuple(_find_refused(registry, schemas)))
    except (LakeferryError, CommandFailed) as failure:
        why = failure.what if isinstance(failure, LakeferryError) else failure.message
        return Answers(
            unasked=tuple(
                f"{schema.what} {schema.name}: Schema Registry could not be asked whether it accepts the "
                f"new text ({why}). It will be asked by the deployment, which fails if it doesn't"
                for schema in schemas
            )
        )


def _is_edited(comparison: Comparison, change: Change) -> bool:
    before = comparison.before(change.resource)
    if change.resource.kind != "schema" or change.action is not Action.UPDATE or before is None:
        return False
    return before.properties.get("schema") != change.resource.properties.get("schema")


def _open_registry(ctx: DeploymentContext) -> RestClient:
    """Raises LakeferryError, CommandFailed."""
    secret = ctx.confluent_secret("schema_registry")
    key = ctx.secrets.read_key(secret)
    if environment_id := ctx.deployment.created_confluent.environment_id:
        return ctx.confluent().registry(environment_id, key)
    fields = ctx.secrets.read(secret)
    if _ENVIRONMENT not in fields:
        raise NotFound(SECRET_SHAPE, f"secret {secret} lacks {_ENVIRONMENT}")
    return ctx.confluent().registry(fields[_ENVIRONMENT].reveal(), key)


def _find_refused(registry: RestClient, schemas: Iterable[TemplateResource]) -> Iterator[Refusal]:
    """Yield the refused schemas.

    The vendor's API file says that the call makes "the same compatibility check as register".
    """
    for schema in schemas:
        route = build_path("compatibility", "subjects", str(schema.properties["subject"]), "versions")
        kind = schema.properties.get("schema_type") or _DEFAULT_TYPE
        body = {"schema": schema.properties["schema"], "schemaType": kind}
        answer = registry.post(route, body, repeatable=True, verbose="true")
        if isinstance(answer, dict) and answer.get("is_compatible") is False:
            messages = answer.get("messages") or ["it is incompatible with an earlier schema"]
            reasons = "; ".join(str(message) for message in messages)
            yield Refusal(schema, f"Schema Registry refuses it: {reasons}. {SCHEMA_INCOMPATIBLE.remedy}")
