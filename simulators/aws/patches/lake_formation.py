"""Lake Formation: permissions that CloudFormation grants, those of creators, and what lists leave out.

- lake_formation: AWS::LakeFormation::PrincipalPermissions grants permissions and revokes them when it is
  deleted. It fails with AccessDeniedException unless CloudFormation's role is a data lake administrator or
  created the database, where Lake Formation governs; with EntityNotFoundException if the database doesn't
  exist, and with InvalidInputException for a principal that doesn't exist or a permission that the resource
  doesn't have. AWS::LakeFormation::Resource registers a location.
  Databases and tables give all permissions to their creator, and take all permissions with them when they are
  dropped. GetTables and GetDatabases leave out what the caller has no permission on. Databases
  of stacks need permissions of CloudFormation's role. Stock refuses the type, and has no Lake Formation.
  Source: template reference, AWS::LakeFormation::PrincipalPermissions; Lake Formation's developer guide (see
  simulators/aws/lake_formation.py).

See stock: `.venv/bin/python -m pytest simulators/tests/aws/test_patches.py -m simulators
-k "stock and lake_formation"`
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from typing import Any, Final

from simulators.aws import keys
from simulators.aws.answers import Provisioned, ProvisioningFailed
from simulators.aws.hooks import Answer, Original, Patch, import_ministack
from simulators.aws.lake_formation import ACCOUNT, Refused, Resource

PERMISSIONS = Patch("lake_formation")
_GLUE: Final = "ministack.services.glue"
_TYPE: Final = "AWS::LakeFormation::PrincipalPermissions"
_LOCATION: Final = "AWS::LakeFormation::Resource"
_DATABASE: Final = "AWS::Glue::Database"


@PERMISSIONS.provisions(_TYPE, "create")
def create_permissions(logical_id: str, props: dict[str, Any], stack_name: str) -> Provisioned:
    """Grant permissions. Every property is create-only: a change grants the new ones and revokes the old."""
    principal, resource = _read_grant(props)
    try:
        ACCOUNT.grant(keys.DEPLOYER.get(), principal, resource, props["Permissions"])
    except Refused as refusal:
        raise ProvisioningFailed(
            f"{refusal.message} (Service: LakeFormation, Status Code: 400, {refusal.code})"
        ) from None
    digest = hashlib.sha256(json.dumps(props, sort_keys=True).encode()).hexdigest()
    return f"{principal}|{digest}", {"PrincipalIdentifier": principal, "ResourceIdentifier": str(resource)}


@PERMISSIONS.provisions(_TYPE, "delete")
def delete_permissions(physical_id: str, props: dict[str, Any]) -> None:
    """Revoke the permissions, unless they went with the database."""
    principal, resource = _read_grant(props)
    if (principal, resource) not in ACCOUNT.permissions:
        return
    try:
        ACCOUNT.revoke(keys.DEPLOYER.get(), principal, resource, props["Permissions"])
    except Refused as refusal:
        raise ProvisioningFailed(f"{refusal.message} (Service: LakeFormation, {refusal.code})") from None


@PERMISSIONS.provisions(_LOCATION, "create")
def register_location(logical_id: str, props: dict[str, Any], stack_name: str) -> Provisioned:
    """Register a location. Without a role, Lake Formation uses its service-linked one, which isn't
    simulated.
    """
    if not props.get("RoleArn"):
        raise ProvisioningFailed("not simulated: the service-linked role of Lake Formation")
    try:
        ACCOUNT.register(str(props["ResourceArn"]), str(props["RoleArn"]))
    except Refused as refusal:
        raise ProvisioningFailed(f"{refusal.message} (Service: LakeFormation, {refusal.code})") from None
    return str(props["ResourceArn"]), {}


@PERMISSIONS.provisions(_LOCATION, "delete")
def deregister_location(physical_id: str, props: dict[str, Any]) -> None:
    ACCOUNT.locations.pop(physical_id, None)


def _read_grant(props: dict[str, Any]) -> tuple[str, Resource]:
    principal = str(props["Principal"]["DataLakePrincipalIdentifier"])
    return principal, Resource.read(props["Resource"])


@PERMISSIONS.provisions(_DATABASE, "create", original=True)
def create_database_of_stack(
    original: Callable[..., Provisioned], logical_id: str, props: dict[str, Any], stack_name: str
) -> Provisioned:
    _require("glue:CreateDatabase", str(props.get("DatabaseInput", {}).get("Name", "")))
    return original(logical_id, props, stack_name)


@PERMISSIONS.provisions(_DATABASE, "delete", original=True)
def delete_database_of_stack(original: Callable[..., None], physical_id: str, props: dict[str, Any]) -> None:
    if physical_id in import_ministack("services.glue")._databases:
        _require("glue:DeleteDatabase", physical_id)
    original(physical_id, props)


def _require(action: str, database: str) -> None:
    """Raise ProvisioningFailed if CloudFormation's role lacks a permission of Lake Formation."""
    arn = f"arn:aws:glue:::database/{database.lower()}"
    if refusal := ACCOUNT.find_refusal(action, keys.DEPLOYER.get(), arn):
        raise ProvisioningFailed(f"{refusal} (Service: Glue, Status Code: 400, AccessDeniedException)")


@PERMISSIONS.replaces(_GLUE, "_create_database", "data")
def create_database(original: Original, data: dict[str, Any]) -> Answer:
    answer = original(data)
    if answer[0] == 200:
        ACCOUNT.own(_get_caller(), Resource(data["DatabaseInput"]["Name"].lower()))
    return answer


@PERMISSIONS.replaces(_GLUE, "_create_table", "data")
def create_table(original: Original, data: dict[str, Any]) -> Answer:
    answer = original(data)
    if answer[0] == 200:
        table = Resource(data["DatabaseName"].lower(), data["TableInput"]["Name"].lower())
        ACCOUNT.own(_get_caller(), table)
    return answer


@PERMISSIONS.replaces(_GLUE, "_delete_database", "data")
def delete_database(original: Original, data: dict[str, Any]) -> Answer:
    answer = original(data)
    if answer[0] == 200:
        ACCOUNT.forget(Resource(data["Name"].lower()))
    return answer


@PERMISSIONS.replaces(_GLUE, "_delete_table", "data")
def delete_table(original: Original, data: dict[str, Any]) -> Answer:
    answer = original(data)
    if answer[0] == 200:
        ACCOUNT.forget(Resource(data["DatabaseName"].lower(), data["Name"].lower()))
    return answer


@PERMISSIONS.replaces(_GLUE, "_get_tables", "data")
def get_tables(original: Original, data: dict[str, Any]) -> Answer:
    return _leave_out(
        original(data), "TableList", lambda entry: Resource(data["DatabaseName"], entry["Name"])
    )


@PERMISSIONS.replaces(_GLUE, "_get_databases", "data")
def get_databases(original: Original, data: dict[str, Any]) -> Answer:
    return _leave_out(original(data), "DatabaseList", lambda entry: Resource(entry["Name"]))


def _leave_out(answer: Answer, name: str, find: Callable[[dict[str, Any]], Resource]) -> Answer:
    """Return the answer without what the caller has no permission on."""
    document = json.loads(answer[2])
    if not ACCOUNT.governs or name not in document:
        return answer
    caller = _get_caller()
    document[name] = [entry for entry in document[name] if ACCOUNT.is_seen(caller, find(entry))]
    return answer[0], answer[1], json.dumps(document).encode()


def _get_caller() -> str:
    return keys.DEPLOYER.get() or str(import_ministack("core.iam_evaluator").caller_arn())


PATCHES: Final = (PERMISSIONS,)
