"""Runs the pinned CDK command line: `python -m lakeferry.deployment.cdk synth`. It is fetched once, then needs no network."""

from __future__ import annotations

import fcntl
import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from lakeferry.deployment import node
from lakeferry.deployment.node import Node, NoNode
from lakeferry.local.bootstrap import ROOT

PACKAGE: Final = "aws-cdk"
NOT_READY: Final = 3


class NoCommandLine(Exception):
    """One sentence for the user."""


def main(arguments: Sequence[str]) -> int:
    try:
        found = node.find()
        return subprocess.run([found.binary, command_line(found), *arguments], cwd=ROOT, env=environment(found)).returncode
    except (NoNode, NoCommandLine) as missing:
        sys.stderr.write(f"{missing}\n")
        return NOT_READY


def command_line(found: Node, root: Path = ROOT) -> Path:
    """The script of the version that package.json pins, fetched if it isn't there. Raises NoCommandLine."""
    if installed(root) != pinned(root):
        with (root / "package.json").open(encoding="utf-8") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)  # another process may fetch it at the same time
            if installed(root) != pinned(root):
                _fetch(found, root)
    return root / "node_modules" / PACKAGE / "bin" / "cdk"


def _fetch(found: Node, root: Path) -> None:
    command = [*found.npm, "ci", "--no-audit", "--no-fund", "--ignore-scripts", "--loglevel=error"]
    answer = subprocess.run(command, cwd=root, env=environment(found), capture_output=True, text=True)
    if installed(root) != pinned(root):
        told = (answer.stderr or answer.stdout).strip().splitlines()[-1:] or ["npm said nothing"]
        raise NoCommandLine(f"CDK's command line {pinned(root)} could not be fetched: {told[0]}. Check the network")


def environment(found: Node) -> dict[str, str]:
    """The caller's, and what keeps CDK on this Node, quiet, and from asking for newer versions."""
    ours: Mapping[str, str] = {
        "JSII_NODE": str(found.binary),
        "CDK_DISABLE_VERSION_CHECK": "1",
        "CDK_DISABLE_CLI_TELEMETRY": "1",
        "PATH": f"{found.binary.parent}{os.pathsep}{os.environ.get('PATH', '')}",
    }
    return {**os.environ, **ours}


def pinned(root: Path = ROOT) -> str:
    version: str = json.loads((root / "package.json").read_text(encoding="utf-8"))["devDependencies"][PACKAGE]
    return version


def installed(root: Path = ROOT) -> str | None:
    """The version that is here; None where none is."""
    try:
        text = (root / "node_modules" / PACKAGE / "package.json").read_text(encoding="utf-8")
        version: str = json.loads(text)["version"]
    except (OSError, ValueError, KeyError):
        return None
    return version


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
