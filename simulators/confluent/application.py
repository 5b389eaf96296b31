"""The web application: runs due actions, finds the route, authenticates, calls the handler and renders the
answer.
"""

from __future__ import annotations

import base64
import io
import json
import uuid
from collections.abc import Mapping
from typing import Any, Final

import attrs
import fastavro
from starlette.requests import Request
from starlette.responses import Response

from simulators.confluent import existing, team
from simulators.confluent.errors import ApiError, forbidden
from simulators.confluent.http import (
    CONTROL,
    FLINK,
    ICEBERG,
    KAFKA,
    REGISTRY,
    Answer,
    Api,
    Call,
    Route,
    authenticate,
    read_basic_credentials,
)
from simulators.confluent.limits import RateLimit
from simulators.confluent.model import ApiKey, KeyKind, Plane
from simulators.confluent.record_reader import BadRecord, Reader
from simulators.confluent.routes import ROUTES
from simulators.confluent.simulation import Simulation, describe_credentials
from simulators.core import control, server
from simulators.tableflow.kafka import Record

#: By plane: the API in whose format errors are rendered if no route matches the path.
_DEFAULT_APIS: Final = {
    Plane.CLOUD: CONTROL,
    Plane.KAFKA: KAFKA,
    Plane.REGISTRY: REGISTRY,
    Plane.FLINK: FLINK,
    Plane.CATALOG: ICEBERG,
}
#: The caller of an API whose handlers check the credentials themselves.
NOBODY: Final = ApiKey("", "", 0, 0, "", "", KeyKind.CLOUD, "", "", 0)


class Application(server.Application):
    """The APIs of Confluent Cloud, and control endpoints of the simulator.

    PUT    /_simulator/limit          {"calls": 5, "seconds": 60, "headers": true}; calls 0 removes the limit
    POST   /_simulator/organizations  starts another organization, and returns the credentials of its owner
    DELETE /_simulator/roles          {"principal": "sa-…"}: the account's role bindings end, and lists show
                                      it less
    PUT    /_simulator/ip-filter      {"planes": ["CLOUD", "KAFKA"]}: the groups of services that refuse every
                                      address; none by default
    POST   /_simulator/existing       {"environment_id": "env-…", …}: what exists before a deployment, with
                                      these ids (existing.py); returns keys for it
    POST   /_simulator/produce        {"topic": name, "records": [{"value": …}]}: writes records, in Avro and
                                      Base64, also with times of their own
    POST   /_simulator/records        {"topic": name}: returns the records of a topic, decoded and, as `avro`,
                                      in Avro and Base64 with the schema of the answer; consumers are not
                                      simulated
    """

    def __init__(self, simulation: Simulation, ports: Mapping[int, Plane]) -> None:
        controls = {
            ("PUT", "/limit"): self._set_limit,
            ("POST", "/records"): self._read_records,
            ("POST", "/organizations"): self._add_organization,
            ("POST", "/team"): self._create_team,
            ("POST", "/existing"): self._create_existing,
            ("POST", "/produce"): self._produce,
            ("DELETE", "/roles"): self._end_roles,
            ("PUT", "/ip-filter"): self._set_ip_filter,
        }
        super().__init__(simulation, controls)
        self._confluent = simulation
        self._ports = ports

    def respond(self, request: Request, body: bytes) -> Response:
        request_id = uuid.uuid4().hex
        plane = self._ports[request.scope["server"][1]]
        api = _DEFAULT_APIS[plane]
        status_instead: Mapping[int, int] = {}
        try:
            self._confluent.clock.run_due()
            route, parameters = _find(plane, request)
            api = route.api
            status_instead = route.instead
            return self._answer(route, parameters, request, body, request_id)
        except ApiError as error:
            error.status = status_instead.get(error.status, error.status)
            return _render_error(api, error, request_id)
        except Exception:
            return _render_error(api, ApiError(500, server.log_failure(request)), request_id)

    def _set_limit(self, request: control.Request) -> control.Response:
        limit = self._confluent.limit = RateLimit(**request.read_document())
        return control.build_json_response({"calls": limit.calls, "seconds": limit.seconds})

    def _add_organization(self, request: control.Request) -> control.Response:
        return control.build_json_response(describe_credentials(*self._confluent.add_organization()))

    def _create_team(self, request: control.Request) -> control.Response:
        """Add another team's cluster, and return its ids and the keys that the team gives to a colleague."""
        return control.build_json_response(attrs.asdict(team.create(self._confluent.organization)))

    def _create_existing(self, request: control.Request) -> control.Response:
        wanted = existing.Existing.read(request.read_document())
        return control.build_json_response(existing.create(self._confluent.organization, wanted))

    def _produce(self, request: control.Request) -> control.Response:
        document = request.read_document()
        organization = self._confluent.organization
        organization.clock.run_due()
        written = existing.produce(organization, str(document["topic"]), document["records"])
        return control.build_json_response({"written": written})

    def _end_roles(self, request: control.Request) -> control.Response:
        bindings = self._confluent.organization.role_bindings
        principal = f"User:{request.read_document()['principal']}"
        ended_bindings = [binding for binding in bindings.values() if binding.principal == principal]
        for binding in ended_bindings:
            del bindings[binding.id]
        return control.build_json_response({"ended": [binding.role for binding in ended_bindings]})

    def _set_ip_filter(self, request: control.Request) -> control.Response:
        """Let groups of services refuse all addresses, as an IP filter of the organization does for its
        operation groups.

        Source: Confluent's documentation, "IP Filtering on Confluent Cloud": calls from addresses that no
        filter includes are denied, each operation group by its own filters. It names neither status nor
        message; both are assumptions.
        """
        filtered = {Plane[name] for name in request.read_document()["planes"]}
        self._confluent.organization.ip_filtered = filtered
        return control.build_json_response({"planes": sorted(plane.name for plane in filtered)})

    def _read_records(self, request: control.Request) -> control.Response:
        """Return the records of the topics with that name in all clusters.

        Timestamps are milliseconds since 1970 UTC.
        """
        organization = self._confluent.organization
        name = str(request.read_document()["topic"])
        records = []
        schema = ""
        organization.clock.run_due()
        for cluster in organization.clusters.values():
            registry = organization.find_registry(cluster.environment)
            topic = cluster.topics.get(name)
            if registry and topic and (latest := registry.schemas.latest(f"{name}-value")):
                schema = latest.text
                parsed = json.loads(schema)
                reader = Reader(registry.schemas, parsed, upserts=False)
                for record in reader.read(name, topic.messages):
                    records.append(_describe_record(record, parsed))
        return control.build_json_response({"records": records, "schema": schema})

    def _answer(
        self, route: Route, parameters: dict[str, str], request: Request, body: bytes, request_id: str
    ) -> Response:
        limit = self._confluent.limit
        api = route.api
        header = request.headers.get("authorization", "")
        organization = self._confluent.find_organization(read_basic_credentials(header)[0])
        if api.plane in organization.ip_filtered:
            raise forbidden("The source IP address is not allowed by the IP filters of the organization")
        key = authenticate(organization, api, header) if api.key else NOBODY
        now = organization.clock.now()
        is_within_limit = limit.take(key.id, now)
        headers = limit.build_headers(api, key.id, now) | {"X-Request-Id": request_id}
        if not is_within_limit:
            media_type = "text/html" if api is KAFKA else None
            return Response(b"", 429, headers | limit.retry_after(api, now), media_type)
        call = Call(
            organization,
            parameters,
            dict(request.query_params),
            dict(request.headers),
            _parse_body(request, body),
            body,
            key,
            organization.addresses[api.plane],
            request.url.path,
        )
        return _render_answer(route.handler(call), headers)


