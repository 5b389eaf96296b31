"""`lakeferry demo` with events of one's own, and what can be done with the tables that it leaves."""

from __future__ import annotations

import csv
import fcntl
import json
import os
import re
import signal
import subprocess
import sys
from datetime import timedelta
from pathlib import Path

import pytest
from docs_reader import fences
from lake import AS_OF, MONDAY, ROOT, WEEK, column, contract, topic_of
from promises import promised

from exports import contracts
from lakeferry.local import spark as local_spark

TOPIC = topic_of(("who", "string"), ("n", "int"))
CONTRACT = contract(
    column("id"),
    column("who", personal={"treatment": "hash", "kind": "email"}),
    column("n", "integer"),
    column("long", expression="rpad(id, 32768, 'x')"),
    delivery={"dialect": "excel"},
)
ADDRESS = "somebody@example.org"


@pytest.fixture(scope="module")
def own(clone):
    """Options that name events, schema and contract of one's own. One event lies before the contract's first window."""
    days = {"early": -20} | {f"e{n}": n for n in range(7)}
    events = [{"id": id_, "at": (MONDAY + timedelta(days=n)).isoformat(), "who": ADDRESS, "n": n} for id_, n in days.items()]
    (clone.root / "events.jsonl").write_text("".join(json.dumps(each) + "\n" for each in events))
    (clone.root / "things.avsc").write_text(json.dumps(TOPIC.schema | {"lakeferry:time": "at"}))
    (clone.root / "mine.toml").write_text(CONTRACT)
    files = ("--events", "events.jsonl", "--topic", "things", "--schema", "things.avsc", "--export", "mine.toml")
    return (*files, "--as-of", AS_OF.isoformat())


@pytest.fixture(scope="module")
def done(clone, own):
    return clone.run("demo", *own, "--out", "delivered", "--json")


def test_events_of_ones_own_become_files(clone, done):
    assert done.code == 0, done.err
    assert done.document.keys() == promised("demo")
    (run,) = done.document["runs"]
    assert [(window["window"], window["state"]) for window in run["windows"]] == [(WEEK, "published")]
    folder = clone.root / done.document["out"] / "things" / WEEK
    files = {"datapackage.json", "manifest.json", "report.html", f"things_{WEEK}.csv"}
    assert {path.name for path in folder.iterdir()} == files
    with (folder / f"things_{WEEK}.csv").open(encoding="utf-8-sig", newline="") as file:
        rows = list(csv.DictReader(file))
    assert [(row["id"], row["n"]) for row in rows] == [(f"e{n}", str(n)) for n in range(7)]
    assert len({row["who"] for row in rows}) == 1
    assert ADDRESS not in "".join(path.read_text() for path in folder.iterdir())


def test_with_json_only_progress_is_on_standard_error(done):
    assert "tables   " in done.err
    assert [text for text in ("published", "Next: ", "\x1b", "\r") if text in done.err] == []


@pytest.mark.usefixtures("done")
def test_the_tables_can_be_asked(clone):
    asked = clone.run("query", "SELECT count(*) AS things, sum(n) AS total FROM things", "--json")
    assert (asked.code, asked.document["columns"], asked.document["rows"]) == (0, ["things", "total"], [[8, 1]])


@pytest.mark.usefixtures("done")
def test_two_commands_do_not_use_the_demo_at_once(clone, own):
    with (clone.root / ".lakeferry" / "demo.lock").open("r+") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        refused = [clone.run(*words, "--json") for words in (("demo", *own), ("query", "SELECT 1"))]
    holder = (clone.root / ".lakeferry" / "demo.lock").read_text()
    for said in refused:
        assert (said.code, said.document["code"]) == (5, "DEMO-IN-USE")
        assert f"process {holder} is using the demo" in said.document["message"]
    assert clone.run("query", "SELECT count(*) FROM things", "--json").document["source"].startswith("the last demo")


@pytest.mark.slow
@pytest.mark.usefixtures("done")
def test_a_second_run_of_what_the_demo_left_publishes_nothing_new(clone):
    first, second = (clone.root / place / "things" / WEEK for place in ("delivered", "again"))
    second.mkdir(parents=True)
    (second / f"things_{WEEK}.part-0007.csv").write_text("of a former run")
    again = clone.run("export", "run", "mine.toml", "--as-of", AS_OF.isoformat(), "--out", "again", "-q")
    assert again.code == 0, again.err
    assert f"things  {WEEK}  unchanged" in again.out
    assert f"things {WEEK}: 7 texts were longer than 32,767 characters, Excel's limit, and cut to it." in again.out
    assert {path.name: path.read_bytes() for path in second.iterdir()} == {
        path.name: path.read_bytes() for path in first.iterdir()
    }


def test_a_time_to_come_is_refused_before_anything_is_written(clone, own):
    said = clone.run("demo", *own, "--as-of", "2099-01-01T00:00:00Z", "--out", "future")
    assert said.code == 2
    assert "EXP-ARGUMENTS" in said.err
    assert "in the future" in said.err
    assert "tables" not in said.err


