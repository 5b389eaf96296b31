"""No executor logs a value on which an expression failed, whatever jars and Log4j configuration its machine
has.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.lake import ROOT

pytestmark = pytest.mark.slow
SECRET = "ada.lovelace@example.org"
#: Logs everything, as a configuration of another owner may.
LOG4J = """
appender.console.type = Console
appender.console.name = console
appender.console.layout.type = PatternLayout
appender.console.layout.pattern = %p %c %m%n%ex
rootLogger.level = info
rootLogger.appenderRef.console.ref = console
logger.executor.name = org.apache.spark.executor
logger.executor.level = info
"""


@pytest.mark.parametrize("options", ["of the job", "of somebody else"])
def test_no_executor_logs_a_value_without_hive_beeline(tmp_path, options):
    """Options of the job that don't reach the executors' Java are replaced by what the job does when it
    starts.
    """
    config = tmp_path / "log4j2.properties"
    config.write_text(LOG4J)
    words = [SECRET, *([config.as_uri()] if options == "of somebody else" else [])]
    command = [sys.executable, str(Path(__file__).with_name("executor_logs.py")), *words]
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=300)
    assert done.stdout.startswith("failed: True\n"), done.stderr[-3000:]
    assert ("INFO org.apache.spark" in done.stdout) == (options == "of somebody else")
    assert SECRET not in done.stdout
