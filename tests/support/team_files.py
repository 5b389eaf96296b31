"""Reads the files that a team starts from (workflows, hooks, devcontainer), and lists what is wrong with
their commands.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import typer
import yaml

from tests.support import docs_commands

WORKFLOWS = ".github/workflows"
GITLAB = Path("docs/ci/gitlab-ci.yml")
HOOKS = Path(".pre-commit-config.yaml")
CONTAINER = Path(".devcontainer/devcontainer.json")
_VARIABLE = re.compile(r'"\$\w+"')
_PINNED = re.compile(r"[\w-]+/[\w./-]+@(v\d+(\.\d+)*|[0-9a-f]{40})")
#: Shell commands that are not checked.
_SHELL = ("echo ", "export ", "rm ")


def load(file: Path) -> Any:
    text = file.read_text(encoding="utf-8")
    return json.loads(text) if file.suffix == ".json" else yaml.safe_load(text)


def all_of(root: Path) -> list[Path]:
    found = [*sorted((root / WORKFLOWS).glob("*.yml")), root / ".github" / "dependabot.yml"]
    return [*found, *(root / part for part in (GITLAB, HOOKS, CONTAINER))]


def commands(file: Path) -> list[str]:
    """Return every command line that the file runs."""
    return [line for text in _scripts(load(file)) for line in text.splitlines() if line.strip()]


def wrong_commands(file: Path, app: typer.Typer, root: Path) -> list[str]:
    return [line for line in commands(file) if not line.startswith(_SHELL) and _is_wrong(line, app, root)]


def unpinned(workflow: dict[str, Any]) -> list[str]:
    """Return third-party actions that name a branch or no version."""
    used = [step["uses"] for job in workflow["jobs"].values() for step in job["steps"] if "uses" in step]
    return [reference for reference in used if not _PINNED.fullmatch(reference)]


def risks(workflow: dict[str, Any]) -> Iterator[str]:
    """Return what gives a job more permissions than it needs."""
    text = json.dumps(workflow)
    if "secrets." in text:
        yield "asks for a stored secret"
    if "pull_request_target" in text:
        yield "runs a stranger's code with rights"
    if workflow.get("permissions", {}).get("contents") != "read":
        yield "may write to the repository"
    for name, job in workflow["jobs"].items():
        if "id-token" in workflow.get("permissions", {}) and "environment" not in job:
            yield f"{name} may get credentials outside of an environment"
        if "timeout-minutes" not in job:
            yield f"{name} may run for ever"
        if any("${{" in step.get("run", "") for step in job["steps"]):
            yield f"{name} puts somebody's words into a shell"
        if any(
            step.get("uses", "").startswith("actions/checkout") and not _forgets(step)
            for step in job["steps"]
        ):
            yield f"{name} leaves its token in the clone"


def _forgets(step: dict[str, Any]) -> bool:
    return step.get("with", {}).get("persist-credentials") is False


def _scripts(node: Any) -> Iterator[str]:
    """Yield texts below the keys that contain commands in these formats."""
    if isinstance(node, list):
        for element in node:
            yield from _scripts(element)
    if isinstance(node, dict):
        for key, value in node.items():
            if key in ("run", "script", "before_script", "after_script", "entry", "postCreateCommand"):
                yield from [value] if isinstance(value, str) else value
            else:
                yield from _scripts(value)


def _is_wrong(line: str, app: typer.Typer, root: Path) -> bool:
    plain = _VARIABLE.sub("dev", line)
    program, *words = plain.split()
    if program in (*docs_commands.NAMES, "make"):
        return docs_commands.wrong_line(app, root / "Makefile", plain, whole=True) is not None
    paths = [word for word in words if "/" in word]
    return not (root / program).is_file() or not all((root / word).exists() for word in paths)
