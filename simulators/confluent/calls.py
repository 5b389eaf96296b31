"""A call as a handler sees it, and the services (APIs) that calls go to."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from enum import Enum, auto
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, NamedTuple
from urllib.parse import unquote

from simulators.confluent import refusals
from simulators.confluent.refusals import Refusal, Rendered

if TYPE_CHECKING:
    from simulators.confluent.kinds.api_keys import ApiKey
    from simulators.confluent.world import World


class Plane(Enum):
    """Each answers on an address of its own, and on no other."""

    CLOUD = auto()
    KAFKA = auto()
    REGISTRY = auto()
    FLINK = auto()
    CATALOG = auto()


class KeyKind(Enum):
    """What a key opens. No key opens two."""

    CLOUD = "Cloud"
    KAFKA = "Cluster"
    REGISTRY = "SchemaRegistry"
    FLINK = "Region"
    TABLEFLOW = "Tableflow"


class Api(NamedTuple):
    """`key` is the kind of credential it takes (None: it looks for itself), `render` the shape of its errors."""

    name: str
    plane: Plane
    key: KeyKind | None
    render: Callable[[Refusal, str], Rendered]


CONTROL: Final = Api("control plane", Plane.CLOUD, KeyKind.CLOUD, refusals.control_plane)
ROLE_BINDINGS: Final = Api("role bindings", Plane.CLOUD, KeyKind.CLOUD, refusals.metadata_service)
CONNECT: Final = Api("Connect", Plane.CLOUD, KeyKind.CLOUD, refusals.connect)
TABLEFLOW: Final = Api("Tableflow", Plane.CLOUD, KeyKind.TABLEFLOW, refusals.control_plane)
KAFKA: Final = Api("Kafka REST", Plane.KAFKA, KeyKind.KAFKA, refusals.kafka_rest)
REGISTRY: Final = Api("Schema Registry", Plane.REGISTRY, KeyKind.REGISTRY, refusals.schema_registry)
FLINK: Final = Api("Flink SQL", Plane.FLINK, KeyKind.FLINK, refusals.control_plane)
ICEBERG: Final = Api("Iceberg REST catalog", Plane.CATALOG, None, refusals.iceberg)
OAUTH: Final = Api("Iceberg REST catalog's tokens", Plane.CATALOG, None, refusals.oauth)


class Answer(NamedTuple):
    status: int
    body: Any = None
    headers: Mapping[str, str] = {}
    content_type: str = "application/json"


class Call(NamedTuple):
    """`query` keeps the last value of a name; `form` is the raw body, for what isn't JSON."""

    world: World
    parameters: Mapping[str, str]
    query: Mapping[str, str]
    headers: Mapping[str, str]
    body: dict[str, Any]
    form: bytes
    key: ApiKey
    address: str
    path: str

    @property
    def principal(self) -> str:
        """The id of the account that the caller's key belongs to."""
        return self.key.owner

    def required(self, parameter: str) -> str:
        if value := self.query.get(parameter, ""):
            return value
        raise Refusal(400, f"query parameter {parameter!r} is required", parameter=parameter)


Handler = Callable[[Call], Answer]


class Route:
    """`path` has {name} where one segment stands, which arrives decoded. `instead`: statuses that the vendor's OpenAPI file
    doesn't declare for this operation, and what is answered in their place."""

    def __init__(
        self, api: Api, method: str, path: str, handler: Handler, instead: Mapping[int, int] = MappingProxyType({})
    ) -> None:
        self.api, self.method, self.path, self.handler, self.instead = api, method, path, handler, instead
        self._pattern = re.compile(re.sub(r"\\\{(\w+)\\\}", r"(?P<\1>[^/]+)", re.escape(path)) + r"/?")

    def match(self, raw_path: str) -> dict[str, str] | None:
        found = self._pattern.fullmatch(raw_path)
        return {name: unquote(value) for name, value in found.groupdict().items()} if found else None
