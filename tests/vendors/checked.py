"""Checks what goes over the wire against what the vendor publishes: the client's requests and the simulator's responses."""

from __future__ import annotations

import gzip
import json
import re

import confluent_contract


class Checked:
    """Stands before a simulator's application, behind its fault injector: what a fault injector makes up is nobody's contract.

    The same exchange is checked once; ids and times don't make another one. `broken` collects what doesn't fit. `contract` is a
    module with `check` and `check_request`.
    """

    def __init__(self, app, contract=confluent_contract):
        self._app, self._contract = app, contract
        self.broken, self.seen = [], set()

    async def __call__(self, scope, receive, send):
        asked, said, start = bytearray(), bytearray(), {}

        async def hearing():
            message = await receive()
            asked.extend(message.get("body", b""))
            return message

        async def saying(message):
            if message["type"] == "http.response.start":
                start.update(message)
            said.extend(message.get("body", b""))
            await send(message)

        await self._app(scope, hearing, saying)
        if scope["type"] == "http" and not scope["path"].startswith("/_"):
            self._look(scope, bytes(asked), start, bytes(said))

    def _look(self, scope, asked, start, said):
        method, path, query = scope["method"], scope["raw_path"].decode(), scope["query_string"].decode()
        if dict(start["headers"]).get(b"content-encoding") == b"gzip":
            said = gzip.decompress(said)
        once = re.sub("requestId=[^&]+", "", query)
        mark = hash((method, start["status"], *(_VARIES.sub(b"", each) for each in (path.encode(), asked, said)), once))
        if mark in self.seen:
            return
        self.seen.add(mark)
        result = dict(scope["headers"]).get(b"content-type", b"").decode()
        answered = dict(start["headers"]).get(b"content-type", b"").decode()
        try:
            if start["status"] < 400:
                self._contract.check_request(method, path, query, result, json.loads(asked) if asked else None)
            document = json.loads(said) if said and "json" in answered else said.decode() or None
            self._contract.check(method, path, query, start["status"], answered, document)
        except self._contract.ContractBroken as broken:
            self.broken.append(str(broken))


#: Ids, times and key material.
_VARIES = re.compile(
    rb"\b(?:env|lkc|lsrc|sa|rb|lfcp|cspi|tci|lcc)-[a-z0-9]+|\d{4}-\d\d-\d\dT[\d:.+Z-]+|[A-Za-z0-9_-]{16,}|\b\d{13}\b"
)
