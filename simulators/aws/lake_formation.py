"""Lake Formation: the settings of the account, and its permissions on databases and tables of Glue. MiniStack
has neither.

- Without settings of a test, IAM alone decides, as in an account that nobody has set up for Lake Formation:
  the defaults of new databases and tables give all permissions to IAMAllowedPrincipals.
- In an account that Lake Formation governs, a call to Glue needs a permission of Lake Formation besides
  IAM's, on the catalog, the database or the table. Without it, it is refused with AccessDeniedException,
  "Insufficient Lake Formation permission(s): Required Describe on <name>". Source: Lake Formation's developer
  guide, "Changing the default settings for your data lake", "Overview of Lake Formation permissions" and
  "Lake Formation permissions reference"; the words are those of public bug reports (aws-samples/dbt-glue
  #548).
- Whoever creates a database or table has all permissions on it, those on a database without those on the
  tables that others create. A data lake administrator may create databases and see everything, and alone
  grants permissions, beside creators. Source: developer guide, "Implicit Lake Formation permissions".
- SELECT may be on some columns of a table only. Whoever has it sees the table, and with Athena these columns,
  if the table's files are in a location that is registered; Athena then reads them with the role of the
  location, and who asks needs lakeformation:GetDataAccess and no right on the files. In another location, IAM
  alone decides about the files, and so about all columns. Source: Athena's user guide, "Use Athena to query
  data registered with Lake Formation"; developer guide, "Underlying data access control".
- Whoever has a permission on a database but not on a table of it, doesn't see the table in Glue's lists.
  Source: developer guide, "Metadata permissions".

Stricter than AWS: columns that the table doesn't have can't be granted, nor a location inside another one
registered. Databases and tables that exist when Lake Formation begins to govern need permissions too;
here nothing but DESCRIBE and SELECT on columns lets a caller see metadata, ALL apart.

POST lake-formation {"governs": true, "administrators": ["<ARN>", …], "grants": {"<name of a role>":
["DESCRIBE", …]}} under /_simulator changes the settings; `grants` has permissions on everything. It ends all
other permissions.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

from simulators.aws import controls, settings
from simulators.aws.hooks import import_ministack
from simulators.core import control

EVERYBODY: Final = "IAM_ALLOWED_PRINCIPALS"
_IAM: Final = {"Principal": {"DataLakePrincipalIdentifier": EVERYBODY}, "Permissions": ["ALL"]}
#: The permission that an action of Glue needs, and its name in the refusal.
REQUIRED: Final = {
    "glue:CreateDatabase": "Create Database",
    "glue:GetDatabase": "Describe",
    "glue:UpdateDatabase": "Alter",
    "glue:DeleteDatabase": "Drop",
    "glue:CreateTable": "Create Table",
    "glue:GetTable": "Describe",
    "glue:GetTables": "Describe",
    "glue:UpdateTable": "Alter",
    "glue:DeleteTable": "Drop",
}
_IMPLICIT_OF_ADMINISTRATORS: Final = frozenset({"CREATE_DATABASE", "DESCRIBE"})
#: The permissions that each kind of resource has.
PERMISSIONS: Final = {
    "catalog": frozenset({"ALL", "CREATE_DATABASE", "DESCRIBE"}),
    "database": frozenset({"ALL", "ALTER", "CREATE_TABLE", "DESCRIBE", "DROP"}),
    "table": frozenset({"ALL", "ALTER", "DELETE", "DESCRIBE", "DROP", "INSERT", "SELECT"}),
}
_NOT_AUTHORIZED: Final = (
    "Resource does not exist or requester is not authorized to access requested permissions."
)


class Refused(Exception):
    """Lake Formation refuses the call with this error code and message."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(f"{code}: {message}")
        self.code = code
        self.message = message


class Resource(NamedTuple):
    """The catalog (all empty), a database, a table, some columns of a table, or with `*` all tables of a
    database.
    """

    database: str = ""
    table: str = ""
    columns: tuple[str, ...] = ()

    @classmethod
    def read(cls, document: Mapping[str, Any]) -> Resource:
        """Read the Resource of Lake Formation's API, or of CloudFormation. Raises Refused."""
        if "Catalog" in document:
            return cls()
        if "Database" in document:
            return cls(str(document["Database"]["Name"]).lower())
        if "Table" in document:
            table = document["Table"]
            name = "*" if "TableWildcard" in table else str(table["Name"]).lower()
            return cls(str(table["DatabaseName"]).lower(), name)
        if "TableWithColumns" in document and document["TableWithColumns"].get("ColumnNames"):
            table = document["TableWithColumns"]
            columns = sorted(str(column).lower() for column in table["ColumnNames"])
            return cls(str(table["DatabaseName"]).lower(), str(table["Name"]).lower(), tuple(columns))
        raise Refused("InvalidInputException", f"not simulated: permissions on {', '.join(document)}")

    @property
    def kind(self) -> str:
        if self.table:
            return "table"
        return "database" if self.database else "catalog"

    def list_granting(self) -> list[Resource]:
        """Return the resources whose permissions count for this one."""
        return [self, Resource(self.database, "*")] if self.table else [self]

    def describe(self) -> dict[str, Any]:
        """Return the Resource of Lake Formation's API."""
        if self.columns:
            columns = list(self.columns)
            named = {"DatabaseName": self.database, "Name": self.table, "ColumnNames": columns}
            return {"TableWithColumns": named}
        if self.table == "*":
            return {"Table": {"DatabaseName": self.database, "TableWildcard": {}}}
        if self.table:
            return {"Table": {"DatabaseName": self.database, "Name": self.table}}
        return {"Database": {"Name": self.database}} if self.database else {"Catalog": {}}


