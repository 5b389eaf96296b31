"""The pages of lists."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Final, TypeVar
from urllib.parse import urlencode

from simulators.confluent.errors import bad_request
from simulators.confluent.http import Answer, Call
from simulators.confluent.model import Resource
from simulators.confluent.organization import Organization

_DEFAULT_PAGE: Final = 10
_LARGEST_PAGE: Final = 100
R = TypeVar("R", bound=Resource)


def build_page(
    call: Call,
    api_version: str,
    name: str,
    records: Iterable[R],
    build_document: Callable[[Organization, R], dict[str, Any]],
) -> Answer:
    """Answer with one page of the records in the order of their creation, so that new objects only appear on
    the last page.

    The page token is that of the last record of the previous page. Raises ApiError if this record is gone.
    """
    ordered_records = sorted(records, key=lambda record: record.created)
    size_parameter = call.query.get("page_size", str(_DEFAULT_PAGE))
    if not size_parameter.isdecimal() or not 1 <= int(size_parameter) <= _LARGEST_PAGE:
        raise bad_request(f"page_size must be 1 to {_LARGEST_PAGE}", parameter="page_size")
    size = int(size_parameter)
    page_token = call.query.get("page_token", "")
    if page_token and page_token not in {_encode_page_token(record) for record in ordered_records}:
        raise bad_request("page_token is not valid", parameter="page_token")
    start = 0
    for number, record in enumerate(ordered_records, 1):
        if _encode_page_token(record) == page_token:
            start = number
            break
    records_of_page = ordered_records[start : start + size]
    next_token = _encode_page_token(records_of_page[-1]) if start + size < len(ordered_records) else ""
    metadata = {
        "first": _build_link(call, ""),
        "next": _build_link(call, next_token) if next_token else "",
        "total_size": len(ordered_records),
    }
    data = [build_document(call.org, record) for record in records_of_page]
    return Answer(
        200, {"api_version": api_version, "kind": f"{name}List", "metadata": metadata, "data": data}
    )


def _encode_page_token(resource: Resource) -> str:
    return resource.id.encode().hex()


def _build_link(call: Call, token: str) -> str:
    query = {name: value for name, value in call.query.items() if name != "page_token"}
    if token:
        query["page_token"] = token
    url = f"{call.address}{call.path}"
    return f"{url}?{urlencode(query)}" if query else url
