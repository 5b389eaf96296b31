"""Synthesise a deployment file in this process: for what developers check in templates, and for the tests."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

import attrs

from config.deployments.deployment_file import LoadedDeployment
from config.project import ROOT
from lakeferry.deployment import node

os.environ.setdefault("JSII_NODE", str(node.find().binary))

from aws_cdk import App, Validations

from stacks import deployment

CONTEXT: Final = json.loads((ROOT / "cdk.json").read_text(encoding="utf-8"))["context"]


@attrs.frozen
class Acknowledgement:
    """An accepted finding of a rule pack of CDK. `construct` is a path that begins with the stack."""

    construct: str
    rule: str
    reason: str


def compose(loaded: LoadedDeployment, folder: Path, context: Mapping[str, str] | None = None) -> App:
    """Return the app with its stacks. Its `synth` writes into `folder`, and raises RuntimeError for a finding
    that is not acknowledged.
    """
    app = App(outdir=str(folder), context={**CONTEXT, **(context or {})})
    deployment.compose(app, loaded)
    return app


def read_acknowledgements(folder: Path) -> Iterator[Acknowledgement]:
    """Yield the accepted findings of a synthesis, which CDK writes as metadata of constructs."""
    for file in sorted(folder.glob("*.metadata.json")):
        for construct, entries in json.loads(file.read_text(encoding="utf-8")).items():
            for entry in entries:
                if entry["type"] == Validations.ACKNOWLEDGED_RULES_METADATA_KEY:
                    for rule, reason in entry["data"].items():
                        yield Acknowledgement(construct.lstrip("/"), rule, reason)
