"""`lakeferry export …` and `lakeferry query` against the AWS that the environment names."""

from __future__ import annotations

import json
import os
import resource
from contextlib import contextmanager

import boto3
import pytest
from typer.testing import CliRunner

from glue_jobs import errors
from lakeferry.__main__ import app
from lakeferry.errors import CommandFailed
from lakeferry.local import export
from lakeferry.output import Output
from simulators.core.faults import FaultClient
from tests.support.command import naming
from tests.support.lake import AS_OF, MONDAY, WEEK, column, contract, topic_of
from tests.support.promises import promised

TOPIC = topic_of(("n", "int"))
CONTRACT = contract(column("id"), column("n", "integer"))


@pytest.fixture(scope="module")
def stocked(lakes):
    """A lake with one published week. The table also has a second name."""
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
    return lambda *words, **around: clone.run(*words, **{"target": stocked.target} | around)


def at(as_of=AS_OF.isoformat()):
    return ("--as-of", as_of)


@pytest.mark.slow
def test_a_dry_run_of_another_table_publishes_nothing(stocked, call, mine):
    before = stocked.keys("exports/things/manifests/"), stocked.keys("exports/things/data/")
    other = contract(column("id"), column("n", "integer"), name="other")
    words = ("--dry-run", "--table", "things_again", "--json")
    result = call("export", "run", stocked.write_contract(other), *at(), *words)
    assert result.code == 0, result.err
    assert result.document.keys() == promised("export run")
    (window,) = result.document["windows"]
    assert (window["state"], window["rows"]["rows"]) == ("dry_run", 3)
    assert stocked.target.bucket in result.document["source"]
    assert stocked.target.bucket in result.err
    assert [key for key in stocked.keys("exports/other/") if "/runs/" not in key] == []
    assert (stocked.keys("exports/things/manifests/"), stocked.keys("exports/things/data/")) == before


@pytest.fixture
def outdated(tmp_path):
    """A folder with a file of an earlier run."""
    old = tmp_path / "things" / WEEK / f"things_{WEEK}.csv"
    old.parent.mkdir(parents=True)
    old.write_text("of a former run")
    return tmp_path


@pytest.mark.slow
def test_a_full_disk_under_out_loses_nothing(stocked, outdated):
    record = stocked.export(CONTRACT).record
    published = {key: stocked.read(key) for key in stocked.keys("exports/things/")}
    with files_of_at_most(1000), pytest.raises(CommandFailed) as refused:
        export.download(stocked.target, record, outdated)
    assert (refused.value.exit_code, refused.value.code) == (1, "OUT-FOLDER")
    assert "File too large" in refused.value.message
    assert "stays published" in refused.value.hint
    assert [path.read_text() for path in outdated.rglob("*.csv*")] == ["of a former run"]
    assert {key: stocked.read(key) for key in stocked.keys("exports/things/")} == published


