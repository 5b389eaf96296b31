"""Tableflow's own Iceberg REST catalog, attached to DuckDB with the Tableflow key that a secret holds.

Tables in the customer's bucket are read with the caller's own AWS credentials, those in Confluent's storage with what the
catalog lends. A session there ends after a while; then a new one is begun, once.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from typing import Final, TypeVar

import attrs
import boto3
import duckdb
from botocore.exceptions import BotoCoreError, ClientError

from lakeferry.errors import CommandFailed

#: Names the secret: what a resource of kind api_key for tableflow has filled.
VARIABLE: Final = "LAKEFERRY_TABLEFLOW_SECRET"
_FIELDS: Final = ("apiKey", "apiSecret", "catalog.uri", "kafka.cluster.id")
T = TypeVar("T")
_SESSION_ENDED: Final = ("unauthorized", "401", "notauthorized")


@attrs.frozen
class TableflowKey:
    id: str
    secret: str = attrs.field(repr=False)
    catalog_uri: str
    cluster_id: str

    def without_secret(self, text: str) -> str:
        return text.replace(self.secret, "‹secret›")


def key(secret_id: str = "") -> TableflowKey:
    """From that secret, or the one that the environment names. Raises CommandFailed."""
    name = secret_id or os.environ.get(VARIABLE, "")
    if not name:
        raise CommandFailed("QUERY-TABLEFLOW-SECRET", f"{VARIABLE} is not set")
    try:
        held = json.loads(boto3.client("secretsmanager").get_secret_value(SecretId=name)["SecretString"])
        return TableflowKey(*(str(held[field]) for field in _FIELDS))
    except (BotoCoreError, ClientError) as error:
        said = getattr(error, "response", {}).get("Error", {}).get("Code") or type(error).__name__
        raise _unusable(name, f"can't be read ({said})") from None
    except (ValueError, KeyError, TypeError):
        raise _unusable(name, f"doesn't hold {', '.join(_FIELDS)}") from None


def _unusable(name: str, why: str) -> CommandFailed:
    return CommandFailed("QUERY-TABLEFLOW-KEY", f"secret {name} {why}")


def attach(connection: duckdb.DuckDBPyConnection, with_key: TableflowKey) -> None:
    """Logs in. Tables of the Kafka cluster are found by their bare names. Raises duckdb.Error."""
    tokens = f"{with_key.catalog_uri}/v1/oauth/tokens"
    connection.execute(
        f"CREATE SECRET tableflow (TYPE iceberg, CLIENT_ID {_text(with_key.id)}, CLIENT_SECRET {_text(with_key.secret)}, "
        f"OAUTH2_SCOPE 'catalog', OAUTH2_SERVER_URI {_text(tokens)})"
    )
    options = f"TYPE iceberg, SECRET tableflow, ENDPOINT {_text(with_key.catalog_uri)}"
    connection.execute(f"ATTACH 'any' AS tableflow ({options}, ACCESS_DELEGATION_MODE 'vended_credentials')")
    cluster = with_key.cluster_id.replace('"', '""')
    connection.execute(f'USE tableflow."{cluster}"')


def asked(ask: Callable[[], T]) -> T:
    """`ask` logs in and asks; it is called again where its session has ended. Raises duckdb.Error."""
    try:
        return ask()
    except duckdb.Error as error:
        if not any(sign in str(error).lower() for sign in _SESSION_ENDED):
            raise
        return ask()


def _text(value: str) -> str:
    return "'" + value.replace("'", "''") + "'"
