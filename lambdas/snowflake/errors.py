"""Errors of Snowflake: codes and remedies, and the error of a response of the SQL API.

Snowflake's codes are more precise than the HTTP status.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from lambdas.shared.clock import Clock
from lambdas.shared.errors import (
    Conflict,
    Denied,
    ErrorRow,
    LakeferryError,
    NotFound,
    RateLimited,
    Refused,
    Transient,
    shortened,
)
from lambdas.shared.http import Response, requested_wait

AUTH: Final = ErrorRow(
    "SNF-AUTH",
    "Compare the key's fingerprint with DESC USER, and account and user with the deployment file; then "
    "deploy again.",
)
NETWORK: Final = ErrorRow(
    "SNF-NETWORK-POLICY",
    "The functions have no fixed address. Create a network policy for Lakeferry's two users, owned by the "
    "deployer's role: set it for the deployer's user, and name it as network_policy under [snowflake] for "
    "the reader (docs/how-to/prepare-snowflake.md); then deploy again.",
)
ROLE: Final = ErrorRow(
    "SNF-ROLE", "Run the script of docs/how-to/prepare-snowflake.md once more, and deploy again."
)
PRIVILEGE: Final = ErrorRow(
    "SNF-PRIVILEGE", "Grant the privilege that the message names to the deployer's role, and deploy again."
)
UNSEEN: Final = ErrorRow(
    "SNF-UNSEEN",
    "Give the object back to the deployer's role, or grant that role MANAGE GRANTS on the account until "
    "this is done, and repeat what failed. If you know that the object is gone, run `lakeferry forget "
    "STACK LOGICAL_ID`, and repeat it.",
)
RENAMED: Final = ErrorRow(
    "SNF-RENAMED",
    "Rename it back (ALTER … RENAME TO …), and repeat what failed. To keep it as your own, take the text "
    "above out of its comment, run `lakeferry forget STACK LOGICAL_ID`, and repeat it.",
)
OTHER_ACCOUNT: Final = ErrorRow(
    "SNF-OTHER-ACCOUNT",
    "Name the account that has the object in the deployment file, store its key (`lakeferry secrets set "
    "snowflake`), and repeat what failed. To move to another account, destroy the deployment in the old "
    "one first.",
)
MISSING: Final = ErrorRow(
    "SNF-MISSING",
    "Check that the object named above exists and what the role may do with it; then deploy again.",
)
EXISTS: Final = ErrorRow(
    "SNF-EXISTS", "Choose another name, or drop the object if nobody needs it, and deploy again."
)
FOREIGN: Final = ErrorRow(
    "SNF-FOREIGN",
    "Choose another name, or drop or rename the object if nobody needs it; Lakeferry neither changes nor "
    "drops it.",
)
COMMENT_CHANGED: Final = ErrorRow(
    "SNF-COMMENT-CHANGED",
    "If the object is this deployment's, put the text above into its comment (COMMENT ON … IS …), and "
    "repeat what was refused. If somebody else created it since, rename it first.",
)
DATABASE_NOT_EMPTY: Final = ErrorRow(
    "SNF-DATABASE-NOT-EMPTY",
    "Move the schemas named above to another database, or drop them if nobody needs them, and repeat what "
    "was refused.",
)
SLOTS_TAKEN: Final = ErrorRow(
    "SNF-KEY-SLOTS",
    "Restore the secret's version whose key is in one of the slots, or empty the slot that nobody uses: "
    "ALTER USER … UNSET RSA_PUBLIC_KEY, or RSA_PUBLIC_KEY_2. Then deploy again.",
)
IN_USE: Final = ErrorRow("SNF-IN-USE", "Drop the tables named above, and destroy again.")
INVALID: Final = ErrorRow("SNF-INVALID", "Correct the value that the message names, and deploy again.")
WAREHOUSE: Final = ErrorRow(
    "SNF-WAREHOUSE", "Run the script of docs/how-to/prepare-snowflake.md once more, and deploy again."
)
RATE: Final = ErrorRow(
    "SNF-RATE",
    "Nothing: it is retried when Snowflake allows; if the deployment fails because of it, deploy again.",
)
UNAVAILABLE: Final = ErrorRow("SNF-UNAVAILABLE", "Look at Snowflake's status page, and deploy again.")
UNEXPECTED: Final = ErrorRow("SNF-UNEXPECTED", "Report it with the query id above.")
TRUNCATED: Final = ErrorRow("SNF-TRUNCATED", "Report it with the query id above.")
KEY_NOT_READY: Final = ErrorRow(
    "SNF-KEY-NOT-READY",
    "Nothing; if the deployment fails because of it, look at the user with DESC USER and deploy again.",
)
TRUST_PRINCIPAL: Final = ErrorRow(
    "SNF-TRUST-PRINCIPAL",
    "On the AWS side, put the principal that Snowflake has (above) into the role's trust; deploying the "
    "stack again does it.",
)
TRUST_EXTERNAL_ID: Final = ErrorRow(
    "SNF-TRUST-EXTERNAL-ID",
    "On the AWS side, put the external id that Snowflake has (above) into the role's trust; deploying the "
    "stack again does it.",
)
TRUST_ROLE: Final = ErrorRow(
    "SNF-TRUST-ROLE",
    "Compare the role's trust with the principal and the external id above, and deploy again. If they are "
    "equal, a resource control policy of the AWS organization may refuse callers from outside.",
)
TRUST_STORAGE: Final = ErrorRow(
    "SNF-TRUST-STORAGE", "Allow the action that the message names on the volume's location, and deploy again."
)
TRUST_CATALOG: Final = ErrorRow("SNF-TRUST-CATALOG", "Allow what the message names, and deploy again.")
TRUST_REGION: Final = ErrorRow(
    "SNF-TRUST-REGION", "Correct the region or the account id in the deployment file, and deploy again."
)
TRUST_NAMESPACE: Final = ErrorRow(
    "SNF-TRUST-NAMESPACE",
    "Compare the namespace with the Glue databases (it is the Kafka cluster's id unless chosen), and "
    "deploy again.",
)
TABLE_MISSING: Final = ErrorRow(
    "SNF-TABLE-MISSING", "Check in AWS Glue that the table exists; if it does, deploy again."
)
EQUALITY_DELETES: Final = ErrorRow(
    "SNF-EQUALITY-DELETES",
    "Leave the table out of Snowflake, or make its topic append only; Athena and DuckDB can read it.",
)
REFRESH: Final = ErrorRow(
    "SNF-REFRESH", "Fix what the message names, and deploy again, which resumes the refresh."
)
LINK: Final = ErrorRow("SNF-LINK", "Fix what the message names, and deploy again.")


#: Seconds to wait after a 429 that doesn't say how long.
DEFAULT_WAIT: Final = 10.0
TRUNCATED_CODE: Final = "391908"
_CODES: Final[Mapping[str, tuple[type[LakeferryError], ErrorRow]]] = {
    "002003": (NotFound, MISSING),
    "002043": (NotFound, MISSING),
    "002002": (Conflict, EXISTS),
    "003001": (Denied, PRIVILEGE),
    "003041": (Denied, PRIVILEGE),
    "000606": (Refused, WAREHOUSE),
    "091968": (Refused, EQUALITY_DELETES),
    "000604": (Transient, UNAVAILABLE),
    "000630": (Transient, UNAVAILABLE),
    "390186": (Denied, ROLE),
    "390189": (Denied, ROLE),
    "390420": (Refused, NETWORK),
    "390422": (Refused, NETWORK),
}
_STATUSES: Final[Mapping[int, tuple[type[LakeferryError], ErrorRow]]] = {
    400: (Refused, INVALID),
    401: (Denied, AUTH),
    403: (Denied, AUTH),
    404: (NotFound, MISSING),
    408: (Transient, UNAVAILABLE),
    422: (Refused, INVALID),
}
_USED: Final = ("used by", "in use", "being used", "is associated with", "depend")


def error_from(answer: Response, label: str, clock: Clock, skew: str = "") -> LakeferryError:
    """Return the error of a response.

    `label` is the start of the statement, `skew` describes the clocks' difference.
    """
    code = field(answer.body, "code")
    what = describe(answer, label) + (skew if answer.status in (401, 403) else "")
    if answer.status == 429:
        wait = requested_wait(answer.headers, clock)
        return RateLimited(RATE, what, wait=DEFAULT_WAIT if wait is None else wait)
    if answer.status >= 500 and answer.status != 501:
        return Transient(UNAVAILABLE, what)
    if code in _CODES:
        kind, row = _CODES[code]
        return kind(row, what)
    if answer.status == 422 and mentions(what, *_USED) and label.startswith("DROP"):
        return Conflict(IN_USE, what)
    kind, row = _STATUSES.get(answer.status, (Refused, UNEXPECTED))
    return kind(row, what)


def describe(answer: Response, label: str) -> str:
    code = field(answer.body, "code")
    message = field(answer.body, "message")
    details = " ".join(filter(None, (code, shortened(" ".join(message.split())))))
    handle = field(answer.body, "statementHandle") or answer.request_id or "not given"
    return f"{label}: HTTP {answer.status}" + (f", {details}" if details else "") + f" (query id {handle})"


def field(body: Any, name: str) -> str:
    """Return a field of a response as text; "" if there is none."""
    value = body.get(name) if isinstance(body, dict) else None
    return "" if value is None or isinstance(value, dict | list) else str(value)


def mentions(text: str, *phrases: str) -> bool:
    """Return whether `text` contains one of `phrases`, ignoring case."""
    return any(phrase.lower() in text.lower() for phrase in phrases)
