"""Checks, patches and starts MiniStack inside the process of the embedded AWS, in .venv-aws.

MiniStack reads environment variables when it is imported, so the whole environment is replaced before that.
Of the user's environment, only PATH and JAVA_HOME remain. The server listens on 127.0.0.1 only and connects
to no other host.
"""

from __future__ import annotations

import asyncio
import fcntl
import importlib.metadata
import json
import os
import shutil
import signal
import socket
import sys
import tempfile
import threading
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from simulators.aws import settings
from simulators.aws.controls import Controls
from simulators.aws.hooks import Hook, Patch, apply
from simulators.aws.lake_formation_api import Api
from simulators.aws.patches import PATCHES
from simulators.aws.service_quotas import ServiceQuotas
from simulators.core import cli, processes
from simulators.core.faults import FaultInjector

_MAIN = Hook("ministack.app", "main", ())


class StartFailed(Exception):
    """The server can't start. The message says why, and what to do."""


class Options(NamedTuple):
    """The options of `python -m simulators.aws`."""

    port: int
    state_dir: Path | None
    scratch: Path | None
    iam: bool
    stock: bool
    stop_with_stdin: bool


def run(options: Options, announce: Callable[[dict[str, Any]], None]) -> None:
    """Serve until SIGTERM. When the server is ready, call `announce` with its address and credentials.

    Raises StartFailed and HookMissing.
    """
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    if options.stop_with_stdin:
        threading.Thread(target=_stop_at_end_of_stdin, daemon=True).start()
    with ExitStack() as stack:
        listener = stack.enter_context(_bind_port(options.port))
        scratch = stack.enter_context(_make_scratch_folder(options.scratch))
        if options.state_dir is not None:
            stack.enter_context(_lock_folder(options.state_dir))
        port: int = listener.getsockname()[1]
        _replace_environment(build_environment(port, scratch, options.state_dir, options.iam))
        require_version(importlib.metadata.version("ministack"))
        serving = Patch("launcher")
        on_ready = partial(announce, _describe_credentials(port, options))
        front = (lambda app: app) if options.stock else _wrap_app
        serve = partial(_serve, listener.detach(), on_ready, front=front)
        serving.replaces("hypercorn.asyncio", "serve", "app config shutdown_trigger mode")(serve)
        main = _MAIN.find()
        patches = () if options.stock else PATCHES
        apply([serving, *patches])
        try:
            main()
        finally:
            signal.signal(signal.SIGTERM, signal.SIG_IGN)  # a second SIGTERM must not interrupt the cleanup


def build_environment(port: int, scratch: Path, state_dir: Path | None, iam: bool) -> dict[str, str]:
    """Return the server's complete environment.

    S3 stores object bodies in files, with or without a state directory.
    """
    data = state_dir or scratch
    return {
        "PATH": os.environ.get("PATH", os.defpath),
        "HOME": str(scratch),
        **settings.get_java_home(),
        "TMPDIR": str(scratch),
        "GATEWAY_PORT": str(port),
        "BIND_HOST": settings.HOST,
        "MINISTACK_HOST": settings.HOST,
        "MINISTACK_REGION": settings.REGION,
        "MINISTACK_ACCOUNT_ID": settings.ACCOUNT,
        "SERVICES": ",".join(settings.SERVICES),
        "LAMBDA_EXECUTOR": "local",
        "IOT_MTLS_ENABLED": "0",
        "SFTP_ENABLED": "0",
        # Step Functions waits, which pace the polling of custom resources, last 1/50 of their time.
        # With 0, the attempts run out before a vendor is done.
        "SFN_WAIT_SCALE": "0.02",
        "S3_PERSIST": "1",
        "S3_DATA_DIR": str(data / "s3"),
        "PERSIST_STATE": "1" if state_dir else "0",
        "STATE_DIR": str(data / "state"),
        "AUTH": "true" if iam else "false",
        "AWS_ACCESS_KEY_ID": settings.ACCESS_KEY_ID,
        "AWS_SECRET_ACCESS_KEY": settings.SECRET_ACCESS_KEY,
        "AWS_DEFAULT_REGION": settings.REGION,
        "AWS_CONFIG_FILE": os.devnull,
        "AWS_SHARED_CREDENTIALS_FILE": os.devnull,
        "AWS_EC2_METADATA_DISABLED": "true",
        "LOG_LEVEL": "WARNING",
    }


