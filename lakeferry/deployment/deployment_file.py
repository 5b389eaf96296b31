"""The deployment of a stage, as commands take it."""

from __future__ import annotations

import attrs

from deployments import check, forms
from deployments.check import BadFile, Plan
from lakeferry.cli.output import CommandFailed, command


def plan_of(stage: str) -> Plan:
    """Raises CommandFailed with every mistake of the file."""
    try:
        return check.load_stage(stage)
    except BadFile as bad:
        mistakes = [attrs.asdict(problem) for problem in bad.problems]
        hint = "Correct the deployment file; docs/reference/deployment-file.md has all keys"
        if forms.is_stage(stage) and not (check.FOLDER / f"{stage}.toml").is_file():
            hint = f"Make one with `{command()} init --stage {stage}`, or choose another stage"
        raise CommandFailed("DEPLOYMENT-FILE", str(bad), hint, details=mistakes) from None
