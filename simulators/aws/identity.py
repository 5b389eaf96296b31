"""Credentials and permission checks for services of the embedded AWS, which call other services.

They act under a role that trusts them, or as a service principal that a resource-based policy allows. Their
calls are HTTP requests like those of other clients, so that policies, injected faults and limits apply to
them too.
"""

from __future__ import annotations

import json
import os
import threading
import uuid
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

import boto3
from botocore.config import Config

from simulators.aws import settings
from simulators.aws.hooks import get_region, import_ministack

_TRIES: Final = 4
_client_lock: Final = threading.Lock()


class Refused(Exception):
    """The role doesn't exist, or doesn't trust the service."""


class Credentials(NamedTuple):
    """Temporary credentials of a role, or the root user's."""

    access_key_id: str
    secret_access_key: str
    session_token: str | None

    def build_environment(self) -> dict[str, str]:
        token = {"AWS_SESSION_TOKEN": self.session_token} if self.session_token else {}
        return {
            "AWS_ACCESS_KEY_ID": self.access_key_id,
            "AWS_SECRET_ACCESS_KEY": self.secret_access_key,
            **token,
        }


ROOT: Final = Credentials(settings.ACCESS_KEY_ID, settings.SECRET_ACCESS_KEY, None)


def get_endpoint() -> str:
    return f"http://{settings.HOST}:{os.environ['GATEWAY_PORT']}"


def build_client(service: Any, credentials: Credentials, *, tries: int = _TRIES) -> Any:
    """Return a boto3 client of this server.

    Don't call it in the event loop's thread: the server couldn't answer.
    """
    config = Config(
        retries={"total_max_attempts": tries}, request_checksum_calculation="when_required", proxies={}
    )
    with _client_lock:  # boto3's default session is not thread-safe
        return boto3.client(
            service,
            region_name=get_region(),
            endpoint_url=get_endpoint(),
            aws_access_key_id=credentials.access_key_id,
            aws_secret_access_key=credentials.secret_access_key,
            aws_session_token=credentials.session_token,
            config=config,
        )


def assume(role_arn: str, service: str, session_name: str, *, source_arn: str | None = None) -> Credentials:
    """Assume the role as `service`, with aws:SourceAccount, and with aws:SourceArn if given.

    Raises Refused.
    """
    if not is_enforced():
        return ROOT
    if not is_trusted_by_role(role_arn, service, source_arn):
        raise Refused(f"{service} is not authorized to assume {role_arn or 'no role'}")
    account = role_arn.split(":")[4]
    role_name = role_arn.rpartition("/")[2]
    credentials = Credentials(f"ASIA{uuid.uuid4().hex[:16].upper()}", uuid.uuid4().hex, uuid.uuid4().hex)
    session = {
        "Arn": f"arn:aws:sts::{account}:assumed-role/{role_name}/{session_name[:64]}",
        "UserId": f"{role_name}:{session_name[:64]}",
        "SecretAccessKey": credentials.secret_access_key,
        "SessionToken": credentials.session_token,
        "AccountId": account,
        "PrincipalType": "AssumedRole",
    }
    import_ministack("services.sts").register_session(credentials.access_key_id, session)
    return credentials


def get_function_credentials(config: dict[str, Any]) -> Credentials:
    """Return the credentials that Lambda gives to a function."""
    if not is_enforced():
        return ROOT
    variables = import_ministack("core.lambda_runtime").execution_credentials(config)
    return Credentials(
        variables["AWS_ACCESS_KEY_ID"], variables["AWS_SECRET_ACCESS_KEY"], variables["AWS_SESSION_TOKEN"]
    )


