"""Replaces a key by hand, and takes keys away that have leaked."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, Final

import attrs
from botocore.exceptions import BotoCoreError, ClientError

from lakeferry.cli.output import CommandFailed
from lakeferry.credentials import rotating_secrets as secrets
from lakeferry.credentials.rotating_secrets import Rotating
from lakeferry.deployment import logs
from lakeferry.deployment.context import Ground, aws_told
from lakeferry.plan.durations import spoken
from lambdas.rotation.versions import CURRENT, PENDING, Described, SecretVersions
from lambdas.shared.aws import error_code

Tell = Callable[[str], object]
#: A new Kafka key takes Confluent some minutes, and Secrets Manager tries again what failed.
_PATIENCE: Final = 1800.0
_POLL: Final = 3.0
#: Clocks of AWS and of this machine.
_SKEW: Final = 30.0


@attrs.frozen
class Turned:
    secret: str
    version: str
    seconds: float


@attrs.frozen
class Revoked:
    """Ids of keys: those that are gone, those that the secret knows nothing of, and the one that is left."""

    secret: str
    revoked: tuple[str, ...]
    not_ours: tuple[str, ...]
    kept: str


def turn(here: Ground, secret: Rotating, tell: Tell) -> Turned:
    """Returns once the new key is current. Raises CommandFailed where it fails, or takes longer than we wait."""
    began = here.clock.time()
    before = len(_lines(here, secret, began))
    version = _begun(here, secret)
    while not _is_current(here, secret, version):
        waited = here.clock.time() - began
        for line in _lines(here, secret, began)[before:]:
            tell(f"{secret.name}: {line.get('step', '')} {line['message']}, {spoken(waited)}")
            if line["message"] == "failed":
                raise secrets.refused(secret, str(line.get("reason", "")))
        if waited > _PATIENCE:
            told = f"{secret.name}: no new key after {spoken(waited)}; Secrets Manager goes on"
            raise CommandFailed("ROTATE-LATER", told)
        here.clock.sleep(_POLL)
    return Turned(secret.name, version, here.clock.time() - began)


def revoke(here: Ground, secret: Rotating) -> Revoked:
    """Every key but the current one is gone at once. Raises CommandFailed."""
    told = secrets.ask(here, secret, "revoke")
    return Revoked(told["secret"], tuple(told["revoked"]), tuple(told["not_ours"]), told["kept"])


def _begun(here: Ground, secret: Rotating) -> str:
    """The version that shall become current. A rotation that failed is tried again instead of a new one beginning."""
    with aws_told(f"rotating {secret.name}"):
        try:
            return str(here.client("secretsmanager").rotate_secret(SecretId=secret.arn)["VersionId"])
        except ClientError as error:
            if error_code(error) != "InvalidRequestException" or not (pending := _described(here, secret).labelled(PENDING)):
                raise
            return pending


def _is_current(here: Ground, secret: Rotating, version: str) -> bool:
    with aws_told(f"looking at secret {secret.name}"):
        return _described(here, secret).labelled(CURRENT) == version


def _described(here: Ground, secret: Rotating) -> Described:
    return SecretVersions(here.client("secretsmanager"), secret.arn).describe()


def _lines(here: Ground, secret: Rotating, began: float) -> list[dict[str, Any]]:
    """What the function has said of the secret since, as far as its log can be read."""
    try:
        lines = [_json(line.text) for line in logs.of_function(here, secret.function.log_group, began - _SKEW)]
    except (ClientError, BotoCoreError):
        return []
    return [line for line in lines if line.get("message") and line.get("secret") in (secret.name, secret.arn)]


def _json(text: str) -> dict[str, Any]:
    try:
        found = json.loads(text)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}
