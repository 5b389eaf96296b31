"""Synthesise a stage into cdk.out without the CDK CLI, which is slow to start: `python -m
lakeferry.deployment.app dev`.
"""

from __future__ import annotations

import json
import subprocess
import sys

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
        manifest = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))
        artifacts = manifest["artifacts"].values()
        stacks = [artifact for artifact in artifacts if artifact["type"] == "aws:cloudformation:stack"]
        files = [folder / stack["properties"]["templateFile"] for stack in stacks]
        resources = sum(len(json.loads(file.read_text(encoding="utf-8"))["Resources"]) for file in files)
        sys.stdout.write(f"{len(files)} templates with {resources} resources in {folder.name}\n")
    return code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
