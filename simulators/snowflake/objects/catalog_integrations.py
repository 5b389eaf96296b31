"""Catalog integrations for Glue's Iceberg REST endpoint. Other catalog integrations are not simulated."""

from __future__ import annotations

import json
import re
from typing import Any, ClassVar, Final

from simulators.snowflake import trust
from simulators.snowflake.account import Account
from simulators.snowflake.errors import invalid_value, not_simulated, syntax
from simulators.snowflake.model import Integration
from simulators.snowflake.objects.external_volumes import ROLE_ARN, require_unused
from simulators.snowflake.objects.object_type import (
    COMMENT,
    ObjectType,
    Properties,
    build_boolean_property,
    build_integer_property,
)
from simulators.snowflake.parser import Options
from simulators.snowflake.results import Result, build_table
from simulators.snowflake.session import Session

#: Properties that are only valid with CATALOG_SOURCE = GLUE.
_GLUE: Final = "GLUE_AWS_ROLE_ARN GLUE_CATALOG_ID GLUE_REGION"
_REST: Final = "CATALOG_URI CATALOG_API_TYPE CATALOG_NAME ACCESS_DELEGATION_MODE"
_REST_NOT_SIMULATED: Final = "PREFIX WAREHOUSE ADDITIONAL_HEADERS"
_SIGNING: Final = "TYPE SIGV4_IAM_ROLE SIGV4_SIGNING_REGION SIGV4_EXTERNAL_ID"
_SIGNING_NOT_SIMULATED: Final = (
    "BEARER_TOKEN OAUTH_TOKEN_URI OAUTH_CLIENT_ID OAUTH_CLIENT_SECRET OAUTH_ALLOWED_SCOPES "
    "OAUTH_REQUEST_PARAMETERS OAUTH_GRANT_TYPE OAUTH_ACCESS_TOKEN"
)
_API_TYPES: Final = "PUBLIC PRIVATE AWS_API_GATEWAY AWS_PRIVATE_API_GATEWAY AWS_GLUE AWS_PRIVATE_GLUE"
_MODES: Final = "VENDED_CREDENTIALS EXTERNAL_VOLUME_CREDENTIALS"
_CATALOG_URI: Final = re.compile(r"https://glue\.[a-z0-9-]+\.amazonaws\.com(\.cn)?/iceberg/?")


class CatalogIntegrations(ObjectType[Integration]):
    model = Integration
    words = "CATALOG INTEGRATION"
    title = "Integration"
    create_privilege = "CREATE INTEGRATION"
    properties: ClassVar[Properties] = {
        "ENABLED": build_boolean_property("enabled"),
        "REFRESH_INTERVAL_SECONDS": build_integer_property("refresh_seconds", 30, 86_400),
        "COMMENT": COMMENT,
    }
    create_only = f"CATALOG_SOURCE TABLE_FORMAT CATALOG_NAMESPACE REST_CONFIG REST_AUTHENTICATION {_GLUE}"
    set_not_simulated = "REST_AUTHENTICATION"
    unset = ""
    columns = "name type category enabled comment created_on"

    def read_create(self, session: Session, options: Options) -> dict[str, Any]:
        _require_simulated(options)
        namespace = {"namespace": options.read_string("CATALOG_NAMESPACE")}
        return (
            _read_endpoint(options)
            | _read_signing(session.account, options)
            | namespace
            | self.read(session, options)
        )

    def require_unused(self, session: Session, existing: Integration) -> None:
        require_unused(session.account, existing, self.words)

    def build_row(self, session: Session, integration: Integration) -> dict[str, Any]:
        return {"type": "CATALOG", "category": "CATALOG", "enabled": integration.enabled}

    def build_description(self, session: Session, integration: Integration) -> Result:
        session.require("USAGE", integration)
        settings = {
            "CATALOG_URI": integration.catalog_uri,
            "CATALOG_API_TYPE": "AWS_GLUE",
            "CATALOG_NAME": integration.catalog_name,
            "ACCESS_DELEGATION_MODE": "EXTERNAL_VOLUME_CREDENTIALS",
        }
        signing = {
            "TYPE": "SIGV4",
            "SIGV4_IAM_ROLE": integration.role_arn,
            "SIGV4_SIGNING_REGION": integration.signing_region,
        }
        prefix = session.account.behavior.prefix
        rows = [
            ("ENABLED", "Boolean", integration.enabled, "false"),
            ("CATALOG_SOURCE", "String", "ICEBERG_REST", ""),
            ("CATALOG_NAMESPACE", "String", integration.namespace, ""),
            ("TABLE_FORMAT", "String", "ICEBERG", ""),
            ("REST_CONFIG", "Object", json.dumps(settings), ""),
            ("REST_AUTHENTICATION", "Object", json.dumps(signing), ""),
            (f"{prefix}_AWS_IAM_USER_ARN", "String", trust.get_user_arn(session.account), ""),
            (f"{prefix}_AWS_EXTERNAL_ID", "String", integration.external_id, ""),
            ("REFRESH_INTERVAL_SECONDS", "Integer", integration.refresh_seconds, "30"),
            ("COMMENT", "String", integration.comment, ""),
        ]
        return build_table("property property_type property_value property_default", rows)


