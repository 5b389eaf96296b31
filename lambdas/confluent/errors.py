"""Errors of Confluent Cloud: codes and remedies, and the error of an HTTP answer."""

from __future__ import annotations

import re
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
    "CFL-AUTH",
    "Check that the secret has a key for the service above; Tableflow needs a Tableflow key, not a Cloud "
    "key. If somebody deleted a key of the deployment in Confluent, `lakeferry rotate <its secret> --now` "
    "creates a new one.",
)
AUTH_SCOPE: Final = ErrorRow("CFL-AUTH-SCOPE", "Grant the role, or wait some minutes, and deploy again.")
UNSEEN: Final = ErrorRow(
    "CFL-UNSEEN",
    "Give the owner of the Cloud key the role OrganizationAdmin (again), wait some minutes, and repeat "
    "what failed. If you know that the object is gone, run `lakeferry forget STACK LOGICAL_ID`, and repeat "
    "it.",
)
OTHER_ORGANIZATION: Final = ErrorRow(
    "CFL-OTHER-ORGANIZATION",
    "Store a Cloud key of the organization that has the object (`lakeferry secrets set confluent`), and "
    "repeat what failed. To move to another organization, destroy the deployment with a key of the old one "
    "first.",
)
NOT_FOUND: Final = ErrorRow(
    "CFL-NOT-FOUND", "Check that the ids named above exist; if they do, deploy again in some minutes."
)
CONFLICT: Final = ErrorRow(
    "CFL-CONFLICT",
    "Look at the object in the Confluent Cloud console; remove what depends on it, or rename it, and "
    "deploy again.",
)
FOREIGN_SUBJECT: Final = ErrorRow(
    "CFL-FOREIGN-SUBJECT",
    "Rename the topic in the deployment file. Or, if the subject is this deployment's own from an earlier "
    "time, add "
    'adopt = ["subject"] to the topic. Then deploy again. Until then, Lakeferry neither changes nor '
    "deletes it.",
)
FOREIGN_TOPIC: Final = ErrorRow(
    "CFL-FOREIGN-TOPIC",
    "Choose another name in the deployment file. Or, if the topic is this deployment's own from an earlier "
    "time, add "
    'adopt = ["topic"] to it there: its records are then deleted with it. Then deploy again. Until then, '
    "Lakeferry neither "
    "changes nor deletes it.",
)
FOREIGN_TABLEFLOW: Final = ErrorRow(
    "CFL-FOREIGN-TABLEFLOW",
    "Remove [topics.tableflow] from the topic. Or, if this deployment enabled it at an earlier time, add "
    'adopt = ["tableflow"] to the topic. Then deploy again. Until then, Lakeferry neither changes nor '
    "disables it.",
)
FOREIGN_CATALOG: Final = ErrorRow(
    "CFL-FOREIGN-CATALOG",
    "Delete the integration in the Confluent Cloud console if nobody needs its tables in Glue, and deploy "
    "again. Lakeferry neither changes nor deletes it.",
)
SCHEMA_INCOMPATIBLE: Final = ErrorRow(
    "CFL-SCHEMA-INCOMPATIBLE",
    'Give the field that the message names a default (for a nullable one, the type ["null", …] and the '
    "default null), or undo "
    "the change, and deploy again. If the schema can't be compatible, add a topic with another name.",
)
INVALID: Final = ErrorRow("CFL-INVALID", "Correct the value that the message names, and deploy again.")
QUOTA: Final = ErrorRow(
    "CFL-QUOTA", "Delete what isn't needed or ask Confluent for a higher quota, and deploy again."
)
RATE: Final = ErrorRow(
    "CFL-RATE",
    "Nothing: it is retried when Confluent allows; if the deployment fails because of it, deploy again.",
)
UNAVAILABLE: Final = ErrorRow("CFL-UNAVAILABLE", "Look at Confluent's status page, and deploy again.")
UNEXPECTED: Final = ErrorRow("CFL-UNEXPECTED", "Report it with the request id above.")
KEY_NOT_READY: Final = ErrorRow(
    "CFL-KEY-NOT-READY", "Nothing; if the deployment fails because of it, deploy again."
)
CLUSTER_FAILED: Final = ErrorRow(
    "CFL-CLUSTER-FAILED",
    "Look at the cluster in the Confluent Cloud console; try another region or ask Confluent.",
)
DELETION_PROTECTED: Final = ErrorRow(
    "CFL-DELETION-PROTECTED",
    "To lose the records, set deletion_protection to false, deploy, and repeat what was refused. If the "
    "stack can't be updated because its creation failed, remove the cluster's protection in the Confluent "
    "Cloud console instead of deploying.",
)
ENVIRONMENT_NOT_EMPTY: Final = ErrorRow(
    "CFL-ENVIRONMENT-NOT-EMPTY",
    "Move or delete what is named above if nobody needs it, then destroy again. If this deployment still "
    "uses the environment, remove environment_id and environment_name from the deployment file, and deploy "
    "again. If Confluent refuses to list something, give the Cloud key's owner the role OrganizationAdmin; "
    "or delete the environment in Confluent's console, run `lakeferry forget STACK LOGICAL_ID`, and "
    "destroy again.",
)
CANT_CHANGE: Final = ErrorRow(
    "CFL-CANT-CHANGE",
    "Undo the change in the deployment file, and deploy again. For fewer partitions, add a topic with "
    "another name; instead of removing max_ecku or rows_days, set another number. flink_max_cfu and "
    "stream_governance can only be raised.",
)
POOL_FAILED: Final = ErrorRow(
    "CFL-POOL-FAILED", "Look at the pool in the Confluent Cloud console; try again or ask Confluent."
)
FLINK_FAILED: Final = ErrorRow("CFL-FLINK-FAILED", "Correct what the message names, and deploy again.")
FLINK_STOPPED_RUNNING: Final = ErrorRow(
    "CFL-FLINK-STOPPED-RUNNING",
    "Correct what the message names. To start it again with an empty table, remove the statement and its "
    "topic from the deployment file, deploy, add them again, and deploy.",
)
FLINK_ENDED: Final = ErrorRow(
    "CFL-FLINK-ENDED",
    "Nothing writes to the table any more; its records are kept. To go on, give the statement and its "
    "topic new names in the deployment file, and deploy. To start again with an empty table, remove both "
    "from the file, deploy, add them, and deploy.",
)
FLINK_TABLEFLOW: Final = ErrorRow(
    "CFL-FLINK-TABLEFLOW",
    "Undo the edit, and give the new version its own name and topic. Or remove [topics.tableflow] and what "
    "reads the table from the deployment file, deploy, then edit: the topic's records are lost.",
)
CONNECTOR_CONFIG: Final = ErrorRow(
    "CFL-CONNECTOR-CONFIG", "Correct the settings that the message names, and deploy again."
)
CONNECTOR_FAILED: Final = ErrorRow(
    "CFL-CONNECTOR-FAILED", "Correct what the message names, and deploy again."
)
INTEGRATION_IN_USE: Final = ErrorRow(
    "CFL-INTEGRATION-IN-USE", "Remove what uses it (named above), and destroy again."
)
SCHEMALESS: Final = ErrorRow(
    "CFL-SCHEMALESS",
    "Register a schema, or find out why the connector or the statement does not write, and deploy again.",
)
STORAGE_NOT_EMPTY: Final = ErrorRow("CFL-STORAGE-NOT-EMPTY", "Give Tableflow its own bucket.")
TABLEFLOW_FAILED: Final = ErrorRow(
    "CFL-TABLEFLOW-FAILED",
    "Compare the role's trust and policy with the provider integration's outputs (`lakeferry doctor` "
    "does), and deploy again. If they are equal, a resource control policy of the AWS organization may "
    "refuse callers from outside.",
)
TABLEFLOW_SUSPENDED: Final = ErrorRow(
    "CFL-TABLEFLOW-SUSPENDED",
    "Fix what the message names; or set on_error in [topics.tableflow] to SKIP or LOG. Deploy again, which "
    "resumes the table.",
)
CATALOG_FAILED: Final = ErrorRow(
    "CFL-CATALOG-FAILED",
    "Correct what the message names, and deploy again, which resumes the integration; `lakeferry doctor` "
    "checks each hop.",
)
MISSING_ENDPOINT: Final = ErrorRow("CFL-NO-ENDPOINT", "Use a cluster with a public endpoint.")
NO_GOVERNANCE: Final = ErrorRow(
    "CFL-NO-GOVERNANCE",
    "Give the environment the package Essentials or Advanced in the Confluent Cloud console, under Stream "
    "Governance; then deploy again.",
)
IP_FILTER: Final = ErrorRow(
    "CFL-IP-FILTER",
    "An IP filter of the organization refuses the address of this call. The functions have no fixed "
    "address: exempt the operation group that the message is about, or the environment, from the filter in "
    "the Confluent Cloud console (Network access, IP filters); then deploy again.",
)


