"""The app as `cdk` runs it."""

from __future__ import annotations

import filecmp
import json
import os
import shlex
import subprocess
import sys
import tarfile
from pathlib import Path

import aws_cdk
import pytest
from aws_cdk import Annotations, App, Stack

import app
from lakeferry.deployment.cdk import Cdk
from lakeferry.deployment.context import DeploymentContext, load_deployment
from tests.support import shipped
from tests.support.assembly_kit import CONTEXT, ROOT

#: The command with which CDK starts the app.
SHIPPED = json.loads((ROOT / "cdk.json").read_text())["app"]


def start(tmp_path, **context):
    environment = {
        **os.environ,
        "CDK_OUTDIR": str(tmp_path / "out"),
        "CDK_CONTEXT_JSON": json.dumps({**CONTEXT, **context}),
        "AWS_ACCESS_KEY_ID": "",
        "AWS_CONFIG_FILE": "/dev/null",
    }
    return subprocess.run(
        shlex.split(SHIPPED), cwd=ROOT, env=environment, capture_output=True, text=True, timeout=300
    )


@pytest.mark.slow
def test_a_bad_file_is_reported_with_exit_code_2_and_nothing_is_created(tmp_path):
    done = start(tmp_path, stage="nope")
    assert done.returncode == 2
    assert "project/deployments/nope.toml: 1 mistake" in done.stderr
    assert "Traceback" not in done.stderr
    assert list(tmp_path.rglob("*.template.json")) == []


@pytest.mark.slow
def test_a_finding_ends_the_app_without_a_traceback(tmp_path, capfd):
    planted = App(outdir=str(tmp_path), context=CONTEXT)
    Annotations.of(Stack(planted, "Planted")).add_error("planted finding")
    assert app.synth(planted, shipped.load("dev").deployment) == 1
    assert "ValidationFailed" in capfd.readouterr().err


def test_every_feature_flag_of_cdk_is_decided(tmp_path):
    """CDK's command line warns at each synthesis of a flag that cdk.json doesn't have."""
    (package,) = Path(aws_cdk.__file__).with_name("_jsii").glob("aws-cdk-lib@*.jsii.tgz")
    with tarfile.open(package) as archive:
        flags = json.load(archive.extractfile("package/recommended-feature-flags.json"))
    assert len(flags) > 50
    assert set(flags) - set(CONTEXT) == set()


@pytest.mark.deep
def test_the_command_line_prints_no_warning_and_synthesises_what_deploy_does(tmp_path):
    command = [
        sys.executable,
        "-m",
        "lakeferry.deployment.cdk",
        "synth",
        "--context",
        "stage=dev",
        "--quiet",
        "--output",
        str(tmp_path / "out"),
    ]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr
    printed = (done.stdout + done.stderr).lower()
    assert [word for word in ("feature flag", "warning", "deprecated") if word in printed] == []
    Cdk(DeploymentContext(load_deployment("dev")), tmp_path / "own").synth(print)
    compared = filecmp.dircmp(tmp_path / "out", tmp_path / "own", ignore=["performance-counters.json"])
    assert (compared.diff_files, compared.left_only, compared.right_only) == ([], [], [])


@pytest.mark.deep
def test_the_app_needs_no_account_and_synthesises_the_tested_templates(tmp_path, prod):
    done = start(tmp_path, stage="prod")
    assert done.returncode == 0, done.stderr
    for part, template in prod.templates.items():
        assert json.loads((tmp_path / "out" / f"lakeferry-prod-{part}.template.json").read_text()) == template
