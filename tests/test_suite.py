"""The suite stops hanging tests, lists skipped tests, and can be interrupted when it runs in the
background.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PLANTED = """
import signal, subprocess, sys, threading
import pytest

def test_hangs():
    threading.Event().wait()

@pytest.mark.skip(reason="its data is not in the repository")
def test_is_skipped():
    pass

@pytest.mark.sampled(2)
@pytest.mark.parametrize("case", range(5))
def test_has_cases(case):
    pass

def test_an_interrupt_reaches_a_child():
    child = subprocess.Popen([sys.executable, "-c", "print(1, flush=True); input()"], stdin=-1, stdout=-1, stderr=-1)
    child.stdout.readline()
    child.send_signal(signal.SIGINT)
    assert b"KeyboardInterrupt" in child.communicate(timeout=30)[1]
"""


@pytest.fixture(scope="module")
def ran(tmp_path_factory):
    """Return pytest's output for planted tests, with the suite's settings and with interrupts ignored."""
    root = tmp_path_factory.mktemp("suite")
    (root / "test_planted.py").write_text(PLANTED)
    shutil.copy(ROOT / "conftest.py", root / "conftest.py")
    own = ["-p", "no:cacheprovider", "--timeout", "2", "-c", ROOT / "pyproject.toml", "--rootdir", root, root]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *own],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=120,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_IGN),  # like `command &` in a script
    )
    return done.stdout


@pytest.mark.slow
def test_a_test_that_hangs_fails_with_its_stack(ran):
    assert "Failed: Timeout" in ran
    assert "threading.Event().wait()" in ran


@pytest.mark.slow
def test_skipped_tests_are_listed_with_their_reason_before_the_closing_line(ran):
    *before, closing = ran.strip().splitlines()
    assert any(
        line.startswith("SKIPPED [1]") and "its data is not in the repository" in line for line in before
    )
    assert closing.startswith("1 failed, 3 passed, 1 skipped, 3 deselected in ")


@pytest.mark.slow
def test_interrupts_work_in_the_background(ran):
    assert "test_an_interrupt_reaches_a_child" not in ran
