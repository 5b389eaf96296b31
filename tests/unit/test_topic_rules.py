"""Rules about topics, their tables and the statements that write them: all that each reports."""

from __future__ import annotations

import attrs
import pytest

from config.deployments import ownership_rules, topic_rules
from config.deployments.confluent_model import Statement, Tableflow, Topic
from config.deployments.sources import Sources
from config.exports.check import NOT_JUDGED
from tests.support.rule_kit import CONFLUENT, deployment, write_schema, write_statement


@pytest.fixture
def sources(tmp_path):
    for folder in ("topics", "flink", "exports"):
        (tmp_path / folder).mkdir()
    return Sources(tmp_path, NOT_JUDGED)


def test_a_topic_has_one_writer(sources):
    write_statement(sources, "makes", "CREATE TABLE made AS SELECT 1")
    write_statement(sources, "opaque", "CREATE /* odd */ TABLE x AS SELECT 1")
    statements = [Statement(name=name) for name in ("makes", "opaque", "missing")]
    topics = [
        Topic(name="plain", datagen="ORDERS", config={"a": "b"}),
        Topic(name="renamed", statement="makes", datagen="ORDERS", config={"a": "b"}),
        Topic(name="made", statement="makes"),
        Topic(name="lost", statement="nowhere"),
        Topic(name="any", statement="opaque"),
        Topic(name="other", statement="missing"),
        Topic(name="again", statement="nowhere"),
    ]
    made = deployment(topics=topics, statements=statements)
    assert list(topic_rules.topics_have_one_writer(made, sources)) == [
        ("topics[1].name", "renamed must be made, the table that project/flink/makes/create.sql creates"),
        ("topics[1].datagen", "renamed is written by statement makes; only one can write it"),
        ("topics[1].config", "statement makes creates renamed; set this in its create.sql"),
        ("topics[2].statement", "makes is the statement of topic renamed already, and it creates one topic"),
        ("topics[3].statement", "nowhere is not a statement of this file"),
        ("topics[6].statement", "nowhere is not a statement of this file"),
    ]


def test_statements_exist_and_read_those_above_them(sources):
    for name in ("first", "second"):
        write_statement(sources, name, "CREATE TABLE x AS SELECT 1")
    (sources.root / "flink" / "second" / "undo.sql").unlink()
    statements = [
        Statement(name="first", after=["second"]),
        Statement(name="second", after=["first", "second"]),
        Statement(name="third", after=["first", "second"]),
    ]
    above = "is not a statement above this one"
    assert list(topic_rules.statements_exist(deployment(statements=statements), sources)) == [
        ("statements[0].after", f"second {above}"),
        ("statements[1].name", "project/flink/second/undo.sql does not exist"),
        ("statements[1].after", f"second {above}"),
        ("statements[2].name", "project/flink/third/create.sql does not exist"),
    ]


def test_a_table_needs_a_schema_or_somebody_who_registers_one(sources):
    table = Tableflow()
    write_schema(sources, "known")
    topics = [
        Topic(name="lost", schema_file="topics/lost.avsc", tableflow=table),
        Topic(name="known", tableflow=table, datagen="schema"),
        Topic(name="known_too", schema_file="topics/known.avsc", tableflow=table),
        Topic(name="bare", tableflow=table),
        Topic(name="made_up", datagen="schema", tableflow=table),
        Topic(name="plain"),
        Topic(name="theirs", existing=True, tableflow=table),
        Topic(name="generated", datagen="ORDERS", tableflow=table),
        Topic(name="computed", statement="s", tableflow=table),
    ]
    assert list(topic_rules.schemas_exist(deployment(topics=topics), sources)) == [
        ("topics[0].schema", "topics/lost.avsc is not a file in the project's folder"),
        (
            "topics[3].tableflow",
            "bare has no schema, and Tableflow refuses such a topic. Add project/topics/bare.avsc, or datagen",
        ),
        (
            "topics[4].datagen",
            "data is made from the topic's schema, and project/topics/made_up.avsc doesn't exist",
        ),
    ]


