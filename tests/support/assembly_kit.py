"""Synthesises deployments in this process, with the app's rule pack, and reads the templates."""

from __future__ import annotations

import functools
import json
import tempfile
from pathlib import Path

import attrs

from config.deployments import deployment_file
from dev import synthesis
from tests.support import shipped

ROOT = Path(__file__).resolve().parents[2]
CONTEXT = synthesis.CONTEXT
#: CDK's own context key: whether code stays where it is, instead of being copied into the assembly.
_STAYS = "aws:cdk:disable-asset-staging"


@attrs.frozen
class Assembly:
    """A synthesised app.

    `templates` has a template per part (data, confluent, …); `failure` is the error or "".
    """

    plan: deployment_file.LoadedDeployment
    folder: Path
    templates: dict
    failure: str

    @property
    def prefix(self):
        return self.plan.deployment.prefix

    @property
    def report(self):
        """Return the findings of the rule packs as (rule, construct), warnings too."""
        result = json.loads((self.folder / "validation-report.json").read_text())
        return [
            (violation["ruleName"], place.get("constructPath", ""))
            for plugin in result.get("pluginReports", [])
            for violation in plugin["violations"]
            for place in violation["violatingConstructs"]
        ]

    def resources(self, kind, part=None):
        """Return the properties of all resources of a type by (part, logical id)."""
        return {
            (name, logical_id): body.get("Properties", {})
            for name, template in self.templates.items()
            if part in (None, name)
            for logical_id, body in template["Resources"].items()
            if body["Type"] == kind
        }


def synthesise(plan, folder, change=None, *, with_assets=False, **context):
    """Synthesise a deployment. `change` is called with the app before the synthesis.

    `with_assets` copies code and settings into the assembly, as a deployment does. It changes no template,
    and takes time.
    """
    app = synthesis.compose(plan, folder, {_STAYS: not with_assets} | context)
    if change:
        change(app)
    failure = ""
    try:
        app.synth()
    except RuntimeError as error:
        failure = str(error)
    prefix = plan.deployment.prefix
    files = sorted(folder.glob(f"{prefix}-*.template.json"))
    templates = {
        file.name.removeprefix(f"{prefix}-").removesuffix(".template.json"): json.loads(file.read_text())
        for file in files
    }
    return Assembly(plan, folder, templates, failure)


@functools.cache
def dev_templates():
    """Return dev's templates by part. All tests of a process share them, so copy what you change."""
    with tempfile.TemporaryDirectory() as folder:
        return synthesise(shipped.load("dev"), Path(folder)).templates
