"""`make test-glue-boto3` runs this file too: its other tests use the boto3 that Glue 5.1 has, in this process
and in others.
"""

from __future__ import annotations

import subprocess
import sys
from importlib import metadata
from pathlib import Path

import pytest

_LOCK = Path(__file__).with_name("glue_5_1.txt").read_text()


@pytest.mark.parametrize("package", ["boto3", "botocore", "s3transfer"])
def test_the_package_is_that_of_glue(package):
    asked = f"from importlib import metadata; print(metadata.version('{package}'))"
    child = subprocess.run(
        [sys.executable, "-c", asked], capture_output=True, text=True, check=True, timeout=60
    )
    assert f"\n{package}=={metadata.version(package)} " in f"\n{_LOCK}"
    assert child.stdout.strip() == metadata.version(package)
