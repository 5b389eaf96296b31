"""A check of the trust between Snowflake and AWS. It creates nothing; it is ready once AWS accepts Snowflake.

Volume and integration are created before the IAM role, because its trust policy contains their values; this check comes after
the role and before the tables.
"""

from __future__ import annotations

from typing import Final

from lambdas.shared.resource import Outputs
from lambdas.snowflake import sql, trust
from lambdas.snowflake.lookup import Ctx
from lambdas.snowflake.properties import TrustProps

PROPERTIES: Final = TrustProps
TIMEOUT_SECONDS: Final = 3000.0


def create(context: Ctx, spec: TrustProps) -> str:
    return _id(spec)


def is_ready(context: Ctx, spec: TrustProps, object_id: str) -> Outputs | None:
    """Check both sides. The volume's check doesn't read: only creating a table shows whether the policy allows that."""
    vendor, volume, integration = context.vendor, sql.named(spec.volume), sql.named(spec.integration)
    storage = trust.volume_side(vendor, volume)
    catalog = trust.integration_side(vendor, integration)
    trust.require_same(storage, spec.volume_principal, spec.volume_external_id)
    trust.require_same(catalog, spec.integration_principal, spec.integration_external_id)
    trust.verify_volume(vendor, volume, storage)
    trust.verify_integration(vendor, integration, catalog)
    if spec.namespace:
        trust.require_namespace(vendor, integration, catalog, spec.namespace)
    return {"volume": volume, "integration": integration}


def update(context: Ctx, spec: TrustProps, object_id: str) -> None:
    """Do nothing: `is_ready` checks again."""


def delete(context: Ctx, spec: TrustProps, object_id: str) -> None:
    """Do nothing: the check leaves nothing behind."""


def find_existing(context: Ctx, spec: TrustProps, known: str | None) -> list[str]:
    return [] if context.deleting else [_id(spec)]


def _id(spec: TrustProps) -> str:
    return f"{sql.named(spec.volume)}/{sql.named(spec.integration)}"
