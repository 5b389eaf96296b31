"""The IAM principal and ids that a vendor names, which end in trust policies and policies of this account."""

from __future__ import annotations

import re
from typing import Final

from lambdas.shared import errors
from lambdas.shared.errors import Refused

#: A role or a user of one account. Not an account's root, not a session, and nothing with a wildcard.
_PRINCIPAL: Final = re.compile(r"arn:aws[a-z-]*:iam::[0-9]{12}:(?:role|user)/[\w+=,.@/-]{1,576}", re.ASCII)


def require_principal(arn: str, what: str) -> str:
    """Return the ARN of the role or user that `what` presents to AWS.

    Raises Refused: a role would trust anything else too.
    """
    if not _PRINCIPAL.fullmatch(arn):
        raise Refused(
            errors.PRINCIPAL, f"{what} presents {arn[:200]!r}, which is not the ARN of one IAM role or user"
        )
    return arn
