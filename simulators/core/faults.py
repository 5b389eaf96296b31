"""Faults on the wire, the same for every simulator: an ASGI middleware that is driven over HTTP at /_simulator/faults.

    PUT    /_simulator/faults          {"rules": [{"fault": "error", "path": "/bucket/*", "nth": 2, "status": 503}, …]}
    GET    /_simulator/faults          rules with how often each was seen and hit, answers held now, trace of all calls
    POST   /_simulator/faults/release  lets held answers go on
    DELETE /_simulator/faults          no rules, empty trace, nothing held

Rules are described in fault_rules.py, faults in fault_actions.py. Calls to paths that begin with /_ are neither
counted nor hit. Without rules nothing is buffered, and a call costs one entry in the trace.
"""

from __future__ import annotations

import asyncio
import json
import urllib.request
from collections import deque
from dataclasses import asdict, fields
from typing import Any

from simulators.core.fault_actions import FAULTS, App, Exchange, Message, Receive, Send, answer, read
from simulators.core.fault_rules import SHAPES, Call, Rule

PREFIX = "/_simulator/faults"
TRACE_CALLS = 20_000


def read_rules(text: bytes) -> list[Rule]:
    """Raises ValueError with a sentence that names what is wrong."""
    known = {each.name for each in fields(Rule)} - {"seen", "hits"}
    rules = []
    for given in json.loads(text)["rules"]:
        if unknown := given.keys() - known:
            raise ValueError(f"a rule has no {', '.join(sorted(unknown))}. It may have {', '.join(sorted(known))}")
        rule = Rule(**given)
        if rule.fault not in FAULTS or rule.shape not in SHAPES:
            raise ValueError(
                f"no fault {rule.fault!r} in shape {rule.shape!r}. Faults: {', '.join(FAULTS)}; shapes: {', '.join(SHAPES)}"
            )
        rules.append(rule)
    return rules


class FaultInjector:
    """Stands in front of `app`."""

    def __init__(self, app: App) -> None:
        self._app = app
        self._rules: list[Rule] = []
        self._trace: deque[dict[str, Any]] = deque(maxlen=TRACE_CALLS)
        self._answers: dict[str, list[Message]] = {}
        self._released = asyncio.Event()
        self._held = 0

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        path = scope.get("path", "")
        if scope["type"] == "http" and path.startswith(PREFIX):
            await self._control(scope["method"] + path.removeprefix(PREFIX), receive, send)
        elif scope["type"] == "http" and not path.startswith("/_"):
            await self._meet(scope, receive, send)
        else:
            await self._app(scope, receive, send)

    async def _control(self, request: str, receive: Receive, send: Send) -> None:
        status, error, body = 200, "", await read(receive)
        try:
            self._obey(request, body)
        except (ValueError, LookupError, TypeError) as refused:
            status, error = 400, str(refused)
        rules = [asdict(rule) for rule in self._rules]
        state = {"rules": rules, "held": self._held, "trace": list(self._trace), "error": error}
        await answer(send, status, {"content-type": "application/json"}, json.dumps(state).encode())

    def _obey(self, request: str, body: bytes) -> None:
        if request == "PUT":
            self._rules, self._answers = read_rules(body), {}
        elif request == "DELETE":
            self._rules, self._answers = [], {}
            self._trace.clear()
        if request in ("DELETE", "POST/release"):
            self._released.set()
            self._released = asyncio.Event()

    async def _meet(self, scope: Message, receive: Receive, send: Send) -> None:
        call = Call.of(scope)
        entry: dict[str, Any] = {"call": str(call), "operation": call.headers.get("x-amz-target", "")}
        self._trace.append(entry)

        async def noting(message: Message) -> None:
            if message["type"] == "http.response.start":
                entry["status"] = message["status"]
            await send(message)

        matching = [rule for rule in self._rules if rule.matches(call)]
        # A list, not a generator: every rule that matches counts the call, also after the one that hits it.
        hits = [rule for rule in matching if rule.count()]
        if hits:
            entry["fault"] = hits[0].fault
            last = self._answers.get(str(call), [])
            await FAULTS[hits[0].fault](Exchange(hits[0], self._app, scope, receive, noting, send, self._hold, last))
        elif any(rule.fault == "stale" for rule in matching):
            await self._app(scope, receive, self._remembering(str(call), noting))
        else:
            await self._app(scope, receive, noting)

    async def _hold(self) -> None:
        self._held += 1
        try:
            await self._released.wait()
        finally:
            self._held -= 1

    def _remembering(self, call: str, send: Send) -> Send:
        kept = self._answers[call] = []

        async def keep_and_send(message: Message) -> None:
            kept.append(message)
            await send(message)

        return keep_and_send


class FaultClient:
    """What a test holds: the fault injector of the simulator at `url`."""

    def __init__(self, url: str) -> None:
        self._url = url + PREFIX
        self._opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))

    def rule(self, *rules: dict[str, Any]) -> None:
        """Put these in place of all that were there. Raises urllib.error.HTTPError where one is not a rule."""
        self._call("PUT", json.dumps({"rules": rules}).encode())

    def state(self) -> dict[str, Any]:
        return self._call("GET")

    def release(self) -> None:
        self._call("POST", path="/release")

    def clear(self) -> None:
        self._call("DELETE")

    def _call(self, method: str, body: bytes | None = None, path: str = "") -> dict[str, Any]:
        request = urllib.request.Request(self._url + path, data=body, method=method)  # noqa: S310  (loopback)
        with self._opener.open(request) as state:
            return json.load(state)  # type: ignore[no-any-return]
