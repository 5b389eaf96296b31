"""The vendors' simulators as commands: the commands of each section of their page in one bash, and how a
server starts and stops.
"""

import json
import re
import shutil
import socket
import stat
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from simulators.confluent.flink.engine import FLINK_PYTHON
from simulators.core.processes import ROOT

VENDORS = pytest.mark.parametrize("vendor", ["confluent", "snowflake"])


def free_port():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return str(free.getsockname()[1])


def walk(folder, vendor):
    """Run the commands of a section as they are, but with free ports. Return what they print, and the
    errors.
    """
    if not shutil.which("curl"):
        pytest.skip("curl is not installed")
    page = (ROOT / "docs" / "how-to" / "try-the-simulators.md").read_text()
    section = page.partition(f"\n## {vendor}\n")[2].partition("\n## ")[0]
    script = "\n".join(re.findall(r"^```bash\n(.*?)^```$", section, re.DOTALL | re.MULTILINE))
    for port in ("4566", "8090", "8091"):
        script = script.replace(port, free_port())
    present = {".venv", ".venv-aws", "project", "simulators"}
    for name in present:
        (folder / name).symlink_to(ROOT / name)
    # Whatever happens, nothing that it started stays.
    guarded = f"set -euo pipefail\ntrap 'kill $(jobs -p) 2>/dev/null || true' EXIT\n{script}"
    done = subprocess.run(["bash", "-c", guarded], cwd=folder, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr
    assert {entry.name for entry in folder.iterdir()} == present
    return done.stdout, done.stderr


def test_the_section_about_confluent_works(tmp_path):
    output, _ = walk(tmp_path, "Confluent Cloud")
    assert output.split()[:7] == [
        "PROVISIONING",
        "PROVISIONED",
        "6",
        "RUNNING",
        "RUNNING",
        "RUNNING",
        "SYNCED",
    ]
    assert int(re.search(r"^(\d+) rows$", output, re.MULTILINE)[1]) > 100
    assert output.strip().endswith("[]")


def test_the_section_about_snowflake_works(tmp_path):
    output, errors = walk(tmp_path, "Snowflake")
    result = [line for line in output.splitlines() if "success" not in line]
    assert result[:3] == ["ADMIN\tACCOUNTADMIN", "False", "True"], output
    assert result[3:-1] == ["True", "ZBZX\t7", "ZVV\t9", "2", "4", "refused: the table uses it"], output
    assert "used by Iceberg table SALES.PUBLIC.TRADES" in errors
    assert "'EXTERNAL VOLUME': []" in result[-1]


def start(vendor, *options):
    command = [sys.executable, "-m", f"simulators.{vendor}", "--port", "0", *options]
    return subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def stop(process):
    process.terminate()
    rest, log = process.communicate(timeout=30)
    assert (process.returncode, rest) == (0, ""), log
    return log


def test_confluent_prints_one_line_of_json_and_stops_on_sigterm():
    process = start("confluent", "--json", "--seed", "1")
    result = json.loads(process.stdout.readline())
    assert {"url", "cloud_api_key", "cloud_api_secret", "organization_id"} <= result.keys()
    assert result["cloud_api_secret"] not in stop(process)


def test_snowflake_prints_one_line_of_json_and_deletes_its_private_key_on_sigterm():
    process = start("snowflake", "--json", "--seed", "1")
    result = json.loads(process.stdout.readline())
    assert {"url", "account", "user", "role", "private_key_file"} <= result.keys()
    key_file = Path(result["private_key_file"])
    assert stat.S_IMODE(key_file.stat().st_mode) == 0o600
    key = key_file.read_text().splitlines()[1]
    assert key not in stop(process)
    assert not key_file.parent.exists()


@pytest.mark.skipif(not FLINK_PYTHON.exists(), reason="Flink is not installed (.venv-flink is missing)")
def test_it_starts_with_flink_and_leaves_nothing_of_it():
    process = start("confluent", "--json", "--flink", "--seed", "1")
    folders = set(Path(tempfile.gettempdir()).glob("lakeferry-flink-*"))
    assert json.loads(process.stdout.readline())["url"]
    created = set(Path(tempfile.gettempdir()).glob("lakeferry-flink-*")) - folders
    stop(process)
    assert not any(folder.exists() for folder in created)


@VENDORS
def test_it_prints_lines_for_people(vendor):
    process = start(vendor)
    assert process.stdout.readline().startswith("url  ")
    process.terminate()
    process.communicate(timeout=20)


@VENDORS
def test_a_port_in_use_is_named(vendor):
    with socket.create_server(("127.0.0.1", 0)) as holder:
        command = [sys.executable, "-m", f"simulators.{vendor}", "--port", str(holder.getsockname()[1])]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=20)
    assert done.returncode == 3
    assert "can't be had" in done.stderr