def _require_simulated(options: Options) -> None:
    options.require("CATALOG_SOURCE", "TABLE_FORMAT", "ENABLED")
    source = options.read_choice("CATALOG_SOURCE", "GLUE OBJECT_STORE POLARIS ICEBERG_REST SAP_BDC")
    if source != "ICEBERG_REST":
        raise not_simulated(f"CATALOG_SOURCE {source}")
    if options.read_choice("TABLE_FORMAT", "ICEBERG DELTA") != "ICEBERG":
        raise not_simulated("TABLE_FORMAT DELTA")
    for name in _GLUE.split():
        if name in options:
            raise syntax(f"{name} is not valid with CATALOG_SOURCE ICEBERG_REST")
    options.require("REST_CONFIG", "REST_AUTHENTICATION")


def _read_endpoint(options: Options) -> dict[str, Any]:
    config = options.read_nested("REST_CONFIG", _REST, _REST_NOT_SIMULATED)
    config.require("CATALOG_URI")
    api = config.read_choice("CATALOG_API_TYPE", _API_TYPES, "PUBLIC")
    if api != "AWS_GLUE":
        raise not_simulated(f"CATALOG_API_TYPE {api}")
    if (
        config.read_choice("ACCESS_DELEGATION_MODE", _MODES, "EXTERNAL_VOLUME_CREDENTIALS")
        == "VENDED_CREDENTIALS"
    ):
        raise not_simulated("ACCESS_DELEGATION_MODE VENDED_CREDENTIALS")
    config.require("CATALOG_NAME")
    uri = config.read_string("CATALOG_URI")
    if not _CATALOG_URI.fullmatch(uri):
        raise invalid_value(uri, "CATALOG_URI")
    return {"catalog_uri": uri, "catalog_name": config.read_string("CATALOG_NAME")}


def _read_signing(account: Account, options: Options) -> dict[str, Any]:
    signing = options.read_nested("REST_AUTHENTICATION", _SIGNING, _SIGNING_NOT_SIMULATED)
    method = signing.read_choice("TYPE", "SIGV4 OAUTH BEARER WORKLOAD_IDENTITY")
    if method != "SIGV4":
        raise not_simulated(f"REST_AUTHENTICATION of TYPE {method}")
    signing.require("SIGV4_IAM_ROLE")
    role = signing.read_string("SIGV4_IAM_ROLE")
    if not ROLE_ARN.fullmatch(role):
        raise invalid_value(role, "SIGV4_IAM_ROLE")
    return {
        "role_arn": role,
        "external_id": signing.read_string("SIGV4_EXTERNAL_ID") or trust.create_external_id(account),
        "signing_region": signing.read_string("SIGV4_SIGNING_REGION", account.region),
    }
