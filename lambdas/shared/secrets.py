"""Secrets Manager. A secret holds one JSON object; the modules that write it name its fields."""

from __future__ import annotations

import json
import re
import uuid
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final, TypeAlias

import attrs

from config.aws_denials import DENIED
from lambdas.shared import errors
from lambdas.shared.aws import raise_instead, translate_aws_errors
from lambdas.shared.errors import Denied, NotFound
from lambdas.shared.redaction import ApiKey, Secret

if TYPE_CHECKING:
    from mypy_boto3_secretsmanager import SecretsManagerClient

#: The fields of every key, as AWS's managed external secrets name them.
KEY_ID: Final = "apiKey"
KEY_SECRET: Final = "apiSecret"  # noqa: S105  (the name of a field)
#: Fields that may be shown. Every other field is secret, unless `is_secret` sees that somebody added ordinary
#: words.
NOT_SECRET: Final = frozenset(
    "apiKey serviceAccountId resourceId environmentId displayName sasl.username api.key bootstrap.servers "
    "security.protocol sasl.mechanism schema.registry.url schema.registry.basic.auth.credentials.source "
    "principal.id compute.pool.id organization.id environment.id endpoint kafka.cluster.id catalog.uri "
    "account user host role warehouse namespace publicKey fingerprint snowflake_account_identifier "
    "snowflake_service_user snowflake_rsa_public_key_1_pem".split()
)
#: Names of fields that are secret whatever their value is.
_SECRET_NAME: Final = re.compile(r"secret|pass|private|token|credential|jaas|auth|pin\b|key", re.IGNORECASE)
#: Up to four words, names, dates or short numbers, such as an owner's address or a region.
_ORDINARY: Final = re.compile(
    r"(?:[A-Z]?[a-z]{1,20}|[A-Z]{1,12}|\d{1,4})(?:[ ._@/:-]+(?:[A-Z]?[a-z]{1,20}|[A-Z]{1,12}|\d{1,4})){0,3}"
)
#: The fields of a secret. Those in NOT_SECRET, and ordinary words, are text; all others are a Secret.
Fields: TypeAlias = Mapping[str, str | Secret]
CURRENT: Final = "AWSCURRENT"
PREVIOUS: Final = "AWSPREVIOUS"
_MISSING: Final = "ResourceNotFoundException"
_TOKENS: Final = uuid.UUID("6f0e1c9a-43f3-4d5e-9a44-7b5f7d1b2a10")


def is_secret(field: str, value: str) -> bool:
    """Return whether a field of a secret is secret itself.

    Ordinary words that somebody added, such as an owner or a stage, are not: they occur in names and
    messages, from which `redact` would remove them.
    """
    if field in NOT_SECRET:
        return False
    return bool(_SECRET_NAME.search(field)) or not _ORDINARY.fullmatch(value)


def parse_fields(text: str) -> dict[str, str | Secret]:
    """Return the fields of a secret's value. Raises ValueError unless it is a JSON object."""
    return hide_fields(_parse_texts(text))


def _parse_texts(text: str) -> dict[str, str]:
    document = json.loads(text)
    if not isinstance(document, dict):
        raise ValueError("the value of a secret is not a JSON object")
    return {str(name): str(value) for name, value in document.items()}


def hide_fields(fields: Fields) -> dict[str, str | Secret]:
    """Return the fields with those that are secret as a Secret. Fields of equal values are then equal."""
    texts = reveal_fields(fields)
    return {name: Secret(value) if is_secret(name, value) else value for name, value in texts.items()}


def reveal_fields(fields: Fields) -> dict[str, str]:
    """Return the fields as text, to store them."""
    return {name: value.reveal() if isinstance(value, Secret) else value for name, value in fields.items()}


@attrs.frozen
class SecretStore:
    client: SecretsManagerClient

    def read(self, secret_id: str, stage: str = CURRENT) -> dict[str, Secret]:
        """Return the value; empty if there is no value, or no such secret.

        Raises NotFound unless it is a JSON object.
        """

        def denied(answer: str) -> Denied:
            why = "it doesn't exist, or the function may not read it or use its key"
            return Denied(errors.AWS_REFUSED, f"reading secret {secret_id}: {answer} ({why})")

        try:
            with (
                translate_aws_errors(f"reading secret {secret_id}"),
                raise_instead((_MISSING,), KeyError),
                raise_instead(DENIED, denied),
            ):
                text = str(
                    self.client.get_secret_value(SecretId=secret_id, VersionStage=stage)["SecretString"]
                )
        except KeyError:
            return {}
        try:
            texts = _parse_texts(text)
        except ValueError:
            raise NotFound(
                errors.SECRET_SHAPE, f"secret {secret_id} is not a JSON object", patience=0.0
            ) from None
        return {name: Secret(value, redacted=is_secret(name, value)) for name, value in texts.items()}

    def read_key(self, secret_id: str) -> ApiKey:
        """Return the key. Raises NotFound if the secret, its value or one of the two fields is missing."""
        fields = self.read(secret_id)
        if not fields:
            raise NotFound(errors.SECRET_MISSING, f"secret {secret_id} has no value", patience=60.0)
        try:
            return ApiKey(fields[KEY_ID].reveal(), fields[KEY_SECRET])
        except KeyError:
            raise NotFound(
                errors.SECRET_SHAPE, f"secret {secret_id} lacks {KEY_ID} or {KEY_SECRET}", patience=0.0
            ) from None

    def write(self, secret_id: str, fields: Fields, *, version: str) -> None:
        """Make `fields` the current value. Repeating a write with the same `version` has no effect.

        Raises NotFound if there is no such secret.
        """
        token = str(uuid.uuid5(_TOKENS, f"{secret_id}/{version}"))
        text = json.dumps(reveal_fields(fields), sort_keys=True)
        try:
            with translate_aws_errors(f"writing secret {secret_id}"), raise_instead((_MISSING,), KeyError):
                self.client.put_secret_value(SecretId=secret_id, SecretString=text, ClientRequestToken=token)
        except KeyError:
            raise NotFound(
                errors.SECRET_MISSING, f"secret {secret_id} does not exist", patience=60.0
            ) from None
