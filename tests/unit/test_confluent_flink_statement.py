"""Flink statements: the name depends on the text, an old text is undone before a new one runs, the record is
deleted last.
"""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import attrs
import pytest
import sqlglot
from hypothesis import given
from hypothesis import strategies as st

from lambdas.confluent.flink_sql import fingerprint, normalize
from lambdas.confluent.resources import flink_statement
from lambdas.shared.errors import (
    BadProperties,
    InProgress,
    NeedsReplacement,
    Refused,
    ReplacementRequired,
    ResourceFailed,
    ResourceMissing,
)
from tests.support.confluent_context import ENV, NAME, ORG, SA, STATEMENTS, context, listing, spec, wrote

FLINK = Path(__file__).parents[2] / "project" / "flink"
SQL = "CREATE TABLE t AS SELECT 1"
UNDO = "DROP TABLE IF EXISTS t"


def statement_spec(**given):
    common = {
        "environment_id": ENV,
        "region": "eu-west-1",
        "credentials": "flink",
        "compute_pool_id": "lfcp-1",
    }
    named = {"service_account_id": SA, "catalog": "cat", "database": "db", "sql": SQL, "undo_sql": UNDO}
    return spec(flink_statement, **{**common, **named, **given})


PROPERTIES = {"sql.current-catalog": "cat", "sql.current-database": "db"}
NOW = f"{NAME}-{fingerprint(SQL, {})}"
OLD = f"{NAME}-0a0b0c0d"


def there(server, name, phase, detail="", **spec_fields):
    held = {
        "statement": SQL,
        "properties": PROPERTIES,
        "compute_pool_id": "lfcp-1",
        "principal": SA,
        "stopped": False,
    }
    found = {
        "name": name,
        "organization_id": ORG,
        "environment_id": ENV,
        "metadata": {"self": "x", "resource_version": "7"},
        "spec": {**held, "execution_mode": "STREAMING", **spec_fields},
        "status": {"phase": phase, "detail": detail},
    }
    server.answers[f"GET {STATEMENTS}/{name}"] = (200, found)
    for method in ("PUT", "DELETE"):
        server.answers[f"{method} {STATEMENTS}/{name}"] = (202, None)


def gone(server, name):
    server.answers.pop(f"GET {STATEMENTS}/{name}", None)


