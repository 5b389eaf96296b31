"""A check of the trust between Snowflake and AWS. It creates nothing; it is ready once AWS accepts Snowflake.

The volume and the integration are created before the IAM role, whose trust policy contains their values. This
check runs after the role and before the tables are created. Snowflake returns AWS's message, which doesn't
say which of the two values differs. So every message contains Snowflake's values, and these are first
compared with the role's.
"""

from __future__ import annotations

import json
import re
from typing import Any, Final

import attrs

from lambdas.shared.errors import (
    DETAIL_LENGTH,
    Conflict,
    ErrorKind,
    NotFound,
    Refused,
    ResourceFailed,
    shorten_detail,
)
from lambdas.shared.resource import Outputs
from lambdas.snowflake import errors as snowflake_errors
from lambdas.snowflake import sql
from lambdas.snowflake.client import Snowflake
from lambdas.snowflake.errors import mentions
from lambdas.snowflake.lookup import Ctx
from lambdas.snowflake.properties import ROLE_ARN, TrustProps

PROPERTIES: Final = TrustProps
#: There is nothing that could be left.
ABSENCE_IS_SHOWN: Final = True
TIMEOUT_SECONDS: Final = 3000.0
#: Fields of a storage location: URL, role, external id.
LOCATION: Final = ("STORAGE_BASE_URL", "STORAGE_AWS_ROLE_ARN", "STORAGE_AWS_EXTERNAL_ID")
#: Seconds for which a new role may not be known everywhere, and a new policy may not be effective.
_ROLE_PATIENCE: Final = 600.0
#: Tableflow creates the Glue database with its first table.
_NAMESPACE_PATIENCE: Final = 1800.0
#: A read-only volume can't be tested for writing, and in some releases of Snowflake not for reading either.
_PASSED: Final = ("PASSED", "SKIPPED", "UNVERIFIED")
#: Characters of AWS's message that are shown. The message covers several checks, and each names the missing
#: action late.
_REASON_LENGTH: Final = 900
_PREFIXES: Final = ("API_AWS_", "GLUE_AWS_")
_DESC_VOLUME: Final = "DESC EXTERNAL VOLUME {name}"
_DESC_INTEGRATION: Final = "DESC CATALOG INTEGRATION {name}"
_VERIFY_VOLUME: Final = "SELECT SYSTEM$VERIFY_EXTERNAL_VOLUME({name}) AS RESULT"
_VERIFY_INTEGRATION: Final = "SELECT SYSTEM$VERIFY_CATALOG_INTEGRATION({name}) AS RESULT"
#: Lists one level below the catalog's root. By default Snowflake lists the integration's namespace, which is
#: empty for Glue.
_LIST_NAMESPACES: Final = "SELECT SYSTEM$LIST_NAMESPACES_FROM_CATALOG({name}, '', 1) AS RESULT"
_TABLES: Final = "SHOW ICEBERG TABLES IN ACCOUNT"


def create(context: Ctx, spec: TrustProps) -> str:
    return _build_id(spec)


def is_ready(context: Ctx, spec: TrustProps, object_id: str) -> Outputs | None:
    """Check both sides.

    The check of the volume doesn't read: only creating a table shows whether the policy allows that.
    """
    vendor = context.vendor
    volume = sql.to_exact_name(spec.volume)
    integration = sql.to_exact_name(spec.integration)
    storage = read_volume_side(vendor, volume)
    catalog = read_integration_side(vendor, integration)
    require_same(storage, spec.volume_principal, spec.volume_external_id)
    require_same(catalog, spec.integration_principal, spec.integration_external_id)
    verify_volume(vendor, volume, storage)
    verify_integration(vendor, integration, catalog)
    if spec.namespace:
        require_namespace(vendor, integration, catalog, spec.namespace)
    return {"volume": volume, "integration": integration}


def update(context: Ctx, spec: TrustProps, object_id: str) -> None:
    """Do nothing: `is_ready` checks again."""


def delete(context: Ctx, spec: TrustProps, object_id: str) -> None:
    """Do nothing: the check creates nothing."""


def find_existing(context: Ctx, spec: TrustProps, known_id: str | None) -> list[str]:
    return [] if context.deleting else [_build_id(spec)]


