"""Wrong input is found before anything starts. The one message has the cause and the remedy."""

from __future__ import annotations

import json
import shutil

import pytest
from typer.testing import CliRunner

from lakeferry.__main__ import app
from lakeferry.local import target
from tests.support import shipped
from tests.support.lake import ROOT, column, contract, topic_of

SCHEMA = json.dumps(topic_of(("n", "int")).schema)
GOOD = '{"id": "a", "at": "2024-03-04T00:00:00Z", "n": 1}\n'
CONTRACT = contract(column("id"), column("n", "integer"))


def lakeferry(*words):
    return CliRunner().invoke(app, [*words])


@pytest.fixture
def files(tmp_path, monkeypatch):
    """A folder with a valid schema, contract and events file."""
    monkeypatch.chdir(tmp_path)
    for name, text in {"things.avsc": SCHEMA, "mine.toml": CONTRACT, "events.jsonl": GOOD}.items():
        (tmp_path / name).write_text(text)
    return tmp_path


OWN = ("--topic", "things", "--schema", "things.avsc", "--export", "mine.toml")
#: Options of the demo, the error code, and what the message contains.
DEMO = {
    "a topic without events": (("--topic", "things"), "DEMO-TOPIC", "--events and --topic"),
    "no such file": (("--events", "none.jsonl", *OWN), "DEMO-FILE", "none.jsonl can't be read: No such file"),
    "a topic of which nothing is known": (
        ("--events", "events.jsonl", "--topic", "things"),
        "DEMO-SCHEMA",
        "project/topics/ has no schema of things",
    ),
    "a schema that is none": (
        ("--events", "events.jsonl", "--topic", "x", "--schema", "events.jsonl"),
        "DEMO-SCHEMA",
        "events.jsonl",
    ),
    "a schema that is missing": (
        ("--events", "events.jsonl", "--topic", "x", "--schema", "none.avsc"),
        "DEMO-SCHEMA",
        "none.avsc can't be read: No such file or directory",
    ),
    "an unknown export": (("--export", "nosuch"), "EXP-CONTRACT", "nosuch"),
    "an export of another topic": (
        ("--events", "events.jsonl", *OWN, "--export", "weekly_sales"),
        "DEMO-EXPORT",
        "does not fit",
    ),
    "a moment that is none": (("--as-of", "yesterday"), "AS-OF", "'yesterday' is not a time"),
    "a moment without an offset": (("--as-of", "2024-03-11T06:00:00"), "AS-OF", "offset"),
}


@pytest.mark.usefixtures("files")
@pytest.mark.parametrize("case", DEMO)
def test_options_of_the_demo(case):
    words, code, message = DEMO[case]
    answer = lakeferry("demo", *words, "--json")
    document = json.loads(answer.stdout)
    assert (answer.exit_code, document["code"], document["exit_code"]) == (2, code, 2)
    assert message in document["message"]
    assert document["hint"]
    assert answer.stderr.count(code) == 1


#: The text of an events file, and what the message contains.
EVENTS = {
    "not JSON": (GOOD + GOOD + "{nonsense\n", ["line 3"]),
    "no object": ("7\n", ["line 1"]),
    "a field that is missing": (GOOD + '{"id": "b", "at": null}\n', ["line 2", "field n"]),
    "a number that is none": ('{"id": "b", "at": null, "n": "many"}\n' + GOOD, ["line 1, field n"]),
    "several mistakes": ('{"id": 1}\n' + GOOD + "[]\n", ["line 1", "line 3"]),
    "cut off": (GOOD + '{"id": "b", \n', ["line 2", "at character 12"]),
    "nothing": ("\n\n", ["has no events"]),
}


@pytest.mark.parametrize("case", EVENTS)
def test_events_that_cannot_be_read_are_named_by_their_lines(files, case):
    text, named = EVENTS[case]
    (files / "events.jsonl").write_text(text)
    answer = lakeferry("demo", "--events", "events.jsonl", *OWN, "--json")
    document = json.loads(answer.stdout)
    assert (answer.exit_code, document["code"]) == (2, "DEMO-EVENTS")
    assert [key for key in named if key not in document["message"]] == []
    page = "docs/how-to/write-an-export-contract.md#run-it-on-your-own-events"
    assert ("has no events" in named) != (page in document["hint"])
    assert not (files / "out").exists()


@pytest.mark.slow
@pytest.mark.parametrize("out", ["mine.toml", "mine.toml/below", "/proc/nope"])
def test_a_folder_that_cannot_be_written_is_reported_before_anything_runs(files, out):
    for words in (
        ("demo", "--events", "events.jsonl", *OWN),
        ("export", "run", "mine.toml", "--as-of", "2024-03-11T06:00:00Z"),
    ):
        answer = lakeferry(*words, "--out", out, "--json")
        document = json.loads(answer.stdout)
        assert (answer.exit_code, document["code"]) == (1, "OUT-FOLDER")
        assert "nothing was done" in document["hint"]
    assert sorted(path.name for path in files.iterdir()) == ["events.jsonl", "mine.toml", "things.avsc"]


def test_a_folder_that_is_missing_can_be_written_and_is_not_made_yet(files):
    target.require_writable(files / "one" / "two")
    assert not (files / "one").exists()