def test_names_of_statement_and_undo_are_short_enough(server):
    server.answers[f"POST {STATEMENTS}"] = (201, {})
    assert flink_statement.create(context(server), statement_spec(properties={"sql.state-ttl": "7 d"})) != NOW
    assert flink_statement.create(context(server), statement_spec()) == NOW
    assert re.fullmatch(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?", NOW + "-undo")
    assert len(NOW + "-undo") <= 100


@pytest.mark.parametrize(
    ("phases", "ready"),
    [
        (["RUNNING", "COMPLETED", "DEGRADED"], True),
        (["PENDING", "STOPPING", "DELETING", "A_NEW_WORD"], False),
    ],
)
def test_phases(server, phases, ready):
    for phase in phases:
        there(server, NOW, phase)
        outputs = flink_statement.is_ready(context(server), statement_spec(), NOW)
        assert outputs == ({"name": NOW, "phase": phase} if ready else None)
    assert wrote(server) == []


def test_a_failed_statement_is_reported_and_a_stopped_one_started(server):
    for phase in ("FAILED", "FAILING"):
        there(server, NOW, phase, detail="no such table")
        with pytest.raises(NeedsReplacement, match="no such table"):
            flink_statement.is_ready(context(server), statement_spec(), NOW)
    there(server, NOW, "STOPPED", stopped=True)
    assert flink_statement.is_ready(context(server), statement_spec(), NOW) is None
    ((_, body),) = wrote(server)
    assert body["spec"]["stopped"] is False
    assert body["metadata"]["resource_version"] == "7"
    assert "execution_mode" not in body["spec"]


def test_a_statement_that_ran_is_not_created_again_because_its_undo_would_drop_its_records(server):
    notes = {}
    there(server, NOW, "RUNNING")
    flink_statement.is_ready(context(server, notes=notes), statement_spec(), NOW)
    there(server, NOW, "FAILED", detail="a record can't be read")
    with pytest.raises(ResourceFailed, match="a record can't be read") as failed:
        flink_statement.is_ready(context(server, notes=notes), statement_spec(), NOW)
    assert (type(failed.value), failed.value.kind.code) == (ResourceFailed, "CFL-FLINK-STOPPED-RUNNING")
    back = attrs.evolve(context(server, notes=notes), rolling_back=lambda: True)
    assert flink_statement.is_ready(back, statement_spec(), NOW) == {"name": NOW, "phase": "FAILED"}
    assert wrote(server) == []


def test_a_statement_that_is_updated_has_run(server):
    """Also if the note was lost, or an earlier version wrote none. One that the update creates has not."""
    there(server, NOW, "FAILED")
    for before, error in ((SQL, ResourceFailed), ("CREATE TABLE t AS SELECT 2", NeedsReplacement)):
        with pytest.raises(error) as failed:
            flink_statement.is_ready(
                context(server, previous=statement_spec(sql=before)), statement_spec(), NOW
            )
        assert type(failed.value) is error


def test_a_statement_that_is_created_again_has_not_run_yet(server):
    notes = {"ran": NOW}
    server.answers[f"POST {STATEMENTS}"] = (201, {})
    flink_statement.create(context(server, notes=notes), statement_spec())
    there(server, NOW, "FAILED")
    with pytest.raises(NeedsReplacement):
        flink_statement.is_ready(context(server, notes=notes), statement_spec(), NOW)


def test_other_blanks_and_comments_change_nothing(server):
    there(server, NOW, "RUNNING")
    same = statement_spec(sql="-- why\nCREATE  TABLE t\n AS SELECT 1 ;\n")
    flink_statement.update(context(server), same, NOW)
    assert flink_statement.find_existing(context(server), same, None) == [NOW]
    assert wrote(server) == []


def test_another_text_is_another_statement_even_after_an_undo(server):
    there(server, NOW, "STOPPED")
    with pytest.raises(ReplacementRequired):
        flink_statement.update(
            context(server, notes={"undone": NOW}),
            statement_spec(sql="CREATE TABLE t AS SELECT 2", drop_on_edit=True),
            NOW,
        )
    gone(server, NOW)
    with pytest.raises(ResourceMissing):
        flink_statement.update(
            context(server), statement_spec(sql="CREATE TABLE t AS SELECT 2", drop_on_edit=True), NOW
        )


def test_an_edit_of_a_statement_whose_topic_is_a_table_is_refused_before_anything_happens(server):
    """Its topic would have to be dropped, which Confluent refuses while Tableflow reads it."""
    there(server, NOW, "RUNNING")
    edited = statement_spec(sql="CREATE TABLE t AS SELECT 2", tableflow_topics=["t"], drop_on_edit=True)
    with pytest.raises(Refused, match=f"statement {NOW} writes t") as refused:
        flink_statement.update(context(server), edited, NOW)
    assert (refused.value.kind.code, refused.value.patience) == ("CFL-FLINK-TABLEFLOW", 0)
    flink_statement.update(context(server), statement_spec(tableflow_topics=["t"]), NOW)
    assert wrote(server) == []


def test_a_statement_that_a_change_undid_before_it_was_rolled_back_is_not_resumed(server):
    """Its target may no longer exist."""
    there(server, NOW, "STOPPED", stopped=True)
    for verb in (flink_statement.update, flink_statement.is_ready):
        with pytest.raises(ReplacementRequired, match="was undone"):
            verb(context(server, notes={"undone": NOW}), statement_spec(), NOW)
    there(server, f"{NOW}-undo", "RUNNING")
    for verb in (flink_statement.update, flink_statement.is_ready):
        with pytest.raises(ReplacementRequired, match="was undone"):
            verb(context(server), statement_spec(), NOW)
    assert wrote(server) == []


def test_a_statement_is_stopped_to_move_to_another_pool(server):
    there(server, NOW, "RUNNING")
    moved = statement_spec(compute_pool_id="lfcp-2")
    with pytest.raises(InProgress):
        flink_statement.update(context(server), moved, NOW)
    there(server, NOW, "STOPPED", stopped=True)
    flink_statement.update(context(server), moved, NOW)
    stop, move = (body["spec"] for _, body in wrote(server))
    assert (stop["stopped"], stop["compute_pool_id"]) == (True, "lfcp-1")
    assert (move["stopped"], move["compute_pool_id"]) == (False, "lfcp-2")


def test_delete_stops_undoes_cleans_up_and_removes_the_record_last(server):
    result = context(server, deleting=True)
    server.answers[f"POST {STATEMENTS}"] = (201, {})
    steps = []

    def step():
        before = len(server.writes())
        try:
            flink_statement.delete(result, statement_spec(), NOW)
            steps.append("done")
        except InProgress:
            steps.append("not yet")
        return [(sent.route, (sent.body or {}).get("name")) for sent in server.writes()[before:]]

    there(server, NOW, "RUNNING")
    assert step() == [(f"PUT {STATEMENTS}/{NOW}", NOW)]
    there(server, NOW, "STOPPED")
    assert step() == [(f"POST {STATEMENTS}", f"{NOW}-undo")]
    assert server.sent[-1].body["spec"]["statement"] == UNDO
    there(server, f"{NOW}-undo", "RUNNING")
    assert step() == []
    there(server, f"{NOW}-undo", "COMPLETED")
    assert step() == []
    assert result.notes == {"undone": NOW}, "written down before the record goes"
    assert step() == [(f"DELETE {STATEMENTS}/{NOW}-undo", None)]
    gone(server, f"{NOW}-undo")
    assert step() == [(f"DELETE {STATEMENTS}/{NOW}", None)]
    gone(server, NOW)
    assert step() == []
    assert steps == ["not yet"] * 5 + ["done"] * 2


def test_an_undo_that_fails_is_reported_and_tried_again(server):
    there(server, NOW, "COMPLETED")
    there(server, f"{NOW}-undo", "FAILED", detail="Tableflow is enabled")
    with pytest.raises(ResourceFailed, match="Tableflow is enabled"):
        flink_statement.delete(context(server, deleting=True), statement_spec(), NOW)
    assert [route for route, _ in wrote(server)] == [f"DELETE {STATEMENTS}/{NOW}-undo"]


def test_a_deleted_statement_exists_until_its_undo_has_run(server):
    server.answers[f"GET {STATEMENTS}"] = listing(
        {"name": OLD}, {"name": f"{NOW}-undo"}, {"name": NAME}, {"name": NOW + "x"}
    )
    there(server, NOW, "RUNNING")
    assert flink_statement.find_existing(context(server, deleting=True), statement_spec(), None) == sorted(
        [OLD, NOW]
    )
    server.answers[f"GET {STATEMENTS}"] = listing()
    gone(server, NOW)
    assert flink_statement.find_existing(context(server, deleting=True), statement_spec(), OLD) == [OLD]
    assert (
        flink_statement.find_existing(
            context(server, deleting=True, notes={"undone": OLD}), statement_spec(), OLD
        )
        == []
    )
    assert (
        flink_statement.find_existing(context(server, deleting=True), statement_spec(undo_sql=""), OLD) == []
    )
    assert flink_statement.find_existing(context(server), statement_spec(), OLD) == []


def test_an_old_undo_is_removed_before_the_statement_is_created_again(server):
    there(server, f"{NOW}-undo", "COMPLETED")
    with pytest.raises(InProgress):
        flink_statement.create(context(server), statement_spec())
    assert [route for route, _ in wrote(server)] == [f"DELETE {STATEMENTS}/{NOW}-undo"]


@pytest.mark.parametrize("sql", ["SELECT 1; SELECT 2", "SELECT ';'; DROP TABLE t;"])
def test_several_statements_in_one_are_refused(sql):
    with pytest.raises(BadProperties, match="several statements"):
        statement_spec(sql=sql)


@pytest.mark.parametrize(
    "sql", ["SELECT ';'", "SELECT `a;b`;", "SELECT 1 -- no; more\n;", "SELECT 1 /* ; */;;"]
)
def test_a_semicolon_in_a_text_or_at_the_end_is_no_separator(sql):
    assert statement_spec(sql=sql)


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("SELECT  1", "SELECT\n1;", True),
        ("SELECT 1 -- a\n, 2", "SELECT 1 , 2", True),
        ("SELECT 1 /* a */ + 2", "SELECT 1 + 2", True),
        ("SELECT 'a  b'", "SELECT 'a b'", False),
        ("SELECT '--a'", "SELECT '--b'", False),
        ("SELECT 'it''s  x'", "SELECT 'it''s x'", False),
        ("SELECT `a  b`", "SELECT `a b`", False),
        ("SELECT 3-2", "SELECT 3--2", False),
        ("SELECT 4/2", "SELECT 4 / 2", False),
    ],
)
def test_which_differences_of_a_text_matter(one, other, same):
    assert (normalize(one) == normalize(other)) is same
    assert (fingerprint(one, {}) == fingerprint(other, {})) is same


