"""Errors of Snowflake: the rows that users read, and which of them an answer of the SQL API is.

Its codes say more than the status."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from lambdas.shared.clock import Clock
from lambdas.shared.errors import (
    DETAIL_LENGTH,
    Conflict,
    Denied,
    ErrorRow,
    LakeferryError,
    NotFound,
    RateLimited,
    Refused,
    Transient,
)
from lambdas.shared.http import Response, requested_wait

AUTH: Final = ErrorRow(
    "SNF-AUTH",
    "The login was not accepted (401)",
    "The user doesn't have the public key of the private key in the secret, the account or the user is misspelt, or the "
    "clocks differ (the difference stands above where there is one).",
    "Compare the key's fingerprint with DESC USER, and account and user with the deployment file; then deploy again.",
)
NETWORK: Final = ErrorRow(
    "SNF-NETWORK-POLICY",
    "Snowflake doesn't let this address in",
    "A network policy of the account or the user lists the addresses that may log in.",
    "Give the function a fixed address that the policy allows, or a policy of its own to the user.",
)
ROLE: Final = ErrorRow(
    "SNF-ROLE",
    "The user may not use the role",
    "The role is not granted to the user, or is misspelt in the deployment file.",
    "Run the script of docs/how-to/prepare-snowflake.md once more, and deploy again.",
)
PRIVILEGE: Final = ErrorRow(
    "SNF-PRIVILEGE",
    "The role lacks a privilege",
    "The script that prepares the account was not run, or not all of it; or another role owns the object.",
    "Grant the privilege that the message names to the deployer's role, and deploy again.",
)
MISSING: Final = ErrorRow(
    "SNF-MISSING",
    "Something that the statement names is not there, or the role may not see it",
    "It was dropped by hand, is misspelt, or the role lacks a privilege: Snowflake says the same of all three.",
    "Check that the object named above exists and what the role may do with it; then deploy again.",
)
EXISTS: Final = ErrorRow(
    "SNF-EXISTS",
    "An object of that name exists already",
    "It was made in the same moment, or the role can't see it.",
    "Choose another name, or drop the object if nobody needs it, and deploy again.",
)
FOREIGN: Final = ErrorRow(
    "SNF-FOREIGN",
    "An object of that name isn't ours",
    "Somebody else made it: the comment that we give our objects is not on it.",
    "Choose another name, or drop or rename the object if nobody needs it; we neither change nor drop it.",
)
SLOTS_TAKEN: Final = ErrorRow(
    "SNF-KEY-SLOTS",
    "Both key slots of a user hold other keys than the secret's",
    "An older version of the secret was restored by hand, or somebody else set a key of the user.",
    "Put the version back whose key is in one of the slots, or empty the slot that nobody uses: ALTER USER … UNSET "
    "RSA_PUBLIC_KEY, or RSA_PUBLIC_KEY_2. Then deploy again.",
)
IN_USE: Final = ErrorRow(
    "SNF-IN-USE",
    "The object is still used",
    "Tables, which may be somebody else's, still read through the external volume or the catalog integration.",
    "Drop the tables named above, and destroy again.",
)
INVALID: Final = ErrorRow(
    "SNF-INVALID",
    "Snowflake does not accept the statement",
    "A value is outside of what Snowflake allows, or this edition of Snowflake lacks something.",
    "Correct the value that the message names, and deploy again.",
)
WAREHOUSE: Final = ErrorRow(
    "SNF-WAREHOUSE",
    "There is no warehouse to run on",
    "The deployer's warehouse was dropped, is suspended by a resource monitor, or its role may not use it.",
    "Run the script of docs/how-to/prepare-snowflake.md once more, and deploy again.",
)
RATE: Final = ErrorRow(
    "SNF-RATE",
    "Snowflake asks for fewer requests (429)",
    "Other tools use the same account's limits, or many objects are made at once.",
    "Nothing: it is repeated when Snowflake allows; if the deployment fails of it, deploy again.",
)
UNAVAILABLE: Final = ErrorRow(
    "SNF-UNAVAILABLE",
    "Snowflake could not answer",
    "An outage or a hiccup at Snowflake, or a statement that was cancelled or took too long.",
    "Look at Snowflake's status page, and deploy again.",
)
UNEXPECTED: Final = ErrorRow(
    "SNF-UNEXPECTED",
    "An answer that Snowflake's contract does not know",
    "Snowflake changed something, or a proxy answered in its place.",
    "Report it with the query id above.",
)
TRUNCATED: Final = ErrorRow(
    "SNF-TRUNCATED",
    "Snowflake left out a part of the result",
    "The account has more objects of this kind than one answer holds.",
    "Report it with the query id above.",
)
KEY_NOT_READY: Final = ErrorRow(
    "SNF-KEY-NOT-READY",
    "A new user's key is not accepted yet",
    "Snowflake has not made it known everywhere.",
    "Nothing; if the deployment fails of it, look at the user with DESC USER and deploy again.",
)
TRUST_PRINCIPAL: Final = ErrorRow(
    "SNF-TRUST-PRINCIPAL",
    "The IAM role trusts another user than Snowflake's",
    "The role's trust holds a principal from before the object was made anew, or from another Snowflake account.",
    "On the AWS side, put the principal that Snowflake has (above) into the role's trust; deploying the stack again does it.",
)
TRUST_EXTERNAL_ID: Final = ErrorRow(
    "SNF-TRUST-EXTERNAL-ID",
    "The IAM role wants another external id than Snowflake presents",
    "The role's trust holds an external id from before the object was made anew, or of another stack.",
    "On the AWS side, put the external id that Snowflake has (above) into the role's trust; deploying the stack again does it.",
)
TRUST_ROLE: Final = ErrorRow(
    "SNF-TRUST-ROLE",
    "Snowflake can't assume the IAM role",
    "On the AWS side: the role doesn't exist, or its trust lacks the principal or the external id above; or AWS has not made "
    "a new role known everywhere.",
    "Compare the role's trust with the principal and the external id above, and deploy again.",
)
TRUST_STORAGE: Final = ErrorRow(
    "SNF-TRUST-STORAGE",
    "Snowflake assumes the IAM role and may not read the bucket",
    "On the AWS side: the role's policy, the bucket's policy or the key's policy lacks a permission, or names another place.",
    "Allow the action that the message names on the volume's place, and deploy again.",
)
TRUST_CATALOG: Final = ErrorRow(
    "SNF-TRUST-CATALOG",
    "Snowflake reaches AWS Glue and gets no answer that it can use",
    "On the AWS side: the role lacks a permission on the Glue catalog, or Lake Formation governs the database.",
    "Allow what the message names, and deploy again.",
)
TRUST_REGION: Final = ErrorRow(
    "SNF-TRUST-REGION",
    "The catalog integration or the volume points to another region or account",
    "On Snowflake's side: the region or the account id of the catalog integration is not that of the Glue database, or the "
    "bucket lies in another region.",
    "Correct the region or the account id in the deployment file, and deploy again.",
)
TRUST_NAMESPACE: Final = ErrorRow(
    "SNF-TRUST-NAMESPACE",
    "The Glue catalog doesn't show the database",
    "The namespace is not the name of Tableflow's Glue database, Tableflow has not made it yet, or the role may not see it.",
    "Compare the namespace with the Glue databases (it is the Kafka cluster's id unless chosen), and deploy again.",
)
TABLE_MISSING: Final = ErrorRow(
    "SNF-TABLE-MISSING",
    "The Glue catalog doesn't show the table",
    "Tableflow has not written it yet, or the topic's name is misspelt.",
    "Check in AWS Glue that the table exists; if it does, deploy again.",
)
EQUALITY_DELETES: Final = ErrorRow(
    "SNF-EQUALITY-DELETES",
    "Snowflake can't read tables with equality deletes",
    "The topic is compacted or its table is one of upserts, which Tableflow writes with equality deletes.",
    "Leave the table out of Snowflake, or make its topic append only; Athena and DuckDB are not bound by this.",
)
REFRESH: Final = ErrorRow(
    "SNF-REFRESH",
    "The table doesn't follow its source",
    "A refresh failed: a permission was taken away, or the source changed in a way that Snowflake can't follow.",
    "Mend what the message names, and deploy again, which sets the refresh going anew.",
)
LINK: Final = ErrorRow(
    "SNF-LINK",
    "The linked database doesn't follow the catalog",
    "The catalog integration lost its access, or tables of the catalog can't be read by Snowflake.",
    "Mend what the message names, and deploy again.",
)

ERRORS: Final = (
    AUTH, NETWORK, ROLE, PRIVILEGE, MISSING, EXISTS, FOREIGN, SLOTS_TAKEN, IN_USE, INVALID, WAREHOUSE, RATE, UNAVAILABLE,
    UNEXPECTED, TRUNCATED, KEY_NOT_READY, TRUST_PRINCIPAL, TRUST_EXTERNAL_ID, TRUST_ROLE, TRUST_STORAGE, TRUST_CATALOG,
    TRUST_REGION, TRUST_NAMESPACE, TABLE_MISSING, EQUALITY_DELETES, REFRESH, LINK,
)  # fmt: skip


#: How long to leave Snowflake alone after a 429 that doesn't say.
UNASKED_WAIT: Final = 10.0
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


def error_from(answer: Response, asked: str, clock: Clock, skew: str = "") -> LakeferryError:
    """`asked` tells the statement, `skew` how far the clocks are apart. The words hold Snowflake's code and the query id."""
    code = field(answer.body, "code")
    what = describe(answer, asked) + (skew if answer.status in (401, 403) else "")
    if answer.status == 429:
        wait = requested_wait(answer.headers, clock)
        return RateLimited(RATE, what, wait=UNASKED_WAIT if wait is None else wait)
    if answer.status >= 500 and answer.status != 501:
        return Transient(UNAVAILABLE, what)
    if code in _CODES:
        kind, row = _CODES[code]
        return kind(row, what)
    if answer.status == 422 and mentions(what, *_USED) and asked.startswith("DROP"):
        return Conflict(IN_USE, what)
    kind, row = _STATUSES.get(answer.status, (Refused, UNEXPECTED))
    return kind(row, what)


def describe(answer: Response, asked: str) -> str:
    code, message = field(answer.body, "code"), field(answer.body, "message")
    told = " ".join(filter(None, (code, " ".join(message.split())[:DETAIL_LENGTH])))
    handle = field(answer.body, "statementHandle") or answer.request_id or "not given"
    return f"{asked}: HTTP {answer.status}" + (f", {told}" if told else "") + f" (query id {handle})"


def field(body: Any, name: str) -> str:
    """A field of an answer as text; "" where there is none."""
    value = body.get(name) if isinstance(body, dict) else None
    return "" if value is None or isinstance(value, dict | list) else str(value)


def mentions(text: str, *phrases: str) -> bool:
    """Whether `text` holds one of `phrases`, in any case."""
    return any(phrase.lower() in text.lower() for phrase in phrases)
