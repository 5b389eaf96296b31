"""Rules about exports, their contracts and their schedules: all that each reports."""

from __future__ import annotations

import attrs
import pytest

from config.deployments import export_rules
from config.deployments.confluent_model import Statement, Tableflow, Topic
from config.deployments.sources import Sources
from config.exports.check import NOT_JUDGED
from tests.support.rule_kit import (
    CONFLUENT,
    GLUE,
    deployment,
    export,
    write_contract,
    write_schema,
    write_statement,
)


@pytest.fixture
def sources(tmp_path):
    for folder in ("topics", "flink", "exports"):
        (tmp_path / folder).mkdir()
    return Sources(tmp_path, NOT_JUDGED)


def find_in_exports(sources, *topics, **keys):
    made = deployment(topics=topics, exports=[export("one", **keys)])
    return list(export_rules.exports_match_topics(made, sources))


def test_an_export_reads_a_table_of_the_file(sources):
    write_contract(sources, "one")
    write_schema(sources, "things")
    for table in (Tableflow(), Tableflow(storage="managed")):
        assert find_in_exports(sources, Topic(name="things", tableflow=table)) == []
    no_table = (
        "one reads things, which is no table that exports can read. Add [topics.tableflow] to the topic, without "
        "in_glue = false"
    )
    for table in (None, Tableflow(shown_in_glue=False)):
        found = find_in_exports(
            sources, Topic(name="other", tableflow=Tableflow()), Topic(name="things", tableflow=table)
        )
        assert found == [("exports[0].contract", no_table)]
    (sources.root / "topics" / "things.avsc").unlink()
    assert find_in_exports(sources, Topic(name="things")) == [("exports[0].contract", no_table)]
    assert find_in_exports(sources, Topic(name="other", tableflow=Tableflow())) == [
        ("exports[0].contract", "one reads things, which is not a topic of this file")
    ]


def test_columns_of_an_export_are_checked_against_a_schema_that_must_exist(sources):
    write_contract(sources, "one", ("lost", "text"))
    topic = Topic(name="things", tableflow=Tableflow())
    unchecked = "columns can't be checked: topic things has no schema file"
    write_it = (
        "Write the Avro schema of its values to project/topics/things.avsc, as Schema Registry has it for subject "
        "things-value, or name a file with schema = …"
    )
    import_it = "`lakeferry topics import things --stage dev` writes it from the table"

    def find(topic, **parts):
        made = deployment(topics=[topic], exports=[export("one")], **parts)
        return [message for _, message in export_rules.exports_match_topics(made, sources)]

    assert find(topic) == [f"{unchecked}. {write_it}"]
    assert find(Topic(name="things"), confluent=None, source=GLUE) == [f"{unchecked}. {import_it}"]
    theirs = attrs.evolve(CONFLUENT, cluster_id="lkc-a")
    existing = attrs.evolve(topic, existing=True)
    assert find(existing, confluent=theirs) == [f"{unchecked}. {import_it}"]
    assert find(topic, confluent=theirs) == find(existing) == [f"{unchecked}. {write_it}"]
    assert find(attrs.evolve(topic, schema_file="topics/none.avsc")) == [f"{unchecked}. {write_it}"]
    write_schema(sources, "things")
    (found,) = find(topic)
    assert found.startswith("project/exports/one.toml, line ")
    assert "has no field lost" in found


def test_columns_are_checked_against_what_a_statement_makes_of_them_if_that_can_be_followed(sources):
    write_contract(sources, "one")
    write_statement(sources, "lost", "CREATE TABLE things AS SELECT id, at FROM nowhere")
    topic = Topic(name="things", tableflow=Tableflow(), statement="lost")
    made = deployment(topics=[topic], statements=[Statement(name="lost")], exports=[export("one")])
    (found,) = export_rules.exports_match_topics(made, sources)
    assert found == (
        "exports[0].contract",
        "columns can't be checked: topic things has no schema file, and its statement doesn't show what "
        "schema Flink will register: project/flink/lost/create.sql: the type of id isn't known: no statement "
        "and no file shows the schema of nowhere. Write the Avro schema of its values to project/topics/things.avsc, as "
        "Schema Registry has it for subject things-value, or name a file with schema = …",
    )
    write_schema(sources, "nowhere")
    assert list(export_rules.exports_match_topics(made, sources)) == []


@pytest.mark.parametrize(("keep", "restate", "is_valid"), [(31, 30, True), (30, 30, False), (30, 31, False)])
def test_files_are_kept_longer_than_their_windows_change(sources, keep, restate, is_valid):
    write_contract(sources, "one", restate_for_days=restate)
    write_schema(sources, "things")
    message = (
        f"one would still check windows whose files were removed after {keep} days (restate_for_days = "
        f"{restate}). Keep files for longer"
    )
    found = find_in_exports(sources, Topic(name="things", tableflow=Tableflow()), keep_days=keep)
    assert found == ([] if is_valid else [("exports[0].keep_days", message)])


