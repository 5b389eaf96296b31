"""Load a deployment file and check all of it: single values, rules between them, and every file that it
names.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final

import attrs

from config import toml_model
from config.deployments import validation
from config.deployments.model import Deployment
from config.deployments.rules import RULES, Rule
from config.deployments.secret_patterns import find_secrets
from config.deployments.sources import Sources
from config.exports.check import Judge, NotJudged
from config.project import PROJECT
from config.toml_model import BadFile, Problem

FOLDER: Final = PROJECT / "deployments"


@attrs.frozen
class LoadedDeployment:
    """A deployment without mistakes, and the files that it names."""

    deployment: Deployment
    sources: Sources


def load_stage(
    stage: str, folder: Path = FOLDER, *, judge: Judge | NotJudged, rules: Sequence[Rule] = RULES
) -> LoadedDeployment:
    """Load `project/deployments/<stage>.toml`. `judge` asks Spark about the contracts. Raises BadFile."""
    if not validation.is_stage(stage):
        raise BadFile(
            "stage",
            [Problem(0, "stage", f"{stage[:40]!r} can't be a stage: lower-case letters and digits, 2 to 12")],
        )
    file = folder / f"{stage}.toml"
    if not file.is_file():
        stages = ", ".join(sorted(file.stem for file in folder.glob("*.toml")))
        message = f"there is no such file. Stages that have one: {stages or 'none'}"
        raise BadFile(f"project/deployments/{stage}.toml", [Problem(0, "", message)])
    loaded = load(file, judge=judge, rules=rules)
    if loaded.deployment.identity.stage != stage:
        message = f"is {loaded.deployment.identity.stage!r}, but the file is that of stage {stage!r}"
        raise BadFile(f"project/deployments/{stage}.toml", [Problem(0, "deployment.stage", message)])
    return loaded


def load(
    file: Path, root: Path = PROJECT, *, judge: Judge | NotJudged, rules: Sequence[Rule] = RULES
) -> LoadedDeployment:
    """Load a file.

    `root` is the folder of topics/, flink/ and exports/. Raises BadFile with every mistake.
    """
    name = str(file.relative_to(root)) if file.is_relative_to(root) else str(file)
    return parse(toml_model.read_text(file, name), name=name, root=root, judge=judge, rules=rules)


def parse(
    text: str,
    *,
    name: str,
    root: Path = PROJECT,
    judge: Judge | NotJudged,
    rules: Sequence[Rule] = RULES,
) -> LoadedDeployment:
    """Parse a file that messages call `name`. Raises BadFile.

    If the text contains a secret, nothing else is reported: other messages quote the text.
    """
    if secrets := [
        Problem(
            line,
            "",
            f"this looks like {description}. Put it into Secrets Manager, and its name into the file",
        )
        for line, description in find_secrets(text, names_only=True)
    ]:
        raise BadFile(name, secrets)
    sources = Sources(root, judge)
    checks = [lambda deployment, rule=rule: rule(deployment, sources) for rule in rules]
    return LoadedDeployment(toml_model.read(Deployment, text, checks, name=name), sources)
