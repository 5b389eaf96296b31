"""Confluent Cloud's REST APIs: addresses, keys, and parsed answers or exceptions.

Only the addresses of the control plane and of the Iceberg catalog are configured; the latter is only written into a secret. The
control plane returns the addresses of Kafka, Schema Registry and Flink. They must be hosts of the vendor, or loopback addresses
if the control plane's address is one.

Confluent answers 403 for many objects that are gone. An object with a 403 counts as gone only if the same key works on something
else at the same time; otherwise a revoked key would look like a successful delete.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property
from typing import Any, Final
from urllib.parse import parse_qs, quote, urlsplit

import attrs

from lambdas.confluent import crn
from lambdas.confluent import errors as confluent_errors
from lambdas.confluent.errors import error_from
from lambdas.shared import errors
from lambdas.shared.clock import Clock
from lambdas.shared.errors import Denied, InProgress, LakeferryError, NotFound, ParentMissing, ResourceFailed, Transient
from lambdas.shared.http import Session, is_loopback, require_safe
from lambdas.shared.redaction import ApiKey


def get_path(body: Any, *names: str) -> Any:
    """Return the value at a path of names; None if the path ends early."""
    for name in names:
        body = body.get(name) if isinstance(body, dict) else None
    return body


def text(body: Any, *names: str) -> str:
    """Return the value at a path of names as text; "" if there is none."""
    value = get_path(body, *names)
    return "" if value is None or isinstance(value, dict | list) else str(value)


def require_text(body: Any, *names: str) -> str:
    """Return the text at a path of names. Raises Transient if there is none."""
    if value := text(body, *names):
        return value
    raise Transient(confluent_errors.UNEXPECTED, f"an answer lacks {'.'.join(names)}")


def objects(body: Any, *names: str) -> list[dict[str, Any]]:
    """Return the objects of the list at a path of names; none if there is no list."""
    value = get_path(body, *names)
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


PAGE_SIZE: Final = 99
#: A list with more pages is taken for an endless loop: Confluent's quotas are far lower.
MAX_PAGES: Final = 200
DEAD_KEY: Final = "invalid api key"


def path(*parts: str) -> str:
    """Return a path of quoted segments. Raises LakeferryError for a segment that would lead to another path."""
    for part in parts:
        if part in ("", ".", ".."):
            raise LakeferryError(errors.ADDRESS, f"{part!r} can't be a part of the path {'/'.join(parts)!r}")
    return "".join(f"/{quote(part, safe=':')}" for part in parts)


@attrs.frozen
class RestClient:
    """`probe` is a path that every valid key may read. Without it, only a 404 means that an object is gone.

    `denied_patience` is the number of seconds for which 401 and 403 are retried: new keys and roles take time.
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

    def read(self, route: str, **params: str) -> dict[str, Any] | None:
        """Return the object, or None if it is gone. Raises Denied if the reason is the key, not the object."""
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
        """Return whether the key can now read `probe`."""
        if not self.probe:
            return False
        try:
            self.get(self.probe)
        except Denied:
            return False
        return True

    def pages(self, route: str, **params: str) -> list[dict[str, Any]]:
        """Return all objects of a list, each once, even if pages overlap or repeat."""
        seen: dict[str, dict[str, Any]] = {}
        for page in self._pages(route, {"page_size": str(PAGE_SIZE), **params}):
            for item in objects(page, "data"):
                seen.setdefault(text(item, "id") or text(item, "name") or text(item, "spec", "display_name") or repr(item), item)
        return list(seen.values())

    def _pages(self, route: str, params: dict[str, str]) -> Iterator[dict[str, Any]]:
        tokens = {""}
        for _ in range(MAX_PAGES):
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
        raise error_from(answer, f"{method} {route}", self.clock, self.denied_patience)

    def _object(self, body: Any, route: str) -> dict[str, Any]:
        if isinstance(body, dict):
            return body
        raise Transient(confluent_errors.UNEXPECTED, f"GET {route}: an answer without an object")


def _next_token(page: dict[str, Any]) -> str:
    """Return the token of the next page. The host of the page's URL is ignored: calls go to the configured host only."""
    following = text(page, "metadata", "next")
    return (parse_qs(urlsplit(following).query).get("page_token") or [""])[0]


CONTROL_PLANE: Final = "https://api.confluent.cloud"
VENDOR_DOMAIN: Final = ".confluent.cloud"
CLOUD: Final = "AWS"
#: Seconds for which a data plane may refuse a key: new keys take up to 20 minutes to become effective, roles several minutes.
NEW_KEY_PATIENCE: Final = 1200.0


def bootstrap_servers(cluster: dict[str, Any]) -> str:
    """Return the host and the port, without the scheme that Confluent adds."""
    return text(cluster, "spec", "kafka_bootstrap_endpoint").removeprefix("SASL_SSL://")