#: The settings of a topic, or the options of its statement, and the mode in which Tableflow writes it.
MODES = [
    ({}, None, "APPEND", "delete"),
    ({"cleanup.policy": "delete"}, None, "APPEND", "delete"),
    ({"cleanup.policy": "compact"}, None, "UPSERT", "compact"),
    ({"cleanup.policy": "compact,delete"}, None, "UPSERT", "compact,delete"),
    ({}, {}, "APPEND", "delete"),
    ({"cleanup.policy": "compact"}, {}, "APPEND", "delete"),
    ({}, {"changelog.mode": "append"}, "APPEND", "delete"),
    ({}, {"changelog.mode": "upsert"}, "UPSERT", "delete"),
    ({}, {"kafka.cleanup-policy": "compact"}, "UPSERT", "compact"),
    ({}, {"kafka.cleanup-policy": "delete-compact"}, "UPSERT", "delete-compact"),
]


@pytest.mark.parametrize(("config", "options", "mode", "policy"), MODES)
def test_the_write_mode_is_that_of_the_cleanup_policy(sources, config, options, mode, policy):
    if options is not None:
        listed = ", ".join(f"'{key}' = '{value}'" for key, value in {"a": "b", **options}.items())
        write_statement(sources, "s", f"CREATE TABLE t WITH ({listed}) AS SELECT 1")
    statement = None if options is None else "s"

    def find(mode, existing=False):
        topic = Topic(
            name="t",
            config=config,
            statement=statement,
            existing=existing,
            tableflow=Tableflow(write_mode=mode),
        )
        made = deployment(topics=[Topic(name="plain", config={"cleanup.policy": "compact"}), topic])
        return list(topic_rules.write_modes_match_cleanup_policies(made, sources))

    other = "APPEND" if mode == "UPSERT" else "UPSERT"
    message = f"can't be {other}: with cleanup.policy={policy} Tableflow writes in mode {mode}"
    assert find(mode) == find(other, existing=True) == []
    assert find(other) == [("topics[1].tableflow.write_mode", message)]


def test_each_statement_with_retractions_is_reported(sources):
    for name in ("r", "s"):
        write_statement(sources, name, "CREATE TABLE t WITH ('changelog.mode' = 'retract') AS SELECT 1")
    topics = [Topic(name=name, statement=name, tableflow=Tableflow()) for name in ("lost", "r", "s")]
    assert list(topic_rules.write_modes_match_cleanup_policies(deployment(topics=topics), sources)) == [
        (
            f"topics[{index}].tableflow.write_mode",
            f"statement {name} writes a changelog of retractions, which Tableflow refuses",
        )
        for index, name in ((1, "r"), (2, "s"))
    ]


def test_tables_are_where_what_reads_them_finds_them():
    managed = Tableflow(storage="managed")
    hidden = Tableflow(shown_in_glue=False)
    topics = [
        Topic(name="plain"),
        Topic(name="own", tableflow=Tableflow(shown_in_glue=True)),
        Topic(name="managed", tableflow=managed),
        Topic(name="shown", tableflow=attrs.evolve(managed, shown_in_glue=True)),
        Topic(name="apart", tableflow=attrs.evolve(managed, shown_in_glue=False)),
        Topic(name="hidden", tableflow=hidden),
        Topic(name="delta", tableflow=Tableflow(formats=["ICEBERG", "DELTA"])),
    ]
    found = list(topic_rules.storage_is_readable(deployment(topics=topics), None))
    assert found[:2] == [
        (
            "topics[3].tableflow.in_glue",
            "can't be true: Tableflow registers no table of managed storage in Glue. Remove it, or use storage = "
            '"own_bucket"',
        ),
        (
            "topics[5].tableflow.in_glue",
            "can't be false while own is in Glue: Tableflow's catalog integration is the whole cluster's, and "
            "shows every table in your bucket. Set it to false for all topics, or leave it out",
        ),
    ]
    assert [key for key, _ in found[2:]] == ["topics[6].tableflow.formats"]
    alone = [Topic(name="hidden", tableflow=hidden), Topic(name="managed", tableflow=managed)]
    assert list(topic_rules.storage_is_readable(deployment(topics=alone), None)) == []


