"""Reads a deployment file and checks all of it: form, what belongs together, and every file that it names."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import attrs

from deployments import forms, secret_shapes
from deployments.model import Deployment
from deployments.rules import RULES
from deployments.sources import ROOT, Sources
from exports import toml_model
from exports.toml_model import BadFile, Problem

__all__ = ["BadFile", "Plan", "load", "load_stage", "parse"]

FOLDER: Final = ROOT / "deployments"


@attrs.frozen
class Plan:
    """A deployment without mistakes, and the files that it names."""

    deployment: Deployment
    sources: Sources


def load_stage(stage: str, folder: Path = FOLDER) -> Plan:
    """The deployment of `deployments/<stage>.toml`. Raises BadFile."""
    if not forms.is_stage(stage):
        raise BadFile("stage", [Problem(0, "stage", f"{stage[:40]!r} can't be a stage: small letters and digits, 2 to 12")])
    file = folder / f"{stage}.toml"
    if not file.is_file():
        known = ", ".join(sorted(one.stem for one in folder.glob("*.toml")))
        raise BadFile(f"deployments/{stage}.toml", [Problem(0, "", f"there is no such file. Stages with one: {known or 'none'}")])
    plan = load(file)
    if plan.deployment.deployment.stage != stage:
        told = f"is {plan.deployment.deployment.stage!r}, but the file is that of stage {stage!r}"
        raise BadFile(f"deployments/{stage}.toml", [Problem(0, "deployment.stage", told)])
    return plan


def load(file: Path, root: Path = ROOT) -> Plan:
    """`root` is where schemas, statements and exports are looked for. Raises BadFile with every mistake."""
    name = str(file.relative_to(root)) if file.is_relative_to(root) else str(file)
    return parse(toml_model.read_text(file, name), name=name, root=root)


def parse(text: str, *, name: str, root: Path = ROOT) -> Plan:
    """Raises BadFile. Where a secret stands in the text nothing else is told, as messages repeat what they are about."""
    if found := [
        Problem(line, "", f"{what} stands here. Put it into Secrets Manager, and its name into the file")
        for line, what in secret_shapes.suspicious(text)
    ]:
        raise BadFile(name, found)
    sources = Sources(root)
    rules = [lambda deployment, rule=rule: rule(deployment, sources) for rule in RULES]
    return Plan(toml_model.read(Deployment, text, rules, name=name), sources)
