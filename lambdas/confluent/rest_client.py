"""Calls of Confluent's REST APIs with one key, and the values in their answers.

Confluent answers 403 for many objects that are gone, and for all that a key's owner may not see. An object
with a 403 counts as gone only if the owner has a role with which it would see the object; otherwise a weaker
key would look like a successful delete.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final
from urllib.parse import parse_qs, quote, urlsplit

import attrs

from lambdas.confluent import errors as confluent_errors
from lambdas.confluent.errors import build_error
from lambdas.confluent.sight import Container
from lambdas.shared import errors
from lambdas.shared.clock import Clock
from lambdas.shared.errors import Denied, LakeferryError, NotFound, Transient
from lambdas.shared.http import Session
from lambdas.shared.redaction import ApiKey

PAGE_SIZE: Final = 99
#: A list with more pages is taken for an endless loop: Confluent's quotas are far lower.
MAX_PAGES: Final = 200
DEAD_KEY: Final = "invalid api key"


def get_path(body: Any, *names: str) -> Any:
    """Return the value at a path of names; None if the path ends early."""
    for name in names:
        body = body.get(name) if isinstance(body, dict) else None
    return body


def get_text(body: Any, *names: str) -> str:
    """Return the value at a path of names as text; "" if there is none."""
    value = get_path(body, *names)
    return "" if value is None or isinstance(value, dict | list) else str(value)


def require_text(body: Any, *names: str) -> str:
    """Return the text at a path of names. Raises Transient if there is none."""
    value = get_text(body, *names)
    if value:
        return value
    raise Transient(confluent_errors.UNEXPECTED, f"an answer lacks {'.'.join(names)}")


def get_objects(body: Any, *names: str) -> list[dict[str, Any]]:
    """Return the objects of the list at a path of names; none if there is no list."""
    value = get_path(body, *names)
    if not isinstance(value, list):
        return []
    return [item for item in value if isinstance(item, dict)]


def build_path(*parts: str) -> str:
    """Return a path of quoted segments.

    Raises LakeferryError for a segment that would lead to another path.
    """
    for part in parts:
        if part in ("", ".", ".."):
            raise LakeferryError(errors.ADDRESS, f"{part!r} can't be a part of the path {'/'.join(parts)!r}")
    return "".join(f"/{quote(part, safe=':')}" for part in parts)


@attrs.frozen
class RestClient:
    """A client of one API, with one key.

    `require_sight` raises Denied or InProgress unless the key's owner sees all objects in a container.
    Without it, only a 404 means that an object is gone. `probe` is a path that every valid key may read.
    `denied_patience` is the number of seconds for which 401 and 403 are retried, because new keys and roles
    take time to become effective.
    """

    session: Session
    clock: Clock
    url: str
    key: ApiKey
    require_sight: Callable[[Container], None] | None = None
    probe: str = ""
    denied_patience: float = 120.0

    def get(self, route: str, **params: str) -> Any:
        return self._call("GET", route, params)

    def post(self, route: str, body: Any, *, repeatable: bool = False, **params: str) -> Any:
        """Send a POST. `repeatable` means that a second call changes nothing."""
        return self._call("POST", route, params, body, repeatable)

    def put(self, route: str, body: Any) -> Any:
        return self._call("PUT", route, {}, body)

    def patch(self, route: str, body: Any, *, repeatable: bool = True) -> Any:
        return self._call("PATCH", route, {}, body, repeatable)

    def delete(self, route: str, **params: str) -> Any:
        """Delete the object. Return None if there is nothing to delete.

        Raises Denied for a 403, which doesn't tell whether the object exists.
        """
        try:
            return self._call("DELETE", route, params)
        except NotFound:
            return None

    def read(self, route: str, container: Container | None = None, /, **params: str) -> dict[str, Any] | None:
        """Return the object, or None if it is gone.

        Raises Denied if the key is or may be the reason that the object can't be read, and InProgress if the
        role of the key's owner is too new to tell. `params` name the object's container, as Confluent's APIs
        require; `container` is that of an object for which they don't.
        """
        try:
            body = self.get(route, **params)
        except NotFound:
            return None
        except Denied as denied:
            is_role_missing = (
                denied.kind is confluent_errors.AUTH_SCOPE and DEAD_KEY not in denied.what.lower()
            )
            if not is_role_missing or self.require_sight is None:
                raise
            self.require_sight(
                container or Container(params.get("environment", ""), params.get("spec.kafka_cluster", ""))
            )
            return None
        return self._require_object(body, route)

    def pages(self, route: str, **params: str) -> list[dict[str, Any]]:
        """Return all objects of a list, each once, even if pages overlap or repeat."""
        items_by_id: dict[str, dict[str, Any]] = {}
        for page in self._list_pages(route, {"page_size": str(PAGE_SIZE), **params}):
            for item in get_objects(page, "data"):
                name = get_text(item, "name") or get_text(item, "spec", "display_name")
                item_id = get_text(item, "id") or name or repr(item)
                items_by_id.setdefault(item_id, item)
        return list(items_by_id.values())

    def _list_pages(self, route: str, params: dict[str, str]) -> Iterator[dict[str, Any]]:
        """Yield the pages.

        Raises Transient for a list without an end: missing objects would look like deleted ones.
        """
        tokens: set[str] = set()
        for _ in range(MAX_PAGES):
            page = self._require_object(self._call("GET", route, params), route)
            yield page
            token = _read_next_token(page)
            if not token:
                return
            if token in tokens:
                raise Transient(
                    confluent_errors.UNEXPECTED, f"GET {route}: the list leads back to page {token}"
                )
            tokens.add(token)
            params = {**params, "page_token": token}
        raise Transient(confluent_errors.UNEXPECTED, f"GET {route}: the list has more than {MAX_PAGES} pages")

    def _call(
        self,
        method: str,
        route: str,
        params: Mapping[str, str],
        body: Any = None,
        repeatable: bool | None = None,
    ) -> Any:
        answer = self.session.call(
            method,
            self.url.rstrip("/") + route,
            key=self.key,
            params=params,
            body=body,
            repeatable=repeatable,
        )
        if 200 <= answer.status < 300:
            return answer.body
        raise build_error(answer, f"{method} {route}", self.clock, self.denied_patience)

    def _require_object(self, body: Any, route: str) -> dict[str, Any]:
        if isinstance(body, dict):
            return body
        raise Transient(confluent_errors.UNEXPECTED, f"GET {route}: an answer without an object")


def _read_next_token(page: dict[str, Any]) -> str:
    """Return the token of the next page.

    The host of the page's URL is ignored: calls go to the configured host only.
    """
    next_url = urlsplit(get_text(page, "metadata", "next"))
    tokens = parse_qs(next_url.query).get("page_token")
    return tokens[0] if tokens else ""
