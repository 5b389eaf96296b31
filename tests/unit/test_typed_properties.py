"""mypy finds mistakes in a stack about a resource type's properties and outputs."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PLANTED = """\
from lambdas.confluent.properties import TopicProps, TopicOutputs
TopicProps(environment_id="env-1", cluster_id="lkc-1", credentials="secret", topic="orders")
TopicProps(environment_id="env-1", cluster_id="lkc-1", credentials="secret")  # planted: misses topic
TopicProps(environment_id="env-1", cluster_id="lkc-1", credentials="secret", topic="orders", partition=3)  # planted: misspelt
TopicProps(environment_id="env-1", cluster_id="lkc-1", credentials="secret", topic=None)  # planted: wrong type
TopicOutputs("orders", "3").partition  # planted: no such output
TopicOutputs("orders", "3").partitions
"""


@pytest.mark.slow
def test_mypy_finds_a_missing_a_misspelt_and_a_wrong_property_and_a_misspelt_output(tmp_path):
    file = tmp_path / "planted.py"
    file.write_text(PLANTED)
    command = [
        sys.executable,
        "-m",
        "mypy",
        "--strict",
        "--config-file",
        "",
        "--follow-imports",
        "silent",
        str(file),
    ]
    done = subprocess.run(
        [*command, "--cache-dir", str(tmp_path / "cache")], capture_output=True, text=True, cwd=ROOT
    )
    wanted = [number for number, line in enumerate(PLANTED.splitlines(), 1) if "# planted" in line]
    assert [int(line) for line in re.findall(r"planted\.py:(\d+): error", done.stdout)] == wanted, (
        done.stdout + done.stderr
    )
