"""Checks of the tools on this machine and of the deployment file."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Final

from config.deployments.deployment_file import LoadedDeployment
from glue_jobs.platform import DEFAULT_RELEASE, JAVA_VERSION
from lakeferry.deployment import cdk, node
from lakeferry.deployment.node import Node, NoNode
from lakeferry.errors import CommandFailed
from lakeferry.health.model import Check, Group
from lakeferry.local import java
from lakeferry.local.bootstrap import ROOT
from lakeferry.local.java import FoundJava

GROUP: Final = Group("tools")
FILE: Final = Group("file")
_MOST_FIELDS: Final = 5
_SET_UP: Final = "Run `make setup`"
_SECONDS: Final = 30.0


def check_machine() -> list[Check]:
    return [check_python(sys.version_info[:3]), *with_node(node.find), check_java(java.find_java), check_uv()]


def check_python(version: tuple[int, ...]) -> Check:
    text = ".".join(map(str, version))
    required_version = ".".join(map(str, DEFAULT_RELEASE.python))
    if version[:2] == DEFAULT_RELEASE.python:
        return GROUP.ok("Python", text)
    return GROUP.fail(
        "Python",
        text,
        f"Install Python {required_version} and run `make PYTHON=python{required_version} setup`",
        f"{required_version}, as Glue has",
    )


def with_node(find: Callable[[], Node], root: Path = ROOT) -> list[Check]:
    try:
        chosen = find()
    except NoNode as missing:
        return [
            GROUP.fail("Node", str(missing), _SET_UP),
            GROUP.skip_unseen("CDK command line", "not checked: it needs Node"),
        ]
    origin = (
        "came with the Python packages" if "node_modules" in " ".join(chosen.npm) else "this machine's own"
    )
    return [GROUP.ok("Node", f"{chosen.version}, {origin}"), check_cdk_cli(chosen, root)]


def check_cdk_cli(node_: Node, root: Path = ROOT) -> Check:
    """Check that the pinned version is installed or can be fetched. It is fetched when it is first needed."""
    pin = cdk.read_pinned(root)
    installed = cdk.read_installed(root)
    if installed == pin:
        return GROUP.ok("CDK command line", pin)
    instead = f"{installed or 'none'} is installed"
    if why := _fetch_problem(node_, pin, root):
        fix = "Check the network and npm's settings (`npm config list`), then run this again"
        return GROUP.fail("CDK command line", f"{instead}, and npm can't fetch the other: {why}", fix, pin)
    return GROUP.ok(
        "CDK command line", f"{pin} can be fetched, and will be when it is first needed; {instead}"
    )


def check_java(find: Callable[[], FoundJava]) -> Check:
    """Check for Java. Only exports that run on this machine need it; a deployment doesn't."""
    java_ = find()
    if java_.home:
        return GROUP.ok("Java", f"{JAVA_VERSION} at {java_.home}")
    passed_over = "; ".join(java_.passed_over) or "none"
    return GROUP.warn(
        "Java", f"{passed_over}; only exports that run on this machine need it", _SET_UP, str(JAVA_VERSION)
    )


def check_uv(beside: Path = Path(sys.executable)) -> Check:
    """Check for uv, which packages the Lambda functions' dependencies."""
    beside_python = beside.with_name("uv")
    if binary := (str(beside_python) if beside_python.exists() else shutil.which("uv")):
        return GROUP.ok("uv", binary)
    return GROUP.fail("uv", "not installed; it packages the functions' dependencies", _SET_UP)


def _fetch_problem(node_: Node, pin: str, root: Path) -> str:
    """Return why npm can't fetch the version; "" if it can."""
    command = [*node_.npm, "view", f"{cdk.PACKAGE}@{pin}", "version", "--loglevel=error"]
    try:
        answer = subprocess.run(
            command,
            cwd=root,
            env=cdk.build_environment(node_),
            capture_output=True,
            text=True,
            timeout=_SECONDS,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return type(error).__name__
    if answer.returncode == 0 and answer.stdout.strip() == pin:
        return ""
    return ((answer.stderr or answer.stdout).strip().splitlines() or ["npm said nothing"])[0]


def check_file(plan: LoadedDeployment) -> list[Check]:
    deployment = plan.deployment
    numbers = {
        "topic": len(deployment.topics),
        "table": len(deployment.tables),
        "export": len(deployment.exports),
    }
    counts = []
    for name, number in numbers.items():
        plural = "" if number == 1 else "s"
        counts.append(f"{number} {name}{plural}")
    what = f"project/deployments/{deployment.identity.stage}.toml: {', '.join(counts)}"
    return [
        FILE.ok("deployment file", what),
        check_field_names(plan),
    ]


def report_invalid_file(failure: CommandFailed) -> list[Check]:
    return [FILE.fail("deployment file", failure.message, failure.hint)]


def check_field_names(plan: LoadedDeployment) -> Check:
    """Check the names of fields: unlike a topic's, they may have upper-case letters, which Glue shows in
    lower case.
    """
    fields: list[str] = []
    for topic in plan.deployment.tables:
        schema = json.loads(plan.sources.schema_text(topic) or "{}")
        names = [str(field.get("name", "")) for field in schema.get("fields", [])]
        fields += [f"{topic.name}.{name}" for name in names if name != name.lower()]
    if not fields:
        return FILE.ok("lower-case names", "all topics, and all fields of the schemas in project/topics/")
    listed = ", ".join(fields[:_MOST_FIELDS])
    if fields[_MOST_FIELDS:]:
        listed += " …"
    fix = "Write them in the schema in lower case with underscores"
    effect = (
        f"fields with upper-case letters: {listed}; Glue shows them in lower case, and Snowflake finds them "
        "only as Glue does"
    )
    return FILE.warn("lower-case names", effect, fix)
