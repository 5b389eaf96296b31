"""What all objects have: an id, a CRN and two times; and how they and lists of them go out."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Final, TypeVar
from urllib.parse import urlencode

from simulators.confluent.errors import ApiError
from simulators.confluent.http import Answer, Call
from simulators.confluent.model import Plane, Resource
from simulators.confluent.organization import Organization

DEFAULT_PAGE: Final = 10
LARGEST_PAGE: Final = 100


R = TypeVar("R", bound=Resource)


class Kind:
    """How a kind goes out: its group and version, its name, and the path of its collection."""

    def __init__(self, api_version: str, name: str, path: str = "") -> None:
        self.api_version, self.name, self.path = api_version, name, path

    def header(self, org: Organization, resource: Resource, query: str = "") -> dict[str, Any]:
        metadata = {
            "self": f"{org.addresses[Plane.CLOUD]}{self.path}/{resource.id}{query}",
            "resource_name": resource.crn,
            "created_at": org.clock.text(resource.created),
            "updated_at": org.clock.text(resource.updated),
        }
        return {"api_version": self.api_version, "kind": self.name, "id": resource.id, "metadata": metadata}

    def page_within(
        self, call: Call, environment: str, resources: Iterable[R], document: Callable[[Organization, R], dict[str, Any]]
    ) -> Answer:
        """Of resources that each know their environment."""
        return self.page(call, [each for each in resources if getattr(each, "environment", "") == environment], document)

    def page(self, call: Call, resources: Iterable[R], document: Callable[[Organization, R], dict[str, Any]]) -> Answer:
        """In the order of creation, so that a token stays right while objects come and go."""
        every = sorted(resources, key=lambda each: each.created)
        size, after = _page_size(call), call.query.get("page_token", "")
        if after and after not in {token_of(each) for each in every}:
            raise ApiError(400, "page_token is not valid", code="bad_request", parameter="page_token")
        start = next((n for n, each in enumerate(every, 1) if token_of(each) == after), 0)
        chosen = every[start : start + size]
        following = token_of(chosen[-1]) if start + size < len(every) else ""
        metadata = {"first": _link(call, ""), "next": _link(call, following) if following else "", "total_size": len(every)}
        data = [document(call.org, each) for each in chosen]
        return Answer(200, {"api_version": self.api_version, "kind": f"{self.name}List", "metadata": metadata, "data": data})


def token_of(resource: Resource) -> str:
    """Opaque to clients."""
    return resource.id.encode().hex()


def reference(org: Organization, resource: Resource, path: str, environment: str = "") -> dict[str, str]:
    """Filled by the server, whatever the client sent beside the id."""
    inside = {"environment": environment} if environment else {}
    related = f"{org.addresses[Plane.CLOUD]}{path}/{resource.id}"
    return {"id": resource.id, **inside, "related": related, "resource_name": resource.crn}


def _page_size(call: Call) -> int:
    given = call.query.get("page_size", str(DEFAULT_PAGE))
    if not given.isdecimal() or not 1 <= int(given) <= LARGEST_PAGE:
        raise ApiError(400, f"page_size must be 1 to {LARGEST_PAGE}", code="bad_request", parameter="page_size")
    return int(given)


def _link(call: Call, token: str) -> str:
    query = {name: value for name, value in call.query.items() if name != "page_token"} | ({"page_token": token} if token else {})
    return f"{call.address}{call.path}" + (f"?{urlencode(query)}" if query else "")
