"""External volumes: where in S3 tables lie, and which role reads them. The role is not tried when one is made."""

from __future__ import annotations

import json
import re
from typing import Any, Final

from simulators.snowflake import trust
from simulators.snowflake.account import Account
from simulators.snowflake.errors import SqlError, exists, in_use, invalid_value, missing, not_simulated
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
from simulators.snowflake.model import Database, Domain, IcebergTable, Location, SnowflakeObject, Volume
from simulators.snowflake.names import shown
from simulators.snowflake.options import Options
from simulators.snowflake.results import Result, status, table
from simulators.snowflake.session import Session

_LABEL: Final = "EXTERNAL VOLUME"
_KNOWN: Final = "STORAGE_LOCATIONS ALLOW_WRITES COMMENT"
_PLACE: Final = "NAME STORAGE_PROVIDER STORAGE_BASE_URL STORAGE_AWS_ROLE_ARN STORAGE_AWS_EXTERNAL_ID ENCRYPTION"
_PLACE_OTHERS: Final = "AZURE_TENANT_ID STORAGE_AWS_ACCESS_POINT_ARN USE_PRIVATELINK_ENDPOINT STORAGE_ENDPOINT CREDENTIALS"
_ROLE_ARN: Final = r"arn:aws:iam::\d{12}:role/[\w+=,.@/-]{1,512}"
#: A bucket whose name has a dot can't be used.
_BASE_URL: Final = r"s3://[a-z0-9-]+(/.*)?"
_ROWS: Final = "parent_property property property_type property_value property_default"


def create(session: Session, cursor: Cursor, making: Making) -> Result:
    name = cursor.name()
    options = Options(_LABEL, cursor.options(), _KNOWN)
    cursor.end()
    options.require("STORAGE_LOCATIONS")
    locations = [_location(session.account, each) for each in options.each_inside("STORAGE_LOCATIONS", _PLACE, _PLACE_OTHERS)]
    if not locations or len({each.label for each in locations}) < len(locations):
        raise invalid_value("STORAGE_LOCATIONS", "NAME")

    def replaceable(thing: SnowflakeObject) -> None:
        _require_unused(session.account, thing)

    if there := free(session, Domain.VOLUME, name, "CREATE EXTERNAL VOLUME", making, replaceable):
        return there
    volume = Volume(
        name=name,
        owner=session.role,
        created=session.account.clock.now(),
        comment=options.string("COMMENT"),
        locations=locations,
        allow_writes=options.boolean("ALLOW_WRITES", default=True),
    )
    return created(session, volume, "External volume")


def _location(account: Account, options: Options) -> Location:
    provider = options.string("STORAGE_PROVIDER").upper()
    if provider in ("GCS", "AZURE", "S3GOV", "S3CHINA", "S3COMPAT"):
        raise not_simulated(f"STORAGE_PROVIDER {provider}")
    options.require("NAME", "STORAGE_PROVIDER", "STORAGE_BASE_URL", "STORAGE_AWS_ROLE_ARN")
    if provider != "S3":
        raise invalid_value(provider, "STORAGE_PROVIDER")
    url, role = options.string("STORAGE_BASE_URL"), options.string("STORAGE_AWS_ROLE_ARN")
    for value, name, pattern in ((url, "STORAGE_BASE_URL", _BASE_URL), (role, "STORAGE_AWS_ROLE_ARN", _ROLE_ARN)):
        if not re.fullmatch(pattern, value):
            raise invalid_value(value, name)
    encryption = options.inside("ENCRYPTION", "TYPE KMS_KEY_ID")
    return Location(
        options.string("NAME"),
        url,
        role,
        options.string("STORAGE_AWS_EXTERNAL_ID") or new_external_id(account),
        encryption.choice("TYPE", "AWS_SSE_S3 AWS_SSE_KMS NONE", "NONE"),
        encryption.string("KMS_KEY_ID"),
    )