def _build_id(spec: TrustProps) -> str:
    return f"{sql.to_exact_name(spec.volume)}/{sql.to_exact_name(spec.integration)}"


@attrs.frozen
class Side:
    """What a volume or an integration presents to AWS, the role that it assumes, and the location that it
    uses.
    """

    what: str
    principal: str
    external_id: str
    role_arn: str
    location: str

    def __str__(self) -> str:
        return f"{self.what} ({self.location})"

    @property
    def presents(self) -> str:
        return (
            f"role {self.role_arn or 'not given'}, Snowflake's user {self.principal}, external id "
            f"{self.external_id}"
        )


@attrs.frozen
class Volume:
    locations: list[dict[str, Any]]
    allow_writes: bool


def describe_volume(vendor: Snowflake, name: str) -> Volume:
    rows = vendor.run(sql.statement(_DESC_VOLUME, name=sql.identifier(name)))
    properties = {row.get("property", "").upper(): row.get("property_value", "") for row in rows}
    texts = [text for key, text in sorted(properties.items()) if key.startswith("STORAGE_LOCATION_")]
    locations = [_parse_object(text) for text in texts]
    allow_writes = properties.get("ALLOW_WRITES", "").lower() == "true"
    return Volume(locations, allow_writes)


def read_volume_side(vendor: Snowflake, name: str) -> Side:
    location = next(iter(describe_volume(vendor, name).locations), {})
    url, role, external_id = (str(location.get(key) or "") for key in LOCATION)
    principal = str(location.get("STORAGE_AWS_IAM_USER_ARN") or "")
    return Side(f"external volume {name}", principal, external_id, role, url)


def describe_integration(vendor: Snowflake, name: str) -> dict[str, str]:
    rows = vendor.run(sql.statement(_DESC_INTEGRATION, name=sql.identifier(name)))
    return {row.get("property", "").upper(): row.get("property_value", "") for row in rows}


def read_integration_side(vendor: Snowflake, name: str, described: dict[str, str] | None = None) -> Side:
    """Return the integration's side of the trust.

    Snowflake's releases have different names for the two values.
    """
    integration = described if described is not None else describe_integration(vendor, name)

    def value(end: str) -> str:
        return next((integration[prefix + end] for prefix in _PREFIXES if integration.get(prefix + end)), "")

    role = ROLE_ARN.search(
        integration.get("REST_AUTHENTICATION", "") + " " + integration.get("GLUE_AWS_ROLE_ARN", "")
    )
    uri = re.search(r"https://[\w./-]+", integration.get("REST_CONFIG", ""))
    where = f"{uri[0] if uri else 'AWS Glue'}, namespace {integration.get('CATALOG_NAMESPACE', 'not given')}"
    return Side(
        f"catalog integration {name}",
        value("IAM_USER_ARN"),
        value("EXTERNAL_ID"),
        role[0] if role else "",
        where,
    )


def require_same(side: Side, principal: str, external_id: str) -> None:
    """Raise Refused if the role trusts other values than those of `side`.

    Values that are "" are not compared.
    """
    if principal and side.principal and principal != side.principal:
        what = f"{side}: the role trusts {principal}, and Snowflake presents {side.principal}"
        raise Refused(snowflake_errors.TRUST_PRINCIPAL, what)
    if external_id and side.external_id and external_id != side.external_id:
        what = (
            f"{side}: the role requires external id {external_id}, and Snowflake presents {side.external_id}"
        )
        raise Refused(snowflake_errors.TRUST_EXTERNAL_ID, what)


def verify_volume(vendor: Snowflake, name: str, side: Side) -> None:
    """Raise ResourceFailed until Snowflake can assume the role."""
    result = _call_system(vendor, _VERIFY_VOLUME, name)
    results = {
        key: str(value) for key, value in result.items() if key.endswith("Result") and value is not None
    }
    bad = {key: text for key, text in results.items() if not text.upper().startswith(_PASSED)}
    if len(bad) > 1:  # this result is only a consequence of the others
        bad.pop("storageLocationSelectionResult", None)
    reason = "; ".join(f"{key}: {text}" for key, text in bad.items()) or str(result.get("error", ""))
    if bad or reason or result.get("success") is False:
        raise _build_failure(side, _choose_volume_row(reason, bad), reason)