def _render_error(api: Api, error: ApiError, request_id: str) -> Response:
    content_type, content = api.render(error, request_id)
    return Response(content, error.status, error.headers | {"X-Request-Id": request_id}, content_type)


def _find(plane: Plane, request: Request) -> tuple[Route, dict[str, str]]:
    path = request.scope["raw_path"].decode("ascii").partition("?")[0]
    methods = []
    for route in ROUTES:
        if route.api.plane is plane and (parameters := route.match(path)) is not None:
            if route.method == request.method:
                return route, parameters
            methods.append(route.method)
    if methods:
        raise ApiError(
            405, f"{request.method} is not allowed here", headers={"Allow": ", ".join(sorted(set(methods)))}
        )
    raise ApiError(404, "The requested resource was not found", code="resource_not_found")


def _parse_body(request: Request, body: bytes) -> dict[str, Any]:
    kind = request.headers.get("content-type", "")
    if not body or request.method not in ("POST", "PUT", "PATCH") or "form" in kind:
        return {}
    if "json" not in kind:
        raise ApiError(400, "Content-Type must be application/json", code="bad_request")
    try:
        document = json.loads(body)
    except ValueError as error:
        raise ApiError(400, f"The body is not JSON: {error}", code="bad_request") from None
    if not isinstance(document, dict):
        raise ApiError(400, "The body must be a JSON object", code="bad_request")
    return document


def _render_answer(answer: Answer, headers: dict[str, str]) -> Response:
    headers = {**answer.headers, **headers}
    if answer.body is None:
        return Response(b"", answer.status, headers)
    return Response(
        json.dumps(answer.body, separators=(",", ":")), answer.status, headers, answer.content_type
    )


def _describe_record(record: Record | BadRecord, schema: Any) -> dict[str, Any]:
    if isinstance(record, BadRecord):
        return {
            "partition": record.message.partition,
            "offset": record.message.offset,
            "problem": record.problem,
        }
    position: dict[str, Any] = {
        "partition": record.partition,
        "offset": record.offset,
        "timestamp": record.timestamp,
    }
    if record.key is not None:
        position["key"] = base64.b64encode(record.key).decode()
    if record.value is None:
        return {**position, "value": None}
    values = {name: _to_plain_value(value) for name, value in record.value.items()}
    encoded = io.BytesIO()
    fastavro.schemaless_writer(encoded, schema, record.value)
    return {**position, "value": values, "avro": base64.b64encode(encoded.getvalue()).decode()}


def _to_plain_value(value: Any) -> Any:
    if value is None or isinstance(value, str | int | float | bool):
        return value
    return str(value)
