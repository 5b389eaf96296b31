"""An external volume: Snowflake's read-only access to the bucket.

It is created with the ARN of a role that doesn't exist yet and with a given external id, and returns the
principal for the role's trust policy. Its location can't be changed, so a new location needs a new volume,
which gets the same external id.
"""

from __future__ import annotations

from typing import Any, Final

from lambdas.shared import errors
from lambdas.shared.errors import ReplacementRequired, Transient
from lambdas.shared.principals import require_principal
from lambdas.shared.resource import Outputs
from lambdas.snowflake import errors as snowflake_errors
from lambdas.snowflake import lookup, sql
from lambdas.snowflake.lookup import Ctx
from lambdas.snowflake.properties import ExternalVolumeProps
from lambdas.snowflake.resources import trust

PROPERTIES: Final = ExternalVolumeProps
TIMEOUT_SECONDS: Final = 3000.0
_CREATE: Final = (
    "CREATE EXTERNAL VOLUME {name} STORAGE_LOCATIONS=((NAME={location} STORAGE_PROVIDER='S3' "
    "STORAGE_BASE_URL={url} STORAGE_AWS_ROLE_ARN={role} STORAGE_AWS_EXTERNAL_ID={external_id})) "
    "ALLOW_WRITES=FALSE COMMENT={comment}"
)
_ALTER: Final = "ALTER EXTERNAL VOLUME {name} SET ALLOW_WRITES=FALSE"
_SHOW: Final = "SHOW EXTERNAL VOLUMES LIKE {pattern}"
_DROP: Final = "DROP EXTERNAL VOLUME IF EXISTS {name}"


def create(context: Ctx, spec: ExternalVolumeProps) -> str:
    name = lookup.choose_object_name(context)
    statement = sql.statement(
        _CREATE,
        name=sql.identifier(name),
        location=sql.literal(name),
        url=sql.literal(spec.base_url),
        role=sql.literal(spec.role_arn),
        external_id=sql.literal(lookup.choose_external_id(context)),
        comment=lookup.write_ownership_comment(context),
    )
    context.vendor.run(statement)
    return name


def is_ready(context: Ctx, spec: ExternalVolumeProps, object_id: str) -> Outputs | None:
    """Return the outputs once it can be described.

    The type snowflake_trust checks the access, after the role exists.
    """
    lookup.require_existing(context, sql.by_name(_SHOW, object_id), object_id)
    side = trust.read_volume_side(context.vendor, object_id)
    if not side.principal or not side.external_id:
        raise Transient(
            snowflake_errors.UNEXPECTED, f"external volume {object_id} is described without its IAM user"
        )
    return {
        "name": object_id,
        "iam_user_arn": require_principal(side.principal, side.what),
        "external_id": side.external_id,
    }


def update(context: Ctx, spec: ExternalVolumeProps, object_id: str) -> None:
    lookup.require_existing(context, sql.by_name(_SHOW, object_id), object_id)
    described = trust.describe_volume(context.vendor, object_id)
    locations = [_parse_location(location) for location in described.locations]
    expected_location = (spec.base_url, spec.role_arn, lookup.choose_external_id(context))
    if locations != [expected_location]:
        raise ReplacementRequired(
            errors.OUTDATED, f"external volume {object_id} has another location, role or external id"
        )
    if described.allow_writes:
        context.vendor.run(sql.statement(_ALTER, name=sql.identifier(object_id)))


def delete(context: Ctx, spec: ExternalVolumeProps, object_id: str) -> None:
    trust.require_unused(context.vendor, "external_volume_name", object_id)
    lookup.drop(context, sql.by_name(_SHOW, object_id), object_id, sql.by_name(_DROP, object_id))


def find_existing(context: Ctx, spec: ExternalVolumeProps, known_id: str | None) -> list[str]:
    name = lookup.choose_object_name(context)
    return lookup.find_ids(context, sql.by_name(_SHOW, name), name, known_id)


def _parse_location(location: dict[str, Any]) -> tuple[str, str, str]:
    return tuple(str(location.get(key, "")) for key in trust.LOCATION)  # type: ignore[return-value]
