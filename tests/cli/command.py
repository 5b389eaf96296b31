"""`lakeferry …` as a process: its exit code, and what it says on either stream."""

from __future__ import annotations

import itertools
import json
import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import attrs
from canary import AWS_SECRET
from waiting import PATIENCE

from lakeferry.local.target import ExportTarget
from simulators.aws import settings

_numbers = itertools.count(1)


@attrs.frozen
class Said:
    code: int
    out: str
    err: str

    @property
    def document(self) -> dict[str, Any]:
        """Standard output, which holds one JSON document on one line and nothing else."""
        assert self.out.count("\n") == 1, self.out + self.err
        assert self.out.endswith("\n")
        found = json.loads(self.out)
        assert isinstance(found, dict)
        return found


@attrs.frozen
class Clone:
    """A checkout in `root`."""

    root: Path

    def start(
        self,
        *words: str,
        target: ExportTarget | None = None,
        changes: Mapping[str, str | None] = {},
        limits: Callable[[], None] | None = None,
    ) -> subprocess.Popen[bytes]:
        """With `world`, the environment names it and its AWS. `changes` to the environment come last; None takes out."""
        kept = {name: os.environ[name] for name in ("PATH", "HOME", "JAVA_HOME", "TMPDIR") if name in os.environ}
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

    def run(self, *words: str, patience: float = PATIENCE, **around: Any) -> Said:
        process = self.start(*words, **around)
        return self.said(process, patience=patience)

    def said(self, process: subprocess.Popen[bytes], before: bytes = b"", patience: float = PATIENCE) -> Said:
        """What it says from now on, which is kept for those who search it, with its exit code."""
        out, err = process.communicate(timeout=patience)
        (self.root / f"said-{next(_numbers)}.txt").write_bytes(out + before + err)
        return Said(process.returncode, out.decode(), (before + err).decode())


def naming(target: ExportTarget) -> dict[str, str]:
    """The environment that leads to it."""
    assert target.embedded_url
    return settings.client_environment(target.embedded_url) | {
        "AWS_ACCESS_KEY_ID": settings.ACCESS_KEY_ID,
        "AWS_SECRET_ACCESS_KEY": AWS_SECRET,
        "LAKEFERRY_BUCKET": target.bucket,
        "LAKEFERRY_DATABASE": target.database,
        "LAKEFERRY_PREFIX": target.prefix,
        "LAKEFERRY_PSEUDONYM_SECRET": target.pseudonym_secret,
        "LAKEFERRY_AGGREGATES_DATABASE": target.aggregates_database,
    }
