"""What denies a call besides the permissions of the caller and of the resource: the organization's policies
and Lake Formation.

- guardrails: A service control policy, a resource control policy, a permissions boundary, a session policy or
  the policy of a VPC endpoint denies what IAM's own policies allow, and the message names its type: "with an
  explicit deny in a service control policy", or "because no permissions boundary allows the glue:GetTable
  action". Source: IAM user guide, "Troubleshoot access denied error messages". A service control policy binds
  all principals of a member account, its root user too; a resource control policy binds callers of the
  account's resources, from other accounts too. Source: AWS Organizations user guide, "Service control
  policies" and "Resource control policies". Where Lake Formation governs, a call to Glue needs its permission
  too (lake_formation.py). Stock MiniStack has none of them, and words every denial as one of an
  identity-based policy.

Beyond AWS: POST guardrails {"denials": [{"by": "session policy", "action": "glue:*", "principal": "*"}]}
under /_simulator sets what is denied; an empty list ends it. Lake Formation has its own switch. They need
`iam`.

See stock: `.venv/bin/python -m pytest simulators/tests/aws/test_patches.py -m simulators
-k "stock and guardrails"`
"""

from __future__ import annotations

from fnmatch import fnmatchcase
from typing import Any, Final, NamedTuple

from simulators.aws import controls, lake_formation
from simulators.aws.hooks import Patch, import_ministack
from simulators.core import control

GUARDRAILS = Patch("guardrails")
KINDS: Final = (
    "service control policy",
    "resource control policy",
    "permissions boundary",
    "session policy",
    "VPC endpoint policy",
)


class Guardrail(NamedTuple):
    """Denies calls.

    `action` and the ARN `principal` are patterns with `*`. Without `explicit`, no statement allows it.
    """

    by: str
    action: str = "*"
    principal: str = "*"
    explicit: bool = True

    def explain(self, action: str) -> str:
        if self.explicit:
            return f"with an explicit deny in a {self.by}"
        return f"because no {self.by} allows the {action} action"


_denials: list[Guardrail] = []


@controls.register("POST", "/guardrails")
def change(request: control.Request) -> control.Response:
    denials = [Guardrail(**denial) for denial in request.read_document()["denials"]]
    if unknown := {denial.by for denial in denials}.difference(KINDS):
        raise ValueError(f"{', '.join(unknown)}: give {', '.join(KINDS)}")
    _denials[:] = denials
    return control.build_json_response({"denials": len(_denials)})


@GUARDRAILS.replaces(
    "ministack.core.iam_evaluator",
    "enforce",
    "access_key_id iam_action service region resource_arn service_context",
)
def enforce(  # noqa: PLR0917  (MiniStack's own parameters)
    original: Any,
    access_key_id: str,
    iam_action: str,
    service: str,
    region: str,
    resource_arn: str = "*",
    service_context: dict[str, Any] | None = None,
) -> Any:
    denied = original(access_key_id, iam_action, service, region, resource_arn, service_context)
    if denied or not (_denials or lake_formation.ACCOUNT.governs):
        return denied
    evaluator = import_ministack("core.iam_evaluator")
    principal = str(
        evaluator.resolve_principal(
            access_key_id or "", import_ministack("core.responses").get_account_id()
        ).arn
    )
    message = _find_refusal(iam_action, principal, resource_arn)
    return evaluator.AuthError("AccessDeniedException", message) if message else None


def _find_refusal(action: str, principal: str, resource: str) -> str:
    for denial in _denials:
        if fnmatchcase(action, denial.action) and fnmatchcase(principal, denial.principal):
            return (
                f"User: {principal} is not authorized to perform: {action} on resource: {resource} "
                f"{denial.explain(action)}"
            )
    return lake_formation.ACCOUNT.find_refusal(action, principal, resource)


PATCHES = (GUARDRAILS,)
