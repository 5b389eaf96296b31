"""What people see of a table: nothing that is personal, or of which nobody knows whether it is."""

from __future__ import annotations

import json

import attrs
import pytest

from config.deployments import people_rules
from config.deployments.shown_columns import Shown, Unshown, choose_columns, find_shown_columns
from config.deployments.snowflake_model import Snowflake
from config.deployments.sources import Sources
from config.exports import check
from config.exports.topic_schema import from_avro
from tests.support import shipped

TAGGED = {"confluent:tags": ["PII"]}


def field(name, kind="string", **more):
    return {"name": name, "type": kind, **more}


def schema(*fields, **more):
    return from_avro({"type": "record", "name": "Reading", "fields": list(fields), **more}, "readings")


def chosen(*fields, **more):
    return choose_columns(schema(*fields, **more), ("DEFAULT",))


def test_a_column_is_hidden_by_its_tag_its_name_or_what_is_in_it():
    inner = {"type": "record", "name": "Inner", "fields": [field("level", "int"), field("remark", **TAGGED)]}
    shown = chosen(field("level", "int"), field("code", **TAGGED), field("email"), field("inner", inner))
    assert isinstance(shown, Shown)
    assert shown.columns[0] == "level"
    assert {"code", "email", "inner"} <= shown.hidden.keys()
    assert not {"code", "email", "inner"} & set(shown.columns)
    assert shown.hidden["inner"] == "inner.remark: it has the tag PII"


def test_keys_headers_and_raw_values_are_hidden():
    shown = chosen(field("level", "int"))
    assert {"$$offset", "$$timestamp"} <= set(shown.columns)
    assert {"key", "$$headers", "$$raw-key", "$$raw-value"} == shown.hidden.keys()
    assert "cflt_metadata_raw_value" in choose_columns(schema(field("level", "int")), ("PORTABLE",)).hidden


def test_a_field_called_key_is_the_topics_own():
    assert "key" in chosen(field("key", "int")).columns
    assert "key" in chosen(field("level", "int"), field("key", **TAGGED)).hidden


def test_names_that_differ_in_capitals_only_are_one_name():
    shown = chosen(field("level", "int"), field("code", **TAGGED), field("Code"))
    assert {"code", "Code"} <= shown.hidden.keys()


def test_a_table_without_a_column_to_show_has_no_view():
    assert isinstance(chosen(field("code", **TAGGED)), Unshown)


def look(root, text):
    """Return what people see of the shipped topic stock_trades, with this schema file or none."""
    deployment = shipped.load("dev").deployment
    (topic,) = [topic for topic in deployment.topics if topic.name == "stock_trades"]
    (root / "topics").mkdir()
    if text is not None:
        (root / "topics" / "stock_trades.avsc").write_text(json.dumps(text))
    alone = attrs.evolve(deployment, topics=[topic], statements=[])
    return find_shown_columns(topic, Sources(root, check.NOT_JUDGED), alone)


AVRO = {"type": "record", "name": "Trade", "fields": [field("price", "int")]}


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (None, "no schema file"),
        (AVRO | {"lakeferry:tags": "unknown"}, "nobody has said"),
        ({"type": "int"}, "not an Avro record"),
    ],
)
def test_what_is_untagged_is_not_clean(tmp_path, text, why):
    found = look(tmp_path, text)
    assert isinstance(found, Unshown)
    assert why in found.reason


def test_a_table_with_known_tags_is_shown(tmp_path):
    assert look(tmp_path, AVRO | {"lakeferry:tags": "reviewed"}).columns[0] == "price"


def problems(rule, **given):
    loaded = shipped.load("dev")
    section = Snowflake(account="org-acct", key_secret="deployer", **given)
    return list(rule(attrs.evolve(loaded.deployment, snowflake=section), loaded.sources))


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"grant_to_users": ["ANNA", "anna"]}, ["twice"]),
        ({"grant_to_users": ["lakeferry"]}, ["deployer"]),
        ({"grant_to_roles": ["public", "LAKEFERRY"]}, ["deployer", "every user"]),
        ({"grant_to_users": ["anna@example.com"], "grant_to_roles": ["ANALYST"]}, []),
    ],
)
def test_people_are_named_once_and_are_people(given, words):
    found = problems(people_rules.people_in_snowflake_are_named_once, **given)
    assert len(found) == len(words)
    assert all(word in message for word, (_, message) in zip(words, found, strict=True))


@pytest.mark.parametrize(
    ("given", "keys"),
    [
        ({"schema": "views"}, ["views_schema"]),
        ({"views_schema": "public"}, ["views_schema"]),
        ({"people_role": "A", "raw_role": "a"}, ["raw_role"]),
        ({"people_role": "LAKEFERRY", "grant_to_roles": ["lakeferry"]}, ["people_role", "people_role"]),
        ({"people_role": "A", "raw_role": "B", "grant_to_roles": ["C"]}, []),
    ],
)
def test_views_and_roles_have_names_of_their_own(given, keys):
    found = problems(people_rules.views_have_a_schema_of_their_own, **given)
    assert [key for key, _ in found] == [f"snowflake.{key}" for key in keys]
