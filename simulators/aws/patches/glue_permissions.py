"""A Glue Data Catalog call needs its table, the table's database and the catalog.

AWS checks each call on the resource and on all that contain it (Glue Developer Guide, identity-based policy examples:
permission on the catalog and the database is also required). Stock MiniStack checks only the database for a call on a
table, looks for `table/<name>` for a call on a database, and never asks for the catalog, so it denies policies that
AWS allows and allows what AWS denies.

Left as stock has it: AWS leaves out of GetTables what the caller may not see; here GetTables lists the whole database.
"""

from __future__ import annotations

import json
from typing import Any

from simulators.aws.hooks import Patch

PATCH = Patch("glue_permissions")
_OF_A_DATABASE = frozenset({"CreateDatabase", "GetDatabase", "UpdateDatabase", "DeleteDatabase"})


@PATCH.replaces("ministack.core.iam_evaluator", "enforce", "access_key_id iam_action service region resource_arn service_context")
def enforce(  # noqa: PLR0917  (MiniStack's own parameters)
    original: Any,
    access_key_id: str,
    iam_action: str,
    service: str,
    region: str,
    resource_arn: str = "*",
    service_context: dict[str, Any] | None = None,
) -> Any:
    for arn in [resource_arn, *(containers(resource_arn) if service == "glue" else [])]:
        denied = original(access_key_id, iam_action, service, region, arn, service_context)
        if denied:
            return denied
    return None


@PATCH.names_resources("glue")
def catalog_resource(target: str, body: bytes) -> str | None:
    """`database/<name>` or `table/<database>/<name>`; None for a call on something else than the Data Catalog."""
    try:
        request = json.loads(body or b"{}")
    except ValueError:
        return None
    action = target.rpartition(".")[2]
    if action in _OF_A_DATABASE:
        return f"database/{_name(request, 'DatabaseInput')}".lower()
    database = request.get("DatabaseName")
    if not database:
        return None
    table = _name(request, "TableInput")
    return (f"table/{database}/{table}" if table else f"database/{database}").lower()


def _name(request: dict[str, Any], within: str) -> str:
    return str(request.get("Name") or request.get("TableName") or request.get(within, {}).get("Name") or "")


def containers(arn: str) -> list[str]:
    prefix, _, resource = arn.rpartition(":")
    kind, _, name = resource.partition("/")
    database = [f"{prefix}:database/{name.partition('/')[0]}"] if kind == "table" else []
    return [*database, f"{prefix}:catalog"] if kind in ("table", "database") else []