def new_external_id(account: Account) -> str:
    """As Snowflake makes them up: another one each time."""
    return f"{account.name}_SFCRole=2_{account.new_text(26)}="


def users_of(account: Account, thing: SnowflakeObject) -> list[str]:
    """Tables and linked databases that need the volume or integration."""
    tables = [each for each in account.all(IcebergTable) if thing.name in (each.volume, each.catalog) and not each.linked]
    linked = [each for each in account.all(Database) if each.link and thing.name in (each.link.volume, each.link.catalog)]
    return [f"Iceberg table {shown(each.name)}" for each in tables] + [f"database {shown(each.name)}" for each in linked]


def _require_unused(account: Account, thing: SnowflakeObject) -> None:
    if users := users_of(account, thing):
        raise in_use(_LABEL, thing.name, users)


def alter(session: Session, cursor: Cursor) -> Result:
    volume: Any = altering(session, cursor, Domain.VOLUME)
    if volume is None:
        return status()
    if cursor.take("REMOVE", "STORAGE_LOCATION"):
        return _removed(session, cursor, volume)
    if cursor.take("ADD"):
        options = Options(_LABEL, cursor.options(), "STORAGE_LOCATION")
        cursor.end()
        options.require("STORAGE_LOCATION")
        session.require("OWNERSHIP", volume)
        place = _location(session.account, options.inside("STORAGE_LOCATION", _PLACE, _PLACE_OTHERS))
        if place.label in [each.label for each in volume.locations]:
            raise exists(place.label)
        volume.locations.append(place)
        return status()
    if cursor.at("UPDATE"):
        raise not_simulated("ALTER EXTERNAL VOLUME … UPDATE")
    cursor.expect("SET")
    options = set_options(cursor, _LABEL, "ALLOW_WRITES COMMENT")
    session.require("OWNERSHIP", volume)
    volume.allow_writes = options.boolean("ALLOW_WRITES", default=volume.allow_writes)
    volume.comment = options.string("COMMENT", volume.comment)
    return status()


def _removed(session: Session, cursor: Cursor, volume: Volume) -> Result:
    label = cursor.string()
    cursor.end()
    session.require("OWNERSHIP", volume)
    found = [each for each in volume.locations if each.label == label]
    if not found:
        raise missing("STORAGE LOCATION", label)
    if found[0] is volume.locations[0]:
        raise SqlError("091346", "22000", f"The active storage location '{label}' of {volume.label} can't be removed.")
    volume.locations.remove(found[0])
    return status()


def drop(session: Session, cursor: Cursor) -> Result:
    found = dropping(session, cursor, Domain.VOLUME)
    if found.thing is None:
        return found.absent
    _require_unused(session.account, found.thing)
    return dropped(session, found.thing)


def show(session: Session, cursor: Cursor) -> Result:
    wanted = listing(session, cursor, Domain.VOLUME)
    return table(
        "name allow_writes comment", ((each.label, each.allow_writes, each.comment) for each in wanted.of(session, Volume))
    )


def describe(session: Session, cursor: Cursor) -> Result:
    volume: Any = session.resolve(Domain.VOLUME, cursor.name())
    cursor.end()
    arn = trust.user_arn(session.account)
    places = [
        ("STORAGE_LOCATIONS", f"STORAGE_LOCATION_{number}", "String", json.dumps(_document(each, arn)), "")
        for number, each in enumerate(volume.locations, 1)
    ]
    rows = [
        ("", "ALLOW_WRITES", "Boolean", volume.allow_writes, "true"),
        *places,
        ("STORAGE_LOCATIONS", "ACTIVE", "String", volume.locations[0].label, ""),
        ("", "COMMENT", "String", volume.comment, ""),
    ]
    return table(_ROWS, rows)


def _document(location: Location, user_arn: str) -> dict[str, Any]:
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


KIND: Final = Kind(_LABEL, "EXTERNAL VOLUMES", create, alter, drop, show, describe)
