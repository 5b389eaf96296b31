"""The web application: runs due actions, authenticates, runs the statement and renders the answer."""

from __future__ import annotations

import json
import re
from email.utils import formatdate
from typing import Any, Final

from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Message, Receive, Scope, Send

from simulators.core import control, server
from simulators.snowflake import sql_api as answers
from simulators.snowflake.authentication import authenticate
from simulators.snowflake.errors import CallRefused
from simulators.snowflake.simulation import Simulation
from simulators.snowflake.sql_api import Sent

_ONE: Final = re.compile(rf"{answers.PATH}/([^/]+)(/cancel)?")


class Application(server.Application):
    """The SQL API, and control endpoints of the simulator.

    PUT /_simulator/account   {"name": "NEW"} renames the account, as its organization's administrator may;
                              {"locator": "XY98765"} makes it another account, with equal objects
    PUT /_simulator/behavior  {"partition_rows": 2, "most_rows": 5, "prefix": "API",
                               "slow": [{"statement": "^CREATE", "seconds": 60, "times": 1}]}; changes only
                               what is given
    """

    def __init__(self, simulation: Simulation) -> None:
        super().__init__(
            simulation,
            {("PUT", "/behavior"): self._change_behavior, ("PUT", "/account"): self._change_account},
        )
        self._snowflake = simulation

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def send_dated(message: Message) -> None:
            if message["type"] == "http.response.start":
                date = formatdate(self._snowflake.clock.now(), usegmt=True).encode()
                message = {**message, "headers": [*message["headers"], (b"date", date)]}
            await send(message)

        await super().__call__(scope, receive, send_dated)

    def respond(self, request: Request, body: bytes) -> Response:
        try:
            self._snowflake.clock.run_due()
            return self._answer(request, body)
        except CallRefused as refusal:
            return answers.answer_refusal(refusal)
        except Exception:
            return answers.answer_refusal(CallRefused(500, "390500", server.log_failure(request)))

    def _change_behavior(self, request: control.Request) -> control.Response:
        self._snowflake.account.behavior.change(request.read_document())
        return control.build_json_response({})

    def _change_account(self, request: control.Request) -> control.Response:
        account = self._snowflake.account
        changes = request.read_document()
        account.name = changes.get("name", account.name)
        account.locator = changes.get("locator", account.locator)
        return control.build_json_response({"name": account.name, "locator": account.locator})

    def _answer(self, request: Request, body: bytes) -> Response:
        path = request.url.path
        query = dict(request.query_params)
        statement_path = _ONE.fullmatch(path)
        if path != answers.PATH and statement_path is None:
            raise CallRefused(404, "390404", "The requested resource was not found")
        expected_method = "GET" if statement_path and not statement_path[2] else "POST"
        if request.method != expected_method:
            raise CallRefused(405, "390405", f"{request.method} is not allowed here")
        _require_headers(request)
        account = self._snowflake.account
        statements = self._snowflake.statements
        token_type = request.headers.get("x-snowflake-authorization-token-type", "")
        user = authenticate(account, request.headers.get("authorization", ""), token_type)
        if statement_path is None:
            sent = Sent.read(_parse_body(request, body), query)
            return answers.answer_statement(
                statements.send(user, sent), account.behavior, wait=sent.asynchronous
            )
        if statement_path[2]:
            return answers.answer_cancellation(statements.cancel(user, statement_path[1]))
        statement = statements.find(user, statement_path[1])
        partition = query.get("partition", "0")
        if not partition.isdecimal():
            raise CallRefused(400, "391920", f"partition {partition!r} is not a number")
        return answers.answer_statement(statement, account.behavior, partition=int(partition))


def _require_headers(request: Request) -> None:
    accepted = request.headers.get("accept", "")
    if not re.search(r"application/(json|\*)|\*/\*", accepted):
        raise CallRefused(400, "391902", f"Unsupported Accept header {accepted or 'null'} is specified.")
    if not request.headers.get("user-agent"):
        raise CallRefused(400, "391903", "User-Agent header is missing.")


def _parse_body(request: Request, body: bytes) -> Any:
    if "application/json" not in request.headers.get("content-type", ""):
        raise CallRefused(415, "391901", "Content-Type must be application/json")
    try:
        return json.loads(body)
    except ValueError as error:
        raise CallRefused(400, "391910", f"The body is not JSON: {error}") from None
