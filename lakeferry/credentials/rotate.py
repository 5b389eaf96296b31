"""Replaces a key by hand, and takes keys away that have leaked."""

from __future__ import annotations

import json
from typing import Any, Final

import attrs
from botocore.exceptions import BotoCoreError, ClientError

from lakeferry.credentials import rotating_secrets
from lakeferry.credentials.rotating_secrets import Rotating
from lakeferry.deployment import logs
from lakeferry.deployment.context import DeploymentContext
from lakeferry.error_translation import translate_aws_errors
from lakeferry.errors import CommandFailed
from lakeferry.output import Reporter, format_duration
from lambdas.rotation.versions import CURRENT, PENDING, Described, SecretVersions
from lambdas.shared.aws import error_code

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


def turn(ctx: DeploymentContext, secret: Rotating, report: Reporter) -> Turned:
    """Returns once the new key is current. Raises CommandFailed where it fails, or takes longer than we wait."""
    began = ctx.clock.time()
    before = len(_lines(ctx, secret, began))
    version = _begun(ctx, secret)
    while not _is_current(ctx, secret, version):
        waited = ctx.clock.time() - began
        for line in _lines(ctx, secret, began)[before:]:
            report(f"{secret.name}: {line.get('step', '')} {line['message']}, {format_duration(waited)}")
            if line["message"] == "failed":
                raise rotating_secrets.refused(secret, str(line.get("reason", "")))
        if waited > _PATIENCE:
            told = f"{secret.name}: no new key after {format_duration(waited)}; Secrets Manager goes on"
            raise CommandFailed("ROTATE-LATER", told)
        ctx.clock.sleep(_POLL)
    return Turned(secret.name, version, ctx.clock.time() - began)


def revoke(ctx: DeploymentContext, secret: Rotating) -> Revoked:
    """Every key but the current one is gone at once. Raises CommandFailed."""
    told = rotating_secrets.ask(ctx, secret, "revoke")
    return Revoked(told["secret"], tuple(told["revoked"]), tuple(told["not_ours"]), told["kept"])


def _begun(ctx: DeploymentContext, secret: Rotating) -> str:
    """The version that shall become current. A rotation that failed is tried again instead of a new one beginning."""
    with translate_aws_errors(f"rotating {secret.name}"):
        try:
            return str(ctx.client("secretsmanager").rotate_secret(SecretId=secret.arn)["VersionId"])
        except ClientError as error:
            if error_code(error) != "InvalidRequestException" or not (pending := _described(ctx, secret).labelled(PENDING)):
                raise
            return pending


def _is_current(ctx: DeploymentContext, secret: Rotating, version: str) -> bool:
    with translate_aws_errors(f"looking at secret {secret.name}"):
        return _described(ctx, secret).labelled(CURRENT) == version


def _described(ctx: DeploymentContext, secret: Rotating) -> Described:
    return SecretVersions(ctx.client("secretsmanager"), secret.arn).describe()


def _lines(ctx: DeploymentContext, secret: Rotating, began: float) -> list[dict[str, Any]]:
    """What the function has said of the secret since, as far as its log can be read."""
    try:
        lines = [_json(line.text) for line in logs.of_function(ctx, secret.function.log_group, began - _SKEW)]
    except (ClientError, BotoCoreError):
        return []
    return [line for line in lines if line.get("message") and line.get("secret") in (secret.name, secret.arn)]


def _json(text: str) -> dict[str, Any]:
    try:
        found = json.loads(text)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}
