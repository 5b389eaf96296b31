"""Errors of Confluent Cloud: the rows that users read, and which of them an HTTP answer is."""

from __future__ import annotations

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
    "CFL-AUTH",
    "A key was not accepted (401)",
    "The API key or its secret is wrong, was deleted, or was made moments ago; or it is a key for another service.",
    "Check that the secret holds a key for the service named above; tableflow wants a Tableflow key, not a Cloud key.",
)
AUTH_SCOPE: Final = ErrorRow(
    "CFL-AUTH-SCOPE",
    "A key may not do this (403)",
    "The key's owner lacks a role, or the role was granted moments ago; the Cloud key's owner must be OrganizationAdmin.",
    "Grant the role, or wait some minutes, and deploy again.",
)
NOT_FOUND: Final = ErrorRow(
    "CFL-NOT-FOUND",
    "Something that the request names does not exist (404)",
    "It was deleted by hand, or Confluent shows it late.",
    "Check that the ids named above exist; if they do, deploy again in some minutes.",
)
CONFLICT: Final = ErrorRow(
    "CFL-CONFLICT",
    "The object exists, is in use, or is being changed (409)",
    "An object of that name is not ours, or something still hangs on the one to be deleted.",
    "Look at the object in the Confluent Cloud console; remove what hangs on it, or rename it, and deploy again.",
)
FOREIGN_SUBJECT: Final = ErrorRow(
    "CFL-FOREIGN-SUBJECT",
    "A Schema Registry subject belongs to somebody else",
    "The subject existed before this deployment; the environment's registry is shared.",
    "Rename the topic, or delete the subject if nobody needs it, and deploy again. Lakeferry neither changes nor deletes it.",
)
INVALID: Final = ErrorRow(
    "CFL-INVALID",
    "Confluent does not accept the values (400 or 422)",
    "A value is outside of what Confluent allows.",
    "Correct the value that the message names, and deploy again.",
)
QUOTA: Final = ErrorRow(
    "CFL-QUOTA",
    "A quota of the organization is used up (402)",
    "The organization has as many objects of this kind as it may have.",
    "Delete what isn't needed or ask Confluent for a higher quota, and deploy again.",
)
RATE: Final = ErrorRow(
    "CFL-RATE",
    "Confluent asks for fewer requests (429)",
    "Other tools use the same organization's limits, or many resources are made at once.",
    "Nothing: it is repeated when Confluent allows; if the deployment fails of it, deploy again.",
)
UNAVAILABLE: Final = ErrorRow(
    "CFL-UNAVAILABLE",
    "Confluent could not answer (5xx)",
    "An outage or a hiccup at Confluent.",
    "Look at Confluent's status page, and deploy again.",
)
UNEXPECTED: Final = ErrorRow(
    "CFL-UNEXPECTED",
    "An answer that Confluent's contract does not know",
    "Confluent changed something, or a proxy answered in its place.",
    "Report it with the request id above.",
)
KEY_NOT_READY: Final = ErrorRow(
    "CFL-KEY-NOT-READY",
    "A new key is not accepted yet",
    "Confluent takes up to 20 minutes to make a key known to all of its servers.",
    "Nothing; if the deployment fails of it, deploy again.",
)
CLUSTER_TYPE: Final = ErrorRow(
    "CFL-CLUSTER-TYPE",
    "A cluster type that can't be used",
    "Topics of Enterprise, Dedicated and Freight clusters are reached over a private network, which the functions don't have.",
    "Use type Basic or Standard.",
)
CLUSTER_FAILED: Final = ErrorRow(
    "CFL-CLUSTER-FAILED",
    "The Kafka cluster or its Schema Registry failed to come up",
    "Confluent could not provision it in that region.",
    "Look at the cluster in the Confluent Cloud console; try another region or ask Confluent.",
)
DELETION_PROTECTED: Final = ErrorRow(
    "CFL-DELETION-PROTECTED",
    "The cluster is protected from deletion",
    "deletion_protection is true.",
    "Set deletion_protection to false, deploy, and destroy then.",
)
POOL_FAILED: Final = ErrorRow(
    "CFL-POOL-FAILED",
    "The Flink compute pool failed to come up",
    "Confluent could not provision it in that region.",
    "Look at the pool in the Confluent Cloud console; try again or ask Confluent.",
)
FLINK_FAILED: Final = ErrorRow(
    "CFL-FLINK-FAILED",
    "A Flink statement failed",
    "The SQL is wrong, a table that it reads is missing, or its account lacks a role.",
    "Correct what the message names, and deploy again.",
)
FLINK_TABLEFLOW: Final = ErrorRow(
    "CFL-FLINK-TABLEFLOW",
    "A Flink statement whose topic is a table can't be edited",
    "Its text was edited. Flink can't change a statement in place: its topic would be dropped with all records, and Confluent "
    "drops no topic that Tableflow reads. Nothing was changed.",
    "Take the edit back, and give the new version a name and a topic of its own. Or take [topics.tableflow] and what reads the "
    "table out of the deployment file, deploy, then edit: the topic's records are lost.",
)
CONNECTOR_CONFIG: Final = ErrorRow(
    "CFL-CONNECTOR-CONFIG",
    "The connector's configuration is not valid",
    "A setting is missing or has a value that the connector doesn't take.",
    "Correct the settings that the message names, and deploy again.",
)
CONNECTOR_FAILED: Final = ErrorRow(
    "CFL-CONNECTOR-FAILED",
    "The connector or one of its tasks failed",
    "Its service account lacks an ACL on the topic, or its source or target is not reachable.",
    "Correct what the message names, and deploy again.",
)
INTEGRATION_IN_USE: Final = ErrorRow(
    "CFL-INTEGRATION-IN-USE",
    "The provider integration is still used",
    "A Tableflow topic or a catalog integration still names it, or was removed moments ago.",
    "Remove what uses it (named above), and destroy again.",
)
SCHEMALESS: Final = ErrorRow(
    "CFL-SCHEMALESS",
    "Tableflow needs a schema for the topic's values",
    "The subject `<topic>-value` does not exist yet: the connector or the statement has not written its first record.",
    "Register a schema, or look why the connector or the statement does not write, and deploy again.",
)
STORAGE_NOT_EMPTY: Final = ErrorRow(
    "CFL-STORAGE-NOT-EMPTY",
    "Tableflow's bucket is not empty",
    "Tableflow wants a bucket that nobody else writes to, empty at first.",
    "Give Tableflow a bucket of its own.",
)
TABLEFLOW_FAILED: Final = ErrorRow(
    "CFL-TABLEFLOW-FAILED",
    "Tableflow can't write the table",
    "The IAM role doesn't trust Confluent's role with the right external id, or lacks a permission on the bucket.",
    "Compare the role's trust and policy with the provider integration's outputs, and deploy again.",
)
TABLEFLOW_SUSPENDED: Final = ErrorRow(
    "CFL-TABLEFLOW-SUSPENDED",
    "Tableflow has suspended the table",
    "A record could not be written (error_handling is SUSPEND), or the storage refused.",
    "Mend what the message names; or set error_handling to SKIP or LOG; deploy again, which resumes the table.",
)
CATALOG_FAILED: Final = ErrorRow(
    "CFL-CATALOG-FAILED",
    "Tables are not shown in AWS Glue",
    "The IAM role lacks a permission on Glue, its trust was changed, or Lake Formation governs the account.",
    "Correct what the message names, and deploy again, which resumes the integration; `lakeferry doctor` looks at each hop.",
)
MISSING_ENDPOINT: Final = ErrorRow(
    "CFL-NO-ENDPOINT",
    "Confluent gives no public address",
    "The cluster or the region is reached over a private network only.",
    "Use a cluster with a public endpoint.",
)

