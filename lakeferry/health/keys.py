"""The KMS keys that the deployment file names: whether AWS's services can encrypt with them."""

from __future__ import annotations

import json
from fnmatch import fnmatchcase
from functools import partial
from typing import Any, Final

from botocore.exceptions import ClientError

from lakeferry.deployment.context import DeploymentContext
from lakeferry.error_translation import is_aws_denial
from lakeferry.health import runner
from lakeferry.health.model import Check, Group
from lambdas.shared.aws import read_error_code

GROUP: Final = Group("KMS keys")
NAME: Final = "KMS keys"
_FILE: Final = "the deployment file"
_ENABLED: Final = "Enabled"
_SYMMETRIC: Final = "SYMMETRIC_DEFAULT"
_POLICY: Final = "docs/how-to/regulated-account.md, KMS keys"


def look(ctx: DeploymentContext) -> list[Check]:
    """Return no checks for a file without `[encryption]`."""
    checks = []
    for purpose, key in ctx.deployment.encryption.keys.items():
        name = f"key of {purpose}"
        of_key = partial(check_key, ctx, GROUP, name, f"encryption.{purpose}", key)
        checks.append(runner.attempt(GROUP, name, of_key))
        name = f"policy of the key of {purpose}"
        checks.append(runner.attempt(GROUP, name, partial(_check_policy, ctx, name, purpose, key)))
    return checks


def check_key(ctx: DeploymentContext, group: Group, name: str, setting: str, key: str) -> Check:
    """Check that the key of `setting` exists and works. Raises ClientError."""
    try:
        described = ctx.client("kms").describe_key(KeyId=key)["KeyMetadata"]
    except ClientError as error:
        if read_error_code(error) != "NotFoundException":
            raise
        return group.fail(name, f"there is no key {key}", f"Correct `{setting}` in {_FILE}")
    if described["KeyState"] != _ENABLED:
        return group.fail(
            name,
            f"{key} is {described['KeyState']}, so nothing that it encrypts can be read",
            "Enable it, or cancel its deletion: `aws kms enable-key`, `aws kms cancel-key-deletion`",
            _ENABLED,
        )
    if described.get("KeySpec", _SYMMETRIC) != _SYMMETRIC:
        return group.fail(
            name,
            f"{key} is a {described['KeySpec']} key, with which AWS's services can't encrypt data",
            f"Name a symmetric encryption key in `{setting}`",
            _SYMMETRIC,
        )
    return group.ok(name, key)


def _check_policy(ctx: DeploymentContext, name: str, purpose: str, key: str) -> Check:
    """Check that the key's policy lets the account's IAM decide and, for logs, the services in.

    Raises ClientError.
    """
    try:
        text = ctx.client("kms").get_key_policy(KeyId=key, PolicyName="default")["Policy"]
    except ClientError as error:
        if is_aws_denial(error) or read_error_code(error) == "NotFoundException":
            return GROUP.skip_unseen(name, "not checked: you may not read the key's policy")
        raise
    allowing = [
        statement
        for statement in _build_list(json.loads(text)["Statement"])
        if statement["Effect"] == "Allow" and _allows_decrypting(statement)
    ]
    services = (f"logs.{ctx.region}.amazonaws.com", "cloudwatch.amazonaws.com") if purpose == "logs" else ()
    admitted: set[str] = set()
    for statement in allowing:
        admitted.update(_list_principals(statement, "Service"))
    lacking = [service for service in services if service not in admitted]
    if lacking:
        return GROUP.fail(
            name,
            f"it doesn't let {' and '.join(lacking)} use the key",
            f"Add what {_POLICY} has",
            " and ".join(services),
        )
    account = key.split(":")[4]
    anybody = (f"arn:aws:iam::{account}:root", account, "*")
    for statement in allowing:
        # What a condition allows depends on the call.
        if not statement.get("Condition") and set(anybody) & set(_list_principals(statement, "AWS")):
            return GROUP.ok(name, "the account's IAM decides who may use the key")
    return GROUP.warn_unseen(
        name,
        "it isn't known to let IAM decide who may use the key, so it may have to name the deployment's roles",
        f"Let the account's IAM decide, or name the roles: {_POLICY}",
        anybody[0],
    )


def _allows_decrypting(statement: dict[str, Any]) -> bool:
    actions = _build_list(statement.get("Action", []))
    return any(fnmatchcase("kms:decrypt", str(action).lower()) for action in actions)


def _list_principals(statement: dict[str, Any], kind: str) -> list[str]:
    principal = statement.get("Principal", {})
    if isinstance(principal, str):
        return [principal]
    return [str(item) for item in _build_list(principal.get(kind, []))]


def _build_list(value: Any) -> list[Any]:
    return list(value) if isinstance(value, list) else [value]
