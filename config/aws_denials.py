"""What denied a call of AWS, according to the words of AWS. Job, functions and commands share it.

The phrases are those of IAM's user guide ("Troubleshoot access denied error messages"): "with an explicit
deny in a service control policy", since 2026 with the policy's ARN, or "because no permissions boundary
allows the … action". Lake Formation's are from public bug reports: "Insufficient Lake Formation
permission(s): Required Describe on …", and "Access is not allowed. (Service: LakeFormation, …)" from Java.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

#: Error codes of a missing permission. SNS has two of its own; HEAD of S3 has no body, so only the status is
#: known.
DENIED: Final = frozenset(
    "403 AccessDenied AccessDeniedException AuthorizationError AuthorizationErrorException Forbidden "
    "KMSAccessDeniedException NotAuthorized UnauthorizedOperation".split()
)
#: The messages of these codes name policies and keys, and no data.
_WITH_MESSAGE: Final = re.compile(r"Denied|Authoriz|Forbidden|KMS|Decryption|Encryption")
#: AWS's messages are cut to this many characters. Two long ARNs and the ARN of a policy fit in.
MESSAGE_LENGTH: Final = 600
_GUIDE: Final = "docs/how-to/prepare-aws.md"


class Denial(NamedTuple):
    """`by` names what denied the call, `pattern` recognizes it in AWS's message, and `remedy` says who can
    allow the call.
    """

    by: str
    pattern: re.Pattern[str]
    remedy: str


def _build_denial(by: str, pattern: str, remedy: str) -> Denial:
    return Denial(by, re.compile(pattern), remedy)


#: The first that matches counts: a policy of the organization may deny an action of KMS or of Lake Formation.
DENIALS: Final = (
    _build_denial(
        "a service control policy",
        r"(?i)service control polic",
        "No permission inside the account can help: ask whoever manages AWS Organizations to allow the "
        f"action that the message names; {_GUIDE} says what a deployment needs. Then try again.",
    ),
    _build_denial(
        "a resource control policy",
        r"(?i)resource control polic",
        "Ask whoever manages AWS Organizations to except the caller that the message names: such a policy "
        f"also binds callers from outside, as Confluent and Snowflake are ({_GUIDE}). Then try again.",
    ),
    _build_denial(
        "a permissions boundary",
        r"(?i)permissions? boundar",
        "Ask the owner of the permissions boundary of the role that the message names to allow the action; "
        "docs/reference/iam.md lists what each role needs. Then try again.",
    ),
    _build_denial(
        "a session policy",
        r"(?i)session polic",
        "The login has fewer permissions than its role: log in without a session policy, or with one that "
        "allows the action. Then try again.",
    ),
    _build_denial(
        "the policy of a VPC endpoint",
        r"(?i)VPC endpoint polic",
        "Ask the owner of the network to allow the action in the VPC endpoint's policy, then try again.",
    ),
    _build_denial(
        "Lake Formation",
        r"Lake Formation|\blakeformation:[A-Z]|Service: (?:AWS)?LakeFormation|LakeFormationException",
        "IAM's permissions don't suffice: ask a data lake administrator to grant the permission in Lake "
        "Formation to the role "
        f'that was used ({_GUIDE}, "Lake Formation"). Then try again.',
    ),
    _build_denial(
        "the policy of a KMS key",
        r"\bkms:[A-Z]|\bKMS\b.*(?:denied|not allowed|disabled|pending deletion)|KMS\w*Exception|Access to KMS"
        r"|(?i:customer master key)",
        "Ask the owner of the KMS key to enable it, and to allow this action in the key's policy to the "
        "role that was used. Then try again.",
    ),
    _build_denial(
        "the role's trust policy",
        r"(?i)role trust polic",
        "Compare the role's trust policy with the caller that the message names, correct it, and try again.",
    ),
    _build_denial(
        "the resource's own policy",
        r"(?i)with an explicit deny in a resource-based polic",
        "Change the policy of the bucket, secret, topic or Glue catalog that the message names: it denies "
        "the call, so no permission of the role can help. Then try again.",
    ),
)


def find_denial(message: str) -> Denial | None:
    """Return what denied a call.

    None if the message doesn't name it, or names only the role's own policies.
    """
    return next((denial for denial in DENIALS if denial.pattern.search(message)), None)


def format_aws_answer(error: Mapping[str, Any]) -> str:
    """Return the code of boto3's `Error`, and for a denial AWS's message: only the message says what denied
    the call.
    """
    code = str(error.get("Code") or "unknown")
    message = " ".join(str(error.get("Message") or "").split())
    if not message or message == code or not _WITH_MESSAGE.search(code):
        return code
    return f"{code}: {shorten(message, MESSAGE_LENGTH).rstrip('.')}"


def shorten(text: str, length: int) -> str:
    """Return `text` with at most `length` characters, cut in the middle: the end of a message says why."""
    if len(text) <= length:
        return text
    end = length // 2
    return f"{text[: length - end - 3]} … {text[-end:]}"
