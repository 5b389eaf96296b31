"""Checks what is sent against the vendor's specification: the client's requests and the simulator's
responses.
"""

from __future__ import annotations

import gzip
import json
import re

from tests.support import confluent_contract


class Checked:
    """An ASGI application between the fault injector and the simulator, so that injected responses are not
    checked.

    An exchange that differs only in ids and times is checked once. `broken` collects violations. `contract`
    is a module with `check` and `check_request`.
    """

    def __init__(self, app, contract=confluent_contract):
        self._app = app
        self._contract = contract
        self.broken = []
        self.seen = set()

    async def __call__(self, scope, receive, send):
        request = bytearray()
        response = bytearray()
        start = {}

        async def listen():
            message = await receive()
            request.extend(message.get("body", b""))
            return message

        async def forward(message):
            if message["type"] == "http.response.start":
                start.update(message)
            response.extend(message.get("body", b""))
            await send(message)

        await self._app(scope, listen, forward)
        if scope["type"] == "http" and not scope["path"].startswith("/_"):
            self._look(scope, bytes(request), start, bytes(response))

    def _look(self, scope, request, start, response):
        method = scope["method"]
        path = scope["raw_path"].decode()
        query = scope["query_string"].decode()
        if dict(start["headers"]).get(b"content-encoding") == b"gzip":
            response = gzip.decompress(response)
        once = re.sub("requestId=[^&]+", "", query)
        mark = hash(
            (
                method,
                start["status"],
                *(_VARIES.sub(b"", part) for part in (path.encode(), request, response)),
                once,
            )
        )
        if mark in self.seen:
            return
        self.seen.add(mark)
        result = dict(scope["headers"]).get(b"content-type", b"").decode()
        answered = dict(start["headers"]).get(b"content-type", b"").decode()
        try:
            if start["status"] < 400:
                self._contract.check_request(
                    method, path, query, result, json.loads(request) if request else None
                )
            document = json.loads(response) if response and "json" in answered else response.decode() or None
            self._contract.check(method, path, query, start["status"], answered, document)
        except self._contract.ContractBroken as broken:
            self.broken.append(str(broken))


#: Ids, times and key material, which differ between equal exchanges.
_VARIES = re.compile(
    rb"\b(?:env|lkc|lsrc|sa|rb|lfcp|cspi|tci|lcc)-[a-z0-9]+|\d{4}-\d\d-\d\dT[\d:.+Z-]+|[A-Za-z0-9_-]{16,}|\b\d{13}\b"
)
