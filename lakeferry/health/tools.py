"""This machine: what a deployment is made with."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Final

from glue_jobs.contract import JAVA_VERSION, PYTHON_VERSION
from lakeferry.deployment import cdk, node
from lakeferry.deployment.node import Node, NoNode
from lakeferry.health.model import Check, Group
from lakeferry.local import java
from lakeferry.local.bootstrap import ROOT
from lakeferry.local.java import FoundJava

GROUP: Final = Group("tools")
_SET_UP: Final = "Run `make setup`"
_SECONDS: Final = 30.0


def look() -> list[Check]:
    return [python(sys.version_info[:3]), *with_node(node.find), java_runtime(java.find_java), uv()]


def python(version: tuple[int, ...]) -> Check:
    shown, wanted = ".".join(map(str, version)), ".".join(map(str, PYTHON_VERSION))
    if version[:2] == PYTHON_VERSION:
        return GROUP.ok("Python", shown)
    return GROUP.fail(
        "Python", shown, f"Install Python {wanted} and run `make PYTHON=python{wanted} setup`", f"{wanted}, as Glue has"
    )


def with_node(find: Callable[[], Node], root: Path = ROOT) -> list[Check]:
    try:
        found = find()
    except NoNode as missing:
        return [GROUP.fail("Node", str(missing), _SET_UP), GROUP.none("CDK command line", "not asked: it needs Node")]
    came = "came with the Python packages" if "node_modules" in " ".join(found.npm) else "this machine's own"
    return [GROUP.ok("Node", f"{found.version}, {came}"), cdk_cli(found, root)]


def cdk_cli(found: Node, root: Path = ROOT) -> Check:
    """The pinned version, here or to be had: it is fetched when it is first needed."""
    pin, here = cdk.pinned(root), cdk.installed(root)
    if here == pin:
        return GROUP.ok("CDK command line", pin)
    instead = f"{here or 'none'} is here"
    if told := _can_not_be_fetched(found, pin, root):
        fix = "Check the network and npm's settings (`npm config list`), then run this again"
        return GROUP.fail("CDK command line", f"{instead}, and npm can't fetch the other: {told}", fix, pin)
    return GROUP.ok("CDK command line", f"{pin} can be fetched, and is when it is first needed; {instead}")


def java_runtime(find: Callable[[], FoundJava]) -> Check:
    """No deployment needs it: exports that run on this machine do."""
    found = find()
    if found.home:
        return GROUP.ok("Java", f"{JAVA_VERSION} at {found.home}")
    seen = "; ".join(found.passed_over) or "none"
    return GROUP.warn("Java", f"{seen}; a deployment needs none, exports run here do", _SET_UP, str(JAVA_VERSION))


def uv(beside: Path = Path(sys.executable)) -> Check:
    """It packs what the functions need."""
    own = beside.with_name("uv")
    if place := (str(own) if own.exists() else shutil.which("uv")):
        return GROUP.ok("uv", place)
    return GROUP.fail("uv", "none; without it the functions' packages can't be brought together", _SET_UP)


def _can_not_be_fetched(found: Node, pin: str, root: Path) -> str:
    """Why; "" where it can."""
    command = [*found.npm, "view", f"{cdk.PACKAGE}@{pin}", "version", "--loglevel=error"]
    try:
        answer = subprocess.run(command, cwd=root, env=cdk.environment(found), capture_output=True, text=True, timeout=_SECONDS)
    except (OSError, subprocess.TimeoutExpired) as error:
        return type(error).__name__
    if answer.returncode == 0 and answer.stdout.strip() == pin:
        return ""
    return ((answer.stderr or answer.stdout).strip().splitlines() or ["npm said nothing"])[0]
