"""CloudFormation and IAM: with whose permissions resources are created, and policies that others use.

- cfn_roles: CloudFormation creates, changes and deletes resources with the role in RoleARN, which it keeps
  for all later operations of the stack; a stack without one is deployed with the permissions of the caller.
  Stock creates all resources as nobody. Here the role counts for what patches check: KMS keys of secrets and
  permissions of Lake Formation. Source: CloudFormation user guide, "AWS CloudFormation service role".

- cfn_conditions: Conditions can join texts and lists of parameters. Stock compares the function Fn::Join
  itself with a text, so that CDK's bootstrap gives its role for CloudFormation no policy. Source: template
  reference, "Condition functions".

- cfn_attached_policies: A managed policy that is attached to a role or user of somebody else isn't deleted:
  "Cannot delete a policy attached to entities." Stock deletes it, and the role keeps the name of a policy
  that doesn't exist. Source: IAM API reference, DeletePolicy (DeleteConflict).

Less strict than AWS: other permissions of that role are not checked.

See stock: `.venv/bin/python -m pytest simulators/tests/aws/test_patches.py -m simulators
-k "stock and cloudformation_roles"`
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, Final
from urllib.parse import parse_qs

from simulators.aws import keys
from simulators.aws.hooks import Answer, OriginalRequest, Patch, Request, import_ministack

ROLES = Patch("cfn_roles")
_CHANGES: Final = frozenset(
    "CreateStack UpdateStack DeleteStack CreateChangeSet ExecuteChangeSet ContinueUpdateRollback "
    "RollbackStack".split()
)
#: The role of each stack, by the stack's name.
_roles: dict[str, str] = {}


@ROLES.handles("ministack.services.cloudformation")
async def handle_request(original: OriginalRequest, request: Request) -> Answer:
    fields = _read_fields(request)
    if fields.get("Action") in _CHANGES:
        keys.DEPLOYER.set(_find_principal(fields))
    return await original()


def _read_fields(request: Request) -> dict[str, str]:
    action = request.headers.get("x-amz-target", "").rpartition(".")[2]
    if action:
        return {**json.loads(request.body or b"{}"), "Action": action}
    form = {**request.query, **parse_qs(request.body.decode("utf-8", errors="replace"))}
    return {name: _take_first(value) for name, value in form.items()}


def _take_first(value: Any) -> str:
    return str(value[0]) if isinstance(value, list) else str(value)


def _find_principal(fields: dict[str, str]) -> str:
    """Return the role of the stack; the caller if it has none."""
    stack_name = _read_stack_name(fields)
    if role := fields.get("RoleARN"):
        _roles[stack_name] = role
    return _roles.get(stack_name) or str(import_ministack("core.iam_evaluator").caller_arn())


def _read_stack_name(fields: dict[str, str]) -> str:
    """Return the name of the stack, from a name, or from the ARN of a stack or change set."""
    stack = fields.get("StackName", "")
    if not stack:
        change_sets = import_ministack("services.cloudformation.changesets")
        _, change_set = change_sets._find_change_set(fields.get("ChangeSetName", ""), "")
        stack = (change_set or {}).get("StackName", "")
    return stack.split("/")[1] if stack.startswith("arn:") else stack


CONDITIONS = Patch("cfn_conditions")


@CONDITIONS.replaces("ministack.services.cloudformation.stacks", "_evaluate_conditions", "template params")
@CONDITIONS.replaces("ministack.services.cloudformation.handlers", "_evaluate_conditions", "template params")
@CONDITIONS.replaces(
    "ministack.services.cloudformation.changesets", "_evaluate_conditions", "template params"
)
def evaluate_conditions(
    original: Callable[..., dict[str, bool]], template: dict[str, Any], params: dict[str, Any]
) -> dict[str, bool]:
    conditions = _join_texts(template.get("Conditions", {}), params)
    return original({**template, "Conditions": conditions}, params)


def _join_texts(part: Any, params: dict[str, Any]) -> Any:
    """Return this part of the conditions with texts in place of Fn::Join."""
    if isinstance(part, list):
        return [_join_texts(item, params) for item in part]
    if not isinstance(part, dict):
        return part
    if "Fn::Join" in part:
        separator, items = part["Fn::Join"]
        return str(separator).join(_list_texts(items, params))
    return {name: _join_texts(value, params) for name, value in part.items()}


def _list_texts(items: Any, params: dict[str, Any]) -> list[str]:
    """Return texts of a list, or of a parameter with a list, which has commas."""
    if isinstance(items, dict):
        return str(params[items["Ref"]]["Value"]).split(",")
    return [_list_texts(item, params)[0] if isinstance(item, dict) else str(item) for item in items]


ATTACHED = Patch("cfn_attached_policies")


@ATTACHED.replaces("ministack.services.cloudformation.provisioners", "_iam_policy_remove", "arn props")
def remove_policy(original: Callable[..., None], arn: str, props: dict[str, Any]) -> None:
    """Detach the policy from those whom the template names, and delete it unless others have it."""
    provisioners = import_ministack("services.cloudformation.provisioners")
    provisioners._iam_policy_reconcile_entities(arn, props, {})
    record = import_ministack("services.iam")._policies.get(arn)
    if record and record["AttachmentCount"] > 0:
        raise ValueError("Cannot delete a policy attached to entities. (Service: Iam, Status Code: 409)")
    original(arn, {})


PATCHES: Final = (
    ROLES,
    CONDITIONS,
    ATTACHED,
)