@pytest.mark.slow
def test_events_without_a_time_of_their_own_are_no_riddle(clone, own):
    """They count as received now, in a window that is not over."""
    (clone.root / "timeless.avsc").write_text(json.dumps(TOPIC.schema))
    said = clone.run("demo", *own, "--schema", "timeless.avsc", "--out", "nothing")
    assert said.code == 0, said.err
    assert "No window had ended by 2024-03-11 06:00 UTC" in said.out
    assert "lakeferry:time" in said.out
    assert "report of each" not in said.out, "no window was published"


@pytest.mark.slow
@pytest.mark.parametrize(
    "options",
    [
        pytest.param((), id="local"),
        pytest.param(("--master", "local-cluster[2,1,1024]"), id="executors", marks=pytest.mark.deep),
    ],
)
def test_the_shipped_exports_give_what_the_pages_show(clone, options):
    done = clone.run("demo", *options)
    assert done.code == 0, done.err
    progress, results = blocks(ROOT / "README.md", "make demo")[0].split("\n\n", 1)
    assert [line for line in progress.splitlines()[1:] if line not in without_times(done.err).splitlines()] == []
    assert without_times(done.out) == "\n" + results
    assert {path.parent.name for path in (clone.root / "out").glob("*/2026-*")} == set(contracts.shipped())
    for folder in (clone.root / "out").glob("*/2026-*"):
        assert (folder / "report.html").exists()
    (shown, *_) = blocks(ROOT / "docs" / "tutorial" / "first-export.md", "weekly_sales ")
    assert [line for line in shown.splitlines() if line not in (*results.splitlines(), "…")] == []


def blocks(page: Path, text: str) -> list[str]:
    """What commands print, as a page shows it."""
    printed = (fence for fence in fences(page) if fence.language in ("console", "text"))
    return [without_times(fence.text) for fence in printed if text in fence.text]


def without_times(text: str) -> str:
    """Nor does it matter how the virtual environment's commands are called."""
    return re.sub(r"\S*/lakeferry query", "lakeferry query", re.sub(r"\d+ s\b", "… s", text))


def test_a_master_that_spark_does_not_know_is_refused(clone, own):
    said = clone.run("demo", *own, "--master", "local[two]", "--out", "nowhere")
    assert said.code == 2
    assert "SPARK-MASTER" in said.err
    assert "local-cluster[2,1,1024]" in said.err


@pytest.mark.parametrize("master", ["", "nonsense", "local[two]", "local-cluster[2]"])
def test_only_masters_of_spark_are_accepted(master):
    with pytest.raises(local_spark.BadMaster):
        local_spark.prepare(master=master)


@pytest.mark.slow
def test_ctrl_c_stops_all_that_the_demo_started(clone, own):
    process = clone.start("demo", *own, "--out", "stopped")
    assert process.stderr is not None
    # By then the embedded AWS runs, and Java starts or has started.
    before = process.stderr.readline()
    family = below(process.pid)
    os.killpg(process.pid, signal.SIGINT)
    said = clone.said(process, before)
    assert b"tables" in before
    assert said.code == 6
    assert said.err.count("STOPPED  ") == 1
    assert "Traceback" not in said.err
    assert any("simulators.aws" in command for command in family.values())
    assert {pid: command for pid, command in family.items() if alive(pid, command)} == {}
    assert not (clone.root / "stopped").exists()


#: Interrupts itself at the moment when Java opens the other end of the pipe, in which Python waits for Java.
INTERRUPTED = """
import os, signal, sys, threading
from concurrent.futures import ThreadPoolExecutor
from pyspark.sql import SparkSession
from lakeferry.local import export as exporting
from lakeferry.output import Output
def interrupt():
    with open(sys.argv[1], "w"):
        os.kill(os.getpid(), signal.SIGINT)
        at_end.wait(60)
at_end = threading.Event()
with exporting.spark(Output()):
    with ThreadPoolExecutor(1) as beside:  # as the job does it: in the main thread, PySpark would take over SIGINT
        jvm = beside.submit(SparkSession.builder.getOrCreate).result()._jvm
    threading.Thread(target=interrupt, daemon=True).start()
    try:
        jvm.java.nio.file.Files.readString(jvm.java.io.File(sys.argv[1]).toPath())
    except KeyboardInterrupt:
        print("stopped")
    at_end.set()
"""


@pytest.mark.slow
def test_ctrl_c_while_java_works_prints_no_trace(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    command = [sys.executable, "-c", INTERRUPTED, str(tmp_path / "pipe")]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stdout) == (0, "stopped\n"), done.stderr
    assert "Traceback" not in done.stderr


def below(pid: int) -> dict[int, str]:
    """Command lines of all processes that descend from this one, by number."""
    parents = {}
    for status in Path("/proc").glob("[0-9]*/stat"):
        try:
            parents[int(status.parent.name)] = int(status.read_text().rpartition(")")[2].split()[1])
        except (FileNotFoundError, ProcessLookupError):
            continue
    found = {pid}
    while more := {child for child, parent in parents.items() if parent in found} - found:
        found |= more
    return {child: command_of(child) for child in found - {pid}}


def command_of(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
    except (FileNotFoundError, ProcessLookupError):
        return ""


def alive(pid: int, command: str) -> bool:
    return bool(command) and command_of(pid) == command
