"""`lakeferry export …` and `lakeferry query` in the AWS that the environment names."""

from __future__ import annotations

import resource

import pytest
from lake import AS_OF, MONDAY, WEEK, column, contract, topic_of

from simulators.nemesis import NemesisClient

TOPIC = topic_of(("n", "int"))
CONTRACT = contract(column("id"), column("n", "integer"))


@pytest.fixture(scope="module")
def stocked(lakes):
    """One week is published; the table has another name than the topic, too."""
    lake = lakes()
    things = [{"id": f"t{n:03}", "at": MONDAY, "n": n} for n in range(200)]
    lake.commit(TOPIC, *things, at=AS_OF)
    lake.commit(topic_of(("n", "int"), name="things_again"), *things[:3], at=AS_OF)
    lake.export(CONTRACT)
    return lake


@pytest.fixture(scope="module")
def mine(stocked):
    return stocked.write_contract(CONTRACT)


@pytest.fixture(scope="module")
def call(clone, stocked):
    return lambda *words, **around: clone.run(*words, **{"world": stocked.world} | around)


def at(as_of=AS_OF.isoformat()):
    return ("--as-of", as_of)


def test_files_are_copied_and_the_record_is_named(stocked, call, mine, tmp_path):
    (tmp_path / "things" / WEEK).mkdir(parents=True)
    (tmp_path / "things" / WEEK / f"things_{WEEK}.part-0007.csv").write_text("of a former run")
    said = call("export", "run", mine, *at(), "--out", str(tmp_path), "--json")
    assert said.code == 0, said.err
    assert [window["state"] for window in said.document["windows"]] == ["unchanged"]
    assert f"exports/things/runs/{said.document['id']}.json" in stocked.keys("exports/things/runs/")
    folder = tmp_path / "things" / WEEK
    files = {"datapackage.json", "manifest.json", "report.html", f"things_{WEEK}.csv"}
    assert {path.name for path in folder.iterdir()} == files
    assert (folder / f"things_{WEEK}.csv").read_text().count("\r\n") == 201


def test_a_dry_run_of_another_table_publishes_nothing(stocked, call, mine):
    before = stocked.keys("exports/things/manifests/"), stocked.keys("exports/things/data/")
    other = contract(column("id"), column("n", "integer"), name="other")
    words = ("--dry-run", "--table", "things_again", "--json")
    said = call("export", "run", stocked.write_contract(other), *at(), *words)
    assert said.code == 0, said.err
    (window,) = said.document["windows"]
    assert (window["state"], window["rows"]["rows"]) == ("dry_run", 3)
    assert [key for key in stocked.keys("exports/other/") if "/runs/" not in key] == []
    assert (stocked.keys("exports/things/manifests/"), stocked.keys("exports/things/data/")) == before


@pytest.mark.fault("D36")
def test_a_full_disk_under_out_loses_nothing(stocked, call, mine, tmp_path):
    old = tmp_path / "things" / WEEK / f"things_{WEEK}.csv"
    old.parent.mkdir(parents=True)
    old.write_text("of a former run")
    published = {key: stocked.read(key) for key in stocked.keys("exports/things/manifests/")}

    def full():
        resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))

    said = call("export", "run", mine, *at(), "--out", str(tmp_path), "--json", limits=full)
    assert (said.code, said.document["code"], said.document["exit_code"]) == (1, "OUT-FOLDER", 1)
    assert "File too large" in said.document["message"]
    assert "published" in said.document["hint"]
    assert [path.read_text() for path in tmp_path.rglob("*.csv*")] == ["of a former run"]
    assert {key: stocked.read(key) for key in stocked.keys("exports/things/manifests/")} == published


def test_an_out_that_is_a_file_is_told(call, mine, tmp_path):
    (tmp_path / "taken").write_text("")
    said = call("export", "run", mine, *at(), "--out", str(tmp_path / "taken"))
    assert (said.code, said.out) == (1, "")
    assert said.err.count("OUT-FOLDER  ") == 1
    assert str(tmp_path / "taken") in said.err


@pytest.mark.parametrize(
    ("words", "changes", "exit_code", "code", "names"),
    [
        (("nosuch", *at()), {}, 2, "EXP-CONTRACT", "nosuch"),
        (("weekly_sales", *at("2999-01-01T00:00:00Z")), {}, 2, "EXP-ARGUMENTS", "future"),
        (("weekly_sales", *at()), {}, 1, "EXP-TABLE-MISSING", "sales_orders"),
        (("MINE", *at()), {"LAKEFERRY_BUCKET": "nowhere-to-be-found"}, 1, "EXP-AWS-NO-BUCKET", "nowhere-to-be-found"),
        (("MINE", *at()), {"LAKEFERRY_DATABASE": None}, 2, "NO-WORLD", "LAKEFERRY_DATABASE"),
        (("MINE", *at()), {"AWS_REGION": None, "AWS_DEFAULT_REGION": None}, 1, "EXP-AWS-UNREACHABLE", "region"),
    ],
)
def test_bad_input_is_told_once(stocked, call, mine, words, changes, exit_code, code, names):
    said = call("export", "run", *(mine if word == "MINE" else word for word in words), "--json", changes=changes)
    document = said.document
    assert (said.code, document["ok"], document["code"], document["exit_code"]) == (exit_code, False, code, exit_code)
    assert names in document["message"]
    assert document["hint"]
    assert said.err.count(code) == 1
    assert "Traceback" not in said.err
    assert stocked.published("weekly_sales") == []


@pytest.mark.parametrize(
    "sql",
    [
        "DELETE FROM things",
        "COPY (SELECT 1) TO 'x.csv'",
        "CREATE TABLE x AS SELECT 1",
        "SELECT 1; DROP VIEW things",
        "ATTACH 'x.db'",
    ],
)
def test_tables_are_read_only(clone, call, sql):
    said = call("query", sql, "--json")
    assert (said.code, said.document["code"]) == (2, "QUERY-READ-ONLY")
    assert not (clone.root / "x.csv").exists()


def test_a_query_answers_people_on_standard_output(call):
    said = call("query", 'SELECT id, n FROM "things_again" ORDER BY n')
    assert (said.code, said.out, said.err) == (0, "id    n\nt000  0\nt001  1\nt002  2\n", "")


def test_a_query_for_what_is_not_there_names_the_tables(call):
    said = call("query", "SELECT * FROM nothing", "--json")
    assert (said.code, said.document["code"]) == (2, "QUERY")
    assert "things_again" in said.document["hint"]


def test_a_query_that_aws_refuses_is_told(lake_aws, call):
    nemesis = NemesisClient(lake_aws.url)
    target = {"x-amz-target": "AWSGlue.GetTables"}
    nemesis.rule({"fault": "error", "headers": target, "status": 400, "shape": "aws-json", "code": "AccessDeniedException"})
    said = call("query", "SELECT 1", "--json")
    nemesis.clear()
    assert (said.code, said.document["code"]) == (1, "EXP-AWS-DENIED")
    assert "Traceback" not in said.err
