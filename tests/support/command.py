"""Runs `lakeferry …` as a process, and returns its exit code and its output."""

from __future__ import annotations

import itertools
import json
import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

import attrs

from lakeferry.local.target import ExportTarget
from simulators.aws import settings
from tests.support.canary import AWS_SECRET
from tests.support.waiting import PATIENCE

_numbers = itertools.count(1)


@attrs.frozen
class CommandResult:
    code: int
    out: str
    err: str

    @property
    def document(self) -> dict[str, Any]:
        """Return the JSON document on standard output, which has one line and nothing else."""
        assert self.out.count("\n") == 1, self.out + self.err
        assert self.out.endswith("\n")
        found = json.loads(self.out)
        assert isinstance(found, dict)
        return found


#: Variables of the environment that a command keeps: of the machine, and of its way into the internet.
_KEPT: Final = (
    *("PATH", "HOME", "JAVA_HOME", "TMPDIR"),
    *("HTTPS_PROXY", "HTTP_PROXY", "NO_PROXY", "SSL_CERT_FILE", "SSL_CERT_DIR", "NODE_EXTRA_CA_CERTS"),
)


@attrs.frozen
class Clone:
    """A checkout in the folder `root`."""

    root: Path

    def start(
        self,
        *words: str,
        target: ExportTarget | None = None,
        changes: Mapping[str, str | None] = {},
        limits: Callable[[], None] | None = None,
    ) -> subprocess.Popen[bytes]:
        """Start a command.

        `target` sets the environment of an export; `changes` override variables, and None removes one.
        """
        kept = {name: value for name, value in os.environ.items() if name in _KEPT}
        environment: dict[str, str | None] = {**kept, **(naming(target) if target else {}), **changes}
        return subprocess.Popen(
            [sys.executable, "-m", "lakeferry", *words],
            cwd=self.root,
            env={name: value for name, value in environment.items() if value is not None},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
            preexec_fn=limits,  # noqa: PLW1509 - it sets limits of the child, and takes no lock
        )

    def run(self, *words: str, patience: float = PATIENCE, **around: Any) -> CommandResult:
        process = self.start(*words, **around)
        return self.finish(process, patience=patience)

    def finish(
        self, process: subprocess.Popen[bytes], before: bytes = b"", patience: float = PATIENCE
    ) -> CommandResult:
        """Wait for the process and return its result.

        Keep the output in a file, which the search for secrets reads.
        """
        out, err = process.communicate(timeout=patience)
        (self.root / f"output-{next(_numbers)}.txt").write_bytes(out + before + err)
        return CommandResult(process.returncode, out.decode(), (before + err).decode())


def naming(target: ExportTarget) -> dict[str, str]:
    """Return the environment variables that lead to a target."""
    assert target.embedded_url
    return settings.build_client_environment(target.embedded_url) | {
        "AWS_ACCESS_KEY_ID": settings.ACCESS_KEY_ID,
        "AWS_SECRET_ACCESS_KEY": AWS_SECRET,
        "LAKEFERRY_BUCKET": target.bucket,
        "LAKEFERRY_DATABASE": target.database,
        "LAKEFERRY_PREFIX": target.prefix,
        "LAKEFERRY_PSEUDONYM_SECRET": target.pseudonym_secret,
        "LAKEFERRY_AGGREGATES_DATABASE": target.aggregates_database,
    }
