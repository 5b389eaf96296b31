"""Athena: workgroups with their named queries and executions, and permission on the workgroup.

- athena_workgroups: DeleteWorkGroup is refused without RecursiveDeleteOption while the workgroup has named
  queries or executions, also when a stack deletes it; with the option they are deleted too. Stock deletes the
  workgroup alone. A named query needs a workgroup that exists. ListNamedQueries and ListQueryExecutions list
  one workgroup ("primary" by default), in pages of at most 50, executions newest first; stock ignores the
  workgroup. A call on an execution or a named query needs permission on its workgroup; stock asks for
  permission on "*". Source: Athena API reference (DeleteWorkGroup, ListNamedQueries, ListQueryExecutions);
  service authorization reference, "Actions, resources, and condition keys for Amazon Athena".

See stock: `.venv/bin/python -m pytest simulators/tests/aws/test_patches.py -m simulators
-k "stock and athena_workgroups"`
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, Final

from simulators.aws.answers import build_json_answer
from simulators.aws.hooks import Answer, Original, Patch, import_ministack

WORKGROUPS = Patch("athena_workgroups")
PATCHES: Final = (WORKGROUPS,)
ATHENA: Final = "ministack.services.athena"
PRIMARY: Final = "primary"
#: Entries on a page of a list, and rows on a page of query results.
_LIST_PAGE: Final = 50
_NEEDS_WORKGROUP: Final = frozenset(
    "StartQueryExecution CreateNamedQuery ListNamedQueries ListQueryExecutions".split()
)


class Refused(Exception):
    """Athena refuses the request; `answer` is the error response."""

    def __init__(self, answer: Answer) -> None:
        super().__init__()
        self.answer = answer


def build_invalid_request(message: str, **extra: str) -> Refused:
    answer = import_ministack("core.responses").error_response_json(
        "InvalidRequestException", message, 400, extra=extra or None
    )
    return Refused(answer)


@WORKGROUPS.replaces(ATHENA, "_delete_workgroup", "data")
def delete_workgroup(original: Original, data: dict[str, Any]) -> Answer:
    athena = import_ministack("services.athena")
    name = str(data.get("WorkGroup"))
    if name == PRIMARY:
        return original(data)
    if name not in athena._workgroups:
        return build_invalid_request("WorkGroup is not found.").answer
    contents = []
    for store in (athena._named_queries, athena._executions):
        contents += [(store, query_id) for query_id in _list_ids(store, name)]
    if contents and not data.get("RecursiveDeleteOption"):
        return build_invalid_request(f"WorkGroup {name} is not empty").answer
    for store, query_id in contents:
        del store[query_id]
    return original(data)


@WORKGROUPS.provisions("AWS::Athena::WorkGroup", "delete", original=True)
def delete_workgroup_of_stack(original: Callable[..., None], physical_id: str, props: dict[str, Any]) -> None:
    """Delete the workgroup.

    Raises ValueError if it isn't empty; stock ignores the refusal of DeleteWorkGroup.
    """
    athena = import_ministack("services.athena")
    holds = [*_list_ids(athena._named_queries, physical_id), *_list_ids(athena._executions, physical_id)]
    if physical_id in athena._workgroups and holds and not props.get("RecursiveDeleteOption"):
        raise ValueError(f"WorkGroup {physical_id} is not empty")
    original(physical_id, props)


@WORKGROUPS.replaces(ATHENA, "_create_named_query", "data")
def create_named_query(original: Original, data: dict[str, Any]) -> Answer:
    athena = import_ministack("services.athena")
    athena._ensure_default_workgroup()
    if (data.get("WorkGroup") or PRIMARY) not in athena._workgroups:
        return build_invalid_request("WorkGroup is not found.").answer
    return original(data)


@WORKGROUPS.replaces(ATHENA, "_list_named_queries", "data")
def list_named_queries(original: Original, data: dict[str, Any]) -> Answer:
    return _build_page(
        "NamedQueryIds",
        _list_ids(import_ministack("services.athena")._named_queries, data.get("WorkGroup") or PRIMARY),
        data,
    )


@WORKGROUPS.replaces(ATHENA, "_list_query_executions", "data")
def list_query_executions(original: Original, data: dict[str, Any]) -> Answer:
    ids = _list_ids(import_ministack("services.athena")._executions, data.get("WorkGroup") or PRIMARY)
    return _build_page("QueryExecutionIds", ids[::-1], data)


@WORKGROUPS.names_resources("athena")
def name_workgroup(target: str, body: bytes) -> str | None:
    """Return the call's workgroup; None if it concerns none, or a query that doesn't exist."""
    name = _find_workgroup(target.rpartition(".")[2], body)
    return f"workgroup/{name}" if name else None


def _find_workgroup(action: str, body: bytes) -> str | None:
    try:
        fields = json.loads(body or b"{}")
    except ValueError:
        return None
    athena = import_ministack("services.athena")
    for store, field in ((athena._executions, "QueryExecutionId"), (athena._named_queries, "NamedQueryId")):
        query_ids = [fields.get(field), *fields.get(f"{field}s", [])]
        for query_id in query_ids:
            if query_id in store:
                return str(store[query_id]["WorkGroup"])
    default = PRIMARY if action in _NEEDS_WORKGROUP else None
    return fields.get("WorkGroup") or default


def _list_ids(store: Any, name: str) -> list[str]:
    return [query_id for query_id, record in store.items() if record.get("WorkGroup") == name]


def _build_page(field: str, ids: list[str], data: dict[str, Any]) -> Answer:
    start = int(data.get("NextToken") or 0)
    size = min(int(data.get("MaxResults") or _LIST_PAGE), _LIST_PAGE)
    next_token = {"NextToken": str(start + size)} if start + size < len(ids) else {}
    return build_json_answer({field: ids[start : start + size], **next_token})