def is_trusted_by_role(role_arn: str, service: str, source_arn: str | None) -> bool:
    """Return whether the role's trust policy allows the service with aws:SourceAccount.

    True if IAM is not enforced.
    """
    if not is_enforced():
        return True
    role = import_ministack("services.iam")._roles.get(role_arn.rpartition("/")[2])
    if role is None or role["Arn"] != role_arn:
        return False
    document = _select_statements(role.get("AssumeRolePolicyDocument"), service)
    context = _build_service_context("sts:AssumeRole", role_arn, source_arn)
    return bool(import_ministack("core.iam_evaluator").evaluate_trust_policy(document, service, context))


def is_allowed_by_policy(  # noqa: PLR0917  (what a request to a resource has)
    policy: Any,
    service: str,
    action: str,
    resource: str,
    source_arn: str,
    keys: dict[str, str] | None = None,
) -> bool:
    """Return whether a resource-based policy allows the service to do this. `keys` are further condition
    keys, in lower case. True if IAM is not enforced.
    """
    if not is_enforced():
        return True
    context = _build_service_context(action, resource, source_arn)
    context.service_context.update(keys or {})
    result = import_ministack("core.iam_evaluator").evaluate_resource_policy(
        policy or {}, context, service=service
    )
    return bool(result.decision == "Allow")


def may(
    principal_arn: str, action: str, resource: str, keys: Mapping[str, Any] | None = None, region: str = ""
) -> bool:
    """Return whether IAM allows this to a role or user: its own policies, its permissions boundary, and the
    resource's policy. `keys` are condition keys in lower case. True if IAM is not enforced.
    """
    if not is_enforced() or principal_arn.endswith(":root"):
        return True
    evaluator = import_ministack("core.iam_evaluator")
    is_user = ":user/" in principal_arn
    name = _read_principal_name(principal_arn)
    context = evaluator.EvalContext(
        principal_arn=principal_arn,
        principal_type="User" if is_user else "AssumedRole",
        principal_account=settings.ACCOUNT,
        action=action,
        resource_arn=resource,
        region=region or get_region(),
        service_context=dict(keys or {}),
    )
    gather = evaluator._gather_user_policies if is_user else evaluator._gather_role_policies
    iam = import_ministack("services.iam")
    principals = iam._users if is_user else iam._roles
    limits = evaluator._permissions_boundary(principals, name, settings.ACCOUNT)
    result = evaluator.evaluate(context, gather(name, settings.ACCOUNT), *limits)
    service = action.partition(":")[0]
    resource_policy = evaluator._resource_policy(service, resource)
    if resource_policy:
        is_required = service in evaluator._POLICY_REQUIRED
        result = evaluator.combine_resource_policy(
            result, context, *resource_policy, required=is_required, limits=limits
        )
    return bool(result.decision == "Allow")


def _read_principal_name(arn: str) -> str:
    """Return the name of a role or user, from …:role/path/name or …:assumed-role/name/session."""
    if ":assumed-role/" in arn:
        return arn.split("/")[1]
    return arn.rpartition("/")[2]


def is_enforced() -> bool:
    return bool(import_ministack("app").AUTH)


def _build_service_context(action: str, resource: str, source_arn: str | None) -> Any:
    keys = {"aws:sourceaccount": settings.ACCOUNT}
    if source_arn:
        keys["aws:sourcearn"] = source_arn
    return import_ministack("core.iam_evaluator").EvalContext(
        principal_arn="*",
        principal_type="Service",
        principal_account="",
        action=action,
        resource_arn=resource,
        region=get_region(),
        service_context=keys,
    )


def _select_statements(document: Any, service: str) -> dict[str, Any]:
    """Return the statements that name the service, with Principal `*`.

    They are filtered here because MiniStack's matcher lets any service principal match an account's root.
    """
    policy = json.loads(document) if isinstance(document, str) else document or {}
    statements = policy.get("Statement", [])
    is_principal = import_ministack("core.iam_evaluator")._service_principal_matches
    statement_list = statements if isinstance(statements, list) else [statements]
    return {
        "Statement": [
            {**statement, "Principal": "*"}
            for statement in statement_list
            if is_principal(statement.get("Principal"), service)
        ]
    }
