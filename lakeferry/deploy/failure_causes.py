"""Find the cause of a failed deployment: the first resource that failed, with its error in the catalogue of
errors.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

import attrs

from config.aws_denials import find_denial
from lakeferry import errors
from lakeferry.deployment.stacks import Event
from lakeferry.plan.templates import read_resource_of_event
from lambdas.shared.redaction import redact

#: Matches the reason of a resource that failed only because another one had failed.
_CONSEQUENCE: Final = re.compile(
    r"(creation|update|deletion) cancelled|following resource\(s\) failed|was cancell?ed", re.IGNORECASE
)
#: Text that CDK's provider framework and CloudFormation add to a reason.
_SUFFIX: Final = re.compile(r"\s*(\n\s*Logs: .*|\(RequestId: [^)]*\)|\(RequestToken: [^)]*\))\s*$", re.DOTALL)
_PREFIX: Final = re.compile(
    r"^(Received response status \[FAILED\] from custom resource\. Message returned: )?(Error: )?"
)
_HANDLER_CODE: Final = re.compile(r"HandlerErrorCode: (\w+)")
_BY_HANDLER_CODE: Final = {
    "AlreadyExists": (
        "The stack did not create the resource that has this name: an aborted deployment left it, or it is "
        "somebody else's.",
        "`lakeferry inventory` shows its owner; then remove it, or choose another name.",
    ),
    "AccessDenied": (
        "CloudFormation's role lacks a permission, or a policy of the organization denies it.",
        "Grant the permission that the message names: docs/how-to/prepare-aws.md.",
    ),
    "ServiceLimitExceeded": (
        "A quota of the account is used up.",
        "Request an increase in Service Quotas, then deploy again.",
    ),
    "Throttling": ("AWS throttled the requests.", "Deploy again."),
}
_OTHER: Final = (
    "AWS rejects what the template asks for.",
    "Correct what the message names, and deploy again.",
)

STATES: Final = {
    "CREATE_COMPLETE": "deployed",
    "UPDATE_COMPLETE": "deployed",
    "ROLLBACK_COMPLETE": "rolled back; the next deployment creates it again",
    "ROLLBACK_FAILED": "not everything could be removed again; `lakeferry destroy --plan` shows what is left",
    "UPDATE_ROLLBACK_COMPLETE": "rolled back to its previous state",
    "UPDATE_ROLLBACK_FAILED": "partly rolled back; `lakeferry deploy` continues the rollback, then deploys",
    "CREATE_FAILED": "partly created; `lakeferry destroy --plan` shows what exists",
    "DELETE_FAILED": "partly deleted; `lakeferry destroy` continues",
    "REVIEW_IN_PROGRESS": "not started",
}


@attrs.frozen
class Cause:
    """Why a deployment failed.

    `code` is "" for errors of AWS itself. `where` names the resource and its stack.
    """

    where: str
    code: str
    what: str
    why: str
    fix: str

    def __str__(self) -> str:
        code = f"{self.code}  " if self.code else ""
        return f"{self.where}: {code}{self.what}"


def find(events: Iterable[Event]) -> Cause | None:
    """Return the cause, from the events of a deployment. None if no resource failed in CloudFormation."""
    event = find_first(events)
    return _explain_event(event) if event else None


def find_first(events: Iterable[Event]) -> Event | None:
    """Return the event of the first resource that failed, and not because another one had.

    None if there is none.
    """
    failed = [event for event in events if event.has_failed and not event.is_of_stack and event.reason]
    return min(
        (event for event in failed if not _CONSEQUENCE.search(event.reason)),
        key=lambda event: event.at,
        default=None,
    )


def describe_state(stack: str, status: str) -> str:
    """Describe for users the state of a stack with this CloudFormation status."""
    if status.endswith("_IN_PROGRESS") and status not in STATES:
        return "CloudFormation is still working on it"
    return STATES.get(status, status).format(stack=stack)


def _explain_event(event: Event) -> Cause:
    # CDK and CloudFormation add text before and after the reason.
    reason = redact(_SUFFIX.sub("", _PREFIX.sub("", event.reason)).strip())
    where = f"{read_resource_of_event(event).what} {event.logical_id} in {event.stack}"
    if reported := errors.read(reason):
        entry = reported.entry
        return Cause(where, entry.code, reported.what, entry.cause, reported.remedy)
    if denial := find_denial(reason):
        return Cause(where, "", reason, f"It is denied by {denial.by}.", denial.remedy)
    handler = _HANDLER_CODE.search(event.reason)
    why, fix = _BY_HANDLER_CODE.get(handler[1], _OTHER) if handler else _OTHER
    return Cause(where, "", reason, why, fix)
