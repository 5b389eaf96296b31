"""The how-to page's commands, as they stand there, in one bash; only the ports and the folder of the notes differ."""

from __future__ import annotations

import json
import re
import shutil
import socket
import stat
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
PAGE = ROOT / "docs" / "how-to" / "try-the-snowflake-simulator.md"


def free_port():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


def test_the_page_works(tmp_path):
    if not shutil.which("curl"):
        pytest.skip("curl is not installed")
    script = "\n".join(re.findall(r"^```bash\n(.*?)^```$", PAGE.read_text(), re.DOTALL | re.MULTILINE))
    script = script.replace("4566", str(free_port())).replace("8091", str(free_port()))
    for name in (".venv", ".venv-aws", "simulators"):
        (tmp_path / name).symlink_to(ROOT / name)
    # Whatever happens, nothing that it started stays.
    guarded = f"set -euo pipefail\ntrap 'kill $(jobs -p) 2>/dev/null || true' EXIT\n{script}"
    done = subprocess.run(["bash", "-c", guarded], cwd=tmp_path, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr
    result = [line for line in done.stdout.splitlines() if "success" not in line]
    assert result[:3] == ["ADMIN\tACCOUNTADMIN", "False", "True"], done.stdout
    assert result[3:-1] == ["True", "ZBZX\t7", "ZVV\t9", "2", "4", "refused: the table uses it"], done.stdout
    assert "used by Iceberg table SALES.PUBLIC.TRADES" in done.stderr
    assert "'EXTERNAL VOLUME': []" in result[-1]
    assert {each.name for each in tmp_path.iterdir()} == {".venv", ".venv-aws", "simulators"}


def start(*options):
    command = [sys.executable, "-m", "simulators.snowflake", "--port", "0", *options]
    return subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def test_it_prints_one_line_of_json_and_stops_on_sigterm():
    process = start("--json", "--seed", "1")
    result = json.loads(process.stdout.readline())
    key_file = Path(result["private_key_file"])
    assert stat.S_IMODE(key_file.stat().st_mode) == 0o600
    key = key_file.read_text().splitlines()[1]
    process.terminate()
    rest, log = process.communicate(timeout=20)
    assert {"url", "account", "user", "role", "private_key_file"} <= result.keys()
    assert (process.returncode, rest) == (0, "")
    assert key not in log
    assert not key_file.parent.exists()


def test_it_prints_lines_for_people():
    process = start()
    assert process.stdout.readline().startswith("url  ")
    process.terminate()
    process.communicate(timeout=20)


def test_a_port_that_is_taken():
    with socket.socket() as holder:
        holder.bind(("127.0.0.1", 0))
        holder.listen()
        command = [sys.executable, "-m", "simulators.snowflake", "--port", str(holder.getsockname()[1])]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=20)
    assert done.returncode == 3
    assert "can't be had" in done.stderr
