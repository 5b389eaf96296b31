"""The fields of a user's secret: all that a client needs to connect.

The first fields are those of AWS's managed external secrets, so that AWS could rotate the secret. The others
are read by drivers; they include the names that the Terraform kickstarter of the same architecture uses.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping
from typing import Final, TypeVar

import attrs

from lambdas.shared import errors
from lambdas.shared.errors import NotFound
from lambdas.shared.redaction import Secret
from lambdas.shared.secrets import CURRENT, SecretStore
from lambdas.snowflake import keypair
from lambdas.snowflake.keypair import KeyPair, UnusableKey

ACCOUNT: Final = "account"
USER: Final = "user"
PRIVATE_KEY: Final = "privateKey"
PUBLIC_KEY: Final = "publicKey"
PASSPHRASE: Final = "passphrase"  # noqa: S105  (the name of a field)
Value = TypeVar("Value")
_OF_KEY: Final = (
    PRIVATE_KEY, PUBLIC_KEY, PASSPHRASE, "fingerprint", "snowflake_rsa_public_key_1_pem",
    "snowflake_rsa_private_key_1_pem",
)  # fmt: skip


@attrs.frozen
class Connection:
    """The user of a key, and the user's defaults. Defaults that aren't set are ""."""

    account: str
    user: str
    host: str
    role: str = ""
    warehouse: str = ""
    namespace: str = ""


def build_fields(pair: KeyPair, to: Connection) -> dict[str, str | Secret]:
    """Return all fields of the secret."""
    pem_in_base64 = base64.b64encode(pair.private_pem.reveal().encode()).decode()
    return {
        **build_connection_fields(to),
        PRIVATE_KEY: pair.private_pem,
        PUBLIC_KEY: pair.public_pem,
        "fingerprint": pair.fingerprint,
        "snowflake_rsa_public_key_1_pem": pair.public,
        "snowflake_rsa_private_key_1_pem": Secret(pem_in_base64),
    }


def remove_key(stored: Mapping[str, Value]) -> dict[str, Value]:
    """Return the fields without those of the key: the connection and unknown fields."""
    return {name: value for name, value in stored.items() if name not in _OF_KEY}


def is_about(stored: Mapping[str, str], to: Connection) -> bool:
    """Return whether a secret describes this connection; its key is not compared."""
    expected = build_connection_fields(to)
    return all(
        stored.get(name, "") == expected.get(name, "") for name in build_connection_fields(_EVERYTHING)
    )


def read_pair(store: SecretStore, secret_id: str) -> KeyPair:
    """Return the key pair.

    Raises NotFound if the secret, its value or its key is missing or can't be used.
    """
    pair = read_held_pair(store, secret_id)
    if pair is None:
        raise NotFound(
            errors.SECRET_MISSING, f"secret {secret_id} has no value, or no {PRIVATE_KEY}", patience=60.0
        )
    return pair


def read_held_pair(store: SecretStore, secret_id: str, stage: str = CURRENT) -> KeyPair | None:
    """Return the key pair, or None if the secret has no private key yet.

    Raises NotFound for an unusable one.
    """
    stored = store.read(secret_id, stage)
    if PRIVATE_KEY not in stored:
        return None
    try:
        return keypair.load(stored[PRIVATE_KEY], stored.get(PASSPHRASE))
    except UnusableKey as unusable:
        raise NotFound(
            errors.SECRET_SHAPE, f"the private key in secret {secret_id}: {unusable}", patience=0.0
        ) from None


def build_connection_fields(to: Connection) -> dict[str, str]:
    """Return the fields of a connection, without those that are ""."""
    every = {
        ACCOUNT: to.account,
        USER: to.user,
        "host": to.host,
        "role": to.role,
        "warehouse": to.warehouse,
        "namespace": to.namespace,
        "snowflake_account_identifier": to.account,
        "snowflake_service_user": to.user,
    }
    return {name: value for name, value in every.items() if value}


_EVERYTHING: Final = Connection("any", "any", "any", "any", "any", "any")