@contextmanager
def files_of_at_most(size):
    """Limit the size of files that this process can write, as a full disk does."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


#: Files of a reader beside the copies, with names that begin like theirs.
NEIGHBOURS = (
    f"things_{WEEK} checked by Anna.csv",
    f"things_{WEEK}.csv.bak",
    f"things_{WEEK}.csv.gz",
    f"things_{WEEK}-2.csv",
    "notes.txt",
)


@pytest.mark.slow
def test_copying_a_window_again_deletes_no_file_of_a_reader(stocked, tmp_path):
    record = stocked.export(CONTRACT).record
    (copy,) = export.download(stocked.target, record, tmp_path)
    for name in NEIGHBOURS:
        (copy.parent / name).write_text(name)
    assert export.download(stocked.target, record, tmp_path) == [copy]
    assert {name for name in NEIGHBOURS if (copy.parent / name).read_text() != name} == set()


@pytest.mark.slow
def test_a_copy_of_the_other_form_is_replaced_unless_somebody_changed_it(stocked, tmp_path):
    (plain,) = export.download(stocked.target, stocked.export(CONTRACT).record, tmp_path)
    compressed = CONTRACT.replace('dialect = "machine"', 'dialect = "machine", gzip = true')
    assert compressed != CONTRACT
    record = stocked.export(compressed).record
    (packed,) = export.download(stocked.target, record, tmp_path)
    assert sorted(path.name for path in packed.parent.glob("*.csv*")) == [packed.name] == [f"{plain.name}.gz"]
    packed.write_text("changed by hand")
    (again,) = export.download(stocked.target, stocked.export(CONTRACT).record, tmp_path)
    assert again == plain
    assert packed.read_text() == "changed by hand"


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"files": [{}]}', '{"files": 1}', "\udcff"])
def test_a_manifest_that_is_not_one_deletes_nothing(stocked, tmp_path, text):
    record = stocked.export(CONTRACT).record
    (copy,) = export.download(stocked.target, record, tmp_path)
    other = copy.with_name(f"{copy.name}.gz")
    other.write_text("mine")
    (copy.parent / "manifest.json").write_bytes(text.encode("utf-8", "surrogateescape"))
    assert export.download(stocked.target, record, tmp_path) == [copy]
    assert other.read_text() == "mine"


def test_an_out_that_is_a_file_is_reported(stocked, tmp_path):
    (tmp_path / "taken").write_text("")
    with pytest.raises(CommandFailed) as refused:
        export.download(stocked.target, stocked.export(CONTRACT).record, tmp_path / "taken")
    assert (refused.value.exit_code, refused.value.code) == (1, "OUT-FOLDER")
    assert str(tmp_path / "taken") in refused.value.message


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("words", "changes", "exit_code", "code", "names"),
    [
        (("nosuch", *at()), {}, 2, "EXP-CONTRACT", "nosuch"),
        (("weekly_sales", *at("2999-01-01T00:00:00Z")), {}, 2, "EXP-ARGUMENTS", "future"),
        (("weekly_sales", *at()), {}, 1, "EXP-TABLE-MISSING", "sales_orders"),
        (
            ("MINE", *at()),
            {"LAKEFERRY_BUCKET": "nowhere-to-be-found"},
            1,
            "EXP-AWS-NO-BUCKET",
            "nowhere-to-be-found",
        ),
        (("MINE", *at()), {"LAKEFERRY_DATABASE": None}, 2, "NO-BUCKET", "LAKEFERRY_DATABASE"),
        (
            ("MINE", *at()),
            {"AWS_REGION": None, "AWS_DEFAULT_REGION": None},
            1,
            "EXP-AWS-UNREACHABLE",
            "region",
        ),
    ],
)
def test_bad_input_is_reported_once(stocked, call, mine, words, changes, exit_code, code, names):
    result = call(
        "export", "run", *(mine if word == "MINE" else word for word in words), "--json", changes=changes
    )
    document = result.document
    assert (result.code, document["ok"], document["code"], document["exit_code"]) == (
        exit_code,
        False,
        code,
        exit_code,
    )
    assert names in document["message"]
    assert document["hint"]
    assert result.err.count(code) == 1
    assert "Traceback" not in result.err
    assert stocked.published("weekly_sales") == []


@pytest.mark.parametrize("verbose", [True, False])
def test_verbose_shows_the_cause_of_an_unexpected_error(capsys, verbose):
    value = "nobody may see it"
    try:
        raise LookupError(value)
    except LookupError as error:
        with export.show_log(Output(verbose=verbose)):
            errors.log_cause(error)
        failure = errors.translate(error)
    shown = capsys.readouterr()
    assert ("LookupError from Python" in shown.err) == verbose
    assert value not in shown.out + shown.err
    assert (failure.code, "-v" in failure.remedy) == ("EXP-UNEXPECTED", True)


@pytest.fixture
def query(stocked, monkeypatch, tmp_path):
    """Return a function that runs `lakeferry query` in this process."""
    for name, value in naming(stocked.target).items():
        monkeypatch.setenv(name, value)
    monkeypatch.chdir(tmp_path)
    return lambda *words: CliRunner().invoke(app, ["query", *words])


@pytest.mark.parametrize(
    "sql",
    [
        "DELETE FROM things",
        "COPY (SELECT 1) TO 'x.csv'",
        "CREATE TABLE x AS SELECT 1",
        "SELECT 1; DROP VIEW things",
        "ATTACH 'x.db'",
        "",
    ],
)
def test_tables_are_read_only(query, tmp_path, sql):
    result = query(sql, "--json")
    assert (result.exit_code, json.loads(result.stdout)["code"]) == (2, "QUERY-READ-ONLY")
    assert list(tmp_path.iterdir()) == []


def test_a_query_prints_a_table_on_standard_output(query):
    result = query('SELECT id, n FROM "things_again" ORDER BY n')
    assert (result.exit_code, result.stdout) == (0, "id    n\nt000  0\nt001  1\nt002  2\n")


def test_a_query_names_the_aws_that_answers(stocked, query):
    result = query("SELECT 1", "--json")
    named = (stocked.target.database, stocked.target.bucket, os.environ["AWS_ENDPOINT_URL"])
    assert [
        name for name in named if name not in result.stderr or name not in json.loads(result.stdout)["source"]
    ] == []


def test_a_query_with_json_prints_one_document(query):
    result = query("SELECT count(*) AS things, NULL AS nothing FROM things", "--json")
    document = json.loads(result.stdout)
    assert document.keys() == promised("query")
    assert (document["columns"], document["rows"]) == (["things", "nothing"], [[200, None]])


@pytest.mark.parametrize(
    "sql", ["SELECT * FROM nothing", "SELECT nothing FROM things", "SELEC 1", "SELECT 1 / 'a'"]
)
def test_a_query_that_is_wrong_is_reported(query, sql):
    result = query(sql, "--json")
    assert (result.exit_code, json.loads(result.stdout)["code"]) == (2, "QUERY")
    assert result.stderr.count("QUERY  ") == 1


def test_a_query_for_a_missing_table_names_the_existing_ones(query):
    assert "things_again" in json.loads(query("SELECT * FROM nothing", "--json").stdout)["hint"]


@pytest.fixture
def unreadable(stocked):
    """A table of the database whose metadata file doesn't exist."""
    glue = boto3.client("glue", endpoint_url=stocked.aws.url)
    database = stocked.target.database
    name = "thing"
    location = f"s3://{stocked.target.bucket}/nothing.metadata.json"
    glue.create_table(
        DatabaseName=database, TableInput={"Name": name, "Parameters": {"metadata_location": location}}
    )
    yield name
    glue.delete_table(DatabaseName=database, Name=name)


