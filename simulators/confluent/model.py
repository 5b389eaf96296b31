"""The data model of a simulated organization, and the interface of the Flink engine. It imports no module
that serves calls.

All times are in seconds since 1970 UTC.
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
    """The service that an API key is for. A key is for one service only."""

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
    """`package` is the Stream Governance package, empty if there is none."""

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
    cku: int = 0
    network: str = ""
    phase: str = "PROVISIONING"
    deleting: bool = False
    topics: dict[str, KafkaTopic] = attrs.Factory(dict)
    acls: list[dict[str, str]] = attrs.Factory(list)

    @property
    def scope(self) -> str:
        """Return the CRN at which roles on the cluster are bound: the cluster's own CRN without its last
        part.
        """
        return self.crn.rpartition("/")[0]

    def build_crn(self, kind: str, name: str) -> str:
        return f"{self.crn}/{kind}={name}"


@attrs.define
class SchemaRegistry(Resource):
    environment: str
    region: str
    phase: str = "PROVISIONING"
    schemas: Schemas = attrs.Factory(Schemas)

    def build_subject_crn(self, name: str) -> str:
        return f"{self.crn}/subject={name}"


@attrs.define
class ServiceAccount(Resource):
    name: str
    description: str


@attrs.define
class RoleBinding(Resource):
    """`pattern` is the URL-decoded CRN pattern; the binding takes effect at the time `effective`."""

    principal: str
    role: str
    pattern: str
    effective: float


@attrs.define
class ApiKey(Resource):
    """The key is active from the time `usable`.

    `resource` is the id of a Kafka cluster or a Schema Registry, `<environment id>.<Flink region>`, `cloud`
    or `tableflow`.
    """

    secret: str = attrs.field(repr=False)
    owner: str
    kind: KeyKind
    resource: str
    #: The CRN whose administrators manage the key.
    scope: str
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
class Content(Resource):
    """An object in an environment of which only the name is simulated."""

    environment: str
    name: str


@attrs.define
class ProviderIntegration(Resource):
    """`vendor_role_arn` is Confluent's role, `role_arn` the customer's.

    `ended_usages` are (time, CRN) of objects that no longer use the integration, but are listed as its usages
    until that time.
    """

    environment: str
    name: str
    role_arn: str
    vendor_role_arn: str
    external_id: str
    ended_usages: list[tuple[float, str]] = attrs.Factory(list)


@attrs.define
class Connector(Resource):
    """`state` is one of Connect's, `trace` the reason for a failure.

    `generator` is None until the connector produces records.
    """

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
    """`integration` is the id of a provider integration, empty for managed storage.

    `position` is the number of messages that are in the table or were skipped or logged, `skipped` the time
    of each skipped one.
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
    #: By id of a catalog integration: the sync status of the table there, and the error message if it failed.
    synced: dict[str, tuple[str, str]] = attrs.Factory(dict)

    @property
    def key(self) -> tuple[str, str]:
        return self.cluster, self.id


@attrs.define
class CatalogIntegration(Resource):
    """`database` is the custom Glue database, empty for one named after the cluster's id.

    `last_sync` is 0 before the first.
    """

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
    """`id` is never reused; `name` can be reused after the statement is deleted.

    `version` increases with each change.
    """

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
        """Return whether it is a snapshot query, which reads only the rows that exist when it starts."""
        return self.properties.get("sql.snapshot.mode") == "now"

    def touch(self, now: float) -> None:
        self.version = self.version + 1
        self.updated = now


class Form(Enum):
    CREATE = auto()
    DEFINE = auto()
    INSERT = auto()
    DROP = auto()
    SELECT = auto()


@attrs.frozen
class ParsedStatement:
    """`lenient` is whether it has IF [NOT] EXISTS.

    `buckets` is the number in DISTRIBUTED … INTO … BUCKETS, 0 without it. `columns` are those that an INSERT
    lists.
    """

    form: Form
    table: tuple[str, ...] = ()
    query: str = ""
    lenient: bool = False
    options: dict[str, str] = attrs.Factory(dict)
    buckets: int = 0
    bucket_keys: tuple[str, ...] = ()
    columns: tuple[str, ...] = ()


@attrs.frozen
class Database:
    """Where a statement's table names are looked up, and with whose rights.

    `readable` are the topics that a query may read.
    """

    catalog: str
    cluster: Cluster
    registry: SchemaRegistry
    principal: str
    readable: Mapping[str, KafkaTopic]
    clock: Clock

    def find_schema(self, table: str) -> dict[str, Any] | None:
        """Return the latest Avro schema of the topic's value; None if it has none."""
        latest = self.registry.schemas.latest(f"{table}-value")
        return json.loads(latest.text) if latest and latest.kind == "AVRO" else None


class Run(Protocol):
    """A running query. `rows` are the results of a SELECT; other statements write their rows to a topic."""

    rows: list[list[str | None]]
    columns: list[dict[str, Any]]
    is_stateless: bool

    def offsets(self) -> dict[str, dict[int, int]]:
        """Return, by topic and partition, the offset of the next record to read."""

    def advance(self) -> None:
        """Process the records that were added to the source topics since the last call. Raises SqlError."""


class Plan(Protocol):
    """`sources` are the topics that the query reads."""

    @property
    def is_stateless(self) -> bool: ...

    @property
    def sources(self) -> Mapping[str, KafkaTopic]: ...

    def build_schema(self, table: str) -> Schema:
        """Return the value schema of a new table for the query's rows. Raises SqlError."""


class Engine(Protocol):
    """Real Flink, or a planner that runs nothing (paper.py)."""

    def plan(self, parsed: ParsedStatement, database: Database) -> Plan:
        """Return the names and types of the query's columns. Raises SqlError."""

    def start(
        self,
        parsed: ParsedStatement,
        database: Database,
        *,
        bounded: bool,
        start: Mapping[str, Mapping[int, int]],
    ) -> Run:
        """Start the query. If `bounded`, it reads only the rows that exist now. Raises SqlError.

        `start` has offsets at which it begins, by topic and partition; other partitions are read from the
        beginning.
        """
