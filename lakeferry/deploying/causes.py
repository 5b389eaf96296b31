"""Why a deployment failed, in our words: the first thing that went wrong, not what fell because of it; and how things stand."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Final

import attrs

from lakeferry import refusals
from lakeferry.deploying.events import Event
from lakeferry.reference import known_errors
from lambdas.shared.redaction import redact

#: Reasons of what only fell because something else had fallen.
_FALLEN: Final = re.compile(r"(creation|update|deletion) cancelled|following resource\(s\) failed|was cancell?ed", re.IGNORECASE)
#: What CDK's framework and CloudFormation add to a reason.
_ADDED: Final = re.compile(r"\s*(\n\s*Logs: .*|\(RequestId: [^)]*\)|\(RequestToken: [^)]*\))\s*$", re.DOTALL)
_BEFORE: Final = re.compile(r"^(Received response status \[FAILED\] from custom resource\. Message returned: )?(Error: )?")
_HANDLER: Final = re.compile(r"HandlerErrorCode: (\w+)")
_HANDLERS: Final = {
    "AlreadyExists": (
        "Something of this name exists that the stack didn't make: of an aborted deployment, or somebody else's.",
        "`lakeferry inventory` says whose it is; then remove it, or choose another name.",
    ),
    "AccessDenied": (
        "The role that CloudFormation works with may not do this, or a policy of the organization forbids it.",
        "Give it the right that the message names: docs/how-to/prepare-aws.md.",
    ),
    "ServiceLimitExceeded": ("A quota of the account is used up.", "Have it raised in Service Quotas, then deploy again."),
    "Throttling": ("AWS was asked too often.", "Deploy again."),
}
_NO_CAUSE: Final = ("AWS refuses what the template asks for.", "Correct what the message names, and deploy again.")

STATES: Final = {
    "CREATE_COMPLETE": "stands",
    "UPDATE_COMPLETE": "stands",
    "ROLLBACK_COMPLETE": "nothing of it is left; the next deployment begins it anew",
    "ROLLBACK_FAILED": "not all of it could be removed again; `lakeferry destroy --plan` shows what is left",
    "UPDATE_ROLLBACK_COMPLETE": "stands as it was before",
    "UPDATE_ROLLBACK_FAILED": "neither old nor new: mend what stopped it, then `aws cloudformation continue-update-rollback "
    "--stack-name {stack}`",
    "CREATE_FAILED": "half made; `lakeferry destroy --plan` shows what there is",
    "DELETE_FAILED": "half removed; `lakeferry destroy` goes on with it",
    "REVIEW_IN_PROGRESS": "not begun",
}


@attrs.frozen
class Cause:
    """`code` is "" for what AWS itself refuses. `where` names the resource and its stack."""

    where: str
    code: str
    what: str
    why: str
    fix: str

    def __str__(self) -> str:
        return f"{self.where}: {f'{self.code}  ' if self.code else ''}{self.what}"


def find(events: Iterable[Event]) -> Cause | None:
    """Of a deployment's events. None where nothing failed in CloudFormation."""
    failed = [event for event in events if event.has_failed and not event.is_of_stack and event.reason]
    first = sorted((event for event in failed if not _FALLEN.search(event.reason)), key=lambda event: event.at)
    return _of_event(first[0]) if first else None


def told(reason: str) -> str:
    """CloudFormation's reason without what its machinery added."""
    return redact(_ADDED.sub("", _BEFORE.sub("", reason)).strip())


def state(stack: str, status: str) -> str:
    """How a stack stands, in words."""
    if status.endswith("_IN_PROGRESS") and status not in STATES:
        return "CloudFormation is still at work on it"
    return STATES.get(status, status).format(stack=stack)


def _of_event(event: Event) -> Cause:
    reason, where = told(event.reason), f"{event.resource.what} {event.logical_id} in {event.stack}"
    if (ours := refusals.read(reason)) and ours.code in known_errors.by_code():
        return Cause(where, ours.code, ours.what, ours.why, ours.fix)
    handler = _HANDLER.search(event.reason)
    why, fix = _of_handler(_HANDLERS, handler[1] if handler else "")
    return Cause(where, "", reason, why, fix)


def _of_handler(table: Mapping[str, tuple[str, str]], code: str) -> tuple[str, str]:
    return table.get(code, _NO_CAUSE)
