"""What is installed is what was locked, byte for byte; and the linter bans what would run somebody else's text."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
LOCKS = sorted(
    file.relative_to(ROOT)
    for folder in ("", "simulators/aws", "simulators/confluent_cloud/flink_worker", "lambdas", "glue_jobs")
    for file in (ROOT / folder).glob("requirements.txt")
)
_PIN = re.compile(r"^([a-z0-9][\w.-]*(?:\[[\w,-]+\])?)==\S+")


def without_hashes(text):
    """Names that are pinned and have no hash after them, and lines that pin nothing."""
    pinned = text.replace("\\\n", " ").splitlines()
    wanted = [line.strip() for line in pinned if line.strip() and not line.strip().startswith("#")]
    return [line[:60] for line in wanted if not (_PIN.match(line) and "--hash=sha256:" in line)]


def test_the_locks_are_there():
    assert len(LOCKS) == 5


@pytest.mark.parametrize("lock", LOCKS, ids=str)
def test_every_pin_has_its_hashes(lock):
    assert without_hashes((ROOT / lock).read_text()) == []


@pytest.mark.parametrize("line", ["requests==2.34.2\n", "requests>=2 \\\n    --hash=sha256:00\n", "-e .\n"])
def test_a_pin_without_a_hash_would_be_seen(line):
    assert without_hashes(line)


@pytest.mark.parametrize(
    ("code", "rule"),
    [
        ("import pickle\npickle.loads(b'')\n", "S301"),
        ("import yaml\nyaml.load('')\n", "S506"),
        ("eval('1')\n", "S307"),
        ("import subprocess\nsubprocess.run('ls', shell=True)\n", "S602"),
        ("import requests\nrequests.get('https://a', verify=False, timeout=1)\n", "S501"),
    ],
)
@pytest.mark.parametrize("room", ["lambdas/core", "glue_jobs", "stacks", "lakeferry"])
def test_the_linter_bans_what_runs_foreign_text(room, code, rule):
    command = [
        sys.executable,
        "-m",
        "ruff",
        "check",
        "--no-cache",
        "--output-format",
        "concise",
        "--stdin-filename",
        f"{room}/x.py",
        "-",
    ]
    found = subprocess.run(command, cwd=ROOT, input=code, capture_output=True, text=True)
    assert f" {rule} " in found.stdout
