"""Queries of Athena's run outside this process, in the project's interpreter: simulators/aws/athena/engine.py."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import tempfile
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any, Final

from simulators.aws import settings
from simulators.aws.hooks import ministack

_ROOT: Final = settings.LAMBDA_PYTHON.parents[2]
#: Of the environment of this process, what a child needs to start at all.
_KEPT: Final = ("PATH", "HOME", "TMPDIR", "LANG")
#: A line holds a whole result.
_LINE_BYTES: Final = 2**30


class Died(Exception):
    """It ended without an answer."""


class Engine:
    """One query. `begin`, `go_on`, and `stop` at any time."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer, self._pid = reader, writer, 0

    @classmethod
    async def started(cls) -> Engine:
        """Raises Died."""
        return cls(*await _warm().connect())

    async def begin(self, query: dict[str, Any], credentials: dict[str, str], region: str) -> dict[str, Any]:
        """Whether the statement is one. `credentials` are environment variables: the caller's. Raises Died."""
        accepted = await self._ask({"query": query, "environment": _environment(region) | credentials})
        self._pid = accepted.get("pid", 0)
        return accepted

    async def go_on(self) -> dict[str, Any]:
        """How it ended. Raises Died."""
        return await self._ask({})

    def stop(self) -> None:
        self._writer.close()
        pid, self._pid = self._pid, 0
        if pid:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)

    async def _ask(self, told: dict[str, Any]) -> dict[str, Any]:
        try:
            self._writer.write(f"{json.dumps(told)}\n".encode())
            await self._writer.drain()
            line = await self._reader.readline()
        except ConnectionError:
            line = b""
        if not line:
            raise Died("the engine ended without an answer; its reason is in the server's log")
        answer: dict[str, Any] = json.loads(line)
        return answer


class _Warm:
    """The process that queries are forked from. It ends with this one."""

    def __init__(self) -> None:
        self._process: asyncio.subprocess.Process | None = None
        self._starting = asyncio.Lock()
        self._socket = Path()

    async def connect(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """Raises Died."""
        async with self._starting:
            if self._process is None or self._process.returncode is not None:
                await self._start()
        return await asyncio.open_unix_connection(self._socket, limit=_LINE_BYTES)

    async def _start(self) -> None:
        self._socket = Path(tempfile.mkdtemp(prefix="athena-")) / "socket"
        self._process = await asyncio.create_subprocess_exec(
            str(settings.LAMBDA_PYTHON),
            *("-m", "simulators.aws.athena.engine", str(self._socket)),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            cwd=_ROOT,
            env=_environment(settings.REGION),
        )
        assert self._process.stdout is not None
        if not await self._process.stdout.readline():
            raise Died("the engine did not start; its reason is in the server's log")


@cache
def _warm() -> _Warm:
    return _Warm()


def credentials_of(access_key: str) -> dict[str, str]:
    """Of who holds this key. MiniStack has checked the signature by now, where policies are enforced."""
    found = ministack("core.iam_evaluator").resolve_credential(access_key)
    known = hasattr(found, "secret_access_key")
    token = found.session_token if known else None
    return {
        "AWS_ACCESS_KEY_ID": access_key if known else settings.ACCESS_KEY_ID,
        "AWS_SECRET_ACCESS_KEY": found.secret_access_key if known else settings.SECRET_ACCESS_KEY,
    } | ({"AWS_SESSION_TOKEN": token} if token else {})


def _environment(region: str) -> dict[str, str]:
    kept = {name: os.environ[name] for name in _KEPT if name in os.environ}
    return {
        **kept,
        "AWS_ENDPOINT_URL": f"http://{settings.HOST}:{os.environ['GATEWAY_PORT']}",
        "AWS_REGION": region,
        "AWS_DEFAULT_REGION": region,
        "AWS_CONFIG_FILE": os.devnull,
        "AWS_SHARED_CREDENTIALS_FILE": os.devnull,
        "AWS_EC2_METADATA_DISABLED": "true",
        "NO_PROXY": settings.HOST,
        "no_proxy": settings.HOST,
    }
