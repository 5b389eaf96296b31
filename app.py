"""What `cdk` runs: one deployment file in, the stacks out.

`-c stage=` chooses the file, `-c deployments=` its folder.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Final

from aws_cdk import App

from config.deployments.deployment_file import FOLDER, load_stage
from config.deployments.model import Deployment
from config.errors import find_entry, to_plain_text
from config.project import DEFAULT_STAGE
from config.toml_model import BadFile
from lakeferry.local.judge import NotReady, SparkJudge
from stacks import deployment

FAILED = 1
BAD_INPUT = 2
NOT_SET_UP = 3
#: What CDK says of a stack with more resources than CloudFormation allows.
_TOO_MANY: Final = re.compile(
    r"Number of resources in stack '([^']+)': (\d+) is greater than allowed maximum of (\d+)"
)
#: lakeferry/plan/build.py looks for it in the output.
_CODE: Final = "TOO-MANY-RESOURCES"


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
    return synth(app, loaded.deployment)


def synth(app: App, described: Deployment) -> int:
    """Return the exit code. CDK itself prints its findings."""
    try:
        app.synth()
    except RuntimeError as failure:
        too_many = _TOO_MANY.search(str(failure))
        if too_many is None:
            sys.stderr.write(f"{failure}\n")
            return FAILED
        stack, count, limit = too_many.groups()
        sys.stderr.write(
            f"{_CODE}  stack {stack} would have {count} resources, and CloudFormation allows {limit}: the "
            f"deployment file has {len(described.topics)} topics, {len(described.statements)} statements "
            f"and {len(described.exports)} exports\n{to_plain_text(find_entry(_CODE).remedy)}\n"
        )
        return BAD_INPUT
    return 0


if __name__ == "__main__":
    sys.exit(main())
