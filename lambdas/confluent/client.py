"""The client: which plane answers where, and with which key.

Only the control plane's address is configured, and that of the Iceberg catalog, which nobody asks here: it goes into a
secret. The addresses of Kafka, Schema Registry and Flink are what the control plane says; they must be the vendor's own
hosts, or loopback where the control plane is.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property
from typing import Any, Final
from urllib.parse import urlsplit

from lambdas.confluent import crn
from lambdas.confluent import errors as confluent_errors
from lambdas.confluent.plane import Plane, path
from lambdas.confluent.reading import needed, objects, text
from lambdas.shared import errors
from lambdas.shared.address import is_loopback, require_safe
from lambdas.shared.clock import Clock
from lambdas.shared.errors import ContainerGone, Faulty, LakeferryError, NotFound, NotYet
from lambdas.shared.http import Session
from lambdas.shared.redaction import ApiKey

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

    def with_key(self, key: ApiKey) -> Plane:
        """The control plane, entered with a Cloud key."""
        return Plane(self._session, self.clock, self.url, key, probe="/org/v2/environments?page_size=1")

    @cached_property
    def organization_id(self) -> str:
        """A UUID."""
        for organization in objects(self.cloud.get("/org/v2/organizations"), "data"):
            return needed(organization, "id")
        raise NotYet(confluent_errors.UNEXPECTED, "Confluent lists no organization")

    def environment_is_gone(self, environment_id: str) -> bool:
        return self.cloud.read(path("org", "v2", "environments", environment_id)) is None

    def service_account_is_gone(self, service_account_id: str) -> bool:
        return self.cloud.read(path("iam", "v2", "service-accounts", service_account_id)) is None

    def role_bindings(self, principal_id: str) -> Iterable[dict[str, Any]]:
        """Of a user or a service account, in the whole organization."""
        everywhere = crn.organization(crn.Place(self.organization_id))
        return self.cloud.pages("/iam/v2/role-bindings", principal=f"User:{principal_id}", crn_pattern=everywhere)

    def cluster(self, environment_id: str, cluster_id: str) -> dict[str, Any] | None:
        """None where it is gone."""
        return self.cloud.read(path("cmk", "v2", "clusters", cluster_id), environment=environment_id)

    def schema_registry(self, environment_id: str) -> dict[str, Any]:
        """The environment's one Schema Registry. Raises NotYet until the first Kafka cluster has brought it up."""
        found = self.cloud.pages("/srcm/v3/clusters", environment=environment_id)
        phase = text(found[0], "status", "phase") if found else "PROVISIONING"
        if phase == "FAILED":
            raise Faulty(confluent_errors.CLUSTER_FAILED, f"the Schema Registry of {environment_id} has failed", patience=300.0)
        if phase != "PROVISIONED" or not text(found[0], "spec", "http_endpoint"):
            raise NotYet(errors.WAITING, f"the Schema Registry of {environment_id} is {phase}")
        return found[0]

    def flink_region(self, region: str) -> dict[str, Any]:
        """Raises NotFound where Confluent has no Flink in `region`."""
        found = self.cloud.pages("/fcpm/v2/regions", cloud=CLOUD, region_name=region)
        if not found:
            raise NotFound(confluent_errors.INVALID, f"Confluent has no Flink in {CLOUD} region {region}", patience=120.0)
        return found[0]

    def kafka(self, environment_id: str, cluster_id: str, key: ApiKey) -> Plane:
        """Kafka REST. Raises ContainerGone where there is no such cluster."""
        cluster = self.cluster(environment_id, cluster_id)
        if cluster is None:
            raise ContainerGone(errors.VANISHED, f"Kafka cluster {cluster_id} is gone")
        return self._plane(text(cluster, "spec", "http_endpoint"), key, f"Kafka cluster {cluster_id}")

    def registry(self, environment_id: str, key: ApiKey) -> Plane:
        """Schema Registry's own API."""
        found = self.schema_registry(environment_id)
        return self._plane(text(found, "spec", "http_endpoint"), key, f"the Schema Registry of {environment_id}")

    def flink(self, region: str, key: ApiKey) -> Plane:
        """Flink's SQL gateway of a region."""
        return self._plane(text(self.flink_region(region), "http_endpoint"), key, f"Flink in {region}")

    def tableflow(self, key: ApiKey) -> Plane:
        """Tableflow answers at the control plane's address, to Tableflow keys only."""
        return self._plane(self.url, key, "Tableflow", probe="/tableflow/v1/regions")

    def catalog_url(self, region: str, environment_id: str) -> str:
        """Tableflow's Iceberg REST catalog of an environment. No plane tells it: Confluent documents its form."""
        base = self._catalog_url or f"https://tableflow.{region}.aws{VENDOR_DOMAIN}"
        return f"{base}/iceberg/catalog/organizations/{self.organization_id}/environments/{environment_id}"

    def _plane(self, url: str, key: ApiKey, what: str, probe: str = "") -> Plane:
        if not url:
            raise NotYet(confluent_errors.MISSING_ENDPOINT, f"{what} has no address")
        self._require_vendor(url)
        return Plane(self._session, self.clock, url, key, probe=probe, denied_patience=NEW_KEY_PATIENCE)

    def _require_vendor(self, url: str) -> None:
        """No credential goes to a host that an answer merely names."""
        require_safe(url)
        host = urlsplit(url).hostname or ""
        ours = is_loopback(url) if is_loopback(self.url) else host.endswith(VENDOR_DOMAIN)
        if not ours and host != urlsplit(self.url).hostname:
            raise LakeferryError(errors.ADDRESS, f"Confluent names the host {host}, which is not one of its own")