#: Seconds to wait after a 429 that doesn't say how long.
DEFAULT_WAIT = 10.0
#: What a call from an address outside of the organization's IP filters is told. The documentation has no list
#: of messages.
_IP_FILTER: Final = re.compile(
    r"IP[ _-]?filter|IP address.{0,60}not (?:allowed|permitted|authorized)", re.IGNORECASE
)
_ROWS: dict[int, tuple[type[LakeferryError], ErrorRow]] = {
    400: (Refused, INVALID),
    401: (Denied, AUTH),
    402: (Refused, QUOTA),
    403: (Denied, AUTH_SCOPE),
    404: (NotFound, NOT_FOUND),
    409: (Conflict, CONFLICT),
    422: (Refused, INVALID),
}


def error_from(answer: Response, call: str, clock: Clock, denied_patience: float) -> LakeferryError:
    """Return the error of a response.

    `call` is method and path. The message has the request id for Confluent's support.
    """
    text = detail(answer.body)
    reason = f", {text}" if text else ""
    request_id = answer.request_id or "not given"
    message = f"{call}: HTTP {answer.status}{reason} (request id {request_id})"
    if answer.status == 429:
        wait = requested_wait(answer.headers, clock)
        if wait is None:
            wait = DEFAULT_WAIT
        return RateLimited(RATE, message, wait=wait)
    if answer.status in (401, 403) and _IP_FILTER.search(text):
        return Refused(IP_FILTER, message)
    if answer.status in _ROWS:
        error_class, row = _ROWS[answer.status]
        if error_class is Denied:
            return Denied(row, message, patience=denied_patience)
        return error_class(row, message)
    if answer.status >= 500 and answer.status != 501:
        return Transient(UNAVAILABLE, message)
    return Refused(UNEXPECTED, message)


def detail(body: Any) -> str:
    """Return the vendor's message, at most DETAIL_LENGTH characters; "" if there is none, or an HTML page."""
    message = ""
    if isinstance(body, str):
        message = "" if "<" in body else body.strip()
    elif isinstance(body, dict) and isinstance(body.get("errors"), list):
        message = "; ".join(filter(None, map(_read_message, body["errors"])))
    elif isinstance(body, dict):
        error = body.get("error")
        message = _read_message(error) if isinstance(error, dict) else _read_message(body)
    return shortened(message)


def _read_message(error: Any) -> str:
    if not isinstance(error, dict):
        return str(error)
    message = error.get("detail") or error.get("title") or error.get("message") or ""
    source = error.get("source")
    pointer = source.get("pointer") or source.get("parameter") if isinstance(source, dict) else None
    return f"{message} ({pointer})" if pointer else str(message)


def mentions(error: LakeferryError, *phrases: str) -> bool:
    """Return whether the vendor's message contains one of `phrases`, ignoring case.

    Confluent returns few error codes.
    """
    return any(phrase.lower() in error.what.lower() for phrase in phrases)
