"""Workgroups as Athena keeps them, and whose permission a call on what is in one needs.

- DeleteWorkGroup is refused without RecursiveDeleteOption while it holds saved queries or executions, also when a stack does it,
  and takes them along with it. Stock MiniStack deletes the workgroup alone, always.
- A saved query is made in a workgroup that is there; lists are those of a workgroup ("primary" where none is named), in pages of
  at most 50, executions newest first. Stock lists all of them, and all workgroups' where none is named.
- A call on an execution or a saved query needs permission on its workgroup. Stock asks for permission on "*".
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, Final, NamedTuple
from urllib.parse import urlsplit

from simulators.aws.answers import json_answer
from simulators.aws.hooks import Answer, Patch, Stock, ministack

PATCH = Patch("athena_workgroups")
_ATHENA: Final = "ministack.services.athena"
_PAGE: Final = 50
_PRIMARY: Final = "primary"
_IN_ONE: Final = frozenset("StartQueryExecution CreateNamedQuery ListNamedQueries ListQueryExecutions".split())
_SSE: Final = {"SSE_S3": "AES256", "SSE_KMS": "aws:kms"}


class Refused(Exception):
    """What Athena answers instead."""

    def __init__(self, answer: Answer) -> None:
        super().__init__()
        self.answer = answer


def invalid(message: str, **extra: str) -> Refused:
    answer = ministack("core.responses").error_response_json("InvalidRequestException", message, 400, extra=extra or None)
    return Refused(answer)


def allowed(access_key: str, action: str, service: str, region: str, arn: str) -> bool:
    """Always so where policies are not enforced."""
    return not ministack("app").AUTH or not ministack("core.iam_evaluator").enforce(
        access_key, action, service, region, arn, None
    )


def workgroup(name: str) -> dict[str, Any]:
    """Raises Refused where no query may be started in it."""
    found: dict[str, Any] | None = ministack("services.athena")._workgroups.get(name)
    if found is None:
        raise invalid("WorkGroup is not found.")
    if found.get("State") == "DISABLED":
        raise invalid(f"WorkGroup {name} is disabled.")
    return found


class Results(NamedTuple):
    """Where results go: the workgroup's own place where it enforces it, else what the caller says."""

    location: str
    configuration: dict[str, Any]

    @classmethod
    def of(cls, group: dict[str, Any], asked: dict[str, Any]) -> Results:
        """Raises Refused where nobody names a place."""
        settings = group.get("Configuration") or {}
        own, given = settings.get("ResultConfiguration") or {}, asked.get("ResultConfiguration") or {}
        enforced = settings.get("EnforceWorkGroupConfiguration", group["Name"] != _PRIMARY)
        chosen = own if enforced or not given.get("OutputLocation") else given
        if not chosen.get("OutputLocation"):
            raise invalid("No output location provided, neither by the workgroup nor by the call.")
        return cls(f"{chosen['OutputLocation'].rstrip('/')}/", chosen)

    def check(self, access_key: str, region: str) -> None:
        """Raises Refused where its bucket can't be used."""
        name = urlsplit(self.location).netloc
        known = name in ministack("services.s3")._buckets
        if not known or not allowed(access_key, "s3:GetBucketLocation", "s3", region, f"arn:aws:s3:::{name}"):
            raise invalid(f"Unable to verify/create output bucket {name}")

    def put(self) -> dict[str, str]:
        """The arguments of PutObject that encrypt the result."""
        encryption = self.configuration.get("EncryptionConfiguration") or {}
        option, key = encryption.get("EncryptionOption", ""), encryption.get("KmsKey")
        if option not in _SSE:
            return {}
        return {"ServerSideEncryption": _SSE[option]} | ({"SSEKMSKeyId": key} if key else {})


@PATCH.replaces(_ATHENA, "_delete_workgroup", "data")
def delete_workgroup(stock: Stock, data: dict[str, Any]) -> Answer:
    athena, name = ministack("services.athena"), str(data.get("WorkGroup"))
    if name == _PRIMARY:
        return stock(data)
    if name not in athena._workgroups:
        return invalid("WorkGroup is not found.").answer
    held = [(store, number) for store in (athena._named_queries, athena._executions) for number in _of(store, name)]
    if held and not data.get("RecursiveDeleteOption"):
        return invalid(f"WorkGroup {name} is not empty").answer
    for store, number in held:
        del store[number]
    return stock(data)


@PATCH.provisions("AWS::Athena::WorkGroup", "delete", stock=True)
def delete_of_stack(stock: Callable[..., None], physical_id: str, props: dict[str, Any]) -> None:
    """Stock asks for it and doesn't look at the answer."""
    athena = ministack("services.athena")
    holds = [*_of(athena._named_queries, physical_id), *_of(athena._executions, physical_id)]
    if physical_id in athena._workgroups and holds and not props.get("RecursiveDeleteOption"):
        raise ValueError(f"WorkGroup {physical_id} is not empty")
    stock(physical_id, props)


@PATCH.replaces(_ATHENA, "_create_named_query", "data")
def create_named_query(stock: Stock, data: dict[str, Any]) -> Answer:
    athena = ministack("services.athena")
    athena._ensure_default_workgroup()
    if (data.get("WorkGroup") or _PRIMARY) not in athena._workgroups:
        return invalid("WorkGroup is not found.").answer
    return stock(data)


@PATCH.replaces(_ATHENA, "_list_named_queries", "data")
def list_named_queries(stock: Stock, data: dict[str, Any]) -> Answer:
    return _listed("NamedQueryIds", _of(ministack("services.athena")._named_queries, data.get("WorkGroup") or _PRIMARY), data)


@PATCH.replaces(_ATHENA, "_list_query_executions", "data")
def list_query_executions(stock: Stock, data: dict[str, Any]) -> Answer:
    numbers = _of(ministack("services.athena")._executions, data.get("WorkGroup") or _PRIMARY)
    return _listed("QueryExecutionIds", numbers[::-1], data)


@PATCH.names_resources("athena")
def workgroup_resource(target: str, body: bytes) -> str | None:
    """None for a call that isn't on one, or on something that isn't there."""
    name = _workgroup_of(target.rpartition(".")[2], body)
    return f"workgroup/{name}" if name else None


def _workgroup_of(action: str, body: bytes) -> str | None:
    try:
        asked = json.loads(body or b"{}")
    except ValueError:
        return None
    athena = ministack("services.athena")
    for store, field in ((athena._executions, "QueryExecutionId"), (athena._named_queries, "NamedQueryId")):
        for number in [asked.get(field), *asked.get(f"{field}s", [])]:
            if number in store:
                return str(store[number]["WorkGroup"])
    return asked.get("WorkGroup") or (_PRIMARY if action in _IN_ONE else None)


def _of(store: Any, name: str) -> list[str]:
    return [number for number, held in store.items() if held.get("WorkGroup") == name]


def _listed(field: str, numbers: list[str], data: dict[str, Any]) -> Answer:
    start, size = int(data.get("NextToken") or 0), min(int(data.get("MaxResults") or _PAGE), _PAGE)
    more = {"NextToken": str(start + size)} if start + size < len(numbers) else {}
    return json_answer({field: numbers[start : start + size], **more})