@dataclass
class LakeFormation:
    """`grants` has the permissions of roles on everything, by the role's name; `permissions` those of
    principals on resources, in capitals with underscores.
    """

    governs: bool = False
    administrators: list[str] = field(default_factory=list)
    grants: dict[str, list[str]] = field(default_factory=dict)
    permissions: dict[tuple[str, Resource], set[str]] = field(default_factory=dict)
    #: The role of each registered location, by the location's ARN.
    locations: dict[str, str] = field(default_factory=dict)

    def register(self, arn: str, role_arn: str) -> None:
        """Raises Refused."""
        if any(_overlap(f"{arn}/", f"{location}/") for location in self.locations):
            raise Refused("AlreadyExistsException", f"Resource {arn} is already registered")
        self.locations[arn] = role_arn

    def find_location_role(self, url: str) -> str:
        """Return the role of the registered location with this file, "" if there is none."""
        path = url.removeprefix("s3://").removeprefix("s3a://")
        for arn, role in self.locations.items():
            if path.startswith(arn.rpartition(":")[2].rstrip("/") + "/"):
                return role
        return ""

    def list_columns(self, principal: str, table: Resource) -> list[str] | None:
        """Return the columns of a table that the principal may select, None for all of them."""
        if self.is_permitted(principal, "SELECT", table):
            return None
        arn = find_principal(principal)
        columns: set[str] = set()
        for resource, permissions in self._list_on_columns(arn, table):
            if "SELECT" in permissions:
                columns |= set(resource.columns)
        return sorted(columns)

    def _list_on_columns(self, arn: str, table: Resource) -> list[tuple[Resource, set[str]]]:
        return [
            (resource, permissions)
            for (holder, resource), permissions in self.permissions.items()
            if holder in (arn, EVERYBODY) and resource.columns and resource[:2] == table[:2]
        ]

    def find_refusal(self, action: str, principal: str, resource: str) -> str:
        """Return why a call of Glue is refused, "" if it is not. `principal` and `resource` are ARNs."""
        needed = REQUIRED.get(action, "")
        if not self.governs or not needed:
            return ""
        target = _find_target(action, resource)
        if target is None or self.is_permitted(principal, needed.upper().replace(" ", "_"), target):
            return ""
        if action == "glue:GetTables" and self._sees_a_table(principal, target.database):
            return ""
        if _is_missing(target) and self.is_seen(principal, Resource(target.database)):
            return ""
        name = target.table or target.database or "Catalog"
        if action == "glue:CreateDatabase":
            name = "Catalog"
        return f"Insufficient Lake Formation permission(s): Required {needed} on {name}"

    def is_permitted(self, principal: str, permission: str, target: Resource) -> bool:
        if not self.governs:
            return True
        arn = find_principal(principal)
        if arn in self.administrators and permission in _IMPLICIT_OF_ADMINISTRATORS:
            return True
        if permission == "DESCRIBE" and target.table and self._list_on_columns(arn, target):
            return True
        return bool({"ALL", permission} & self._list_permissions(arn, target))

    def is_seen(self, principal: str, target: Resource) -> bool:
        """Return whether Glue's lists have the database or table for this principal."""
        arn = find_principal(principal)
        if not self.governs or arn in self.administrators or self._list_permissions(arn, target):
            return True
        return bool(target.table and self._list_on_columns(arn, target))

    def _list_permissions(self, arn: str, target: Resource) -> set[str]:
        permissions = set(self.grants.get(arn.rpartition("/")[2].rpartition(":")[2], []))
        for resource in target.list_granting():
            for principal in (arn, EVERYBODY):
                permissions |= self.permissions.get((principal, resource), set())
        return permissions

    def _sees_a_table(self, principal: str, database: str) -> bool:
        arn = find_principal(principal)
        return any(
            resource.database == database and resource.table and holder in (arn, EVERYBODY)
            for holder, resource in self.permissions
        )

    def own(self, principal: str, target: Resource) -> None:
        """Give all permissions to the creator of a database or table."""
        self.permissions.setdefault((find_principal(principal), target), set()).add("ALL")

    def forget(self, target: Resource) -> None:
        """Remove the permissions on a table that was dropped, or on a database and its tables."""
        for holder, resource in list(self.permissions):
            is_inside = not target.table and resource.database == target.database
            if resource[:2] == target[:2] or is_inside:
                del self.permissions[holder, resource]

    def grant(self, caller: str, principal: str, target: Resource, permissions: Iterable[str]) -> None:
        """Raises Refused."""
        self._require_right_to_grant(caller, target)
        _require_valid(principal, target, permissions)
        self.permissions.setdefault((principal, target), set()).update(permissions)

    def revoke(self, caller: str, principal: str, target: Resource, permissions: Iterable[str]) -> None:
        """Raises Refused."""
        self._require_right_to_grant(caller, target)
        held = self.permissions.get((principal, target), set())
        if not set(permissions) <= held:
            raise Refused("InvalidInputException", "No permissions revoked. Grantee does not have them.")
        held -= set(permissions)
        if not held:
            del self.permissions[principal, target]

    def _require_right_to_grant(self, caller: str, target: Resource) -> None:
        arn = find_principal(caller)
        is_creator = bool(target.database) and "ALL" in self._list_permissions(arn, target)
        if self.governs and arn not in self.administrators and not is_creator:
            raise Refused("AccessDeniedException", _NOT_AUTHORIZED)

    def describe_settings(self) -> dict[str, Any]:
        defaults = [] if self.governs else [_IAM]
        return {
            "DataLakeAdmins": [{"DataLakePrincipalIdentifier": arn} for arn in self.administrators],
            "CreateDatabaseDefaultPermissions": defaults,
            "CreateTableDefaultPermissions": defaults,
        }

    def list_grants(self) -> list[dict[str, Any]]:
        return [
            {
                "Principal": {"DataLakePrincipalIdentifier": principal},
                "Resource": resource.describe(),
                "Permissions": sorted(permissions),
                "PermissionsWithGrantOption": [],
            }
            for (principal, resource), permissions in self.permissions.items()
        ]