def verify_integration(vendor: Snowflake, name: str, side: Side) -> None:
    """Raise ResourceFailed until the catalog answers Snowflake."""
    result = _call_system(vendor, _VERIFY_INTEGRATION, name)
    reason = " ".join(str(result[key]) for key in ("errorCode", "errorMessage", "error") if result.get(key))
    if reason or result.get("success") is False:
        raise _build_failure(side, choose_catalog_row(reason), reason)


def require_namespace(vendor: Snowflake, name: str, side: Side, namespace: str) -> None:
    """Raise ResourceFailed until the catalog contains the Glue database."""
    result = _call_system(vendor, _LIST_NAMESPACES, name)
    if "error" in result:
        raise _build_failure(side, choose_catalog_row(str(result["error"])), str(result["error"]))
    listed = [str(name) for name in result.get("list", [])]
    if namespace in listed:
        return
    row = snowflake_errors.TRUST_NAMESPACE if listed else snowflake_errors.TRUST_REGION
    shown = ", ".join(listed)[:DETAIL_LENGTH] or "none"
    what = f"{side}: the catalog doesn't show namespace {namespace}; it shows {shown}"
    raise ResourceFailed(row, what, patience=_NAMESPACE_PATIENCE)


def choose_catalog_row(reason: str) -> ErrorKind:
    """Return the kind of error for Snowflake's message about a catalog."""
    if mentions(reason, "assumerole", "assume role", "assume_role"):
        return snowflake_errors.TRUST_ROLE
    if mentions(reason, "s3:"):
        return snowflake_errors.TRUST_STORAGE
    if mentions(
        reason, "not authorized", "accessdenied", "access denied", "forbidden", "lake formation", "kms:"
    ):
        return snowflake_errors.TRUST_CATALOG
    if mentions(reason, "region", "credential should be scoped", "unknownhost"):
        return snowflake_errors.TRUST_REGION
    if mentions(reason, "namespace", "database", "entitynotfound"):
        return snowflake_errors.TRUST_NAMESPACE
    return snowflake_errors.TRUST_CATALOG


def require_unused(vendor: Snowflake, column: str, name: str) -> None:
    """Raise Conflict if tables still use the object. Snowflake shows only what the role may see."""
    used = [row for row in vendor.run(sql.statement(_TABLES)) if row.get(column) == name]
    if used:
        names = []
        for row in used:
            parts = (row.get("database_name", ""), row.get("schema_name", ""), row.get("name", ""))
            names.append(sql.format_dotted(parts))
        raise Conflict(snowflake_errors.IN_USE, f"{name} is used by {', '.join(names)[:DETAIL_LENGTH]}")


def _choose_volume_row(reason: str, bad: dict[str, str]) -> ErrorKind:
    if mentions(reason, "assumerole", "assume role", "assuming aws_role") or bad.keys() == {
        "awsRoleArnValidationResult"
    }:
        return snowflake_errors.TRUST_ROLE
    if "storageLocationSelectionResult" in bad or mentions(
        reason, "permanentredirect", "wrong region", "another region"
    ):
        return snowflake_errors.TRUST_REGION
    return snowflake_errors.TRUST_STORAGE


def _build_failure(side: Side, kind: ErrorKind, reason: str) -> ResourceFailed:
    words = shorten_detail(" ".join(reason.split()), _REASON_LENGTH) or "no reason"
    return ResourceFailed(kind, f"{side}: {side.presents}; Snowflake says: {words}", patience=_ROLE_PATIENCE)


def _call_system(vendor: Snowflake, template: str, name: str) -> dict[str, Any]:
    """Return the result of a SYSTEM$ function: an object, a list under `list`, or a refusal under `error`."""
    try:
        document = vendor.document(sql.statement(template, name=sql.reference(name)))
    except NotFound:
        raise
    except Refused as refused:
        return {"error": refused.what}
    if isinstance(document, list):
        return {"list": document}
    return document if isinstance(document, dict) else {"error": "an answer that is not JSON"}


def _parse_object(text: str) -> dict[str, Any]:
    try:
        document = json.loads(text)
    except ValueError:
        return {}
    return document if isinstance(document, dict) else {}
