"""What of a deployment is in Snowflake: objects whose comment holds a name of ours, and what an admin made for the deployer."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

import attrs

from deployments.model import Snowflake as Wanted
from lakeferry.deployment.context import DeploymentContext
from lakeferry.inventory.model import SNOWFLAKE, Claim, Item, kept, left_over
from lakeferry.inventory.vendor_names import VendorNames
from lambdas.snowflake import sql, trust
from lambdas.snowflake.client import Row, Snowflake

#: What is looked for, as SHOW calls it, containers before what is in them.
KINDS: Final = {
    "snowflake_warehouse": "SHOW WAREHOUSES",
    "snowflake_database": "SHOW DATABASES",
    "snowflake_schema": "SHOW SCHEMAS IN ACCOUNT",
    "snowflake_iceberg_table": "SHOW ICEBERG TABLES IN ACCOUNT",
    "snowflake_user": "SHOW USERS",
    "snowflake_role": "SHOW ROLES",
    "snowflake_external_volume": "SHOW EXTERNAL VOLUMES",
    "snowflake_catalog_integration": "SHOW CATALOG INTEGRATIONS",
}
_CONTAINERS: Final = ("database_name", "schema_name")
_FOREIGN: Final = "named like ours, but its comment isn't: somebody else made it"
_BY_ADMIN: Final = "made by an admin, for the deployment to work with"


def take(ctx: DeploymentContext, names: VendorNames) -> list[Item]:
    """Raises CommandFailed, LakeferryError."""
    wanted = ctx.deployment.snowflake
    assert wanted is not None
    look = _Look(ctx.snowflake(), names, f"arn:aws:iam::{ctx.account}:role/{ctx.deployment.regional_prefix}-snowflake")
    return [*look.items(), *look.deployer(wanted)]


@attrs.frozen
class _Look:
    """`role_arn` is the role that our volume and integration come with."""

    vendor: Snowflake
    names: VendorNames
    role_arn: str

    def items(self) -> Iterator[Item]:
        databases: dict[str, Claim] = {}
        for kind, show in KINDS.items():
            for row in self.vendor.run(sql.statement(show)):
                name, where = row.get("name", ""), tuple(filter(None, (row.get(part, "") for part in _CONTAINERS)))
                claim = self._claim(kind, row, databases)
                if claim is None:
                    continue
                if kind == "snowflake_database":
                    databases[name] = claim
                yield claim.item(SNOWFLAKE, kind, name, row.get("comment", ""), where)

    def _claim(self, kind: str, row: Row, databases: dict[str, Claim]) -> Claim | None:
        claim = self.names.claim(row.get("comment", ""))
        if claim is None:
            like_ours = self.names.named(row.get("name", "").lower().replace("_", "-"))
            return kept(_FOREIGN) if like_ours else None
        if claim.is_ours:
            return claim
        inside = databases.get(row.get("database_name", ""))
        if inside and inside.is_ours:
            return left_over("no stack has it")
        asked = _ROLES.get(kind)
        return left_over("no stack has it") if asked and asked(self.vendor, row["name"]) == self.role_arn else claim

    def deployer(self, wanted: Wanted) -> Iterator[Item]:
        """It can't be seen in lists, as it belongs to an admin; it is there, because we came in with it."""
        by_admin = kept(_BY_ADMIN)
        yield by_admin.item(SNOWFLAKE, "snowflake_user", wanted.user)
        yield by_admin.item(SNOWFLAKE, "snowflake_role", wanted.role)
        yield by_admin.item(SNOWFLAKE, "snowflake_warehouse", wanted.deployer_warehouse)
        role = sql.identifier(self.vendor.login.role)
        for row in self.vendor.run(sql.statement("SHOW GRANTS TO ROLE {role}", role=role)):
            if row.get("privilege") != "OWNERSHIP":
                told = f"{row.get('privilege')} on {row.get('granted_on', '').lower()} {row.get('name')}"
                yield by_admin.item(SNOWFLAKE, "snowflake_grant", told, where=(wanted.role,))


def _of_volume(vendor: Snowflake, name: str) -> str:
    return trust.volume_side(vendor, name).role_arn


def _of_integration(vendor: Snowflake, name: str) -> str:
    return trust.integration_side(vendor, name).role_arn


_ROLES: Final[dict[str, Callable[[Snowflake, str], str]]] = {
    "snowflake_external_volume": _of_volume,
    "snowflake_catalog_integration": _of_integration,
}
