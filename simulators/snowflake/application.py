"""The ASGI application: lets what is due happen, authenticates, runs the statement, renders the answer."""

from __future__ import annotations

import asyncio
import json
import logging
import re
from email.utils import formatdate
from typing import Any, Final

from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from simulators.core import server as serving
from simulators.snowflake import controls
from simulators.snowflake import sql_api as answers
from simulators.snowflake.authentication import authenticate
from simulators.snowflake.errors import CallRefused
from simulators.snowflake.simulation import Simulation
from simulators.snowflake.sql_api import Sent

_LOG: Final = logging.getLogger(__name__)
_ONE: Final = re.compile(rf"{answers.PATH}/([^/]+)(/cancel)?")


class Application:
    """One call at a time changes the world, in a thread of its own, so that waiting on AWS doesn't stop the others' bytes."""

    def __init__(self, simulation: Simulation) -> None:
        self._simulation = simulation
        self._turn = asyncio.Lock()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        request = Request(scope, receive)
        body = await request.body()
        async with self._turn:
            response = await asyncio.to_thread(self._respond, request, body)
        response.headers["Date"] = formatdate(self._simulation.account.clock.now(), usegmt=True)
        await response(scope, receive, send)

    def _respond(self, request: Request, body: bytes) -> Response:
        if request.url.path.startswith(serving.CONTROLS):
            return controls.respond(self._simulation, request.method, request.url.path, body)
        try:
            self._simulation.account.clock.run_due()
            return self._answer(request, body)
        except CallRefused as refused:
            return answers.refusal(refused)
        except Exception:
            _LOG.exception("%s %s", request.method, request.url.path)
            return answers.refusal(CallRefused(500, "390500", "The simulator failed; its log tells why"))

    def _answer(self, request: Request, body: bytes) -> Response:
        path, query = request.url.path, dict(request.query_params)
        one = _ONE.fullmatch(path)
        if path != answers.PATH and one is None:
            raise CallRefused(404, "390404", "The requested resource was not found")
        wanted = "GET" if one and not one[2] else "POST"
        if request.method != wanted:
            raise CallRefused(405, "390405", f"{request.method} is not allowed here")
        _require_headers(request)
        account, statements = self._simulation.account, self._simulation.statements
        token_type = request.headers.get("x-snowflake-authorization-token-type", "")
        user = authenticate(account, request.headers.get("authorization", ""), token_type)
        if one is None:
            sent = Sent.read(_parsed(request, body), query)
            return answers.of(statements.send(user, sent), account.ways, wait=sent.asynchronous)
        if one[2]:
            return answers.canceled(statements.cancel(user, one[1]))
        return answers.of(statements.find(user, one[1]), account.ways, partition=_number(query.get("partition", "0")))


def _require_headers(request: Request) -> None:
    accepted = request.headers.get("accept", "")
    if not re.search(r"application/(json|\*)|\*/\*", accepted):
        raise CallRefused(400, "391902", f"Unsupported Accept header {accepted or 'null'} is specified.")
    if not request.headers.get("user-agent"):
        raise CallRefused(400, "391903", "User-Agent header is missing.")


def _parsed(request: Request, body: bytes) -> Any:
    if "application/json" not in request.headers.get("content-type", ""):
        raise CallRefused(415, "391901", "Content-Type must be application/json")
    try:
        return json.loads(body)
    except ValueError as error:
        raise CallRefused(400, "391910", f"The body is not JSON: {error}") from None


def _number(text: str) -> int:
    if not text.isdigit():
        raise CallRefused(400, "391920", f"partition {text!r} is not a number")
    return int(text)
