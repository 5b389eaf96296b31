"""`lakeferry demo` with the user's own events, and commands on the tables that it leaves."""

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

from lakeferry.local import spark as local_spark
from lakeferry.output import format_table
from tests.support import shipped
from tests.support.docs_reader import fences
from tests.support.lake import AS_OF, MONDAY, ROOT, WEEK, column, contract, topic_of
from tests.support.promises import promised

#: All of them need the demo's run.
pytestmark = pytest.mark.slow

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
def own_options(clone):
    """Return options that name events, a schema and a contract.

    One event is earlier than the contract's first window.
    """
    days = {"early": -20} | {f"e{n}": n for n in range(7)}
    events = [
        {"id": id_, "at": (MONDAY + timedelta(days=n)).isoformat(), "who": ADDRESS, "n": n}
        for id_, n in days.items()
    ]
    (clone.root / "events.jsonl").write_text("".join(json.dumps(event) + "\n" for event in events))
    (clone.root / "things.avsc").write_text(json.dumps(TOPIC.schema | {"lakeferry:time": "at"}))
    (clone.root / "mine.toml").write_text(CONTRACT)
    files = (
        "--events",
        "events.jsonl",
        "--topic",
        "things",
        "--schema",
        "things.avsc",
        "--export",
        "mine.toml",
    )
    return (*files, "--as-of", AS_OF.isoformat())


@pytest.fixture(scope="module")
def finished(clone, own_options):
    return clone.run("demo", *own_options, "--out", "delivered", "--json")


def test_a_users_own_events_become_files(clone, finished):
    assert finished.code == 0, finished.err
    assert finished.document.keys() == promised("demo")
    (run,) = finished.document["runs"]
    assert [(window["window"], window["state"]) for window in run["windows"]] == [(WEEK, "published")]
    folder = clone.root / finished.document["out"] / "things" / WEEK
    files = {"datapackage.json", "manifest.json", "report.html", f"things_{WEEK}.csv"}
    assert {path.name for path in folder.iterdir()} == files
    with (folder / f"things_{WEEK}.csv").open(encoding="utf-8-sig", newline="") as file:
        rows = list(csv.DictReader(file))
    assert [(row["id"], row["n"]) for row in rows] == [(f"e{n}", str(n)) for n in range(7)]
    assert len({row["who"] for row in rows}) == 1
    assert ADDRESS not in "".join(path.read_text() for path in folder.iterdir())


def test_with_json_only_progress_is_on_standard_error(finished):
    assert "tables   " in finished.err
    assert [text for text in ("published", "Next: ", "\x1b", "\r") if text in finished.err] == []


@pytest.mark.usefixtures("finished")
def test_the_tables_can_be_queried(clone):
    queried = clone.run("query", "SELECT count(*) AS things, sum(n) AS total FROM things", "--json")
    assert (queried.code, queried.document["columns"], queried.document["rows"]) == (
        0,
        ["things", "total"],
        [[8, 1]],
    )


@pytest.mark.usefixtures("finished")
def test_two_commands_do_not_use_the_demo_at_once(clone, own_options):
    with (clone.root / ".lakeferry" / "demo.lock").open("r+") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        refused = [clone.run(*words, "--json") for words in (("demo", *own_options), ("query", "SELECT 1"))]
    holder = (clone.root / ".lakeferry" / "demo.lock").read_text()
    for result in refused:
        assert (result.code, result.document["code"]) == (5, "DEMO-IN-USE")
        assert f"process {holder} is using the demo" in result.document["message"]
    assert (
        clone.run("query", "SELECT count(*) FROM things", "--json")
        .document["source"]
        .startswith("the last demo")
    )


