"""The tests pass in a clone with files of the user's own: contracts, topics, stages, and an edited
dev.toml.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.shipped import ROOT

pytestmark = [pytest.mark.slow, pytest.mark.timeout(580)]

#: What a checkout has beside its own files.
MADE = (
    ".git", ".venv*", ".jars", ".lakeferry", "out", "build", "cdk.out", "node_modules", "*.egg-info",
    "__pycache__", ".*_cache", ".hypothesis",
)  # fmt: skip
LINKS = (".venv", ".venv-aws", ".venv-flink", ".jars", "node_modules")
#: The tests that read these files.
TESTS = (
    "infra/test_glue_zip.py", "infra/test_assembly.py", "infra/test_intent.py", "infra/test_matrix.py",
    "infra/test_names.py", "unit/test_contract_rules.py", "unit/test_toml_schema.py",
    "unit/test_topic_schema.py", "unit/test_deployment_file.py", "unit/test_cost.py", "unit/test_diagram.py",
    "cli/test_init.py", "cli/test_bad_input.py", "test_docs.py", "test_for_teams.py",
)  # fmt: skip
FIELDS = (("id", "string"), ("site", "string"), ("at", {"type": "long", "logicalType": "timestamp-millis"}))
#: Names that come before those of the shipped files.
CONTRACT = """
name = "a_{topic}"
version = 7
title = "Readings"
description = "How many readings there were."
owner = "building team"
grain = "one row per site"
[source]
topic = "{topic}"
event_time = "{time}"
[window]
every = "day"
zone = "Asia/Tokyo"
from = 2026-11-02
[deduplicate]
key = ["kafka_partition", "kafka_offset"]
[[column]]
name = "kafka_partition"
type = "integer"
title = "Partition"
description = "The partition."
[[column]]
name = "readings"
measure = "count(*)"
type = "integer"
title = "Readings"
description = "How many there were."
[aggregate]
no_persons_because = "Devices, not people."
[delivery]
order_by = ["readings"]
"""
OWN_STAGE = """
[deployment]
name = "acme"
stage = "aaa"
owner = "building team"
on_destroy = "keep"
[aws]
region = "us-east-1"
[confluent]
cloud_key_secret = "acme/confluent-cloud-key"
[[topics]]
name = "a_sensor"
tableflow = {}
[alerts]
engineers = ["anna@example.org"]
"""


@pytest.fixture
def clone(tmp_path) -> Path:
    """Return a clone with own files, and with a dev.toml as `lakeferry init` leaves it."""
    root = tmp_path / "clone"
    shutil.copytree(ROOT, root, ignore=shutil.ignore_patterns(*MADE), symlinks=True)
    for name in LINKS:
        (root / name).symlink_to(ROOT / name)
    fields = [{"name": name, "type": type, "doc": "Of a sensor."} for name, type in FIELDS]
    schema = {"type": "record", "name": "Reading", "doc": "Of a sensor.", "fields": fields}
    project = root / "project"
    (project / "topics" / "a_sensor.avsc").write_text(json.dumps(schema))
    for topic, time in (("a_sensor", "at"), ("sales_orders", "kafka_timestamp")):
        (project / "exports" / f"a_{topic}.toml").write_text(CONTRACT.format(topic=topic, time=time))
    (project / "exports" / "half_written.toml").write_text('name = "half_written"')
    (project / "deployments" / "aaa.toml").write_text(OWN_STAGE)
    (project / "flink" / "a_statement").mkdir()
    (project / "flink" / "a_statement" / "create.sql").write_text(
        "CREATE TABLE `a_statement` AS SELECT `site` FROM `a_sensor`;"
    )
    (project / "flink" / "a_statement" / "undo.sql").write_text("DROP TABLE IF EXISTS `a_statement`;")
    init = ["--name", "acme", "--region", "us-east-1", "--topics", "a_sensor", "--snowflake", "none", "--yes"]
    answer = run(root, "-m", "lakeferry", "init", "--stage", "dev", *init)
    assert answer.returncode == 0, answer.stderr
    return root


def run(root, *words):
    environment = {**os.environ, "PYTHONPATH": str(root)}
    return subprocess.run([sys.executable, *words], cwd=root, env=environment, capture_output=True, text=True)


def test_the_tests_pass_with_the_users_own_files(clone):
    assert "a_sensor" in (clone / "project" / "deployments" / "dev.toml").read_text()
    answer = run(
        clone, "-m", "pytest", "-n", "2", "-m", "not slow and not deep", *(f"tests/{file}" for file in TESTS)
    )
    assert answer.returncode == 0, answer.stdout[-5000:]
