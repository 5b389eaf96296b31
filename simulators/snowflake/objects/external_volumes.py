"""External volumes: the S3 locations of tables, and the IAM roles to read them.

CREATE doesn't check the roles.
"""

from __future__ import annotations

import json
import re
from typing import Any, ClassVar, Final

from simulators.snowflake import trust
from simulators.snowflake.account import Account
from simulators.snowflake.errors import SqlError, exists, in_use, invalid_value, missing, not_simulated
from simulators.snowflake.model import Database, IcebergTable, Integration, Location, Volume, to_sql_name
from simulators.snowflake.objects.object_type import COMMENT, ObjectType, Properties, build_boolean_property
from simulators.snowflake.parser import Cursor, Options
from simulators.snowflake.results import Result, build_table
from simulators.snowflake.session import Session

#: ARNs that volumes and integrations accept for IAM roles.
ROLE_ARN: Final = re.compile(r"arn:aws:iam::\d{12}:role/[\w+=,.@/-]{1,512}")
#: Snowflake doesn't support buckets with dots in their names.
_BASE_URL: Final = re.compile(r"s3://[a-z0-9-]+(/.*)?")
_LOCATION: Final = (
    "NAME STORAGE_PROVIDER STORAGE_BASE_URL STORAGE_AWS_ROLE_ARN STORAGE_AWS_EXTERNAL_ID ENCRYPTION"
)
_LOCATION_NOT_SIMULATED: Final = (
    "AZURE_TENANT_ID STORAGE_AWS_ACCESS_POINT_ARN USE_PRIVATELINK_ENDPOINT STORAGE_ENDPOINT CREDENTIALS"
)


def require_unused(account: Account, existing: Volume | Integration, words: str) -> None:
    """Raise SqlError if an Iceberg table or a catalog-linked database uses the volume or integration."""
    name = existing.name
    tables = [
        table
        for table in account.all(IcebergTable)
        if name in (table.volume, table.catalog) and not table.linked
    ]
    linked_databases = [
        database
        for database in account.all(Database)
        if database.link and name in (database.link.volume, database.link.catalog)
    ]
    users = [f"Iceberg table {to_sql_name(table.name)}" for table in tables]
    users += [f"database {to_sql_name(database.name)}" for database in linked_databases]
    if users:
        raise in_use(words, name, users)


class ExternalVolumes(ObjectType[Volume]):
    model = Volume
    words = "EXTERNAL VOLUME"
    title = "External volume"
    create_privilege = "CREATE EXTERNAL VOLUME"
    properties: ClassVar[Properties] = {
        "ALLOW_WRITES": build_boolean_property("allow_writes"),
        "COMMENT": COMMENT,
    }
    create_only = "STORAGE_LOCATIONS"
    unset = ""
    alter_not_simulated = "UPDATE"
    columns = "name allow_writes comment"

    def read_create(self, session: Session, options: Options) -> dict[str, Any]:
        options.require("STORAGE_LOCATIONS")
        locations_options = options.read_nested_list("STORAGE_LOCATIONS", _LOCATION, _LOCATION_NOT_SIMULATED)
        locations = [_read_location(session.account, location) for location in locations_options]
        if not locations or len({location.label for location in locations}) < len(locations):
            raise invalid_value("STORAGE_LOCATIONS", "NAME")
        return self.read(session, options) | {"locations": locations}

    def alter_otherwise(self, session: Session, cursor: Cursor, volume: Volume) -> bool:
        if cursor.take("REMOVE", "STORAGE_LOCATION"):
            label = cursor.string()
            cursor.end()
            session.require("OWNERSHIP", volume)
            _remove_location(volume, label)
        elif cursor.take("ADD"):
            options = Options(self.words, cursor.read_options(), "STORAGE_LOCATION")
            cursor.end()
            options.require("STORAGE_LOCATION")
            session.require("OWNERSHIP", volume)
            location_options = options.read_nested("STORAGE_LOCATION", _LOCATION, _LOCATION_NOT_SIMULATED)
            location = _read_location(session.account, location_options)
            if location.label in [location.label for location in volume.locations]:
                raise exists(location.label)
            volume.locations.append(location)
        else:
            return False
        return True

    def require_unused(self, session: Session, existing: Volume) -> None:
        require_unused(session.account, existing, self.words)

    def build_row(self, session: Session, volume: Volume) -> dict[str, Any]:
        return {"allow_writes": volume.allow_writes}

    def build_description(self, session: Session, volume: Volume) -> Result:
        arn = trust.get_user_arn(session.account)
        locations = [
            (
                "STORAGE_LOCATIONS",
                f"STORAGE_LOCATION_{number}",
                "String",
                json.dumps(_describe_location(location, arn)),
                "",
            )
            for number, location in enumerate(volume.locations, 1)
        ]
        rows = [
            ("", "ALLOW_WRITES", "Boolean", volume.allow_writes, "true"),
            *locations,
            ("STORAGE_LOCATIONS", "ACTIVE", "String", volume.locations[0].label, ""),
            ("", "COMMENT", "String", volume.comment, ""),
        ]
        return build_table("parent_property property property_type property_value property_default", rows)


def _read_location(account: Account, options: Options) -> Location:
    provider = options.read_string("STORAGE_PROVIDER").upper()
    if provider in ("GCS", "AZURE", "S3GOV", "S3CHINA", "S3COMPAT"):
        raise not_simulated(f"STORAGE_PROVIDER {provider}")
    options.require("NAME", "STORAGE_PROVIDER", "STORAGE_BASE_URL", "STORAGE_AWS_ROLE_ARN")
    if provider != "S3":
        raise invalid_value(provider, "STORAGE_PROVIDER")
    url = options.read_string("STORAGE_BASE_URL")
    role = options.read_string("STORAGE_AWS_ROLE_ARN")
    for value, name, pattern in (
        (url, "STORAGE_BASE_URL", _BASE_URL),
        (role, "STORAGE_AWS_ROLE_ARN", ROLE_ARN),
    ):
        if not pattern.fullmatch(value):
            raise invalid_value(value, name)
    encryption = options.read_nested("ENCRYPTION", "TYPE KMS_KEY_ID")
    return Location(
        options.read_string("NAME"),
        url,
        role,
        options.read_string("STORAGE_AWS_EXTERNAL_ID") or trust.create_external_id(account),
        encryption.read_choice("TYPE", "AWS_SSE_S3 AWS_SSE_KMS NONE", "NONE"),
        encryption.read_string("KMS_KEY_ID"),
    )


def _remove_location(volume: Volume, label: str) -> None:
    location = next((location for location in volume.locations if location.label == label), None)
    if location is None:
        raise missing("STORAGE LOCATION", label)
    if location is volume.locations[0]:
        raise SqlError(
            "091346", "22000", f"The active storage location '{label}' of {volume.label} can't be removed."
        )
    volume.locations.remove(location)


def _describe_location(location: Location, user_arn: str) -> dict[str, Any]:
    return {
        "NAME": location.label,
        "STORAGE_PROVIDER": "S3",
        "STORAGE_BASE_URL": location.base_url,
        "STORAGE_ALLOWED_LOCATIONS": [location.base_url.rstrip("/") + "/*"],
        "STORAGE_AWS_ROLE_ARN": location.role_arn,
        "STORAGE_AWS_IAM_USER_ARN": user_arn,
        "STORAGE_AWS_EXTERNAL_ID": location.external_id,
        "ENCRYPTION_TYPE": location.encryption,
        "ENCRYPTION_KMS_KEY_ID": location.kms_key_id,
    }
