"""The objects of a deployment in Snowflake: those whose comment contains a name of the deployment, and the
deployer's.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

import attrs

from config.deployments.snowflake_model import Snowflake as Wanted
from lakeferry.deployment.context import DeploymentContext
from lakeferry.inventory.model import SNOWFLAKE, Item, Ownership, orphaned, retained
from lakeferry.inventory.ownership import VendorNames
from lambdas.snowflake import sql
from lambdas.snowflake.client import Row, Snowflake
from lambdas.snowflake.resources import trust

#: The kinds and the statements that list them, containers before their contents.
KINDS: Final = {
    "snowflake_warehouse": "SHOW WAREHOUSES",
    "snowflake_database": "SHOW DATABASES",
    "snowflake_schema": "SHOW SCHEMAS IN ACCOUNT",
    "snowflake_iceberg_table": "SHOW ICEBERG TABLES IN ACCOUNT",
    "snowflake_view": "SHOW VIEWS IN ACCOUNT",
    "snowflake_user": "SHOW USERS",
    "snowflake_role": "SHOW ROLES",
    "snowflake_external_volume": "SHOW EXTERNAL VOLUMES",
    "snowflake_catalog_integration": "SHOW CATALOG INTEGRATIONS",
}
_CONTAINERS: Final = ("database_name", "schema_name")
_FOREIGN: Final = "name matches this deployment, but its comment doesn't: somebody else created it"
_BY_ADMIN: Final = "created by an admin, for the deployment to work with"


def list_items(ctx: DeploymentContext, names: VendorNames) -> list[Item]:
    """Raises CommandFailed, LakeferryError."""
    settings = ctx.deployment.snowflake
    assert settings is not None
    listing = _Listing(ctx.snowflake(), names, ctx.role_arn("snowflake"))
    return [*listing.items(), *listing.deployer(settings)]


@attrs.frozen
class _Listing:
    """`role_arn` is the role that the deployment's volume and integration assume."""

    vendor: Snowflake
    names: VendorNames
    role_arn: str

    def items(self) -> Iterator[Item]:
        databases: dict[str, Ownership] = {}
        for kind, show in KINDS.items():
            for row in self.vendor.run(sql.statement(show)):
                name = row.get("name", "")
                parents = tuple(filter(None, (row.get(part, "") for part in _CONTAINERS)))
                ownership = self._decide_ownership(kind, row, databases)
                if ownership is None:
                    continue
                if kind == "snowflake_database":
                    databases[name] = ownership
                yield ownership.item(SNOWFLAKE, kind, name, row.get("comment", ""), parents)

    def _decide_ownership(self, kind: str, row: Row, databases: dict[str, Ownership]) -> Ownership | None:
        ownership = self.names.ownership(row.get("comment", ""))
        if ownership is None:
            is_similar = self.names.find(row.get("name", "").lower().replace("_", "-"))
            return retained(_FOREIGN) if is_similar else None
        if ownership.is_ours:
            return ownership
        inside = databases.get(row.get("database_name", ""))
        if inside and inside.is_ours:
            return orphaned("no stack has it")
        role_of = _ROLES.get(kind)
        return (
            orphaned("no stack has it")
            if role_of and role_of(self.vendor, row["name"]) == self.role_arn
            else ownership
        )

    def deployer(self, settings: Wanted) -> Iterator[Item]:
        """Yield the deployer's objects without listing them, and the grants to its role.

        SHOW doesn't return them, because they belong to an admin; the login proves that they exist.
        """
        by_admin = retained(_BY_ADMIN)
        yield by_admin.item(SNOWFLAKE, "snowflake_user", settings.user)
        yield by_admin.item(SNOWFLAKE, "snowflake_role", settings.role)
        yield by_admin.item(SNOWFLAKE, "snowflake_warehouse", settings.deployer_warehouse)
        role = sql.identifier(self.vendor.login.role)
        for row in self.vendor.run(sql.statement("SHOW GRANTS TO ROLE {role}", role=role)):
            if row.get("privilege") != "OWNERSHIP":
                grant = f"{row.get('privilege')} on {row.get('granted_on', '').lower()} {row.get('name')}"
                yield by_admin.item(SNOWFLAKE, "snowflake_grant", grant, parents=(settings.role,))


#: Functions that read the IAM role of an object.
_ROLES: Final[dict[str, Callable[[Snowflake, str], str]]] = {
    "snowflake_external_volume": lambda vendor, name: trust.read_volume_side(vendor, name).role_arn,
    "snowflake_catalog_integration": lambda vendor, name: trust.read_integration_side(vendor, name).role_arn,
}