@given(st.text(st.sampled_from(list("ab '`-/*\n;")), max_size=30))
def test_a_normalised_text_stays_the_same(sql):
    assert normalize(normalize(sql)) == normalize(sql)


def test_the_mark_includes_properties_in_any_order():
    assert (
        fingerprint(SQL, {"a": "1", "b": "2"})
        == fingerprint(SQL, {"b": "2", "a": "1"})
        != fingerprint(SQL, {"a": "1", "b": "3"})
    )


def test_the_mark_of_a_text_never_changes():
    assert fingerprint("SELECT 1", {"a": "b"}) == "a4c56917"


# --- the statements that ship
# ---------------------------------------------------------------------------------------------


def folders():
    return sorted(path for path in FLINK.iterdir() if path.is_dir())


@pytest.mark.parametrize("folder", folders(), ids=lambda path: path.name)
def test_each_shipped_statement_creates_its_folders_table_and_undoes_only_that(folder):
    create, undo = ((folder / f"{name}.sql").read_text() for name in ("create", "undo"))
    file = folder / "properties.toml"
    properties = tomllib.loads(file.read_text()) if file.exists() else {}
    assert statement_spec(sql=create, undo_sql=undo, properties=properties)
    assert f"CREATE TABLE IF NOT EXISTS `{folder.name}`" in normalize(create)
    assert normalize(undo) == f"DROP TABLE IF EXISTS `{folder.name}`"
    options = dict(re.findall(r"'([\w.-]+)' = '([\w-]+)'", create))
    assert options == {
        "changelog.mode": "append",
        "kafka.cleanup-policy": "delete",
        "kafka.producer.compression.type": "zstd",
        "value.fields-include": "all",
    }


