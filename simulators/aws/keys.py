"""Use of KMS keys by services, which call KMS for their callers.

A service calls KMS with the permissions of its caller and with kms:ViaService. Both the caller's policies and
the key's policy count; a key whose policy names nobody in the account refuses everybody. Source: KMS
developer guide, "Key policies in AWS KMS" and "kms:ViaService".
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextvars import ContextVar
from typing import Any, Final, NamedTuple

from simulators.aws import identity, settings
from simulators.aws.hooks import Request, get_region, import_ministack

WRITES: Final = ("kms:GenerateDataKey", "kms:Decrypt")


class KeyRefusal(NamedTuple):
    """`kind` is NotFound, Disabled, InvalidState or AccessDenied; each service has its own error codes."""

    kind: str
    message: str


class Caller(NamedTuple):
    access_key_id: str
    region: str


#: The caller of the request that is processed. None in calls that a service makes itself.
CALLER: Final[ContextVar[Caller | None]] = ContextVar("lakeferry_caller", default=None)
#: The role or user with whose permissions CloudFormation works.
DEPLOYER: Final[ContextVar[str]] = ContextVar("lakeferry_deployer", default="")


def set_caller(request: Request) -> None:
    CALLER.set(Caller(*request.read_caller()))


def is_managed_by_aws(key_name: str | None) -> bool:
    """Return whether this is the key that a service has in each account, which all of the account may use."""
    return not key_name or "alias/aws/" in key_name


def find_refusal(
    key_name: str, actions: Iterable[str], service: str, context: Mapping[str, str]
) -> KeyRefusal | None:
    """Return why the caller may not use the key, None if it may. `context` is the encryption context."""
    if is_managed_by_aws(key_name):
        return None
    key = import_ministack("services.kms")._resolve_key(key_name)
    if key is None:
        return KeyRefusal("NotFound", f"Invalid keyId '{key_name}'")
    keys = _build_condition_keys(service, context)
    for action in actions:
        if denial := _find_denial(key["Arn"], action, keys):
            return KeyRefusal("AccessDenied", denial)
    return _find_state(key)


def is_open_to_service(
    key_name: str,
    service: str,
    actions: Iterable[str],
    *,
    source_arn: str,
    context: Mapping[str, str] | None = None,
) -> bool:
    """Return whether the key is enabled and its policy lets the service use it for the resource `source_arn`.
    `context` is the encryption context.
    """
    key = import_ministack("services.kms")._resolve_key(key_name)
    if key is None or _find_state(key):
        return False
    condition_keys = {
        f"kms:encryptioncontext:{name}".lower(): value for name, value in (context or {}).items()
    }
    return all(
        identity.is_allowed_by_policy(
            key.get("Policy"), service, action, key["Arn"], source_arn, condition_keys
        )
        for action in actions
    )


def _find_state(key: dict[str, Any]) -> KeyRefusal | None:
    if key["KeyState"] == "Enabled":
        return None
    if key["KeyState"] == "Disabled":
        return KeyRefusal("Disabled", f"{key['Arn']} is disabled.")
    state = "pending deletion" if key["KeyState"] == "PendingDeletion" else key["KeyState"]
    return KeyRefusal("InvalidState", f"{key['Arn']} is {state}.")


def _build_condition_keys(service: str, context: Mapping[str, str]) -> dict[str, str]:
    return {
        "kms:viaservice": f"{service}.{get_region()}.amazonaws.com",
        "kms:calleraccount": settings.ACCOUNT,
        **{f"kms:encryptioncontext:{name}".lower(): value for name, value in context.items()},
    }


def _find_denial(key_arn: str, action: str, keys: dict[str, str]) -> str:
    """Return AWS's message if the caller may not do this with the key, else ""."""
    deployer = DEPLOYER.get()
    caller = CALLER.get()
    if not identity.is_enforced() or (not deployer and caller is None):
        return ""
    if deployer:
        is_allowed = identity.may(deployer, action, key_arn, keys)
        return "" if is_allowed else _describe_denial(deployer, action, key_arn, keys)
    assert caller is not None
    evaluator = import_ministack("core.iam_evaluator")
    denied = evaluator.enforce(caller.access_key_id, action, "kms", caller.region, key_arn, keys)
    if denied is None:
        return ""
    if isinstance(denied, evaluator.AuthError):
        return str(denied.message)
    if denied.decision == "Deny":
        where = "a resource-based policy" if denied.resource_policy_arn else "an identity-based policy"
        return f"{_name_call(denied.principal_arn, action, key_arn)} with an explicit deny in {where}"
    return _describe_denial(denied.principal_arn, action, key_arn, keys)


def _describe_denial(principal: str, action: str, key_arn: str, keys: dict[str, str]) -> str:
    """Return the message for a call that no policy allows. AWS names the kind of policy that doesn't."""
    evaluator = import_ministack("core.iam_evaluator")
    policy = import_ministack("services.kms").key_policy_for_arn(key_arn)[0]
    context = evaluator.EvalContext(
        principal_arn=principal,
        principal_type="AssumedRole",
        principal_account=settings.ACCOUNT,
        action=action,
        resource_arn=key_arn,
        region=get_region(),
        service_context=keys,
    )
    is_allowed = evaluator.evaluate_resource_policy(policy, context).decision == "Allow"
    kind = "identity-based" if is_allowed else "resource-based"
    return f"{_name_call(principal, action, key_arn)} because no {kind} policy allows the {action} action"


def _name_call(principal: str, action: str, key_arn: str) -> str:
    return f"User: {principal} is not authorized to perform: {action} on resource: {key_arn}"
