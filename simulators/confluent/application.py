"""The ASGI application: finds the route, lets what is due happen, authenticates, calls the handler, renders the answer."""

from __future__ import annotations

import asyncio
import json
import logging
import uuid
from collections.abc import Mapping
from typing import Any, Final

from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from simulators.confluent import controls
from simulators.confluent.errors import ApiError as Refusal
from simulators.confluent.http import CONTROL, FLINK, ICEBERG, KAFKA, REGISTRY, Answer, Call, Route, authenticate
from simulators.confluent.model import ApiKey, KeyKind, Plane
from simulators.confluent.routes import ROUTES
from simulators.confluent.simulation import Simulation

_LOG: Final = logging.getLogger(__name__)
#: Whose error shape a path without a route gets.
_SPEAKERS: Final = {
    Plane.CLOUD: CONTROL,
    Plane.KAFKA: KAFKA,
    Plane.REGISTRY: REGISTRY,
    Plane.FLINK: FLINK,
    Plane.CATALOG: ICEBERG,
}
#: The caller of a service that looks for credentials itself.
NOBODY: Final = ApiKey("", "", 0, 0, "", "", KeyKind.CLOUD, "", 0)


class Application:
    """One call at a time changes the world, in a thread of its own, so that waiting on AWS doesn't stop the others' bytes."""

    def __init__(self, simulation: Simulation, ports: Mapping[int, Plane]) -> None:
        self._simulation, self._ports = simulation, ports
        self._turn = asyncio.Lock()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        request = Request(scope, receive)
        body = await request.body()
        async with self._turn:
            response = await asyncio.to_thread(self._respond, request, body)
        await response(scope, receive, send)

    def _respond(self, request: Request, body: bytes) -> Response:
        request_id = uuid.uuid4().hex
        plane = self._ports[request.scope["server"][1]]
        if request.url.path.startswith(controls.PREFIX):
            return controls.respond(self._simulation, request.method, request.url.path, body)
        api = _SPEAKERS[plane]
        instead: Mapping[int, int] = {}
        try:
            self._simulation.world.clock.run_due()
            route, parameters = _find(plane, request)
            api, instead = route.api, route.instead
            return self._answer(route, parameters, request, body, request_id)
        except Refusal as refusal:
            refusal.status = instead.get(refusal.status, refusal.status)
            content_type, content = api.render(refusal, request_id)
            headers = refusal.headers | {"X-Request-Id": request_id}
            return Response(content, refusal.status, headers, content_type)
        except Exception:
            _LOG.exception("%s %s", request.method, request.url.path)
            content_type, content = api.render(Refusal(500, "The simulator failed; its log tells why"), request_id)
            return Response(content, 500, {"X-Request-Id": request_id}, content_type)

    def _answer(self, route: Route, parameters: dict[str, str], request: Request, body: bytes, request_id: str) -> Response:
        world, limit, api = self._simulation.world, self._simulation.limit, route.api
        key = authenticate(world, api, request.headers.get("authorization", "")) if api.key else NOBODY
        now = world.clock.now()
        within = limit.take(key.id, now)
        told = limit.told(api, key.id, now) | {"X-Request-Id": request_id}
        if not within:
            return Response(b"", 429, told | limit.retry_after(api, now), "text/html" if api is KAFKA else None)
        call = Call(
            world,
            parameters,
            dict(request.query_params),
            dict(request.headers),
            _parsed(request, body),
            body,
            key,
            world.addresses[api.plane],
            request.url.path,
        )
        return _rendered(route.handler(call), told)


def _find(plane: Plane, request: Request) -> tuple[Route, dict[str, str]]:
    path = request.scope["raw_path"].decode("ascii").partition("?")[0]
    methods = []
    for route in ROUTES:
        if route.api.plane is plane and (parameters := route.match(path)) is not None:
            if route.method == request.method:
                return route, parameters
            methods.append(route.method)
    if methods:
        raise Refusal(405, f"{request.method} is not allowed here", headers={"Allow": ", ".join(sorted(set(methods)))})
    raise Refusal(404, "The requested resource was not found", code="resource_not_found")


def _parsed(request: Request, body: bytes) -> dict[str, Any]:
    kind = request.headers.get("content-type", "")
    if not body or request.method not in ("POST", "PUT", "PATCH") or "form" in kind:
        return {}
    if "json" not in kind:
        raise Refusal(400, "Content-Type must be application/json", code="bad_request")
    try:
        document = json.loads(body)
    except ValueError as error:
        raise Refusal(400, f"The body is not JSON: {error}", code="bad_request") from None
    if not isinstance(document, dict):
        raise Refusal(400, "The body must be a JSON object", code="bad_request")
    return document


def _rendered(answer: Answer, told: dict[str, str]) -> Response:
    headers = {**answer.headers, **told}
    if answer.body is None:
        return Response(b"", answer.status, headers)
    return Response(json.dumps(answer.body, separators=(",", ":")), answer.status, headers, answer.content_type)