@pytest.mark.slow
def test_a_rehearsal_installs_flink_and_reports_why_it_could_not(clone, tmp_path):
    result = clone.run(
        "rehearse", "--example", "--json", changes={"UV_OFFLINE": "1", "UV_CACHE_DIR": str(tmp_path)}
    )
    shutil.rmtree(clone.root / ".venv-flink")
    assert (result.code, result.document["code"]) == (3, "NO-FLINK")
    assert "setup Flink into .venv-flink" in result.err
    assert "network" in result.document["hint"]
    assert not (clone.root / "out").exists()


def test_all_mistakes_of_a_contract_are_reported_with_their_lines(files):
    (files / "bad.toml").write_text(
        CONTRACT.replace('"iso_week"', '"fortnight"').replace('"UTC"', '"Nowhere/Land"')
    )
    answer = lakeferry("export", "check", "bad.toml", "--schema", "things.avsc", "--json")
    document = json.loads(answer.stdout)
    assert (answer.exit_code, document["code"]) == (2, "EXP-CONTRACT")
    assert len(document["details"]) >= 2
    assert all({"line", "key"} <= mistake.keys() for mistake in document["details"])
    assert "fortnight" in document["message"]
    assert "Nowhere/Land" in document["message"]


def test_a_contract_that_is_right_is_described(files):
    answer = lakeferry("export", "check", "mine.toml", "--schema", "things.avsc", "--json")
    assert (answer.exit_code, json.loads(answer.stdout)["columns"]) == (0, ["id", "n"])
    answer = lakeferry("export", "check", "mine.toml", "--schema", "things.avsc")
    assert (answer.exit_code, answer.stderr) == (0, "")
    assert "Next: " in answer.stdout


@pytest.mark.usefixtures("files")
@pytest.mark.parametrize(
    ("words", "code"), [(("none.toml",), "EXP-CONTRACT"), (("mine.toml",), "EXP-SCHEMA")]
)
def test_a_missing_contract_or_schema_is_reported(words, code):
    answer = lakeferry("export", "check", *words, "--json")
    document = json.loads(answer.stdout)
    assert (answer.exit_code, document["code"]) == (2, code)
    assert "Errno" not in document["message"]
    assert ("with --schema FILE. project/topics/ has: " in document["hint"]) == (code == "EXP-SCHEMA")
    assert ("the name of one in project/exports/: " in document["hint"]) == (code == "EXP-CONTRACT")


@pytest.mark.slow
def test_a_shipped_contract_is_checked_by_its_name():
    answer = lakeferry("export", "check", "daily_trades", "--json")
    assert (answer.exit_code, json.loads(answer.stdout)["name"]) == (0, "daily_trades")


def test_exports_are_listed():
    answer = lakeferry("export", "list", "--json")
    document = json.loads(answer.stdout)
    names = [export["name"] for export in document["exports"]]
    assert sorted([*names, *document["broken"]]) == sorted(
        path.stem for path in (ROOT / "project" / "exports").glob("*.toml")
    )
    assert {*shipped.EXPORTS, *shipped.FLINK_EXPORTS} <= {*names}
    assert answer.exit_code == 0
    people = lakeferry("export", "list")
    assert ("has mistakes" in people.stderr) == bool(document["broken"])
    assert all(name in people.stdout for name in names)


def test_an_option_that_does_not_exist_is_wrong_input():
    answer = lakeferry("export", "run", "weekly_sales", "--asof", "x")
    assert (answer.exit_code, answer.stdout) == (2, "")


FLAT = topic_of(("userid", "string"), ("side", "string"), name="stock_trades_with_totals", key="order")
FLAT_CONTRACT = contract(
    *(column(name) for name in ("side", "userid")),
    source={"topic": "stock_trades_with_totals", "event_time": "at"},
    deduplicate=None,
)


@pytest.mark.slow
@pytest.mark.parametrize(
    "words",
    [
        ("export", "check", "flat.toml", "--schema", "flat.avsc"),
        (
            "demo",
            "--events",
            "flat.jsonl",
            "--topic",
            FLAT.name,
            "--schema",
            "flat.avsc",
            "--export",
            "flat.toml",
        ),
    ],
    ids=["export check", "demo"],
)
def test_what_a_flink_statement_copies_from_tagged_fields_needs_a_treatment(files, words):
    """The schema that Flink derives has no tags: those of the statement's source count."""
    (files / "flat.avsc").write_text(json.dumps(FLAT.schema))
    (files / "flat.toml").write_text(FLAT_CONTRACT)
    event = {"order": "1", "at": "2024-03-04T00:00:00Z", "userid": "u", "side": "BUY"}
    (files / "flat.jsonl").write_text(json.dumps(event) + "\n")
    answer = lakeferry(*words, "--json")
    document = json.loads(answer.stdout)
    assert (answer.exit_code, document["code"]) == (2, "EXP-CONTRACT")
    source = "project/flink/stock_trades_with_totals/create.sql computes it from stock_trades.userid"
    assert f"userid contains personal data (userid: {source}, which is personal)" in document["message"]
    assert "side contains" not in document["message"]