@pytest.mark.usefixtures("finished")
def test_a_second_run_on_the_demos_tables_publishes_nothing_new(clone):
    first, second = (clone.root / place / "things" / WEEK for place in ("delivered", "again"))
    second.mkdir(parents=True)
    own = second / f"things_{WEEK}.checked by Anna.csv"
    own.write_text("the reader's")
    again = clone.run("export", "run", "mine.toml", "--as-of", AS_OF.isoformat(), "--out", "again", "-q")
    assert again.code == 0, again.err
    assert f"things  {WEEK}  unchanged" in again.out
    assert (
        f"things {WEEK}: 7 texts were longer than an Excel cell, 32,767 characters, and cut to it."
        in again.out
    )
    assert "Record:" not in again.out, "nobody can open the demo's bucket"
    copied = {path.name: path.read_bytes() for path in first.iterdir()}
    assert {path.name: path.read_bytes() for path in second.iterdir()} == copied | {own.name: b"the reader's"}


def test_a_time_in_the_future_is_refused_before_anything_is_written(clone, own_options):
    result = clone.run("demo", *own_options, "--as-of", "2099-01-01T00:00:00Z", "--out", "future")
    assert result.code == 2
    assert "EXP-ARGUMENTS" in result.err
    assert "in the future" in result.err
    assert "tables" not in result.err


def test_events_without_a_time_field_are_explained(clone, own_options):
    """Such events count as received now, in a window that has not ended."""
    (clone.root / "timeless.avsc").write_text(json.dumps(TOPIC.schema))
    result = clone.run("demo", *own_options, "--schema", "timeless.avsc", "--out", "nothing")
    assert result.code == 0, result.err
    assert "No window had ended by 2024-03-11 06:00 UTC" in result.out
    assert "lakeferry:time" in result.out
    assert "report of each" not in result.out, "no window was published"


@pytest.mark.parametrize(
    "options",
    [
        pytest.param((), id="local"),
        pytest.param(("--master", "local-cluster[2,1,1024]"), id="executors", marks=pytest.mark.deep),
    ],
)
def test_the_shipped_exports_print_what_the_pages_show(clone, options):
    finished = clone.run("demo", *options)
    assert finished.code == 0, finished.err
    (readme,) = blocks(ROOT / "README.md", "make demo")
    results = without_times(finished.out)
    lines = [*without_times(finished.err).splitlines(), *in_columns(results.splitlines(), 90)]
    assert [line for line in readme.splitlines()[1:] if line not in (*lines, "…")] == []
    assert max(map(len, readme.splitlines())) <= 90
    assert {path.parent.name for path in (clone.root / "out").glob("*/2026-*")} == set(shipped.EXPORTS)
    for folder in (clone.root / "out").glob("*/2026-*"):
        assert (folder / "report.html").exists()
    (shown, *_) = blocks(ROOT / "docs" / "tutorial" / "first-export.md", "weekly_sales ")
    assert [line for line in shown.splitlines() if line not in (*results.splitlines(), "…")] == []


def blocks(page: Path, text: str) -> list[str]:
    """Return the output blocks of a page that contain `text`."""
    printed = (fence for fence in fences(page) if fence.language in ("console", "text"))
    return [without_times(fence.text) for fence in printed if text in fence.text]


def in_columns(lines: list[str], width: int) -> list[str]:
    """Return what a terminal of this width shows of an output: the table of windows is wrapped."""
    start = next(number for number, line in enumerate(lines) if line.startswith("export  "))
    end = lines.index("", start) if "" in lines[start:] else len(lines)
    rows = [re.split(r" {2,}", line) for line in lines[start:end] if "left out:" not in line]
    wrapped = format_table(rows[0], rows[1:], width)
    return [*lines[:start], *wrapped, *lines[start + len(rows) :]]


def test_the_contract_of_the_readme_makes_the_file_that_it_shows(clone):
    snippets = {fence.language: fence.text for fence in fences(ROOT / "README.md")}
    (clone.root / "sales_by_channel.toml").write_text(snippets["toml"])
    finished = clone.run("demo", "--export", "sales_by_channel.toml", "--out", "readme")
    assert finished.code == 0, finished.err
    file = clone.root / "readme" / "sales_by_channel" / "2026-W46" / "sales_by_channel_2026-W46.csv"
    assert file.read_text(encoding="utf-8-sig") == snippets["csv"]


