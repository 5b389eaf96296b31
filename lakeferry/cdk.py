"""Runs the pinned CDK command line: `python -m lakeferry.cdk synth`. It is fetched once; after that no network is needed."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from lakeferry import node
from lakeferry.bootstrap import ROOT
from lakeferry.node import Node, NoNode

_PACKAGE: Final = "aws-cdk"
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
    folder = root / "node_modules" / _PACKAGE
    if _installed(folder) != pinned(root):
        command = [*found.npm, "ci", "--no-audit", "--no-fund", "--ignore-scripts", "--loglevel=error"]
        answer = subprocess.run(command, cwd=root, env=environment(found), capture_output=True, text=True)
        if _installed(folder) != pinned(root):
            told = (answer.stderr or answer.stdout).strip().splitlines()[-1:] or ["npm said nothing"]
            raise NoCommandLine(f"CDK's command line {pinned(root)} could not be fetched: {told[0]}. Check the network")
    return folder / "bin" / "cdk"


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
    version: str = json.loads((root / "package.json").read_text(encoding="utf-8"))["devDependencies"][_PACKAGE]
    return version


def _installed(folder: Path) -> str | None:
    try:
        version: str = json.loads((folder / "package.json").read_text(encoding="utf-8"))["version"]
    except (OSError, ValueError, KeyError):
        return None
    return version


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
