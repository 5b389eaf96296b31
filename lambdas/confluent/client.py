"""An organization of Confluent Cloud: its addresses and keys, and lookups that several resource types need.

Only the addresses of the control plane and of the Iceberg catalog are configured; the latter is only written
into a secret. The control plane returns the addresses of Kafka, Schema Registry and Flink. They must be hosts
of the vendor, or loopback addresses if the control plane's address is one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cache, cached_property
from typing import Any, Final
from urllib.parse import urlsplit

import attrs

from lambdas.confluent import crn, sight
from lambdas.confluent import errors as confluent_errors
from lambdas.confluent.rest_client import (
    RestClient,
    build_path,
    get_objects,
    get_text,
    require_text,
)
from lambdas.confluent.sight import ORGANIZATION, Container, Sight
from lambdas.shared import errors
from lambdas.shared.clock import Clock
from lambdas.shared.errors import (
    Denied,
    InProgress,
    LakeferryError,
    NotFound,
    OtherTenant,
    ParentMissing,
    ResourceFailed,
)
from lambdas.shared.http import Session, is_loopback, require_safe
from lambdas.shared.redaction import ApiKey

CONTROL_PLANE: Final = "https://api.confluent.cloud"
VENDOR_DOMAIN: Final = ".confluent.cloud"
_KEYS: Final = "/iam/v2/api-keys"
#: Resource types whose objects only an administrator of the organization sees.
_OF_ORGANIZATION: Final = ("environment", "service_account")
CLOUD: Final = "AWS"
#: How often the roles of a key's owner are read before a role counts as missing.
_READS_OF_ROLES: Final = 3
#: Seconds for which a data plane may refuse a key: new keys take up to 20 minutes to become effective, roles
#: several minutes.
NEW_KEY_PATIENCE: Final = 1200.0


def read_bootstrap_servers(cluster: dict[str, Any]) -> str:
    """Return the host and the port, without the scheme that Confluent adds."""
    return get_text(cluster, "spec", "kafka_bootstrap_endpoint").removeprefix("SASL_SSL://")


class Confluent:
    """One organization, accessed with a Cloud key. Lookups are cached for one invocation."""

    #: The names of most objects need not be unique, so a repeated create makes a second object.
    NAMES_ARE_UNIQUE: Final = False
    #: An account sees what it has created only while it has a role for it.
    creator: Final = ""

    def __init__(
        self, session: Session, clock: Clock, key: ApiKey, url: str = CONTROL_PLANE, catalog_url: str = ""
    ) -> None:
        require_safe(url)
        self.url = url.rstrip("/")
        self._catalog_url = catalog_url.rstrip("/")
        self.clock = clock
        self._session = session
        self.cloud = self.build_cloud_client(key)

    def build_cloud_client(self, key: ApiKey) -> RestClient:
        """Return a client of the control plane with a Cloud key."""
        return RestClient(
            self._session, self.clock, self.url, key, require_sight=self._build_sight_check(key)
        )

    @property
    def tenant(self) -> str:
        return self.organization_id

    @property
    def principal(self) -> str:
        """Return the Cloud key's id. It has one owner for its whole life."""
        return self.cloud.key.id

    def wrong_tenant(self, tenant: str) -> OtherTenant:
        """Return the error for a login that is not one of `tenant`, where the object is."""
        message = (
            f"it is in organization {tenant}, and Cloud key {self.cloud.key.id} is of organization "
            f"{self.organization_id}"
        )
        return OtherTenant(confluent_errors.OTHER_ORGANIZATION, message)

    def unseen(self, why: str) -> Denied:
        return sight.build_unseen_error(why)

    def require_sight(self, spec: Any) -> None:
        """Return if the Cloud key's owner would see the object with these properties.

        Raises Denied or InProgress.
        """
        self._build_sight_check(self.cloud.key)(_find_container(spec))

    def require_sight_of_all(self) -> None:
        """Return if the Cloud key's owner sees all of the organization. Raises Denied or InProgress."""
        self._build_sight_check(self.cloud.key)(ORGANIZATION)

    def require_sight_of_environment(self, environment_id: str) -> None:
        """Return if the Cloud key's owner sees all of an environment. Raises Denied or InProgress."""
        self._build_sight_check(self.cloud.key)(Container(environment_id))

    def require_sight_of_account(self, service_account_id: str) -> None:
        """Return if the Cloud key's owner sees all keys of an account. Raises Denied or InProgress."""
        self._build_sight_check(self.cloud.key)(Container(service_account_id=service_account_id))

    def _build_sight_check(self, key: ApiKey) -> Callable[[Container], None]:
        return lambda container: self._sight.require(key.id, container)

    @cached_property
    def _sight(self) -> Sight:
        """Return the lookup of keys' rights of this invocation."""
        return self._open_sight()

    def _open_sight(self) -> Sight:
        """Return a lookup of keys' rights, which keeps its answers."""
        owner_of = cache(
            lambda key_id: require_text(self.cloud.get(_KEYS + build_path(key_id)), "spec", "owner", "id")
        )
        bindings_of = cache(lambda owner: tuple(self.role_bindings(owner)))
        return Sight(self.clock, lambda: self.organization_id, owner_of, bindings_of)

    def find_key_owner(self, key: ApiKey) -> str:
        """Return the account or person that owns a key, sa-… or u-…."""
        return self._sight.owner_of(key.id)

    @cached_property
    def organization_id(self) -> str:
        """Return the organization's UUID."""
        for organization in get_objects(self.cloud.get("/org/v2/organizations"), "data"):
            return require_text(organization, "id")
        raise InProgress(confluent_errors.UNEXPECTED, "Confluent lists no organization")

    def is_environment_gone(self, environment_id: str) -> bool:
        return self.cloud.read(build_path("org", "v2", "environments", environment_id)) is None

    def is_service_account_gone(self, service_account_id: str) -> bool:
        route = build_path("iam", "v2", "service-accounts", service_account_id)
        return self.cloud.read(route, Container(service_account_id=service_account_id)) is None

    def find_new_owner(self) -> str:
        """Return the account or person that has to own new service accounts; "" for an administrator of the
        organization, who may do everything with all accounts.

        The roles are read several times before an administrator is ruled out: a list can be empty for a
        moment, and a login can be refused for a moment.
        """
        for _ in range(_READS_OF_ROLES):
            try:
                self._open_sight().require(self.cloud.key.id, ORGANIZATION)
            except (Denied, InProgress):
                continue
            return ""
        return self.find_key_owner(self.cloud.key)

    def role_bindings(self, principal_id: str) -> Iterable[dict[str, Any]]:
        """Return the role bindings of a user or service account in the whole organization."""
        everywhere = crn.build_organization_crn(crn.CrnScope(self.organization_id))
        return self.cloud.pages(
            "/iam/v2/role-bindings", principal=f"User:{principal_id}", crn_pattern=everywhere
        )

    def cluster(self, environment_id: str, cluster_id: str) -> dict[str, Any] | None:
        """Return the cluster, or None if it is gone."""
        return self.cloud.read(build_path("cmk", "v2", "clusters", cluster_id), environment=environment_id)

    def schema_registry(self, environment_id: str) -> dict[str, Any]:
        """Return the environment's Schema Registry.

        Raises InProgress until its first Kafka cluster exists.
        """
        registries = self.cloud.pages("/srcm/v3/clusters", environment=environment_id)
        if not registries:
            self._require_governance(environment_id)
        phase = get_text(registries[0], "status", "phase") if registries else "PROVISIONING"
        if phase == "FAILED":
            raise ResourceFailed(
                confluent_errors.CLUSTER_FAILED,
                f"the Schema Registry of {environment_id} has failed",
                patience=300.0,
            )
        if phase != "PROVISIONED" or not get_text(registries[0], "spec", "http_endpoint"):
            raise InProgress(errors.WAITING, f"the Schema Registry of {environment_id} is {phase}")
        return registries[0]

    def _require_governance(self, environment_id: str) -> None:
        """Raise ResourceFailed for an environment that gets no Schema Registry, because it has no Stream
        Governance package.
        """
        environment = self.cloud.read(build_path("org", "v2", "environments", environment_id))
        if environment is not None and not get_text(environment, "stream_governance_config", "package"):
            message = f"environment {environment_id} has no Stream Governance package, so no Schema Registry"
            raise ResourceFailed(confluent_errors.NO_GOVERNANCE, message, patience=120.0)

    def flink_region(self, region: str) -> dict[str, Any]:
        """Return a Flink region. Raises NotFound if Confluent has no Flink in `region`."""
        regions = self.cloud.pages("/fcpm/v2/regions", cloud=CLOUD, region_name=region)
        if not regions:
            raise NotFound(
                confluent_errors.INVALID, f"Confluent has no Flink in {CLOUD} region {region}", patience=120.0
            )
        return regions[0]

    def kafka(self, environment_id: str, cluster_id: str, key: ApiKey) -> RestClient:
        """Return a client of Kafka REST. Raises ParentMissing if there is no such cluster."""
        cluster = self.cluster(environment_id, cluster_id)
        if cluster is None:
            raise ParentMissing(errors.VANISHED, f"Kafka cluster {cluster_id} is gone")
        return self._connect(get_text(cluster, "spec", "http_endpoint"), key, f"Kafka cluster {cluster_id}")

    def registry(self, environment_id: str, key: ApiKey) -> RestClient:
        """Return a client of the Schema Registry's own API."""
        registry = self.schema_registry(environment_id)
        return self._connect(
            get_text(registry, "spec", "http_endpoint"), key, f"the Schema Registry of {environment_id}"
        )

    def flink(self, region: str, key: ApiKey) -> RestClient:
        """Return a client of a region's Flink SQL gateway."""
        return self._connect(get_text(self.flink_region(region), "http_endpoint"), key, f"Flink in {region}")

    def tableflow(self, key: ApiKey) -> RestClient:
        """Return a client of Tableflow, which is on the control plane's host and accepts only Tableflow
        keys.
        """
        plane = self._connect(self.url, key, "Tableflow")
        return attrs.evolve(plane, probe="/tableflow/v1/regions", require_sight=self._build_sight_check(key))

    def catalog_url(self, region: str, environment_id: str) -> str:
        """Return the URL of an environment's Iceberg REST catalog.

        No API returns it; Confluent documents its format.
        """
        base = self._catalog_url or f"https://tableflow.{region}.aws{VENDOR_DOMAIN}"
        return f"{base}/iceberg/catalog/organizations/{self.organization_id}/environments/{environment_id}"

    def _connect(self, url: str, key: ApiKey, service_name: str) -> RestClient:
        if not url:
            raise InProgress(confluent_errors.MISSING_ENDPOINT, f"{service_name} has no address")
        self._require_vendor(url)
        return RestClient(self._session, self.clock, url, key, denied_patience=NEW_KEY_PATIENCE)

    def _require_vendor(self, url: str) -> None:
        """Raise LakeferryError if the host in an answer isn't the vendor's, because it must not get a
        credential.
        """
        require_safe(url)
        host = urlsplit(url).hostname or ""
        is_vendor = is_loopback(url) if is_loopback(self.url) else host.endswith(VENDOR_DOMAIN)
        if not is_vendor and host != urlsplit(self.url).hostname:
            raise LakeferryError(
                errors.ADDRESS, f"Confluent names the host {host}, which is not one of its own"
            )


def _find_container(spec: Any) -> Container:
    """Return what contains the object with these properties.

    A role on an object of an environment is one of the environment's; a role on a service account, and a key,
    are the account's.
    """
    if spec.TYPE in _OF_ORGANIZATION:
        return ORGANIZATION
    if spec.TYPE == "api_key":
        return Container(service_account_id=spec.service_account_id)
    if spec.TYPE == "role_binding":
        return find_container_of_role(spec)
    return Container(spec.environment_id)


def find_container_of_role(spec: Any) -> Container:
    """Return what contains a role binding: an environment, a service account or the organization."""
    if spec.scope == "service_account":
        return Container(service_account_id=spec.name)
    return Container(spec.environment_id)
