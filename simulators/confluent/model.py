"""Records of a simulated organization, and the interface of the Flink engine. This module knows no other part that serves calls.

Times are in seconds since 1970 UTC.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from enum import Enum, auto
from typing import Any, Protocol

import attrs

from simulators.confluent.datagen import Generator
from simulators.confluent.kafka_log import KafkaTopic
from simulators.confluent.schemas import Schema, Schemas
from simulators.core.clock import Clock


class Plane(Enum):
    """A group of services with an address of its own."""

    CLOUD = auto()
    KAFKA = auto()
    REGISTRY = auto()
    FLINK = auto()
    CATALOG = auto()


class KeyKind(Enum):
    """The services that a key is for. No key is for two."""

    CLOUD = "Cloud"
    KAFKA = "Cluster"
    REGISTRY = "SchemaRegistry"
    FLINK = "Region"
    TABLEFLOW = "Tableflow"


@attrs.define
class Resource:
    id: str
    crn: str
    created: float
    updated: float


@attrs.define
class Environment(Resource):
    """`package` is empty without Stream Governance."""

    name: str
    package: str


@attrs.define
class Cluster(Resource):
    environment: str
    region: str
    name: str
    availability: str
    type: str
    max_ecku: int
    protected: bool
    phase: str = "PROVISIONING"
    deleting: bool = False
    topics: dict[str, KafkaTopic] = attrs.Factory(dict)
    acls: list[dict[str, str]] = attrs.Factory(list)

    @property
    def scope(self) -> str:
        """Return the CRN that roles on the cluster are bound at: its own, without the last part."""
        return self.crn.rpartition("/")[0]

    def inside(self, kind: str, name: str) -> str:
        return f"{self.crn}/{kind}={name}"


@attrs.define
class SchemaRegistry(Resource):
    environment: str
    region: str
    phase: str = "PROVISIONING"
    schemas: Schemas = attrs.Factory(Schemas)

    def subject(self, name: str) -> str:
        return f"{self.crn}/subject={name}"


@attrs.define
class ServiceAccount(Resource):
    name: str
    description: str


@attrs.define
class RoleBinding(Resource):
    """`pattern` is decoded; `effective` is the time from which it counts."""

    principal: str
    role: str
    pattern: str
    effective: float


@attrs.define
class ApiKey(Resource):
    """`resource` is a cluster's id, a Schema Registry's, environment and Flink region, or a fixed word."""

    secret: str = attrs.field(repr=False)
    owner: str
    kind: KeyKind
    resource: str
    usable: float
    name: str = ""
    description: str = ""


@attrs.define
class ComputePool(Resource):
    environment: str
    region: str
    name: str
    max_cfu: int
    default: bool
    phase: str = "PROVISIONING"


@attrs.define
class ProviderIntegration(Resource):
    """`vendor_role_arn` is Confluent's role, `role_arn` the customer's. `ended_usages` are listed until the time of each."""

    environment: str
    name: str
    role_arn: str
    vendor_role_arn: str
    external_id: str
    ended_usages: list[tuple[float, str]] = attrs.Factory(list)


@attrs.define
class Connector(Resource):
    """`state` is Connect's; `trace` is the reason of a failure; `generator` is there once it produces."""

    cluster: str
    name: str
    config: dict[str, str]
    state: str = "PROVISIONING"
    trace: str = ""
    generator: Generator | None = None

    @property
    def type(self) -> str:
        return "sink" if self.config["connector.class"].endswith("Sink") else "source"


@attrs.define
class TableflowTopic(Resource):
    """`integration` is empty for managed storage. `position` counts the messages that are in the table, or were skipped.

    `skipped` are the times at which messages were skipped.
    """

    environment: str
    cluster: str
    bucket: str
    integration: str
    config: dict[str, Any]
    write_mode: str
    phase: str = "PENDING"
    message: str = ""
    suspended: bool = False
    deleting: bool = False
    table_path: str = ""
    schema: dict[str, Any] = attrs.Factory(dict)
    position: int = 0
    skipped: list[float] = attrs.Factory(list)
    #: By catalog integration: the state of this table there, and the reason of a failure.
    synced: dict[str, tuple[str, str]] = attrs.Factory(dict)

    @property
    def key(self) -> tuple[str, str]:
        return self.cluster, self.id


@attrs.define
class CatalogIntegration(Resource):
    """`database` is the custom one, empty for the cluster's id. `last_sync` is 0 before the first."""

    environment: str
    cluster: str
    name: str
    integration: str
    database: str
    phase: str = "PENDING"
    message: str = ""
    suspended: bool = False
    deleting: bool = False
    last_sync: float = 0


@attrs.define
class Statement(Resource):
    """`id` is never used again, `name` is free once the statement is gone. `version` grows with each change."""

    environment: str
    name: str
    sql: str
    properties: dict[str, str]
    pool: str
    principal: str
    phase: str = "PENDING"
    detail: str = ""
    kind: str = ""
    version: int = 1
    run: Run | None = attrs.field(default=None, repr=False)

    @property
    def bounded(self) -> bool:
        """Return whether it is a snapshot query: over the rows that are there now."""
        return self.properties.get("sql.snapshot.mode") == "now"

    def touch(self, now: float) -> None:
        self.version, self.updated = self.version + 1, now


class Form(Enum):
    CREATE = auto()
    DEFINE = auto()
    INSERT = auto()
    DROP = auto()
    SELECT = auto()


@attrs.frozen
class ParsedStatement:
    """`lenient` is IF [NOT] EXISTS; `buckets` the number of partitions asked for, 0 without one."""

    form: Form
    table: tuple[str, ...] = ()
    query: str = ""
    lenient: bool = False
    options: dict[str, str] = attrs.Factory(dict)
    buckets: int = 0
    bucket_keys: tuple[str, ...] = ()


@attrs.frozen
class Database:
    """Where a statement's table names are looked up, and as whom. `readable` are the topics that a query may read."""

    catalog: str
    cluster: Cluster
    registry: SchemaRegistry
    principal: str
    readable: Mapping[str, KafkaTopic]
    clock: Clock

    def schema(self, table: str) -> dict[str, Any] | None:
        """Return the value's Avro schema; None for a topic without one."""
        latest = self.registry.schemas.latest(f"{table}-value")
        return json.loads(latest.text) if latest and latest.kind == "AVRO" else None


class Run(Protocol):
    """A running query. `rows` are those of a SELECT; those of other statements go into their topic."""

    rows: list[list[str | None]]
    columns: list[dict[str, Any]]

    def advance(self) -> None:
        """Process what came into the source topics since the last call. Raises SqlError."""


class Plan(Protocol):
    def schema(self, table: str) -> Schema:
        """Return the value's schema of a table that the query's rows go into. Raises SqlError."""


class Engine(Protocol):
    """Real Flink, or a planner that only knows names and types."""

    def plan(self, parsed: ParsedStatement, database: Database) -> Plan:
        """Return names and types of a query's columns. Raises SqlError."""

    def start(self, parsed: ParsedStatement, database: Database, *, bounded: bool) -> Run:
        """Start the query; `bounded` is over the rows that are there now, and no further. Raises SqlError."""
