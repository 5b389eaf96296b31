"""The files that a team starts from are valid, call existing commands only, and ask for few permissions.

Defects are found.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from glue_jobs.platform import DEFAULT_RELEASE
from lakeferry.__main__ import app
from tests.support import team_files

ROOT = Path(__file__).resolve().parents[1]
FILES = team_files.all_of(ROOT)
WORKFLOWS = [file for file in FILES if file.parent.name == "workflows"]
CHECK, DEPLOY = (team_files.load(ROOT / team_files.WORKFLOWS / f"{name}.yml") for name in ("check", "deploy"))


def name(file):
    return str(file.relative_to(ROOT))


@pytest.mark.parametrize("file", FILES, ids=name)
def test_commands_in_files_for_teams_are_valid(file):
    assert team_files.load(file)
    assert team_files.wrong_commands(file, app, ROOT) == []


@pytest.mark.parametrize(
    "line",
    [
        "make dmeo",
        ".venv/bin/lakeferry paln --stage dev",
        ".venv/bin/rufff check",
        ".venv/bin/ruff tests/x.py",
    ],
)
def test_a_wrong_command_is_found(tmp_path, line):
    file = tmp_path / "x.yml"
    file.write_text(json.dumps({"jobs": {"one": {"steps": [{"run": f"make lint\n{line}\n"}]}}}))
    assert team_files.wrong_commands(file, app, ROOT) == [line]


def test_commands_are_found_wherever_a_format_has_them():
    found = {name(file): len(team_files.commands(file)) for file in FILES}
    assert found == {
        ".github/workflows/check.yml": 6,
        ".github/workflows/deploy.yml": 5,
        ".github/workflows/nightly.yml": 6,
        ".github/workflows/simulators.yml": 1,
        ".github/dependabot.yml": 0,
        "docs/ci/gitlab-ci.yml": 21,
        ".pre-commit-config.yaml": 6,
        ".devcontainer/devcontainer.json": 1,
    }


def test_workflows_test_each_change_and_the_rest_at_night():
    each = {"make lint", "make checkov", "make test", "make test-slow", "make deployments"}
    night = {
        "make libreoffice",
        "make nightly-campaigns",
        "make nightly-cluster",
        "make test-glue-6",
        "make test-glue-boto3",
        "make audit",
    }
    assert each <= set(team_files.commands(ROOT / team_files.WORKFLOWS / "check.yml"))
    assert night == set(team_files.commands(ROOT / team_files.WORKFLOWS / "nightly.yml"))
    assert each | night <= set(team_files.commands(ROOT / team_files.GITLAB))


@pytest.mark.parametrize("file", WORKFLOWS, ids=name)
def test_workflows_pin_actions_and_have_few_permissions(file):
    workflow = team_files.load(file)
    assert team_files.unpinned(workflow) == []
    assert list(team_files.risks(workflow)) == []


def test_a_stage_is_deployed_in_its_environment_with_temporary_credentials():
    (job,) = DEPLOY["jobs"].values()
    (assume,) = [step["with"] for step in job["steps"] if "configure-aws" in step.get("uses", "")]
    assert job["environment"] == job["env"]["STAGE"]
    assert assume["role-to-assume"] == "${{ vars.AWS_ROLE }}"
    assert assume["role-duration-seconds"] == job["timeout-minutes"] * 60
    page = (ROOT / "docs" / "how-to" / "deploy-from-ci.md").read_text()
    assert f"--max-session-duration {assume['role-duration-seconds']}" in page
    assert "id-token" not in CHECK["permissions"]
    stages = DEPLOY[True]["workflow_dispatch"]["inputs"]["stage"][
        "options"
    ]  # YAML reads the key `on` as true
    assert {f"{stage}.toml" for stage in stages} <= {
        file.name for file in (ROOT / "project" / "deployments").glob("*.toml")
    }


STEPS = [{"uses": "actions/checkout@v6", "with": {"persist-credentials": False}}, {"run": "make lint"}]
JOB = {"timeout-minutes": 5, "steps": STEPS}
GOOD = {"permissions": {"contents": "read"}, "jobs": {"one": JOB}}


@pytest.mark.parametrize(
    "workflow",
    [
        GOOD | {"permissions": {"contents": "write"}},
        GOOD | {"permissions": {"contents": "read", "id-token": "write"}},
        GOOD | {"on": "pull_request_target"},
        GOOD | {"jobs": {"one": {"steps": STEPS}}},
        GOOD | {"jobs": {"one": JOB | {"steps": [{"uses": "actions/checkout@v6"}]}}},
        GOOD | {"jobs": {"one": JOB | {"steps": [{"run": "echo ${{ github.head_ref }}"}]}}},
        GOOD | {"jobs": {"one": JOB | {"env": {"KEY": "${{ secrets.KEY }}"}}}},
    ],
)
def test_a_workflow_with_a_risk_is_found(workflow):
    assert list(team_files.risks(GOOD)) == []
    assert len(list(team_files.risks(workflow))) == 1


@pytest.mark.parametrize("used", ["actions/checkout@main", "actions/checkout", "actions/checkout@0ad4b8f"])
def test_an_action_without_a_version_is_found(used):
    assert team_files.unpinned({"jobs": {"one": {"steps": [{"uses": used}]}}}) == [used]
    assert team_files.unpinned({"jobs": {"one": {"steps": [{"uses": f"a/b@{'0a' * 20}"}]}}}) == []


def test_the_devcontainer_has_the_versions_of_the_project():
    container = team_files.load(ROOT / team_files.CONTAINER)
    python = ".".join(map(str, DEFAULT_RELEASE.python))
    features = {
        place.split("/")[-1].split(":")[0]: settings for place, settings in container["features"].items()
    }
    nodes = json.loads((ROOT / "package.json").read_text())["engines"]["node"]
    assert f"python:1-{python}-" in container["image"]
    assert features["java"]["version"] == "17"
    assert f"^{features['node']['version']}" in nodes
    assert f'python-version: "{python}"' in (ROOT / team_files.WORKFLOWS / "check.yml").read_text()


def test_hooks_are_tools_of_the_project_only():
    (repository,) = team_files.load(ROOT / team_files.HOOKS)["repos"]
    assert repository["repo"] == "local"
    assert {hook["language"] for hook in repository["hooks"]} == {"system"}