def require_version(installed: str) -> None:
    pinned = settings.read_pinned_version()
    if installed != pinned:
        raise StartFailed(f"MiniStack is {installed}, the patches are for {pinned}. Run `make setup`")


def _replace_environment(new_environment: Mapping[str, str]) -> None:
    os.environ.clear()
    os.environ.update(new_environment)
    tempfile.tempdir = None  # it may be cached from the previous environment
    sys.argv = ["ministack"]  # MiniStack parses it


def _describe_credentials(port: int, options: Options) -> dict[str, Any]:
    return {
        "url": f"http://{settings.HOST}:{port}",
        "account": settings.ACCOUNT,
        "region": settings.REGION,
        "access_key_id": settings.ACCESS_KEY_ID,
        "secret_access_key": settings.SECRET_ACCESS_KEY,
        "iam": options.iam,
        "ministack": settings.read_pinned_version(),
    }


@contextmanager
def _bind_port(port: int) -> Iterator[socket.socket]:
    """Bind the port. The server listens on this socket, so no other process can take the port in between."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind((settings.HOST, port))
        except OSError as error:
            raise StartFailed(cli.describe_port_taken(port, error)) from None
        yield listener


@contextmanager
def _make_scratch_folder(folder: Path | None) -> Iterator[Path]:
    scratch = folder or Path(tempfile.mkdtemp(prefix="lakeferry-aws-"))
    try:
        yield scratch
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


@contextmanager
def _lock_folder(state_dir: Path) -> Iterator[None]:
    """Lock the directory against other servers, and check that its files can be read.

    If MiniStack can't read its state, it starts empty and overwrites the state when it stops.
    """
    state_dir.mkdir(parents=True, exist_ok=True)
    with (state_dir / "lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise StartFailed(
                f"{state_dir} is in use by another embedded AWS. Stop it, or use another"
            ) from None
        files = [*(state_dir / "state").glob("*.json"), *(state_dir / "s3").rglob("*.meta.json")]
        for file in files:
            try:
                json.loads(file.read_bytes())
            except ValueError as error:
                raise StartFailed(f"{file} is damaged ({error}). Restore it, or delete {state_dir}") from None
        yield


def _wrap_app(app: Any) -> Any:
    return Controls(Api(ServiceQuotas(app)))


async def _serve(
    descriptor: int,
    on_ready: Callable[[], None],
    original: Callable[..., Awaitable[None]],
    app: Any,
    config: Any,
    *,
    front: Callable[[Any], Any],
    **options: Any,
) -> None:
    config.bind = [f"fd://{descriptor}"]
    port = int(os.environ["GATEWAY_PORT"])
    announcing = asyncio.create_task(_announce_when_answering(port, on_ready))
    try:
        await original(FaultInjector(front(app)), config, **options)
    finally:
        announcing.cancel()


async def _announce_when_answering(port: int, on_ready: Callable[[], None]) -> None:
    pause = 0.002
    while not await _is_answering(port):
        await asyncio.sleep(pause)
        pause = min(2 * pause, 0.1)
    on_ready()


async def _is_answering(port: int) -> bool:
    try:
        reader, writer = await asyncio.open_connection(settings.HOST, port)
    except OSError:
        return False
    writer.write(b"GET /_ministack/health HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n")
    status = await reader.readline()
    writer.close()
    return b" 200 " in status


def _stop_at_end_of_stdin() -> None:
    processes.end_with_parent()
    threading.Event().wait(settings.STOP_GRACE_SECONDS)
    os.killpg(os.getpgrp(), signal.SIGKILL)
