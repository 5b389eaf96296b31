"""Rotation. Secrets Manager sends its four steps; an operator may send {"operation": "revoke" or "status", "secret": id}; the
clock sends {"operation": "revoke_expired", "secrets": [id, ...]}."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final

import attrs
import boto3
from botocore.config import Config

from lambdas import contract
from lambdas.confluent.client import CONTROL_PLANE, Confluent
from lambdas.handlers import runtime
from lambdas.handlers.runtime import LambdaContext
from lambdas.rotation import errors as rotation_errors
from lambdas.rotation import steps
from lambdas.rotation.confluent import ConfluentApiKey
from lambdas.rotation.snowflake import SnowflakeKeyPair
from lambdas.rotation.steps import Rotation, Strategy
from lambdas.rotation.versions import DAY, Policy
from lambdas.shared import errors
from lambdas.shared.clock import Deadline, SystemClock
from lambdas.shared.errors import LakeferryError, Refused
from lambdas.shared.http import Session
from lambdas.shared.log import Log, open_log
from lambdas.shared.secrets import SecretStore
from lambdas.snowflake.client import Snowflake

if TYPE_CHECKING:
    from mypy_boto3_secretsmanager import SecretsManagerClient

_AWS: Final = Config(connect_timeout=5, read_timeout=10, retries={"mode": "standard", "total_max_attempts": 4})


@attrs.frozen
class Settings:
    cloud_key_secret: str
    confluent_url: str
    snowflake_url: str
    policy: Policy


def rotate(event: dict[str, Any], context: LambdaContext) -> dict[str, Any]:
    log = open_log().bind(secret=_shown(event), step=event.get("Step"))
    with runtime.told(log):
        clock = SystemClock()
        left = context.get_remaining_time_in_millis() / 1000 - contract.ROTATION_MARGIN_SECONDS
        deadline = Deadline(clock, clock.time() + left)
        return answer(build(read(os.environ), _client(), Session(deadline), deadline, log), event)


def answer(engine: Rotation, event: Mapping[str, Any]) -> dict[str, Any]:
    if "operation" not in event:
        return {"outcome": engine.run(event)}
    secrets = event.get("secrets")
    if event["operation"] == contract.REVOKE_EXPIRED and isinstance(secrets, list) and secrets:
        return engine.revoke_expired([str(secret) for secret in secrets])
    operation, secret = _OPERATIONS.get(str(event["operation"])), str(event.get("secret") or "")
    if operation is None or not secret:
        known = f"{' or '.join(_OPERATIONS)}, of a secret, or {contract.REVOKE_EXPIRED}, of a list of secrets"
        raise Refused(rotation_errors.EVENT, f"an operation is {known}")
    return operation(engine, secret)


def build(read: Settings, client: SecretsManagerClient, session: Session, deadline: Deadline, log: Log) -> Rotation:
    """The composition: the only place that chooses what stands behind the ports."""

    @functools.cache
    def confluent() -> Confluent:
        if not read.cloud_key_secret:
            raise LakeferryError(errors.SETTINGS, f"{contract.CLOUD_KEY_SECRET} not set")
        key = SecretStore(client).read_key(read.cloud_key_secret)
        return Confluent(session, deadline.clock, key, read.confluent_url)

    strategies: dict[str, Callable[[], Strategy]] = {
        steps.CONFLUENT: lambda: ConfluentApiKey(confluent),
        steps.SNOWFLAKE: lambda: SnowflakeKeyPair(
            lambda login, key: Snowflake(session, deadline.clock, login, key, read.snowflake_url)
        ),
    }
    return Rotation(client, lambda kind: strategies[kind](), read.policy, deadline, log)


def read(environment: Mapping[str, str]) -> Settings:
    """Raises LakeferryError for numbers that rotation can't keep to."""
    try:
        keep = int(environment.get(contract.ROTATION_KEEP) or contract.KEYS_KEPT)
        grace = float(environment.get(contract.ROTATION_GRACE_DAYS) or contract.GRACE_DAYS)
    except ValueError:
        keep, grace = 0, 0.0
    if keep < contract.KEYS_KEPT or not 0 < grace < float("inf"):
        wanted = f"{contract.ROTATION_KEEP} must be {contract.KEYS_KEPT} or more, {contract.ROTATION_GRACE_DAYS} more than 0"
        raise LakeferryError(errors.SETTINGS, wanted)
    return Settings(
        cloud_key_secret=environment.get(contract.CLOUD_KEY_SECRET, ""),
        confluent_url=environment.get(contract.CONFLUENT_URL) or CONTROL_PLANE,
        snowflake_url=environment.get(contract.SNOWFLAKE_URL, ""),
        policy=Policy(keep, grace * DAY),
    )


_OPERATIONS: Final[Mapping[str, Callable[[Rotation, str], dict[str, Any]]]] = {
    "revoke": Rotation.revoke,
    "status": lambda engine, secret: steps.as_document(steps.age_of(*engine.hold(secret))),
}


@functools.cache
def _client() -> Any:
    """Kept for as long as the function stays warm: making one takes a tenth of a second."""
    session: Any = boto3.session.Session()
    return session.client("secretsmanager", config=_AWS)


def _shown(event: Mapping[str, Any]) -> str:
    return str(event.get("SecretId") or event.get("secret") or "")