def test_a_contract_that_cannot_be_read_is_one_mistake_and_no_reason_for_another(sources):
    (sources.root / "exports" / "one.toml").write_text("name = 1")
    made = deployment(exports=[export("one", keep_days=30, link_days=1, link_keeps=["x"])])
    found = list(export_rules.exports_match_topics(made, sources))
    assert {key for key, _ in found} == {"exports[0].contract"}
    assert all("project/exports/one.toml, " in message for _, message in found)
    for rule in (
        export_rules.rows_outlive_windows,
        export_rules.exports_run_again_for_each_window,
        export_rules.links_open_nothing_personal,
    ):
        assert list(rule(made, sources)) == []


@pytest.mark.parametrize("count", [0, 50, 51])
def test_a_deployment_has_50_exports_at_most(count):
    made = deployment(exports=[export(f"e{number}") for number in range(count)])
    found = list(export_rules.exports_fit_into_policies(made, None))
    assert found == (
        [
            (
                "exports",
                "there are 51, and a deployment can have 50: the policies of the dead-letter queue and of the "
                "function that sends mails grow with each export, and AWS limits them. Put the others into a "
                "second deployment file",
            )
        ]
        if count == 51
        else []
    )


def test_rows_outlive_the_windows_of_each_export(sources):
    write_contract(sources, "days", topic="a", restate_for_days=40)
    write_contract(sources, "months", topic="b", every="month", restate_for_days=14)
    write_contract(sources, "others", topic="nowhere")
    exports = [export(name) for name in ("missing", "others", "days", "months")]

    def find(rows_of_a, rows_of_b):
        topics = [
            Topic(name="plain"),
            Topic(name="a", tableflow=Tableflow(rows_days=rows_of_a)),
            Topic(name="b", tableflow=rows_of_b and Tableflow(rows_days=rows_of_b)),
        ]
        made = deployment(topics=topics, exports=exports)
        return [
            (key, message.partition(" again ")[0])
            for key, message in export_rules.rows_outlive_windows(made, sources)
        ]

    assert find(42, 46) == find(None, None) == []
    assert find(41, 45) == [
        ("topics[1].tableflow.rows_days", "must be at least 42: export days publishes a window of 1 days"),
        ("topics[2].tableflow.rows_days", "must be at least 46: export months publishes a window of 31 days"),
    ]


def test_each_export_is_started_again_before_its_next_window_ends(sources):
    write_contract(sources, "one")
    exports = [export("missing", cron="0 6 * * ? *"), export("one"), export("one", cron="0 6 * * ? *")]
    (found,) = export_rules.exports_run_again_for_each_window(deployment(exports=exports), sources)
    assert found[0] == "exports[2].cron"
    assert found[1].startswith("starts one only once before its next window ends")


def test_a_link_opens_only_what_may_be_read_by_everybody(sources):
    kept = 'personal = { treatment = "keep", reason = "Ours." }'
    write_contract(sources, "one", ("mail", "text", kept), ("phone", "text", kept), ("status", "text"))
    write_contract(sources, "plain")

    def find(name, **keys):
        made = deployment(exports=[export("plain"), export(name, **keys)])
        return list(export_rules.links_open_nothing_personal(made, sources))

    assert find("one") == find("plain", link_days=1) == find("one", link_keeps=["status"]) == []
    assert find("one", link_days=1, link_keeps=["phone", "mail"]) == []
    message = (
        "one keeps personal data in {}, and a link opens for everybody who has the mail. If they may all read it, "
        "name the columns as link_keeps. Otherwise leave link_days out, and name who may read as readers"
    )
    assert find("one", link_days=1) == [("exports[1].link_days", message.format("mail, phone"))]
    unknown = "is no column of one that keeps its values"
    assert find("one", link_days=1, link_keeps=["status", "mail", "nothing"]) == [
        ("exports[1].link_days", message.format("phone")),
        ("exports[1].link_keeps", f"status {unknown}"),
        ("exports[1].link_keeps", f"nothing {unknown}"),
    ]


@pytest.mark.parametrize(
    ("count", "days", "is_valid"), [(99, 1, True), (100, 1, True), (101, None, True), (101, 1, False)]
)
def test_a_link_goes_to_100_recipients_at_most(count, days, is_valid):
    recipients = [f"analyst{number}@example.com" for number in range(count)]
    made = deployment(exports=[export("a"), export("b", recipients=recipients, link_days=days)])
    message = "there are 101, and with link_days an export can have 100. Name a mailing list, or leave link_days out"
    found = list(export_rules.linked_recipients_fit_into_topics(made, None))
    assert found == ([] if is_valid else [("exports[1].recipients", message)])
