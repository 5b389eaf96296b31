"""What `cdk` runs: one deployment file in, the stacks out.

`-c stage=` chooses the file, `-c deployments=` its folder.
"""

from __future__ import annotations

import sys
from pathlib import Path

from aws_cdk import App

from config.deployments.deployment_file import FOLDER, load_stage
from config.project import DEFAULT_STAGE
from config.toml_model import BadFile
from lakeferry.local.judge import NotReady, SparkJudge
from stacks import deployment

FAILED = 1
BAD_INPUT = 2
NOT_SET_UP = 3


def main() -> int:
    app = App()
    try:
        folder = app.node.try_get_context("deployments")
        stage = str(app.node.try_get_context("stage") or DEFAULT_STAGE)
        with SparkJudge() as judge:
            loaded = load_stage(stage, Path(folder) if folder else FOLDER, judge=judge)
    except BadFile as bad:
        sys.stderr.write(f"{bad}\n")
        return BAD_INPUT
    except NotReady as missing:
        sys.stderr.write(f"NOT-SET-UP  {missing}\n")
        return NOT_SET_UP
    deployment.compose(app, loaded)
    return synth(app)


def synth(app: App) -> int:
    """Return the exit code. CDK itself prints its findings."""
    try:
        app.synth()
    except RuntimeError as failure:
        sys.stderr.write(f"{failure}\n")
        return FAILED
    return 0


if __name__ == "__main__":
    sys.exit(main())
