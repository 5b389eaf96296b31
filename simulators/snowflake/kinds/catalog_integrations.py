"""Catalog integrations with Glue's Iceberg REST endpoint. The others that Snowflake has are not simulated."""

from __future__ import annotations

import json
import re
from typing import Any, Final

from simulators.snowflake import trust
from simulators.snowflake.account import Account
from simulators.snowflake.errors import denied, in_use, invalid_value, not_simulated, syntax
from simulators.snowflake.grammar import Cursor
from simulators.snowflake.kinds.common import (
    Kind,
    Making,
    altering,
    created,
    dropped,
    dropping,
    free,
    listing,
    set_options,
)
from simulators.snowflake.kinds.external_volumes import new_external_id, users_of
from simulators.snowflake.model import Domain, Integration, SnowflakeObject
from simulators.snowflake.options import Options
from simulators.snowflake.results import Result, status, table
from simulators.snowflake.session import Session

_LABEL: Final = "CATALOG INTEGRATION"
_KNOWN: Final = (
    "CATALOG_SOURCE TABLE_FORMAT CATALOG_NAMESPACE REST_CONFIG REST_AUTHENTICATION ENABLED REFRESH_INTERVAL_SECONDS COMMENT"
)
_OTHERS: Final = "GLUE_AWS_ROLE_ARN GLUE_CATALOG_ID GLUE_REGION"
_REST: Final = "CATALOG_URI CATALOG_API_TYPE CATALOG_NAME ACCESS_DELEGATION_MODE"
_REST_OTHERS: Final = "PREFIX WAREHOUSE ADDITIONAL_HEADERS"
_SIGNING: Final = "TYPE SIGV4_IAM_ROLE SIGV4_SIGNING_REGION SIGV4_EXTERNAL_ID"
_SIGNING_OTHERS: Final = (
    "BEARER_TOKEN OAUTH_TOKEN_URI OAUTH_CLIENT_ID OAUTH_CLIENT_SECRET OAUTH_ALLOWED_SCOPES OAUTH_REQUEST_PARAMETERS "
    "OAUTH_GRANT_TYPE OAUTH_ACCESS_TOKEN"
)
_API_TYPES: Final = "PUBLIC PRIVATE AWS_API_GATEWAY AWS_PRIVATE_API_GATEWAY AWS_GLUE AWS_PRIVATE_GLUE"
_MODES: Final = "VENDED_CREDENTIALS EXTERNAL_VOLUME_CREDENTIALS"
_ROLE_ARN: Final = r"arn:aws:iam::\d{12}:role/[\w+=,.@/-]{1,512}"
_ROWS: Final = "property property_type property_value property_default"


def create(session: Session, cursor: Cursor, making: Making) -> Result:
    name = cursor.name()
    options = Options(_LABEL, cursor.options(), f"{_KNOWN} {_OTHERS}")
    cursor.end()
    _simulated(options)
    fields = _endpoint(options) | _signing(session.account, options)

    def replaceable(thing: SnowflakeObject) -> None:
        _require_unused(session.account, thing)

    if there := free(session, Domain.INTEGRATION, name, "CREATE INTEGRATION", making, replaceable):
        return there
    integration = Integration(
        name=name,
        owner=session.role,
        created=session.account.clock.now(),
        comment=options.string("COMMENT"),
        namespace=options.string("CATALOG_NAMESPACE"),
        enabled=options.boolean("ENABLED", default=True),
        refresh_seconds=options.integer("REFRESH_INTERVAL_SECONDS", 30, 30, 86_400),
        **fields,
    )
    return created(session, integration, "Integration")


def _simulated(options: Options) -> None:
    options.require("CATALOG_SOURCE", "TABLE_FORMAT", "ENABLED")
    source = options.choice("CATALOG_SOURCE", "GLUE OBJECT_STORE POLARIS ICEBERG_REST SAP_BDC")
    if source != "ICEBERG_REST":
        raise not_simulated(f"CATALOG_SOURCE {source}")
    if options.choice("TABLE_FORMAT", "ICEBERG DELTA") != "ICEBERG":
        raise not_simulated("TABLE_FORMAT DELTA")
    for name in _OTHERS.split():
        if name in options:
            raise syntax(f"{name} is not valid with CATALOG_SOURCE ICEBERG_REST")
    options.require("REST_CONFIG", "REST_AUTHENTICATION")


