"""Starts the embedded AWS in a process of its own and stops it, whatever happens. Standard library only."""

from __future__ import annotations

import json
import os
import select
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Self

from simulators.aws import settings

ROOT = Path(__file__).resolve().parents[2]
AWS_PYTHON = ROOT / ".venv-aws" / "bin" / "python"
START_SECONDS = 60.0
_LOG_LINES = 15


class EmbeddedAwsFailed(Exception):
    """It is not there, did not start, or died: with the last lines that it logged."""


class EmbeddedAws:
    """`with EmbeddedAws() as aws:` runs one on a free loopback port; several can run side by side.

    With `state_dir`, a later one on the same directory has the same buckets, objects, tables and secrets; they are
    written there at an orderly stop, which includes the death of this process.
    With `iam`, policies are enforced. `stock` leaves our amendments out.
    """

    def __init__(
        self,
        *,
        state_dir: Path | None = None,
        iam: bool = False,
        stock: bool = False,
        port: int = 0,
        python: Path = AWS_PYTHON,
        grace: float = settings.STOP_GRACE_SECONDS,
    ) -> None:
        self._options = ["--port", str(port), *(["--iam"] if iam else []), *(["--stock"] if stock else [])]
        if state_dir is not None:
            self._options += ["--state-dir", str(state_dir.resolve())]
        self._python = python
        self._grace = grace
        self._process: subprocess.Popen[bytes] | None = None
        self._scratch = Path()
        self._announced: dict[str, Any] = {}

    def __enter__(self) -> Self:
        if not self._python.exists():
            raise EmbeddedAwsFailed("the embedded AWS is not installed (.venv-aws is missing). Run `make setup`")
        self._scratch = Path(tempfile.mkdtemp(prefix="lakeferry-aws-"))
        try:
            with (self._scratch / "log").open("w+b") as log:
                self._process = self._spawn(log)
                self._announced = self._await_announcement(self._process, log)
        except BaseException:
            self._stop()
            raise
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._stop()

    @property
    def url(self) -> str:
        return str(self._announced["url"])

    @property
    def account(self) -> str:
        return str(self._announced["account"])

    @property
    def region(self) -> str:
        return str(self._announced["region"])

    @property
    def pid(self) -> int:
        if self._process is None:
            raise EmbeddedAwsFailed("the embedded AWS is not running. Use it inside its `with` block")
        return self._process.pid

    def environment(self, base: Mapping[str, str] | None = None) -> dict[str, str]:
        """`base` (for example os.environ) without its own AWS settings, and with what makes a client come here."""
        kept = {name: value for name, value in (base or {}).items() if not name.upper().startswith("AWS_")}
        return kept | {
            "AWS_ENDPOINT_URL": self.url,
            "AWS_ACCESS_KEY_ID": settings.ACCESS_KEY_ID,
            "AWS_SECRET_ACCESS_KEY": settings.SECRET_ACCESS_KEY,
            "AWS_REGION": self.region,
            "AWS_DEFAULT_REGION": self.region,
            "AWS_CONFIG_FILE": os.devnull,
            "AWS_SHARED_CREDENTIALS_FILE": os.devnull,
            "AWS_EC2_METADATA_DISABLED": "true",
            # The default checksum (CRC64NVME) is computed in pure Python at the other end.
            "AWS_REQUEST_CHECKSUM_CALCULATION": "when_required",
            # A proxy of the user's is not for loopback.
            "NO_PROXY": settings.HOST,
            "no_proxy": settings.HOST,
        }

    def _spawn(self, log: IO[bytes]) -> subprocess.Popen[bytes]:
        """In a session of its own, where Ctrl-C in our terminal does not reach it: we stop it ourselves, in order."""
        command = [str(self._python), "-m", "simulators.aws", "--json", "--stop-with-stdin", *self._options]
        return subprocess.Popen(
            [*command, "--scratch", str(self._scratch)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=log,
            cwd=ROOT,
            env={"PATH": os.environ.get("PATH", os.defpath), "LANG": "C.UTF-8"},
            start_new_session=True,
        )

    def _await_announcement(self, process: subprocess.Popen[bytes], log: IO[bytes]) -> dict[str, Any]:
        assert process.stdout is not None
        with process.stdout as stdout:
            answered, _, _ = select.select([stdout], [], [], START_SECONDS)
            line = stdout.readline() if answered else b""
        if line:
            announced: dict[str, Any] = json.loads(line)
            return announced
        what = f"ended with code {process.wait()}" if answered else f"did not answer within {START_SECONDS:.0f} s"
        log.seek(0)
        last = log.read().decode(errors="replace").strip().splitlines()[-_LOG_LINES:]
        raise EmbeddedAwsFailed("\n".join([f"the embedded AWS {what}. Its last lines:", *(last or ["(none)"])]))

    def _stop(self) -> None:
        """First asked to stop, so that it writes its state; its process group is killed where it does not."""
        process, self._process = self._process, None
        try:
            if process is not None:
                process.terminate()
                process.wait(self._grace)
        except BaseException as reason:
            if process is not None and process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
            if not isinstance(reason, subprocess.TimeoutExpired):
                raise
        finally:
            if process is not None and process.stdin is not None:
                process.stdin.close()
            shutil.rmtree(self._scratch, ignore_errors=True)