@pytest.mark.parametrize("table", ["things", '"THINGS"', "{database}.things"])
def test_a_table_that_can_not_be_read_disturbs_no_query_of_another(query, stocked, unreadable, table):
    named = table.format(database=f'"{stocked.target.database}"')
    assert query(f"SELECT count(*) FROM {named}").stdout.split() == ["count_star()", "200"]


def test_a_query_of_a_table_that_can_not_be_read_fails(query, unreadable):
    result = query(f"SELECT * FROM {unreadable}", "--json")
    assert (result.exit_code, json.loads(result.stdout)["code"]) == (2, "QUERY")
    assert "nothing.metadata.json" in json.loads(result.stdout)["message"]


@pytest.mark.parametrize("where", ["", "WHERE table_name <> 'thing'"])
def test_a_list_of_tables_names_those_that_can_not_be_read(query, stocked, unreadable, where):
    result = query(f"SELECT DISTINCT table_name FROM information_schema.tables {where} ORDER BY 1")
    assert result.stdout.split() == ["table_name", "things", "things_again"]
    assert f'"{stocked.target.database}"."{unreadable}" can\'t be read: ' in result.stderr


def test_a_query_that_aws_refuses_is_reported(lake_aws, query):
    faults = FaultClient(lake_aws.url)
    target = {"x-amz-target": "AWSGlue.GetTables"}
    faults.rule(
        {
            "fault": "error",
            "headers": target,
            "status": 400,
            "shape": "aws-json",
            "code": "AccessDeniedException",
        }
    )
    result = query("SELECT 1", "--json")
    faults.clear()
    assert (result.exit_code, json.loads(result.stdout)["code"]) == (1, "EXP-AWS-DENIED")