class Confluent:
    """One organization, accessed with a Cloud key. Lookups are cached for one invocation."""

    def __init__(self, session: Session, clock: Clock, key: ApiKey, url: str = CONTROL_PLANE, catalog_url: str = "") -> None:
        require_safe(url)
        self.url = url.rstrip("/")
        self._catalog_url = catalog_url.rstrip("/")
        self.clock = clock
        self._session = session
        self.cloud = self.with_key(key)

    def with_key(self, key: ApiKey) -> RestClient:
        """Return a client of the control plane with a Cloud key."""
        return RestClient(self._session, self.clock, self.url, key, probe="/org/v2/environments?page_size=1")

    @cached_property
    def organization_id(self) -> str:
        """Return the organization's UUID."""
        for organization in objects(self.cloud.get("/org/v2/organizations"), "data"):
            return require_text(organization, "id")
        raise InProgress(confluent_errors.UNEXPECTED, "Confluent lists no organization")

    def environment_is_gone(self, environment_id: str) -> bool:
        return self.cloud.read(path("org", "v2", "environments", environment_id)) is None

    def service_account_is_gone(self, service_account_id: str) -> bool:
        return self.cloud.read(path("iam", "v2", "service-accounts", service_account_id)) is None

    def role_bindings(self, principal_id: str) -> Iterable[dict[str, Any]]:
        """Return the role bindings of a user or service account in the whole organization."""
        everywhere = crn.organization(crn.CrnScope(self.organization_id))
        return self.cloud.pages("/iam/v2/role-bindings", principal=f"User:{principal_id}", crn_pattern=everywhere)

    def cluster(self, environment_id: str, cluster_id: str) -> dict[str, Any] | None:
        """Return the cluster, or None if it is gone."""
        return self.cloud.read(path("cmk", "v2", "clusters", cluster_id), environment=environment_id)

    def schema_registry(self, environment_id: str) -> dict[str, Any]:
        """Return the environment's Schema Registry. Raises InProgress until its first Kafka cluster exists."""
        listed = self.cloud.pages("/srcm/v3/clusters", environment=environment_id)
        phase = text(listed[0], "status", "phase") if listed else "PROVISIONING"
        if phase == "FAILED":
            raise ResourceFailed(
                confluent_errors.CLUSTER_FAILED, f"the Schema Registry of {environment_id} has failed", patience=300.0
            )
        if phase != "PROVISIONED" or not text(listed[0], "spec", "http_endpoint"):
            raise InProgress(errors.WAITING, f"the Schema Registry of {environment_id} is {phase}")
        return listed[0]

    def flink_region(self, region: str) -> dict[str, Any]:
        """Return a Flink region. Raises NotFound if Confluent has no Flink in `region`."""
        listed = self.cloud.pages("/fcpm/v2/regions", cloud=CLOUD, region_name=region)
        if not listed:
            raise NotFound(confluent_errors.INVALID, f"Confluent has no Flink in {CLOUD} region {region}", patience=120.0)
        return listed[0]

    def kafka(self, environment_id: str, cluster_id: str, key: ApiKey) -> RestClient:
        """Return a client of Kafka REST. Raises ParentMissing if there is no such cluster."""
        cluster = self.cluster(environment_id, cluster_id)
        if cluster is None:
            raise ParentMissing(errors.VANISHED, f"Kafka cluster {cluster_id} is gone")
        return self._plane(text(cluster, "spec", "http_endpoint"), key, f"Kafka cluster {cluster_id}")

    def registry(self, environment_id: str, key: ApiKey) -> RestClient:
        """Return a client of the Schema Registry's own API."""
        registry = self.schema_registry(environment_id)
        return self._plane(text(registry, "spec", "http_endpoint"), key, f"the Schema Registry of {environment_id}")

    def flink(self, region: str, key: ApiKey) -> RestClient:
        """Return a client of a region's Flink SQL gateway."""
        return self._plane(text(self.flink_region(region), "http_endpoint"), key, f"Flink in {region}")

    def tableflow(self, key: ApiKey) -> RestClient:
        """Return a client of Tableflow, which is on the control plane's host and accepts only Tableflow keys."""
        return self._plane(self.url, key, "Tableflow", probe="/tableflow/v1/regions")

    def catalog_url(self, region: str, environment_id: str) -> str:
        """Return the URL of an environment's Iceberg REST catalog. No API returns it; Confluent documents its format."""
        base = self._catalog_url or f"https://tableflow.{region}.aws{VENDOR_DOMAIN}"
        return f"{base}/iceberg/catalog/organizations/{self.organization_id}/environments/{environment_id}"

    def _plane(self, url: str, key: ApiKey, what: str, probe: str = "") -> RestClient:
        if not url:
            raise InProgress(confluent_errors.MISSING_ENDPOINT, f"{what} has no address")
        self._require_vendor(url)
        return RestClient(self._session, self.clock, url, key, probe=probe, denied_patience=NEW_KEY_PATIENCE)

    def _require_vendor(self, url: str) -> None:
        """Raise LakeferryError if the host in an answer isn't the vendor's, because it must not get a credential."""
        require_safe(url)
        host = urlsplit(url).hostname or ""
        is_vendor = is_loopback(url) if is_loopback(self.url) else host.endswith(VENDOR_DOMAIN)
        if not is_vendor and host != urlsplit(self.url).hostname:
            raise LakeferryError(errors.ADDRESS, f"Confluent names the host {host}, which is not one of its own")
