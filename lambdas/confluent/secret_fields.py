"""The fields of a key's secret: all that a client needs to connect.

The first fields are those that AWS's managed external secrets expect. The others are read by clients of the
service; they include the names that the Terraform kickstarter of the same architecture uses.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from lambdas.confluent import services
from lambdas.confluent.services.base import Connection
from lambdas.shared.redaction import ApiKey, Secret
from lambdas.shared.secrets import KEY_ID, KEY_SECRET

DISPLAY_NAME: Final = "displayName"
SERVICES: Final = tuple(services.SERVICES)


def build_fields(service: str, key: ApiKey, connection: Connection) -> dict[str, str | Secret]:
    """Return all fields of the secret, without those that are ""."""
    all_fields: dict[str, str | Secret] = {
        KEY_ID: key.id,
        KEY_SECRET: key.secret,
        "serviceAccountId": connection.service_account_id,
        "resourceId": connection.resource_id,
        "environmentId": connection.environment_id,
        DISPLAY_NAME: connection.display_name,
        **services.SERVICES[service].build_fields(key, connection),
    }
    return {name: value for name, value in all_fields.items() if value != ""}


def replace_key(stored: Mapping[str, str | Secret], key: ApiKey) -> dict[str, str | Secret]:
    """Return the fields of a secret with another key.

    All other fields stay the same, including unknown ones.
    """
    key_fields: dict[str, str | Secret] = {KEY_ID: key.id, KEY_SECRET: key.secret}
    for service in services.SERVICES.values():
        key_fields.update(service.build_key_fields(key))
    return {name: key_fields.get(name, value) for name, value in stored.items()}
