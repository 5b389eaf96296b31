"""Simulated machines for tests of the set-up: source trees, and scripts instead of Java."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import venv
from pathlib import Path

import attrs

ROOT = Path(__file__).resolve().parents[2]

_JAVA = """#!/bin/sh
echo "$@" >> "{log}"
if [ "$1" = -version ]; then
  echo '{banner}' >&2
  exit {code}
fi
# From here on it is Ivy, which fetches a jar.
while [ $# -gt 0 ]; do
  case "$1" in
    -dependency) artifact="$3-$4.jar" ;;
    -retrieve) folder=$(dirname "$2") ;;
  esac
  shift
done
cp "{jars}/$artifact" "$folder/" 2>/dev/null || {{ echo "UNRESOLVED DEPENDENCIES" ; exit 1; }}
"""


def script(file: Path, text: str) -> Path:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)
    file.chmod(0o755)
    return file


def java(home: Path, banner: str, *, code: int = 0, jars: Path | None = None) -> Path:
    """Create a script that prints Java's banner.

    Run as Ivy, it copies jars from a folder. It logs its calls.
    """
    script(
        home / "bin" / "java",
        _JAVA.format(log=home / "log", banner=banner, code=code, jars=jars or home / "none"),
    )
    return home


def version(number: str) -> str:
    return f'openjdk version "{number}" 2025-04-15'


@attrs.define
class Machine:
    """A tree with the files that the set-up reads, and an environment without Java.

    `tools` is its PATH, beside `sh`.
    """

    tree: Path
    tools: Path
    environment: dict[str, str]

    @property
    def python(self) -> Path:
        return self.tree / ".venv" / "bin" / "python"

    @property
    def packages(self) -> Path:
        """Return the folder in which this tree's Python keeps packages."""
        return (
            self.tree
            / ".venv"
            / "lib"
            / f"python{sys.version_info[0]}.{sys.version_info[1]}"
            / "site-packages"
        )

    def run(self, *words: str | Path, **environment: str | Path) -> subprocess.CompletedProcess[str]:
        known = self.environment | {name: str(value) for name, value in environment.items()}
        return subprocess.run(
            [str(word) for word in words],
            cwd=self.tree,
            env=known,
            capture_output=True,
            text=True,
            timeout=120,
        )

    def found_java(self, **environment: str | Path) -> list[str]:
        """Return the result of find_java: the home, then the versions that were skipped."""
        asked = (
            "from lakeferry.local.java import find_java; f = find_java(); print(f.home); "
            "print(*f.passed_over, sep='\\n')"
        )
        answer = self.run(self.python, "-c", asked, **environment)
        assert answer.returncode == 0, answer.stderr
        return answer.stdout.split("\n")[: -1 if answer.stdout.endswith("\n") else None]


def machine(root: Path) -> Machine:
    tree = root / "tree"
    tools = root / "tools"
    for name in ("__init__.py", "local/__init__.py", "local/bootstrap.py", "local/java.py"):
        _copy(f"lakeferry/{name}", tree)
    _copy("glue_jobs/__init__.py", tree)
    for name in (
        "glue_jobs/platform.py",
        "requirements.txt",
        "pyproject.toml",
        "simulators/aws/requirements.txt",
    ):
        _copy(name, tree)
    venv.create(tree / ".venv", symlinks=True)
    (tree / ".venv-aws").mkdir()
    tools.mkdir()
    for tool in ("sh", "cp", "dirname", "mkdir"):
        (tools / tool).symlink_to(shutil.which(tool) or tool)
    return Machine(
        tree, tools, {"PATH": str(tools), "HOME": str(root), "LANG": os.environ.get("LANG", "C.UTF-8")}
    )


def _copy(name: str, tree: Path) -> None:
    (tree / name).parent.mkdir(parents=True, exist_ok=True)
    shutil.copy(ROOT / name, tree / name)
