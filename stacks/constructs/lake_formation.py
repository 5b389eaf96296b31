"""Permissions of Lake Formation on databases and tables in Glue, where it governs the account's catalog.

Without Lake Formation, IAM's permissions are enough, and nothing is created. Source: Lake Formation developer
guide, "Lake Formation permissions reference".
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from typing import Final

from aws_cdk import RemovalPolicy, Stack
from aws_cdk import aws_lakeformation as lakeformation
from constructs import Construct, IDependable

from stacks.constructs.statements import acknowledge

READS_DATABASE: Final = ("DESCRIBE",)
READS_TABLES: Final = ("DESCRIBE", "SELECT")
DROPS_TABLES: Final = ("DESCRIBE", "DROP")


class LakeFormationGrants(Construct):
    """Grants to one role. `all` has them; it is empty unless Lake Formation `governs` the catalog."""

    def __init__(self, scope: Construct, id: str, *, governs: bool, role_arn: str) -> None:
        super().__init__(scope, id)
        self._governs = governs
        self._role_arn = role_arn
        self.all: list[lakeformation.CfnPrincipalPermissions] = []

    def grant_on_catalog(self, id: str, permissions: Sequence[str]) -> None:
        self._grant(id, lakeformation.CfnPrincipalPermissions.ResourceProperty(catalog={}), permissions)
        for grant in self.all:
            acknowledge(
                grant,
                "CloudFormation's user guide and Lake Formation's API have an object for the catalog; the "
                "schema that CloudFormation publishes says text.",
                "CloudFormation-Validate::F3012",
            )

    def grant_on_database(self, id: str, database: str, permissions: Sequence[str]) -> None:
        of = lakeformation.CfnPrincipalPermissions
        account = Stack.of(self).account
        self._grant(
            id,
            of.ResourceProperty(database=of.DatabaseResourceProperty(catalog_id=account, name=database)),
            permissions,
        )

    def grant_on_tables(self, id: str, database: str, permissions: Sequence[str]) -> None:
        """Grant on all tables of the database, those that are created later among them."""
        of = lakeformation.CfnPrincipalPermissions
        account = Stack.of(self).account
        tables = of.TableResourceProperty(catalog_id=account, database_name=database, table_wildcard={})
        self._grant(id, of.ResourceProperty(table=tables), permissions)

    def grant_on_table(self, id: str, database: str, table: str, permissions: Sequence[str]) -> None:
        of = lakeformation.CfnPrincipalPermissions
        named = of.TableResourceProperty(
            catalog_id=Stack.of(self).account, database_name=database, name=table
        )
        self._grant(id, of.ResourceProperty(table=named), permissions)

    def grant_on_columns(self, id: str, database: str, table: str, columns: Sequence[str]) -> None:
        """Grant SELECT on these columns of the table, which must exist. They are named one by one: a column
        that the table gets later is not among them.
        """
        of = lakeformation.CfnPrincipalPermissions
        named = of.TableWithColumnsResourceProperty(
            catalog_id=Stack.of(self).account,
            database_name=database,
            name=table,
            column_names=list(columns),
        )
        self._grant(id, of.ResourceProperty(table_with_columns=named), ["SELECT"])

    def grant_reading(self, database: str) -> None:
        """Grant reading the database and all of its tables."""
        self.grant_on_database("ReadDatabase", database, READS_DATABASE)
        self.grant_on_tables("ReadTables", database, READS_TABLES)

    def keep_until_dropped(self) -> None:
        """Leave the grants when the stack is deleted. Lake Formation removes them when somebody drops the
        database.
        """
        for grant in self.all:
            grant.apply_removal_policy(RemovalPolicy.RETAIN)

    def _grant(
        self,
        id: str,
        resource: lakeformation.CfnPrincipalPermissions.ResourceProperty,
        permissions: Sequence[str],
    ) -> None:
        if not self._governs:
            return
        principal = lakeformation.CfnPrincipalPermissions.DataLakePrincipalProperty(
            data_lake_principal_identifier=self._role_arn
        )
        grant = lakeformation.CfnPrincipalPermissions(
            self,
            id,
            permissions=list(permissions),
            permissions_with_grant_option=[],
            principal=principal,
            resource=resource,
        )
        self.all.append(grant)


def let_see_database(
    stack: Stack, *, role_arn: str, database: str, created_by: Sequence[IDependable]
) -> LakeFormationGrants:
    """Let a role see a database, which exists after `created_by`. A stack has the grant once for all tables:
    two would be one object in Lake Formation.
    """
    content = json.dumps(stack.resolve([role_arn, database]), sort_keys=True)
    id = f"SeesDatabase{hashlib.sha256(content.encode()).hexdigest()[:8]}"
    found = stack.node.try_find_child(id)
    if isinstance(found, LakeFormationGrants):
        return found
    grants = LakeFormationGrants(stack, id, governs=True, role_arn=role_arn)
    grants.grant_on_database("Database", database, READS_DATABASE)
    for grant in grants.all:
        grant.node.add_dependency(*created_by)
    return grants
