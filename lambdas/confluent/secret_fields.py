"""The fields of a key's secret: all that a client needs to connect.

The first fields are those that AWS's managed external secrets expect. The others are read by clients of the
service; they include the names that the Terraform kickstarter of the same architecture uses.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

import attrs

from lambdas.shared.redaction import ApiKey
from lambdas.shared.secrets import KEY_ID, KEY_SECRET

DISPLAY_NAME: Final = "displayName"


@attrs.frozen
class Connection:
    """Where a key is used, and its owner. Values that the service doesn't have are ""."""

    service_account_id: str
    resource_id: str
    environment_id: str = ""
    organization_id: str = ""
    cluster_id: str = ""
    compute_pool_id: str = ""
    endpoint: str = ""
    catalog_uri: str = ""
    #: Prefix of the names of this resource's keys, by which rotation finds them.
    display_name: str = ""


def _kafka(key: ApiKey, to: Connection) -> dict[str, str]:
    return {
        "bootstrap.servers": to.endpoint,
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": "PLAIN",
        "sasl.username": key.id,
        "sasl.password": key.secret.reveal(),
    }


def _schema_registry(key: ApiKey, to: Connection) -> dict[str, str]:
    return {
        "schema.registry.url": to.endpoint,
        "schema.registry.basic.auth.credentials.source": "USER_INFO",
        "schema.registry.basic.auth.user.info": f"{key.id}:{key.secret.reveal()}",
    }


def _flink(key: ApiKey, to: Connection) -> dict[str, str]:
    return {
        "api.key": key.id,
        "api.key.secret": key.secret.reveal(),
        "principal.id": to.service_account_id,
        "compute.pool.id": to.compute_pool_id,
        "organization.id": to.organization_id,
        "environment.id": to.environment_id,
        "endpoint": to.endpoint,
    }


def _tableflow(key: ApiKey, to: Connection) -> dict[str, str]:
    return {
        "api.key": key.id,
        "api.key.secret": key.secret.reveal(),
        "organization.id": to.organization_id,
        "environment.id": to.environment_id,
        "kafka.cluster.id": to.cluster_id,
        "catalog.uri": to.catalog_uri,
    }


_OF_SERVICE: Final[Mapping[str, Callable[[ApiKey, Connection], dict[str, str]]]] = {
    "kafka": _kafka,
    "schema_registry": _schema_registry,
    "flink": _flink,
    "tableflow": _tableflow,
    "cloud": lambda key, to: {},
}
SERVICES: Final = tuple(_OF_SERVICE)


#: The fields of all services that contain a part of the key.
_OF_KEY: Final[Mapping[str, Callable[[ApiKey], str]]] = {
    KEY_ID: lambda key: key.id,
    KEY_SECRET: lambda key: key.secret.reveal(),
    "sasl.username": lambda key: key.id,
    "sasl.password": lambda key: key.secret.reveal(),
    "schema.registry.basic.auth.user.info": lambda key: f"{key.id}:{key.secret.reveal()}",
    "api.key": lambda key: key.id,
    "api.key.secret": lambda key: key.secret.reveal(),
}


def fields(service: str, key: ApiKey, to: Connection) -> dict[str, str]:
    """Return all fields of the secret, without those that are ""."""
    managed = {
        KEY_ID: key.id,
        KEY_SECRET: key.secret.reveal(),
        "serviceAccountId": to.service_account_id,
        "resourceId": to.resource_id,
        "environmentId": to.environment_id,
        DISPLAY_NAME: to.display_name,
    }
    return {name: value for name, value in {**managed, **_OF_SERVICE[service](key, to)}.items() if value}


def with_key(stored: Mapping[str, str], key: ApiKey) -> dict[str, str]:
    """Return the fields of a secret with another key.

    All other fields stay the same, including unknown ones.
    """
    return {name: _OF_KEY[name](key) if name in _OF_KEY else value for name, value in stored.items()}