ACCOUNT: Final = LakeFormation()


def find_principal(arn: str) -> str:
    """Return the ARN of the role of a session; every other ARN unchanged."""
    if ":assumed-role/" not in arn:
        return arn
    name = arn.split("/")[1]
    role = import_ministack("services.iam")._roles.get(name)
    return str(role["Arn"]) if role else f"arn:aws:iam::{settings.ACCOUNT}:role/{name}"


def _find_target(action: str, arn: str) -> Resource | None:
    """Return the resource on which the action needs a permission. None for the further ARNs that IAM checks:
    a call on a table also has those of its database and of the catalog.
    """
    kind, _, name = arn.rpartition(":")[2].partition("/")
    is_about_table = action in ("glue:GetTable", "glue:UpdateTable", "glue:DeleteTable", "glue:CreateTable")
    if is_about_table and kind != "table":
        return None
    if not is_about_table and kind != "database":
        return None
    if action == "glue:CreateDatabase":
        return Resource()
    database, _, table = name.partition("/")
    return Resource(database) if action == "glue:CreateTable" else Resource(database, table)


def _is_missing(target: Resource) -> bool:
    """Return whether this is a table that doesn't exist. Glue says so to those who see its database."""
    tables = import_ministack("services.glue")._tables
    return bool(target.table) and f"{target.database}/{target.table}" not in tables


def _require_valid(principal: str, target: Resource, permissions: Iterable[str]) -> None:
    glue = import_ministack("services.glue")
    iam = import_ministack("services.iam")
    allowed = frozenset({"SELECT"}) if target.columns else PERMISSIONS[target.kind]
    if not set(permissions) <= allowed:
        raise Refused("InvalidInputException", "Permissions modification is invalid.")
    if target.database and target.database not in glue._databases:
        raise Refused("EntityNotFoundException", f"Database {target.database} not found.")
    is_one_table = target.table not in ("", "*")
    if is_one_table and f"{target.database}/{target.table}" not in glue._tables:
        raise Refused("EntityNotFoundException", f"Table {target.table} not found.")
    if target.columns:
        _require_columns(glue._tables[f"{target.database}/{target.table}"], target)
    principals = [principal["Arn"] for principal in (*iam._roles.values(), *iam._users.values())]
    if principal not in (EVERYBODY, *principals):
        raise Refused("InvalidInputException", f"Invalid principal, {principal}")


def _overlap(one: str, other: str) -> bool:
    return one.startswith(other) or other.startswith(one)


def _require_columns(entry: Mapping[str, Any], target: Resource) -> None:
    described = entry.get("StorageDescriptor", {}).get("Columns", [])
    known = {str(column["Name"]).lower() for column in described}
    if unknown := [column for column in target.columns if column not in known]:
        raise Refused("EntityNotFoundException", f"Column {unknown[0]} not found in {target.table}.")


@controls.register("POST", "/lake-formation")
def change(request: control.Request) -> control.Response:
    account = LakeFormation(**request.read_document())
    ACCOUNT.governs = account.governs
    ACCOUNT.administrators = account.administrators
    ACCOUNT.grants = account.grants
    ACCOUNT.permissions.clear()
    ACCOUNT.locations.clear()
    return control.build_json_response({"governs": ACCOUNT.governs})
