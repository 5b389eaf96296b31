"""Synthesise a stage into cdk.out without the CDK CLI, which is slow to start: `python -m
lakeferry.deployment.app dev`.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from lakeferry.deployment import cdk, node
from lakeferry.deployment.node import NoNode
from lakeferry.local.bootstrap import ROOT


def main(stage: str) -> int:
    try:
        node_ = node.find()
    except NoNode as missing:
        sys.stderr.write(f"{missing}\n")
        return cdk.NOT_READY
    folder = ROOT / "cdk.out"
    command, variables = cdk.build_app_command(folder, {"stage": stage})
    code = subprocess.run(command, cwd=ROOT, env={**cdk.build_environment(node_), **variables}).returncode
    if code == 0:
        stacks = [
            artifact for artifact in _read_artifacts(folder) if artifact["type"] == "aws:cloudformation:stack"
        ]
        files = [folder / stack["properties"]["templateFile"] for stack in stacks]
        resources = sum(len(json.loads(file.read_text(encoding="utf-8"))["Resources"]) for file in files)
        sys.stdout.write(f"{len(files)} templates with {resources} resources in {folder.name}\n")
    return code


def _read_artifacts(folder: Path) -> Iterable[dict[str, Any]]:
    artifacts: dict[str, dict[str, Any]] = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))[
        "artifacts"
    ]
    return artifacts.values()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
