"""Synthesise a stage into cdk.out without the CDK CLI, which is slow to start: `python -m lakeferry.deployment.app dev`."""

from __future__ import annotations

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
    command, variables = cdk.app(ROOT / "cdk.out", {"stage": stage})
    return subprocess.run(command, cwd=ROOT, env={**cdk.environment(node_), **variables}).returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