def test_an_undo_drops_what_its_statement_created(sources):
    write_statement(
        sources,
        "careless",
        "CREATE TABLE mine AS SELECT 1",
        "DROP TABLE mine; DROP TABLE theirs; DROP TABLE a",
    )
    write_statement(sources, "filler", "INSERT INTO theirs SELECT 1", "DROP TABLE theirs")
    write_statement(sources, "careful", "CREATE TABLE other AS SELECT 1", "DROP TABLE other")
    names = ("missing", "careless", "filler", "careful")
    statements = [Statement(name=name) for name in names]
    drops = "project/flink/careless/undo.sql drops {}, and create.sql creates mine. Drop that"
    expected = [
        ("statements[1].name", drops.format("theirs")),
        ("statements[1].name", drops.format("a")),
        (
            "statements[2].name",
            "project/flink/filler/undo.sql drops theirs, and create.sql has no CREATE TABLE that can be read. "
            "Leave undo.sql empty",
        ),
    ]

    def find(confluent, *topics):
        made = deployment(confluent=confluent, statements=statements, topics=topics)
        return list(ownership_rules.statements_undo_only_their_table(made, sources))

    assert find(CONFLUENT) == find(None) == expected
    shared = attrs.evolve(CONFLUENT, environment_id="env-a", environment_name="shared")
    both = (Topic(name="mine", statement="careless"), Topic(name="other", statement="careful"))
    assert find(shared, *both) == expected
    undeclared = (
        "statements[3].name",
        "careful creates other, and no topic of this file says so. Write [[topics]] with the name other and "
        'statement = "careful", so that its subjects can be checked in the shared registry',
    )
    assert find(shared, both[0], Topic(name="other", statement="careless")) == [*expected, undeclared]


def test_a_table_that_somebody_reads_is_not_dropped():
    statements = [
        Statement(name="a", on_edit="drop_and_reread"),
        Statement(name="b", after=["a"]),
        Statement(name="c", after=["b", "a"], on_edit="drop_and_reread"),
    ]
    topics = [
        Topic(name="t_b", statement="b", tableflow=Tableflow()),
        Topic(name="t_a", statement="a", tableflow=Tableflow()),
        Topic(name="plain", statement="c"),
        Topic(name="t_c", statement="c", tableflow=Tableflow()),
    ]
    made = deployment(statements=statements, topics=topics)
    remove = "Remove on_edit: then an edit keeps the table"
    table = "drop_and_reread would drop {}, which has [topics.tableflow], and Confluent refuses that. {}"
    assert list(ownership_rules.dropped_tables_have_no_readers(made, None)) == [
        ("statements[0].on_edit", table.format("t_a", remove)),
        *(
            (
                "statements[0].on_edit",
                f"drop_and_reread would drop the table that statement {name} reads. {remove}",
            )
            for name in ("b", "c")
        ),
        ("statements[2].on_edit", table.format("t_c", remove)),
    ]


def test_what_is_adopted_is_what_the_deployment_would_create():
    everything = ["topic", "subject", "tableflow"]
    topics = [
        Topic(name="all", adopt=everything, tableflow=Tableflow()),
        Topic(name="none", datagen="ORDERS", statement="s"),
        Topic(name="flink", adopt=everything, statement="s", datagen="ORDERS"),
        Topic(name="made", adopt=["subject"], datagen="ORDERS"),
        Topic(name="just", adopt=["topic"], datagen="ORDERS"),
        Topic(name="kept", adopt=everything, statement="s", tableflow=Tableflow()),
    ]
    subject = "registers the schema of {}, not the deployment. Remove subject from the list"
    assert list(ownership_rules.adopted_objects_are_declared(deployment(topics=topics), None)) == [
        (
            "topics[2].adopt",
            "flink has no [topics.tableflow], so no table can be adopted. Remove tableflow from the list",
        ),
        ("topics[2].adopt", f"a statement {subject.format('flink')}"),
        ("topics[3].adopt", f"a connector {subject.format('made')}"),
        ("topics[5].adopt", f"a statement {subject.format('kept')}"),
    ]
