"""The how-to page's commands, as they stand there, in one bash; only the ports and the folder of the notes differ."""

from __future__ import annotations

import json
import re
import shutil
import socket
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from simulators.confluent.flink.engine import FLINK_PYTHON

ROOT = Path(__file__).resolve().parents[3]
PAGE = ROOT / "docs" / "how-to" / "try-the-confluent-simulator.md"


def free_port():
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return found.getsockname()[1]


def test_the_page_works(tmp_path):
    if not shutil.which("curl"):
        pytest.skip("curl is not installed")
    script = "\n".join(re.findall(r"^```bash\n(.*?)^```$", PAGE.read_text(), re.DOTALL | re.MULTILINE))
    script = script.replace("4566", str(free_port())).replace("8090", str(free_port()))
    for name in (".venv", ".venv-aws", "simulators", "topics"):
        (tmp_path / name).symlink_to(ROOT / name)
    # Whatever happens, nothing that it started stays.
    guarded = f"set -euo pipefail\ntrap 'kill $(jobs -p) 2>/dev/null || true' EXIT\n{script}"
    done = subprocess.run(["bash", "-c", guarded], cwd=tmp_path, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr
    phases = done.stdout.split()
    assert phases[:7] == ["PROVISIONING", "PROVISIONED", "6", "RUNNING", "RUNNING", "RUNNING", "SYNCED"]
    rows = re.search(r"^(\d+) rows$", done.stdout, re.MULTILINE)
    assert int(rows[1]) > 100
    assert done.stdout.strip().endswith("[]")
    assert not list(tmp_path.glob("*.json"))


def start(*options):
    command = [sys.executable, "-m", "simulators.confluent", "--port", "0", *options]
    return subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def test_it_prints_one_line_of_json_and_stops_when_told():
    process = start("--json", "--seed", "1")
    result = json.loads(process.stdout.readline())
    process.terminate()
    rest, log = process.communicate(timeout=20)
    assert {"url", "cloud_api_key", "cloud_api_secret", "organization_id"} <= result.keys()
    assert result["cloud_api_secret"] not in log
    assert (process.returncode, rest) == (0, ""), log


@pytest.mark.skipif(not FLINK_PYTHON.exists(), reason="Flink is not installed (.venv-flink is missing)")
def test_it_starts_with_flink_and_leaves_nothing_of_it():
    process = start("--json", "--flink", "--seed", "1")
    folders = set(Path(tempfile.gettempdir()).glob("lakeferry-flink-*"))
    assert json.loads(process.stdout.readline())["url"]
    mine = set(Path(tempfile.gettempdir()).glob("lakeferry-flink-*")) - folders
    process.terminate()
    process.communicate(timeout=30)
    assert process.returncode == 0
    assert not any(folder.exists() for folder in mine)


def test_it_tells_people_too():
    process = start()
    assert process.stdout.readline().startswith("url  ")
    process.terminate()
    process.communicate(timeout=20)


def test_a_port_that_is_taken():
    with socket.socket() as holder:
        holder.bind(("127.0.0.1", 0))
        holder.listen()
        command = [sys.executable, "-m", "simulators.confluent", "--port", str(holder.getsockname()[1])]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=20)
    assert done.returncode == 3
    assert "can't be had" in done.stderr
