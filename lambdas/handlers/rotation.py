"""Rotation. Secrets Manager sends its four steps, an operator {"operation": "revoke" or "status", "secret":
id}, and the schedule {"operation": "revoke_expired", "secrets": [id, ...]}."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final

import attrs

from lambdas import contract
from lambdas.confluent.client import CONTROL_PLANE, Confluent
from lambdas.custom_resources.state import DynamoDocuments, StateStore
from lambdas.handlers.runtime import LambdaContext, compute_deadline, entry_point, get_client
from lambdas.rotation import age, strategy
from lambdas.rotation import errors as rotation_errors
from lambdas.rotation.confluent import ConfluentApiKey
from lambdas.rotation.link_key import LinkKey
from lambdas.rotation.snowflake import SnowflakeKeyPair
from lambdas.rotation.steps import Rotation
from lambdas.rotation.strategy import Strategy
from lambdas.rotation.versions import DAY, Policy
from lambdas.shared import errors
from lambdas.shared.clock import Deadline
from lambdas.shared.errors import LakeferryError, Refused
from lambdas.shared.http import Session
from lambdas.shared.log import Log
from lambdas.shared.secrets import SecretStore
from lambdas.shared.settings import RotationSettings
from lambdas.shared.tenants import require_tenant
from lambdas.snowflake.client import Snowflake

if TYPE_CHECKING:
    from mypy_boto3_secretsmanager import SecretsManagerClient


@attrs.frozen
class Settings:
    cloud_key_secret: str
    confluent_url: str
    snowflake_url: str
    policy: Policy
    state_table: str = ""
    proxy: str = ""
    link_days: int = 0


def rotate(event: dict[str, Any], context: LambdaContext) -> dict[str, Any]:
    with entry_point(
        secret=str(event.get("SecretId") or event.get("secret") or ""), step=event.get("Step")
    ) as log:
        end = compute_deadline(context, contract.ROTATION_MARGIN_SECONDS)
        settings = read_settings(os.environ)
        tenants = functools.cache(lambda: _tenants(settings, end))
        session = Session(end, proxy=settings.proxy)
        return answer(
            build(settings, get_client("secretsmanager"), session, end, log, tenants=tenants), event
        )


def _tenants(settings: Settings, end: Deadline) -> frozenset[str]:
    """Return where the stack's objects are.

    Raises LakeferryError: without the comparison, no key is replaced or revoked.
    """
    if not settings.state_table:
        raise LakeferryError(errors.SETTINGS, f"{contract.STATE_TABLE} not set")
    return StateStore(DynamoDocuments(get_client("dynamodb"), settings.state_table), end.clock).tenants()


def answer(rotation: Rotation, event: Mapping[str, Any]) -> dict[str, Any]:
    if "operation" not in event:
        return {"outcome": rotation.run(event)}
    secrets = event.get("secrets")
    if event["operation"] == contract.REVOKE_EXPIRED and isinstance(secrets, list) and secrets:
        return rotation.revoke_expired([str(secret) for secret in secrets])
    operation = _OPERATIONS.get(str(event["operation"]))
    secret = str(event.get("secret") or "")
    if operation is None or not secret:
        known = (
            f"{' or '.join(_OPERATIONS)} with a secret, or {contract.REVOKE_EXPIRED} with a list of secrets"
        )
        raise Refused(rotation_errors.EVENT, f"the operation must be {known}")
    return operation(rotation, secret)


def build(
    settings: Settings,
    secrets: SecretsManagerClient,
    session: Session,
    deadline: Deadline,
    log: Log,
    *,
    tenants: Callable[[], frozenset[str]],
) -> Rotation:
    """`tenants` returns the organizations or accounts in which the stack's objects are.

    A login of another one is refused.
    """

    @functools.cache
    def confluent() -> Confluent:
        if not settings.cloud_key_secret:
            raise LakeferryError(errors.SETTINGS, f"{contract.CLOUD_KEY_SECRET} not set")
        key = SecretStore(secrets).read_key(settings.cloud_key_secret)
        vendor = Confluent(session, deadline.clock, key, settings.confluent_url)
        require_tenant(vendor, tenants())
        return vendor

    strategies: dict[str, Callable[[], Strategy]] = {
        strategy.CONFLUENT: lambda: ConfluentApiKey(confluent),
        strategy.SNOWFLAKE: lambda: SnowflakeKeyPair(
            lambda login, key: Snowflake(session, deadline.clock, login, key, settings.snowflake_url), tenants
        ),
        strategy.LINKS: lambda: LinkKey(settings.link_days),
    }
    return Rotation(secrets, lambda kind: strategies[kind](), settings.policy, deadline, log)


def read_settings(environment: Mapping[str, str]) -> Settings:
    """Read the function's environment. Raises LakeferryError for invalid numbers."""
    variables = RotationSettings.from_environment(environment)
    try:
        keep = int(variables.keep or contract.KEYS_KEPT)
        grace = float(variables.grace_days or contract.GRACE_DAYS)
        link_days = int(variables.link_days or 0)
    except ValueError:
        keep = 0
        grace = 0.0
        link_days = 0
    if keep < contract.KEYS_KEPT or not 0 < grace < float("inf"):
        message = (
            f"{contract.ROTATION_KEEP} must be {contract.KEYS_KEPT} or more, "
            f"{contract.ROTATION_GRACE_DAYS} more than 0"
        )
        raise LakeferryError(errors.SETTINGS, message)
    return Settings(
        cloud_key_secret=variables.cloud_key_secret,
        confluent_url=variables.confluent_url or CONTROL_PLANE,
        snowflake_url=variables.snowflake_url,
        policy=Policy(keep, grace * DAY),
        state_table=variables.state_table,
        proxy=variables.proxy,
        link_days=link_days,
    )


_OPERATIONS: Final[Mapping[str, Callable[[Rotation, str], dict[str, Any]]]] = {
    "revoke": Rotation.revoke,
    "status": lambda rotation, secret: attrs.asdict(age.measure_age(*rotation.open(secret))),
}
