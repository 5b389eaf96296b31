"""An archive of the JVM's loaded classes, made by the first run and mapped by later ones, which then start seconds sooner.

Only a help: a JVM that can't use the archive loads classes as ever. (JDK 17, "Dynamic AppCDS archive", JEP 350.)
"""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

from glue_jobs.contract import JARS, SPARK_VERSION
from lakeferry.local.bootstrap import JAR_DIR

# A JVM that finds the archive unfit would say so on every start.
_QUIET = "-Xlog:disable -Xlog:all=off"


def options(java_home: Path) -> list[str]:
    """What tells the JVM to use the archive, or to make it when it ends."""
    archive = _archive(java_home)
    if archive.exists():
        return [*_QUIET.split(), f"-XX:SharedArchiveFile={archive}"]
    return [*_QUIET.split(), f"-XX:ArchiveClassesAtExit={_unfinished(archive)}"] if os.access(JAR_DIR, os.W_OK) else []


def keep(java_home: Path) -> None:
    """To be called when the JVM that made an archive has ended: from now on it counts."""
    archive = _archive(java_home)
    unfinished = _unfinished(archive)
    if unfinished.exists():
        unfinished.replace(archive)


def drop(java_home: Path) -> None:
    """Removes what a JVM that was killed left half written."""
    _unfinished(_archive(java_home)).unlink(missing_ok=True)


def exists(java_home: Path) -> bool:
    return _archive(java_home).exists()


def _archive(java_home: Path) -> Path:
    """Each Java and each set of jars has its own."""
    release = java_home / "release"
    marks = [release.read_text() if release.exists() else str(java_home), SPARK_VERSION, *(jar.sha512 for jar in JARS)]
    return JAR_DIR / f"classes-{hashlib.sha256(''.join(marks).encode()).hexdigest()[:12]}.jsa"


def _unfinished(archive: Path) -> Path:
    return archive.with_suffix(f".{os.getpid()}.unfinished")