def _endpoint(options: Options) -> dict[str, Any]:
    config = options.inside("REST_CONFIG", _REST, _REST_OTHERS)
    config.require("CATALOG_URI")
    api = config.choice("CATALOG_API_TYPE", _API_TYPES, "PUBLIC")
    if api != "AWS_GLUE":
        raise not_simulated(f"CATALOG_API_TYPE {api}")
    if config.choice("ACCESS_DELEGATION_MODE", _MODES, "EXTERNAL_VOLUME_CREDENTIALS") == "VENDED_CREDENTIALS":
        raise not_simulated("ACCESS_DELEGATION_MODE VENDED_CREDENTIALS")
    config.require("CATALOG_NAME")
    uri = config.string("CATALOG_URI")
    if not re.fullmatch(r"https://glue\.[a-z0-9-]+\.amazonaws\.com(\.cn)?/iceberg/?", uri):
        raise invalid_value(uri, "CATALOG_URI")
    return {"catalog_uri": uri, "catalog_name": config.string("CATALOG_NAME")}


def _signing(account: Account, options: Options) -> dict[str, Any]:
    signing = options.inside("REST_AUTHENTICATION", _SIGNING, _SIGNING_OTHERS)
    kind = signing.choice("TYPE", "SIGV4 OAUTH BEARER WORKLOAD_IDENTITY")
    if kind != "SIGV4":
        raise not_simulated(f"REST_AUTHENTICATION of TYPE {kind}")
    signing.require("SIGV4_IAM_ROLE")
    role = signing.string("SIGV4_IAM_ROLE")
    if not re.fullmatch(_ROLE_ARN, role):
        raise invalid_value(role, "SIGV4_IAM_ROLE")
    here = account.region
    return {
        "role_arn": role,
        "external_id": signing.string("SIGV4_EXTERNAL_ID") or new_external_id(account),
        "signing_region": signing.string("SIGV4_SIGNING_REGION", here),
    }


def _require_unused(account: Account, thing: SnowflakeObject) -> None:
    if users := users_of(account, thing):
        raise in_use(_LABEL, thing.name, users)


def alter(session: Session, cursor: Cursor) -> Result:
    integration: Any = altering(session, cursor, Domain.INTEGRATION)
    if integration is None:
        return status()
    cursor.expect("SET")
    known = "ENABLED REFRESH_INTERVAL_SECONDS COMMENT"
    options = set_options(cursor, _LABEL, known, "REST_AUTHENTICATION")
    session.require("OWNERSHIP", integration)
    seconds = options.integer("REFRESH_INTERVAL_SECONDS", integration.refresh_seconds, 30, 86_400)
    integration.enabled = options.boolean("ENABLED", default=integration.enabled)
    integration.refresh_seconds = seconds
    integration.comment = options.string("COMMENT", integration.comment)
    return status()


def drop(session: Session, cursor: Cursor) -> Result:
    found = dropping(session, cursor, Domain.INTEGRATION)
    if found.thing is None:
        return found.absent
    _require_unused(session.account, found.thing)
    return dropped(session, found.thing)


def show(session: Session, cursor: Cursor) -> Result:
    wanted = listing(session, cursor, Domain.INTEGRATION)
    rows = (
        (each.label, "CATALOG", "CATALOG", each.enabled, each.comment, each.created) for each in wanted.of(session, Integration)
    )
    return table("name type category enabled comment created_on", rows)


def describe(session: Session, cursor: Cursor) -> Result:
    integration: Any = session.resolve(Domain.INTEGRATION, cursor.name())
    cursor.end()
    if not session.has("USAGE", integration) and not session.has("OWNERSHIP", integration):
        raise denied("INTEGRATION", integration.name)
    return table(_ROWS, _properties(session.account, integration))


def _properties(account: Account, integration: Integration) -> list[tuple[str, str, Any, str]]:
    rest = {
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
    prefix = account.ways.prefix
    return [
        ("ENABLED", "Boolean", integration.enabled, "false"),
        ("CATALOG_SOURCE", "String", "ICEBERG_REST", ""),
        ("CATALOG_NAMESPACE", "String", integration.namespace, ""),
        ("TABLE_FORMAT", "String", "ICEBERG", ""),
        ("REST_CONFIG", "Object", json.dumps(rest), ""),
        ("REST_AUTHENTICATION", "Object", json.dumps(signing), ""),
        (f"{prefix}_AWS_IAM_USER_ARN", "String", trust.user_arn(account), ""),
        (f"{prefix}_AWS_EXTERNAL_ID", "String", integration.external_id, ""),
        ("REFRESH_INTERVAL_SECONDS", "Integer", integration.refresh_seconds, "30"),
        ("COMMENT", "String", integration.comment, ""),
    ]


KIND: Final = Kind(_LABEL, "CATALOG INTEGRATIONS", create, alter, drop, show, describe)
