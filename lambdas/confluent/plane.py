"""One plane of Confluent Cloud: an address, a key, and calls whose answers are parsed or raised.

Confluent answers 403 for much that is gone. That is believed only where the same key is seen to work on something else
in the same moment; otherwise a dead key would look like a successful delete.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final
from urllib.parse import parse_qs, quote, urlsplit

import attrs

from lambdas.confluent import errors as confluent_errors
from lambdas.confluent.reading import objects, text
from lambdas.confluent.refusals import refusal
from lambdas.shared import errors
from lambdas.shared.clock import Clock
from lambdas.shared.errors import Denied, LakeferryError, NotFound, Transient
from lambdas.shared.http import Session
from lambdas.shared.redaction import ApiKey

PAGE_SIZE: Final = 99
#: A list longer than this is a loop: quotas are far below.
MOST_PAGES: Final = 200
DEAD_KEY: Final = "invalid api key"


def path(*parts: str) -> str:
    """Segments of a path, each quoted whole. Raises LakeferryError for one that would lead to another path."""
    for part in parts:
        if part in ("", ".", ".."):
            raise LakeferryError(errors.ADDRESS, f"{part!r} can't be a part of the path {'/'.join(parts)!r}")
    return "".join(f"/{quote(part, safe=':')}" for part in parts)


@attrs.frozen
class Plane:
    """`probe` is a path that any living key may read; where it is "", only 404 means gone.

    `denied_patience` is how many seconds a 401 or 403 may last: new keys and new roles take their time.
    """

    session: Session
    clock: Clock
    url: str
    key: ApiKey
    probe: str = ""
    denied_patience: float = 120.0

    def get(self, route: str, **params: str) -> Any:
        return self._call("GET", route, params)

    def post(self, route: str, body: Any, *, repeatable: bool = False, **params: str) -> Any:
        """`repeatable` where a second call changes nothing."""
        return self._call("POST", route, params, body, repeatable)

    def put(self, route: str, body: Any) -> Any:
        return self._call("PUT", route, {}, body)

    def patch(self, route: str, body: Any, *, repeatable: bool = True) -> Any:
        return self._call("PATCH", route, {}, body, repeatable)

    def delete(self, route: str, **params: str) -> Any:
        """None too where there is nothing to delete. A 403 is raised: whether the object is gone is seen by looking."""
        try:
            return self._call("DELETE", route, params)
        except NotFound:
            return None

    def read(self, route: str, **params: str) -> dict[str, Any] | None:
        """None where the object is gone. Raises Denied where the key, not the object, is the reason."""
        try:
            body = self.get(route, **params)
        except NotFound:
            return None
        except Denied as denied:
            if DEAD_KEY not in denied.what.lower() and denied.row is confluent_errors.AUTH_SCOPE and self.read_probe():
                return None
            raise
        return self._object(body, route)

    def read_probe(self) -> bool:
        """Whether the key works right now on something that it may read."""
        if not self.probe:
            return False
        try:
            self.get(self.probe)
        except Denied:
            return False
        return True

    def pages(self, route: str, **params: str) -> list[dict[str, Any]]:
        """All objects of a list, each once, also where pages overlap or lead in a circle."""
        seen: dict[str, dict[str, Any]] = {}
        for page in self._pages(route, {"page_size": str(PAGE_SIZE), **params}):
            for item in objects(page, "data"):
                seen.setdefault(text(item, "id") or text(item, "name") or text(item, "spec", "display_name") or repr(item), item)
        return list(seen.values())

    def _pages(self, route: str, params: dict[str, str]) -> Iterator[dict[str, Any]]:
        tokens = {""}
        for _ in range(MOST_PAGES):
            page = self._object(self._call("GET", route, params), route)
            yield page
            token = _next_token(page)
            if token in tokens:
                return
            tokens.add(token)
            params = {**params, "page_token": token}

    def _call(self, method: str, route: str, params: Mapping[str, str], body: Any = None, repeatable: bool | None = None) -> Any:
        answer = self.session.call(
            method, self.url.rstrip("/") + route, key=self.key, params=params, body=body, repeatable=repeatable
        )
        if 200 <= answer.status < 300:
            return answer.body
        raise refusal(answer, f"{method} {route}", self.clock, self.denied_patience)

    def _object(self, body: Any, route: str) -> dict[str, Any]:
        if isinstance(body, dict):
            return body
        raise Transient(confluent_errors.UNEXPECTED, f"GET {route}: an answer without an object")


def _next_token(page: dict[str, Any]) -> str:
    """Only the token is taken from the address of the next page: the host stays ours."""
    following = text(page, "metadata", "next")
    return (parse_qs(urlsplit(following).query).get("page_token") or [""])[0]
