"""Confluent Cloud's REST APIs: which address answers what, with which key, and answers parsed or raised.

Only the control plane's address is configured, and that of the Iceberg catalog, which is only written into a secret. The
addresses of Kafka, Schema Registry and Flink are what the control plane says; they must be the vendor's own hosts, or loopback
where the control plane is.

Confluent answers 403 for much that is gone. That is believed only where the same key works on something else in the same moment;
otherwise a dead key would look like a successful delete.
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
    """The value at a path of names; None where the path ends early."""
    for name in names:
        body = body.get(name) if isinstance(body, dict) else None
    return body


def text(body: Any, *names: str) -> str:
    """The value at a path of names as text; "" where there is none."""
    value = get_path(body, *names)
    return "" if value is None or isinstance(value, dict | list) else str(value)


def require_text(body: Any, *names: str) -> str:
    """Raises Transient where the answer lacks what every answer of its kind has."""
    if value := text(body, *names):
        return value
    raise Transient(confluent_errors.UNEXPECTED, f"an answer lacks {'.'.join(names)}")


def objects(body: Any, *names: str) -> list[dict[str, Any]]:
    """The objects of the list at a path of names; empty where there is no list."""
    value = get_path(body, *names)
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


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
class RestClient:
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
        raise error_from(answer, f"{method} {route}", self.clock, self.denied_patience)

    def _object(self, body: Any, route: str) -> dict[str, Any]:
        if isinstance(body, dict):
            return body
        raise Transient(confluent_errors.UNEXPECTED, f"GET {route}: an answer without an object")


def _next_token(page: dict[str, Any]) -> str:
    """Only the token is taken from the address of the next page: the host stays ours."""
    following = text(page, "metadata", "next")
    return (parse_qs(urlsplit(following).query).get("page_token") or [""])[0]


CONTROL_PLANE: Final = "https://api.confluent.cloud"
VENDOR_DOMAIN: Final = ".confluent.cloud"
CLOUD: Final = "AWS"
#: Seconds for which a data plane may refuse a key: Confluent makes keys known within 20 minutes, roles within several.
NEW_KEY_PATIENCE: Final = 1200.0


def bootstrap_servers(cluster: dict[str, Any]) -> str:
    """As Kafka clients want it: host and port, without the scheme that Confluent puts before them."""
    return text(cluster, "spec", "kafka_bootstrap_endpoint").removeprefix("SASL_SSL://")


class Confluent:
    """One organization, seen with a Cloud key. What it looked up is remembered for one invocation."""

    def __init__(self, session: Session, clock: Clock, key: ApiKey, url: str = CONTROL_PLANE, catalog_url: str = "") -> None:
        require_safe(url)
        self.url = url.rstrip("/")
        self._catalog_url = catalog_url.rstrip("/")
        self.clock = clock
        self._session = session
        self.cloud = self.with_key(key)

    def with_key(self, key: ApiKey) -> RestClient:
        """The control plane, entered with a Cloud key."""
        return RestClient(self._session, self.clock, self.url, key, probe="/org/v2/environments?page_size=1")

    @cached_property
    def organization_id(self) -> str:
        """A UUID."""
        for organization in objects(self.cloud.get("/org/v2/organizations"), "data"):
            return require_text(organization, "id")
        raise InProgress(confluent_errors.UNEXPECTED, "Confluent lists no organization")

    def environment_is_gone(self, environment_id: str) -> bool:
        return self.cloud.read(path("org", "v2", "environments", environment_id)) is None

    def service_account_is_gone(self, service_account_id: str) -> bool:
        return self.cloud.read(path("iam", "v2", "service-accounts", service_account_id)) is None

    def role_bindings(self, principal_id: str) -> Iterable[dict[str, Any]]:
        """Of a user or a service account, in the whole organization."""
        everywhere = crn.organization(crn.CrnScope(self.organization_id))
        return self.cloud.pages("/iam/v2/role-bindings", principal=f"User:{principal_id}", crn_pattern=everywhere)

    def cluster(self, environment_id: str, cluster_id: str) -> dict[str, Any] | None:
        """None where it is gone."""
        return self.cloud.read(path("cmk", "v2", "clusters", cluster_id), environment=environment_id)

    def schema_registry(self, environment_id: str) -> dict[str, Any]:
        """The environment's one Schema Registry. Raises InProgress until the first Kafka cluster has brought it up."""
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
        """Raises NotFound where Confluent has no Flink in `region`."""
        listed = self.cloud.pages("/fcpm/v2/regions", cloud=CLOUD, region_name=region)
        if not listed:
            raise NotFound(confluent_errors.INVALID, f"Confluent has no Flink in {CLOUD} region {region}", patience=120.0)
        return listed[0]

    def kafka(self, environment_id: str, cluster_id: str, key: ApiKey) -> RestClient:
        """Kafka REST. Raises ParentMissing where there is no such cluster."""
        cluster = self.cluster(environment_id, cluster_id)
        if cluster is None:
            raise ParentMissing(errors.VANISHED, f"Kafka cluster {cluster_id} is gone")
        return self._plane(text(cluster, "spec", "http_endpoint"), key, f"Kafka cluster {cluster_id}")

    def registry(self, environment_id: str, key: ApiKey) -> RestClient:
        """Schema Registry's own API."""
        registry = self.schema_registry(environment_id)
        return self._plane(text(registry, "spec", "http_endpoint"), key, f"the Schema Registry of {environment_id}")

    def flink(self, region: str, key: ApiKey) -> RestClient:
        """Flink's SQL gateway of a region."""
        return self._plane(text(self.flink_region(region), "http_endpoint"), key, f"Flink in {region}")

    def tableflow(self, key: ApiKey) -> RestClient:
        """Tableflow answers at the control plane's address, to Tableflow keys only."""
        return self._plane(self.url, key, "Tableflow", probe="/tableflow/v1/regions")

    def catalog_url(self, region: str, environment_id: str) -> str:
        """Tableflow's Iceberg REST catalog of an environment. No plane tells it: Confluent documents its form."""
        base = self._catalog_url or f"https://tableflow.{region}.aws{VENDOR_DOMAIN}"
        return f"{base}/iceberg/catalog/organizations/{self.organization_id}/environments/{environment_id}"

    def _plane(self, url: str, key: ApiKey, what: str, probe: str = "") -> RestClient:
        if not url:
            raise InProgress(confluent_errors.MISSING_ENDPOINT, f"{what} has no address")
        self._require_vendor(url)
        return RestClient(self._session, self.clock, url, key, probe=probe, denied_patience=NEW_KEY_PATIENCE)

    def _require_vendor(self, url: str) -> None:
        """No credential goes to a host that an answer merely names."""
        require_safe(url)
        host = urlsplit(url).hostname or ""
        is_vendor = is_loopback(url) if is_loopback(self.url) else host.endswith(VENDOR_DOMAIN)
        if not is_vendor and host != urlsplit(self.url).hostname:
            raise LakeferryError(errors.ADDRESS, f"Confluent names the host {host}, which is not one of its own")
