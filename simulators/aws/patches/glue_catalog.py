"""The Glue Data Catalog as AWS keeps it.

- Names of databases and tables are folded to lower case when stored and when looked up. Stock MiniStack keeps case.
- GetTables and GetDatabases return at most 100 entries and a NextToken. Stock returns all, whatever MaxResults says.
- GetTables in a database that does not exist is EntityNotFoundException. Stock answers with an empty list.
- Expression is a regular expression. Stock takes it for a glob.
- UpdateTable replaces the whole definition. Stock keeps what the new one leaves out.
- UpdateTable with a stale VersionId is ConcurrentModificationException, always. Stock compares and writes in threads
  without a lock, so of two writers in the same instant both may win.
"""

from __future__ import annotations

import base64
import json
import re
import threading
from typing import Any

from simulators.aws.answers import json_error
from simulators.aws.hooks import Answer, Original, Patch, ministack

PATCH = Patch("glue_catalog")
MAX_RESULTS = 100
_ACTIONS = frozenset(
    "CreateDatabase GetDatabase GetDatabases UpdateDatabase DeleteDatabase "
    "CreateTable GetTable GetTables UpdateTable DeleteTable BatchDeleteTable".split()
)
_LISTS = {"GetTables": "TableList", "GetDatabases": "DatabaseList"}
#: What a table has once it is updated with a definition that names none of it.
_EMPTY_TABLE: dict[str, Any] = {
    "Description": "",
    "Owner": "",
    "StorageDescriptor": {},
    "PartitionKeys": [],
    "Parameters": {},
}
_lock = threading.Lock()


@PATCH.replaces("ministack.services.glue", "_handle_request_sync", "method path headers body query_params")
def handle_request(  # noqa: PLR0917  (MiniStack's own parameters)
    original: Original, method: str, path: str, headers: dict[str, str], body: bytes, query_params: dict[str, Any]
) -> Answer:
    action = headers.get("x-amz-target", "").rpartition(".")[2]
    if action not in _ACTIONS:
        return original(method, path, headers, body, query_params)
    request = fold(json.loads(body or b"{}"))
    listing = {name: request.pop(name, None) for name in ("MaxResults", "NextToken", "Expression")}
    if action == "UpdateTable":
        request["TableInput"] = {**_EMPTY_TABLE, **request.get("TableInput", {})}
    with _lock:
        if action == "GetTables" and request.get("DatabaseName") not in ministack("services.glue")._databases:
            return json_error("EntityNotFoundException", f"Database {request.get('DatabaseName')} not found.")
        answer: Answer = original(method, path, headers, json.dumps(request).encode(), query_params)
    if action in _LISTS and answer[0] == 200:
        return _page(answer, _LISTS[action], **listing)
    return answer


def fold(request: dict[str, Any]) -> dict[str, Any]:
    """The request with each name of a database or table in lower case."""
    folded = dict(request)
    for key in {"Name", "DatabaseName"} & folded.keys():
        folded[key] = folded[key].lower()
    for key in {"DatabaseInput", "TableInput"} & folded.keys():
        folded[key] = fold(folded[key])
    if "TablesToDelete" in folded:
        folded["TablesToDelete"] = [name.lower() for name in folded["TablesToDelete"]]
    return folded


def _page(answer: Answer, field: str, MaxResults: int | None, NextToken: str | None, Expression: str | None) -> Answer:  # noqa: N803  (AWS's names)
    try:
        after = base64.b64decode(NextToken or "", validate=True).decode()
        wanted = re.compile(Expression or ".*")
    except (ValueError, re.error) as error:
        return json_error("InvalidInputException", str(error))
    entries = sorted(json.loads(answer[2])[field], key=lambda entry: str(entry["Name"]))
    left = [entry for entry in entries if entry["Name"] > after and wanted.fullmatch(entry["Name"])]
    page = left[: min(MaxResults or MAX_RESULTS, MAX_RESULTS)]
    result: dict[str, Any] = {field: page}
    if len(page) < len(left):
        result["NextToken"] = base64.b64encode(page[-1]["Name"].encode()).decode()
    return answer[0], answer[1], json.dumps(result).encode()