ERRORS: Final = (
    AUTH, AUTH_SCOPE, NOT_FOUND, CONFLICT, FOREIGN_SUBJECT, INVALID, QUOTA, RATE, UNAVAILABLE, UNEXPECTED, KEY_NOT_READY,
    CLUSTER_TYPE, CLUSTER_FAILED, DELETION_PROTECTED, POOL_FAILED, FLINK_FAILED, FLINK_TABLEFLOW, CONNECTOR_CONFIG,
    CONNECTOR_FAILED, INTEGRATION_IN_USE, SCHEMALESS, STORAGE_NOT_EMPTY, TABLEFLOW_FAILED, TABLEFLOW_SUSPENDED, CATALOG_FAILED,
    MISSING_ENDPOINT,
)  # fmt: skip


#: How long to leave Confluent alone after a 429 that doesn't say.
UNASKED_WAIT = 10.0
_ROWS: dict[int, tuple[type[LakeferryError], ErrorRow]] = {
    400: (Refused, INVALID),
    401: (Denied, AUTH),
    402: (Refused, QUOTA),
    403: (Denied, AUTH_SCOPE),
    404: (NotFound, NOT_FOUND),
    409: (Conflict, CONFLICT),
    422: (Refused, INVALID),
}


def error_from(answer: Response, asked: str, clock: Clock, denied_patience: float) -> LakeferryError:
    """`asked` is method and path. The request id is in the words, for Confluent's support."""
    text = detail(answer.body)
    what = f"{asked}: HTTP {answer.status}" + (f", {text}" if text else "") + f" (request id {answer.request_id or 'not given'})"
    if answer.status == 429:
        asked_for = requested_wait(answer.headers, clock)
        return RateLimited(RATE, what, wait=UNASKED_WAIT if asked_for is None else asked_for)
    if answer.status in _ROWS:
        kind, row = _ROWS[answer.status]
        return kind(row, what, patience=denied_patience) if kind is Denied else kind(row, what)
    if answer.status >= 500 and answer.status != 501:
        return Transient(UNAVAILABLE, what)
    return Refused(UNEXPECTED, what)


def detail(body: Any) -> str:
    """What the vendor says went wrong, at most DETAIL_LENGTH characters; "" where it says nothing, or an HTML page."""
    return _said(body)[:DETAIL_LENGTH]


def _said(body: Any) -> str:
    if isinstance(body, str):
        return "" if "<" in body else body.strip()
    if not isinstance(body, dict):
        return ""
    if isinstance(body.get("errors"), list):
        return "; ".join(filter(None, map(_one, body["errors"])))
    nested = body.get("error")
    return _one(nested) if isinstance(nested, dict) else _one(body)


def _one(error: Any) -> str:
    if not isinstance(error, dict):
        return str(error)
    said = error.get("detail") or error.get("title") or error.get("message") or ""
    source = error.get("source")
    pointer = source.get("pointer") or source.get("parameter") if isinstance(source, dict) else None
    return f"{said} ({pointer})" if pointer else str(said)


def mentions(error: LakeferryError, *phrases: str) -> bool:
    """Whether the vendor's words hold one of `phrases`, in any case. Confluent gives few codes, so words must do."""
    return any(phrase.lower() in error.what.lower() for phrase in phrases)