@pytest.mark.parametrize(
    ("name", "columns"),
    [
        ("stock_trades_with_totals", "trade_timestamp userid side symbol quantity price total_price"),
        ("stock_trades_by_minute", "window_start window_end userid side symbol trades quantity total_price"),
        (
            "store_orders_once",
            "store_id store_order_id coupon_code date status customer order_lines",
        ),
        (
            "store_orders_flat",
            "store_id store_order_id coupon_code order_date status region customer_since order_lines",
        ),
    ],
)
def test_columns_of_the_shipped_statements(name, columns):
    query = re.split(r"\)\s*AS\b", normalize((FLINK / name / "create.sql").read_text()), maxsplit=1)[1]
    # sqlglot doesn't know Flink's window functions; any table can replace them.
    parsed = sqlglot.parse_one(re.sub(r"TABLE\(TUMBLE\(.*?MINUTE\)\)", "windows", query), read="mysql")
    assert parsed.named_selects == columns.split()


def test_the_state_of_the_deduplication_is_bounded():
    assert tomllib.loads((FLINK / "store_orders_once" / "properties.toml").read_text()) == {
        "sql.state-ttl": "7 d"
    }


FORMER = f"{NAME}-{fingerprint(SQL, PROPERTIES)}"


def test_a_statement_of_an_earlier_release_is_found_and_not_replaced_after_a_new_name_of_its_environment(
    server,
):
    there(server, FORMER, "RUNNING")
    assert flink_statement.find_existing(context(server, owned=True), statement_spec(), None) == [FORMER]
    renamed = statement_spec(catalog="renamed")
    notes = {}
    flink_statement.update(context(server, previous=statement_spec(), notes=notes), renamed, FORMER)
    again = statement_spec(catalog="renamed-again")
    flink_statement.update(context(server, previous=renamed, notes=notes), again, FORMER)
    assert wrote(server) == []
    other = statement_spec(catalog="renamed-again", sql="CREATE TABLE t AS SELECT 2", drop_on_edit=True)
    with pytest.raises(ReplacementRequired):
        flink_statement.update(context(server, previous=again, notes=notes), other, FORMER)


def test_a_statement_that_completed_needs_no_statement_any_more(server):
    notes = {}
    there(server, NOW, "COMPLETED")
    ready = flink_statement.is_ready(context(server, notes=notes), statement_spec(), NOW)
    gone(server, NOW)
    flink_statement.update(context(server, notes=notes), statement_spec(), NOW)
    assert flink_statement.is_ready(context(server, notes=notes), statement_spec(), NOW) == ready
    assert wrote(server) == []
