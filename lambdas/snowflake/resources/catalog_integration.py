"""A catalog integration with AWS Glue's Iceberg REST endpoint: how Snowflake finds the tables' latest
metadata.

It is created with the ARN of a role that doesn't exist yet and with a given external id. Only its refresh
interval can change.
"""

from __future__ import annotations

from typing import Final

from lambdas.shared import errors
from lambdas.shared.errors import ReplacementRequired, Transient
from lambdas.shared.principals import require_principal
from lambdas.shared.resource import Outputs
from lambdas.snowflake import errors as snowflake_errors
from lambdas.snowflake import lookup, sql
from lambdas.snowflake.lookup import Ctx
from lambdas.snowflake.properties import CatalogIntegrationProps
from lambdas.snowflake.resources import trust

PROPERTIES: Final = CatalogIntegrationProps
TIMEOUT_SECONDS: Final = 3000.0
_CREATE: Final = (
    "CREATE CATALOG INTEGRATION {name} CATALOG_SOURCE=ICEBERG_REST TABLE_FORMAT=ICEBERG "
    "CATALOG_NAMESPACE={namespace} REST_CONFIG=(CATALOG_URI={uri} CATALOG_API_TYPE=AWS_GLUE "
    "CATALOG_NAME={account} ACCESS_DELEGATION_MODE=EXTERNAL_VOLUME_CREDENTIALS) "
    "REST_AUTHENTICATION=(TYPE=SIGV4 SIGV4_IAM_ROLE={role} SIGV4_SIGNING_REGION={region} "
    "SIGV4_EXTERNAL_ID={external_id}) ENABLED=TRUE REFRESH_INTERVAL_SECONDS={seconds} COMMENT={comment}"
)
_ALTER: Final = "ALTER CATALOG INTEGRATION {name} SET REFRESH_INTERVAL_SECONDS={seconds}"
_SHOW: Final = "SHOW CATALOG INTEGRATIONS LIKE {pattern}"
_DROP: Final = "DROP CATALOG INTEGRATION IF EXISTS {name}"


def create(context: Ctx, spec: CatalogIntegrationProps) -> str:
    name = lookup.choose_object_name(context)
    statement = sql.statement(
        _CREATE,
        name=sql.identifier(name),
        namespace=sql.literal(spec.namespace),
        uri=sql.literal(f"https://glue.{spec.region}.amazonaws.com/iceberg"),
        account=sql.literal(spec.account_id),
        role=sql.literal(spec.role_arn),
        region=sql.literal(spec.region),
        external_id=sql.literal(lookup.choose_external_id(context)),
        seconds=sql.number(spec.refresh_seconds),
        comment=lookup.write_ownership_comment(context),
    )
    context.vendor.run(statement)
    return name


def is_ready(context: Ctx, spec: CatalogIntegrationProps, object_id: str) -> Outputs | None:
    """Return the outputs once it can be described.

    The type snowflake_trust checks the access, after the role exists.
    """
    lookup.require_existing(context, sql.by_name(_SHOW, object_id), object_id)
    side = trust.read_integration_side(context.vendor, object_id)
    if not side.principal:
        raise Transient(
            snowflake_errors.UNEXPECTED, f"catalog integration {object_id} is described without its IAM user"
        )
    return {
        "name": object_id,
        "iam_user_arn": require_principal(side.principal, side.what),
        "external_id": side.external_id or lookup.choose_external_id(context),
    }


def update(context: Ctx, spec: CatalogIntegrationProps, object_id: str) -> None:
    """Update it. The external id is compared only if Snowflake shows it, which not every release does."""
    lookup.require_existing(context, sql.by_name(_SHOW, object_id), object_id)
    described = trust.describe_integration(context.vendor, object_id)
    side = trust.read_integration_side(context.vendor, object_id, described)
    if (
        side.external_id not in ("", lookup.choose_external_id(context))
        or described.get("CATALOG_NAMESPACE") != spec.namespace
    ):
        raise ReplacementRequired(
            errors.OUTDATED, f"catalog integration {object_id} has another namespace or external id"
        )
    if described.get("REFRESH_INTERVAL_SECONDS") != str(spec.refresh_seconds):
        seconds = sql.number(spec.refresh_seconds)
        context.vendor.run(sql.statement(_ALTER, name=sql.identifier(object_id), seconds=seconds))


def delete(context: Ctx, spec: CatalogIntegrationProps, object_id: str) -> None:
    trust.require_unused(context.vendor, "catalog_name", object_id)
    lookup.drop(context, sql.by_name(_SHOW, object_id), object_id, sql.by_name(_DROP, object_id))


def find_existing(context: Ctx, spec: CatalogIntegrationProps, known_id: str | None) -> list[str]:
    name = lookup.choose_object_name(context)
    return lookup.find_ids(context, sql.by_name(_SHOW, name), name, known_id)
