"""Names of accounts: as tokens carry them, and the host that answers for one."""

from __future__ import annotations

import re
from typing import Final

from lambdas.shared import errors
from lambdas.shared.errors import LakeferryError

VENDOR_DOMAIN: Final = ".snowflakecomputing.com"
_WORDS: Final = r"[A-Za-z0-9]([A-Za-z0-9_-]*[A-Za-z0-9])?"
_ACCOUNT: Final = re.compile(rf"{_WORDS}(\.{_WORDS})*")
#: After a dot, names without a hyphen that belong to the place and not to the account.
_PLACES: Final = frozenset({"aws", "azure", "gcp", "privatelink"})


def require_account(account: str) -> str:
    """`account` itself. Raises LakeferryError for what could lead to another host."""
    if _ACCOUNT.fullmatch(account):
        return account
    raise LakeferryError(errors.ADDRESS, f"{account!r} is not the name of a Snowflake account")


def claim(account: str) -> str:
    """As a token names the account: in capitals, without region and cloud, without dots.

    A part after a dot is a region where it has a hyphen (`xy12345.us-east-2.aws`): an account's own name can't have one.
    Otherwise the dot stands between organization and account (`myorg.acct`), where tokens have a hyphen.
    """
    first, *rest = require_account(account).split(".")
    if "global" in rest:
        return first.partition("-")[0].upper()
    own = [first]
    for part in rest:
        if "-" in part or part.lower() in _PLACES:
            break
        own.append(part)
    return "-".join(own).upper()


def url(account: str) -> str:
    """Where the account answers. Hosts have hyphens where names have underscores."""
    first, *rest = require_account(account).lower().split(".")
    if rest and "-" not in rest[0] and rest[0] not in _PLACES | {"global"}:
        first, rest = f"{first}-{rest[0]}", rest[1:]
    name = ".".join([first, *rest]).replace("_", "-")
    return f"https://{name}{VENDOR_DOMAIN}"