def without_times(text: str) -> str:
    """Replace durations, and the path of the `lakeferry` command, which differ from run to run."""
    return re.sub(r"\S*/lakeferry query", "lakeferry query", re.sub(r"\d+ s\b", "… s", text))


def test_a_master_unknown_to_spark_is_refused(clone, own_options):
    result = clone.run("demo", *own_options, "--master", "local[two]", "--out", "nowhere")
    assert result.code == 2
    assert "SPARK-MASTER" in result.err
    assert "local-cluster[2,1,1024]" in result.err


@pytest.mark.parametrize("master", ["", "nonsense", "local[two]", "local-cluster[2]"])
def test_only_valid_spark_masters_are_accepted(master):
    with pytest.raises(local_spark.BadMaster):
        local_spark.prepare(master=master)


@pytest.mark.parametrize("ending", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_an_ended_demo_leaves_no_process_and_no_folder(clone, own_options, ending, tmp_path):
    """Ctrl-C reaches all processes of the terminal, the other signals only the command; some CI services send
    it twice.
    """
    process = clone.start("demo", *own_options, "--out", "stopped", changes={"TMPDIR": str(tmp_path)})
    assert process.stderr is not None
    # By then the embedded AWS runs, and Java starts or has started.
    before = process.stderr.readline()
    processes = descendants(process.pid)
    if ending == signal.SIGINT:
        os.killpg(process.pid, ending)
    else:
        process.send_signal(ending)
        process.send_signal(ending)
    result = clone.finish(process, before)
    assert b"tables" in before
    assert result.code == 6
    assert result.err.count("STOPPED  ") == 1
    assert "Traceback" not in result.err
    assert any("simulators.aws" in command for command in processes.values())
    assert {pid: command for pid, command in processes.items() if alive(pid, command)} == {}
    # On a busy machine the signal comes late. What the demo has written by then is whole.
    assert all((folder / "manifest.json").exists() for folder in (clone.root / "stopped").glob("*/*"))
    assert [
        path.name
        for path in tmp_path.iterdir()
        if path.name.startswith(("lakeferry-", "spark-", "glue-run-"))
    ] == []


#: Interrupts itself when Java opens the other end of the pipe, while Python waits for Java.
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
with exporting.open_spark(Output()):
    with ThreadPoolExecutor(1) as beside:  # as the job does it: in the main thread, PySpark would take over SIGINT
        jvm = beside.submit(SparkSession.builder.getOrCreate).result()._jvm
    threading.Thread(target=interrupt, daemon=True).start()
    try:
        jvm.java.nio.file.Files.readString(jvm.java.io.File(sys.argv[1]).toPath())
    except KeyboardInterrupt:
        print("stopped")
    at_end.set()
"""


def test_ctrl_c_while_java_works_prints_no_trace(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    command = [sys.executable, "-c", INTERRUPTED, str(tmp_path / "pipe")]
    finished = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120)
    assert (finished.returncode, finished.stdout) == (0, "stopped\n"), finished.stderr
    assert "Traceback" not in finished.stderr


#: Is interrupted while Python runs a finalizer, as by a proxy of a Java object that nobody needs any more.
IN_A_FINALIZER = """
import os, signal, threading
from lakeferry.cli import interrupts
class Proxy:
    def __del__(self):
        os.kill(os.getpid(), signal.SIGTERM)
interrupts.handle_signals()
try:
    Proxy()
    threading.Event().wait(60)
except KeyboardInterrupt:
    print("stopped")
"""


def test_a_signal_that_arrives_in_a_finalizer_ends_the_command():
    command = [sys.executable, "-c", IN_A_FINALIZER]
    finished = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120)
    assert (finished.returncode, finished.stdout, finished.stderr) == (0, "stopped\n", "")


def descendants(pid: int) -> dict[int, str]:
    """Return the command line of each process that descends from this one, by its id."""
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
