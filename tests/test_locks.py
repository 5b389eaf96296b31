"""Lock files pin every package by its hash, and the linter bans calls that would run foreign code."""

from __future__ import annotations

import itertools
import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
LOCKS = sorted(
    file.relative_to(ROOT)
    for folder in ("", "simulators/aws", "simulators/confluent/flink/worker", "lambdas", "glue_jobs", "dev")
    for file in (ROOT / folder).glob("requirements*.txt")
)
_PIN = re.compile(r"^([a-z0-9][\w.-]*(?:\[[\w,-]+\])?)==\S+")


def without_hashes(text):
    """Return pinned names without a hash, and lines without a pin."""
    pinned = text.replace("\\\n", " ").splitlines()
    wanted = [line.strip() for line in pinned if line.strip() and not line.strip().startswith("#")]
    return [line[:60] for line in wanted if not (_PIN.match(line) and "--hash=sha256:" in line)]


def test_the_locks_are_there():
    assert len(LOCKS) == 8


@pytest.mark.parametrize("lock", LOCKS, ids=str)
def test_every_pin_has_its_hashes(lock):
    assert without_hashes((ROOT / lock).read_text()) == []


@pytest.mark.parametrize("line", ["requests==2.34.2\n", "requests>=2 \\\n    --hash=sha256:00\n", "-e .\n"])
def test_a_pin_without_a_hash_is_found(line):
    assert without_hashes(line)


#: Code that would run foreign text, and the rule that bans it.
BANNED = {
    "S301": "import pickle\npickle.loads(b'')\n",
    "S506": "import yaml\nyaml.load('')\n",
    "S307": "eval('1')\n",
    "S602": "import subprocess\nsubprocess.run('ls', shell=True)\n",
    "S501": "import requests\nrequests.get('https://a', verify=False, timeout=1)\n",
}


def test_the_linter_bans_code_that_runs_foreign_text(tmp_path):
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    for room in (tmp_path / name for name in ("lambdas/shared", "glue_jobs", "stacks", "lakeferry")):
        room.mkdir(parents=True)
        for rule, code in BANNED.items():
            (room / f"{rule}.py").write_text(code)
    command = [sys.executable, "-m", "ruff", "check", "--no-cache", "--output-format", "json", "."]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=60)
    found = {(Path(load["filename"]).parent.name, load["code"]) for load in json.loads(done.stdout)}
    assert found >= set(itertools.product(("shared", "glue_jobs", "stacks", "lakeferry"), BANNED))
