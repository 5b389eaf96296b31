"""Starts the embedded AWS in its own process, and always stops it. Uses only the standard library."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from simulators.aws import settings
from simulators.core import processes
from simulators.core.processes import NotStarted

AWS_PYTHON = processes.ROOT / ".venv-aws" / "bin" / "python"


class EmbeddedAwsFailed(Exception):
    """The embedded AWS is not installed, is not running, or did not start (then the message has its last log
    lines).
    """


class EmbeddedAws:
    """`with EmbeddedAws() as aws:` starts one on a free loopback port; several can run at the same time.

    `state_dir` keeps buckets, objects, tables and secrets for the next start with the same directory. They
    are written when the server stops within the grace period, also if it stops because this process ended.
    `iam` enforces IAM policies. `stock` runs MiniStack without the patches.
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
        self._options = ["--port", str(port)]
        if iam:
            self._options.append("--iam")
        if stock:
            self._options.append("--stock")
        if state_dir is not None:
            self._options += ["--state-dir", str(state_dir.resolve())]
        self.stock = stock
        self._python = python
        self._grace = grace
        self._process: subprocess.Popen[bytes] | None = None
        self._scratch = Path()
        self._announced: dict[str, Any] = {}

    def __enter__(self) -> Self:
        if not self._python.exists():
            raise EmbeddedAwsFailed(
                "the embedded AWS is not installed (.venv-aws is missing). Run `make setup`"
            )
        self._scratch = Path(tempfile.mkdtemp(prefix="lakeferry-aws-"))
        try:
            with (self._scratch / "log").open("w+b") as log:
                command = [
                    str(self._python),
                    "-m",
                    "simulators.aws",
                    "--json",
                    "--stop-with-stdin",
                    *self._options,
                ]
                self._process = processes.start(
                    [*command, "--scratch", str(self._scratch)], log, settings.get_java_home()
                )
                self._announced = processes.read_announcement(self._process, log)
        except BaseException as reason:
            self._stop()
            if isinstance(reason, NotStarted):
                lines = [f"the embedded AWS {reason.what}. Its last lines:", *reason.last]
                raise EmbeddedAwsFailed("\n".join(lines)) from None
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
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
        """Return `base` (for example os.environ) with its AWS_* variables replaced by those of a client of
        this server.
        """
        other_variables = {
            name: value for name, value in (base or {}).items() if not name.upper().startswith("AWS_")
        }
        keys = {
            "AWS_ACCESS_KEY_ID": settings.ACCESS_KEY_ID,
            "AWS_SECRET_ACCESS_KEY": settings.SECRET_ACCESS_KEY,
        }
        return other_variables | keys | settings.build_client_environment(self.url)

    def _stop(self) -> None:
        """Stop the server. It writes its state if it ends within the grace period."""
        process = self._process
        self._process = None
        try:
            if process is not None:
                processes.stop(process, self._grace)
        finally:
            shutil.rmtree(self._scratch, ignore_errors=True)
