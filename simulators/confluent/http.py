"""The calls that handlers receive, the APIs that calls go to, their routes, and the format in which each API
renders errors.
"""

from __future__ import annotations

import base64
import binascii
import hmac
import json
import re
from collections.abc import Callable, Mapping
from http import HTTPStatus
from types import MappingProxyType
from typing import Any, Final, NamedTuple
from urllib.parse import unquote

from simulators.confluent.errors import ApiError
from simulators.confluent.model import ApiKey, KeyKind, Plane
from simulators.confluent.organization import Organization

#: Kafka REST's default error codes, by HTTP status: the status followed by two digits.
_KAFKA_CODES: Final = {400: 40002, 401: 40101, 403: 40301, 404: 40403, 409: 40902, 422: 42206}


class Rendered(NamedTuple):
    content_type: str
    content: bytes


def render_control_plane_error(error: ApiError, request_id: str) -> Rendered:
    source = {}
    if error.pointer:
        source = {"pointer": error.pointer}
    elif error.parameter:
        source = {"parameter": error.parameter}
    entry: dict[str, Any] = {
        "id": request_id,
        "status": str(error.status),
        "code": str(error.code or HTTPStatus(error.status).phrase.lower().replace(" ", "_")),
        "title": HTTPStatus(error.status).phrase,
        "detail": error.detail,
        "source": source,
    }
    return _render_json({"errors": [entry]})


def render_metadata_service_error(error: ApiError, request_id: str) -> Rendered:
    """Render errors of role bindings. 403, also for a missing binding, comes from the metadata service, in
    its format.
    """
    if error.status == 403:
        return _render_json({"error_code": _KAFKA_CODES[403], "message": error.detail})
    return render_control_plane_error(error, request_id)


def render_kafka_rest_error(error: ApiError, request_id: str) -> Rendered:
    if error.status == 401:
        page = (
            "<html><head><title>Error 401 Unauthorized</title></head><body><h2>HTTP ERROR 401 "
            "Unauthorized</h2></body></html>"
        )
        return Rendered("text/html;charset=iso-8859-1", page.encode())
    code = error.code if isinstance(error.code, int) else _KAFKA_CODES.get(error.status, error.status * 100)
    return _render_json({"error_code": code, "message": error.detail})


def render_schema_registry_error(error: ApiError, request_id: str) -> Rendered:
    code = error.code if isinstance(error.code, int) else error.status
    if error.status in (400, 401, 403):  # the gateway in front of Schema Registry sends these
        return _render_json({"error_code": code, "message": error.detail})
    return Rendered(
        "application/vnd.schemaregistry.v1+json", _dump_json({"error_code": code, "message": error.detail})
    )


def connect(error: ApiError, request_id: str) -> Rendered:
    match error.status:
        case 401:
            return _render_json({"error": {"code": 401, "message": error.detail}})
        case 400:
            return _render_json({"code": 400, "message": error.detail})
    return _render_json({"error_code": error.status, "message": error.detail})


def render_iceberg_error(error: ApiError, request_id: str) -> Rendered:
    return _render_json(
        {
            "error": {
                "message": error.detail,
                "type": str(error.code or "BadRequestException"),
                "code": error.status,
            }
        }
    )


def render_oauth_error(error: ApiError, request_id: str) -> Rendered:
    return _render_json({"error": str(error.code or "invalid_request"), "error_description": error.detail})


def _render_json(document: Any) -> Rendered:
    return Rendered("application/json", _dump_json(document))


def _dump_json(document: Any) -> bytes:
    return json.dumps(document, separators=(",", ":")).encode()


class Api(NamedTuple):
    """`key` is the kind of API key that it takes, None if its handlers authenticate; `render` renders its
    errors.
    """

    name: str
    plane: Plane
    key: KeyKind | None
    render: Callable[[ApiError, str], Rendered]


CONTROL: Final = Api("control plane", Plane.CLOUD, KeyKind.CLOUD, render_control_plane_error)
ROLE_BINDINGS: Final = Api("role bindings", Plane.CLOUD, KeyKind.CLOUD, render_metadata_service_error)
CONNECT: Final = Api("Connect", Plane.CLOUD, KeyKind.CLOUD, connect)
TABLEFLOW: Final = Api("Tableflow", Plane.CLOUD, KeyKind.TABLEFLOW, render_control_plane_error)
KAFKA: Final = Api("Kafka REST", Plane.KAFKA, KeyKind.KAFKA, render_kafka_rest_error)
REGISTRY: Final = Api("Schema Registry", Plane.REGISTRY, KeyKind.REGISTRY, render_schema_registry_error)
FLINK: Final = Api("Flink SQL", Plane.FLINK, KeyKind.FLINK, render_control_plane_error)
ICEBERG: Final = Api("Iceberg REST catalog", Plane.CATALOG, None, render_iceberg_error)
OAUTH: Final = Api("Iceberg REST catalog's tokens", Plane.CATALOG, None, render_oauth_error)


class Answer(NamedTuple):
    status: int
    body: Any = None
    headers: Mapping[str, str] = {}
    content_type: str = "application/json"


class Call(NamedTuple):
    """`query` has the last value of a repeated parameter; `body` is the JSON body, `form` the raw one."""

    org: Organization
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
        """Return the id of the account that the caller's key belongs to."""
        return self.key.owner

    def require_parameter(self, parameter: str) -> str:
        if value := self.query.get(parameter, ""):
            return value
        raise ApiError(400, f"query parameter {parameter!r} is required", parameter=parameter)


Handler = Callable[[Call], Answer]


class Route:
    """`{name}` in `path` matches one segment, which is URL-decoded.

    `instead` maps HTTP statuses that the vendor's OpenAPI file doesn't declare for this operation to those
    that are sent instead.
    """

    def __init__(
        self,
        api: Api,
        method: str,
        path: str,
        handler: Handler,
        instead: Mapping[int, int] = MappingProxyType({}),
    ) -> None:
        self.api = api
        self.method = method
        self.path = path
        self.handler = handler
        self.instead = instead
        self._pattern = re.compile(re.sub(r"\\\{(\w+)\\\}", r"(?P<\1>[^/]+)", re.escape(path)) + r"/?")

    def match(self, raw_path: str) -> dict[str, str] | None:
        matched = self._pattern.fullmatch(raw_path)
        if matched is None:
            return None
        return {name: unquote(value) for name, value in matched.groupdict().items()}


def authenticate(org: Organization, api: Api, header: str) -> ApiKey:
    """Return the API key of an HTTP Basic header.

    Raises ApiError 401, with the same message for every reason.
    """
    key = find_key(org, *read_basic_credentials(header))
    if key is None or key.kind is not api.key:
        raise ApiError(
            401, "invalid API key: make sure you're using the correct API key and secret", code="unauthorized"
        )
    return key


def find_key(org: Organization, name: str, secret: str) -> ApiKey | None:
    """Return the API key; None if it doesn't exist, isn't active yet, or the secret is wrong."""
    key = org.api_keys.get(name)
    if (
        key is None
        or not hmac.compare_digest(key.secret.encode(), secret.encode())
        or key.usable > org.clock.now()
    ):
        return None
    return key


def read_basic_credentials(header: str) -> tuple[str, str]:
    """Return the id and the secret of an HTTP Basic header. Both are empty for any other header."""
    scheme, _, encoded = header.partition(" ")
    try:
        decoded = base64.b64decode(encoded, validate=True).decode() if scheme.lower() == "basic" else ""
    except (binascii.Error, UnicodeDecodeError):
        decoded = ""
    name, _, secret = decoded.partition(":")
    return name, secret
