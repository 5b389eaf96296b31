"""How Confluent's resource types find their objects, and each field that they send for topics and ACLs."""

from __future__ import annotations

import attrs
import pytest

from lambdas.confluent import lookup
from lambdas.confluent.resources import acl, topic
from lambdas.shared.errors import (
    Denied,
    LakeferryError,
    NotFound,
    ParentMissing,
    Refused,
    ResourceMissing,
    Transient,
)
from lambdas.shared.properties import parse
from tests.support.confluent_context import (
    CLUSTER,
    IN_CLUSTER,
    KAFKA,
    LKC,
    SA,
    context,
    listing,
    spec,
    wrote,
)

TOPICS = f"{KAFKA}/topics"
TRADES = f"{TOPICS}/trades"
ACLS = f"{KAFKA}/acls"
PROTECTED = (200, {"spec": {"deletion_protection": True}})


def topic_spec(**given):
    return spec(topic, credentials="kafka", topic="trades", **IN_CLUSTER, **given)


def acl_spec(**given):
    entry = {"resource_type": "TOPIC", "resource_name": "a", "operation": "READ", **given}
    return spec(acl, credentials="kafka", service_account_id=SA, **IN_CLUSTER, **entry)


def rolled_back(context):
    return attrs.evolve(context, rolling_back=lambda: True)


# --- what every type does


def test_a_missing_object_is_named():
    assert lookup.require_existing({}, "topic a") == {}
    with pytest.raises(ResourceMissing, match="LF-VANISHED  topic a does not exist"):
        lookup.require_existing(None, "topic a")


@pytest.mark.parametrize(
    ("known_id", "found_ids"),
    [
        (None, ["b", "c"]),
        ("", ["b", "c"]),
        ("b", ["b", "c"]),
        ("c", ["c", "b"]),
        ("a", ["a", "b", "c"]),
        ("gone", ["b", "c"]),
    ],
)
def test_the_known_id_comes_first_and_no_id_comes_twice(known_id, found_ids):
    documents = [
        {"id": "a", "spec": {"name": "other"}},
        {"id": "b", "spec": {"name": "mine"}},
        {"id": "", "spec": {"name": "mine"}},
        {"spec": {"name": "mine"}},
        {"id": "c", "spec": {"name": "mine"}},
        {"id": "d", "name": "mine"},
    ]
    read_ids = []

    def read(object_id):
        read_ids.append(object_id)
        return None if object_id == "gone" else {}

    assert lookup.find_by_id_or_name(known_id, read, documents, "mine", "spec", "name") == found_ids
    assert read_ids == ([known_id] if known_id else [])


@pytest.mark.parametrize("error_class", [Denied, NotFound, ParentMissing, Refused, Transient])
@pytest.mark.parametrize("deleting", [True, False])
@pytest.mark.parametrize("is_gone", [True, False])
def test_only_a_missing_container_of_an_object_to_delete_makes_it_gone(
    server, error_class, deleting, is_gone
):
    def fail():
        raise error_class(lookup.errors.VANISHED, "not to be told")

    looking = context(server, deleting=deleting)
    if deleting and is_gone and error_class in (Denied, NotFound, ParentMissing):
        assert lookup.treat_gone_container_as_empty(looking, lambda: is_gone, fail) == []
    else:
        with pytest.raises(error_class, match="not to be told"):
            lookup.treat_gone_container_as_empty(looking, lambda: is_gone, fail)
    assert lookup.treat_gone_container_as_empty(looking, lambda: is_gone, lambda: ["a"]) == ["a"]


# --- topics


def test_a_protected_cluster_keeps_its_topics(server):
    server.answers[f"GET {CLUSTER}"] = PROTECTED
    deleting = context(server, deleting=True, owned=True)
    message = f"CFL-DELETION-PROTECTED  Kafka cluster {LKC} is protected, and topic trades has records"
    with pytest.raises(LakeferryError, match=message):
        topic.delete(deleting, topic_spec(), "trades")
    assert wrote(server) == []


@pytest.mark.parametrize("protection", [False, None, "true", 1])
def test_a_topic_of_an_unprotected_cluster_is_deleted(server, protection):
    server.answers[f"GET {CLUSTER}"] = (
        200,
        {"spec": {"http_endpoint": server.url, "deletion_protection": protection}},
    )
    server.answers[f"DELETE {TRADES}"] = (204, None)
    topic.delete(context(server, deleting=True, owned=True), topic_spec(), "trades")
    assert server.routes[-1] == f"DELETE {TRADES}"


@pytest.mark.parametrize("shared", [True, False])
def test_protection_counts_neither_in_a_rollback_nor_in_the_cluster_of_somebody_else(server, shared):
    server.answers[f"GET {CLUSTER}"] = (
        200,
        {"spec": {"http_endpoint": server.url, "deletion_protection": True}},
    )
    server.answers[f"DELETE {TRADES}"] = (204, None)
    deleting = context(server, deleting=True, owned=True)
    if shared:
        topic.delete(deleting, topic_spec(shared_cluster="true"), "trades")
    else:
        topic.delete(rolled_back(deleting), topic_spec(), "trades")
    assert wrote(server) == [(f"DELETE {TRADES}", None)]


def test_protection_of_a_cluster_that_is_gone_counts_for_nothing(server):
    server.answers[f"GET {CLUSTER}"] = (404, {})
    lookup.require_unprotected(context(server, deleting=True), topic_spec(), "it has records")


def test_a_topic_is_created_with_its_settings_in_order(server):
    server.answers[f"POST {TOPICS}"] = (201, {})
    claims = []
    creating = attrs.evolve(context(server), claim=lambda: claims.append(list(server.writes())))
    given = {"partitions": "3", "config": {"retention.ms": "1", "cleanup.policy": "compact"}}
    assert topic.create(creating, topic_spec(**given)) == "trades"
    configs = [
        {"name": "cleanup.policy", "value": "compact"},
        {"name": "retention.ms", "value": "1"},
    ]
    body = {"topic_name": "trades", "partitions_count": 3, "configs": configs}
    assert wrote(server) == [(f"POST {TOPICS}", body)]
    assert claims == [[]], "it is claimed before the request that creates it"


@pytest.mark.parametrize(
    ("message", "code"), [("already EXISTS", "CFL-CONFLICT"), ("Marked for deletion", "CFL-CONFLICT")]
)
def test_a_topic_that_exists_or_is_being_deleted_is_a_conflict(server, message, code):
    server.answers[f"POST {TOPICS}"] = (400, {"message": message})
    with pytest.raises(LakeferryError, match=f"{code}  .*{message}"):
        topic.create(context(server), topic_spec())


def test_a_create_of_a_topic_is_sent_once(server):
    server.answers[f"POST {TOPICS}"] = [(500, {}), (201, {})]
    with pytest.raises(Transient):
        topic.create(context(server), topic_spec())
    assert len(wrote(server)) == 1


def test_a_ready_topic_has_its_partitions_as_text(server):
    with pytest.raises(ResourceMissing, match="topic trades does not exist"):
        topic.is_ready(context(server), topic_spec(), "trades")
    with pytest.raises(ResourceMissing, match="topic trades does not exist"):
        topic.update(context(server), topic_spec(), "trades")
    server.answers[f"GET {TRADES}"] = (200, {"partitions_count": 4})
    assert topic.is_ready(context(server), topic_spec(), "trades") == {"name": "trades", "partitions": "4"}


@pytest.mark.parametrize(("now", "is_raised"), [(5, True), (6, False), (7, False), ("5", False)])
@pytest.mark.parametrize("before", ["2", "6"])
def test_only_a_lower_number_of_partitions_is_raised(server, before, now, is_raised):
    server.answers[f"GET {TRADES}"] = (200, {"partitions_count": now})
    server.answers[f"GET {TRADES}/configs"] = listing()
    server.answers[f"PATCH {TRADES}"] = (200, {})
    previous = topic_spec(partitions=before)
    topic.update(context(server, previous=previous), topic_spec(partitions="6"), "trades")
    assert wrote(server) == ([(f"PATCH {TRADES}", {"partitions_count": 6})] if is_raised else [])


def test_a_lowered_number_that_the_topic_has_already_is_no_error(server):
    server.answers[f"GET {TRADES}"] = (200, {"partitions_count": 6})
    lowering = context(server, previous=topic_spec(partitions="12"))
    topic.update(lowering, topic_spec(partitions="6"), "trades")
    assert wrote(server) == []


def test_a_raised_number_of_partitions_is_sent_once(server):
    """Kafka refuses the number that a topic already has."""
    server.answers[f"GET {TRADES}"] = (200, {"partitions_count": 1})
    server.answers[f"PATCH {TRADES}"] = [(500, {}), (200, {})]
    with pytest.raises(Transient):
        topic.update(context(server), topic_spec(), "trades")
    assert len(wrote(server)) == 1


def test_settings_that_differ_are_set_and_removed_ones_are_reset_in_one_call(server):
    server.answers[f"GET {TRADES}"] = (200, {"partitions_count": 6})
    now = {"a": "1", "b": "2", "c": "9", "gone": "3", "kept": "4", "reset": "5"}
    settings = [{"name": name, "value": value, "is_default": name == "reset"} for name, value in now.items()]
    server.answers[f"GET {TRADES}/configs"] = listing(*settings)
    server.answers[f"POST {TRADES}/configs:alter"] = [(500, {}), (204, None)]
    before = topic_spec(config={"gone": "3", "b": "2", "reset": "5", "also gone": "6"})
    after = topic_spec(config={"new": "9", "c": "3", "b": "7", "a": "1"})
    topic.update(context(server, previous=before), after, "trades")
    changes = [
        {"name": "b", "value": "7"},
        {"name": "c", "value": "3"},
        {"name": "new", "value": "9"},
        {"name": "also gone", "operation": "DELETE"},
        {"name": "gone", "operation": "DELETE"},
    ]
    assert wrote(server) == [(f"POST {TRADES}/configs:alter", {"data": changes})] * 2


def test_a_topic_of_somebody_else_is_found_by_nobody(server):
    assert topic.find_existing(context(server), topic_spec(), None) == []
    server.answers[f"GET {TRADES}"] = (200, {})
    message = "CFL-FOREIGN-TOPIC  topic trades exists, and this deployment did not create it"
    with pytest.raises(Refused, match=message):
        topic.find_existing(context(server), topic_spec(), None)
    assert topic.find_existing(context(server), topic_spec(adopt="true"), None) == ["trades"]
    assert topic.find_existing(context(server, owned=True), topic_spec(), None) == ["trades"]
    assert topic.find_existing(context(server, deleting=True, owned=True), topic_spec(), "x") == ["trades"]
    server.sent.clear()
    assert topic.find_existing(context(server, deleting=True), topic_spec(adopt="true"), "trades") == []
    assert server.sent == []


def test_a_topic_of_ones_own_is_gone_with_its_cluster(server):
    server.answers[f"GET {CLUSTER}"] = (404, {})
    assert topic.find_existing(context(server, deleting=True, owned=True), topic_spec(), "trades") == []
    with pytest.raises(ParentMissing):
        topic.find_existing(context(server, owned=True), topic_spec(), "trades")


# --- ACLs


def entry(name="a", **changed):
    return {
        "resource_type": "TOPIC",
        "resource_name": name,
        "pattern_type": "LITERAL",
        "principal": f"User:{SA}",
        "host": "*",
        "operation": "READ",
        "permission": "ALLOW",
        **changed,
    }


def test_an_acl_is_created_with_every_field_and_its_id_names_them(server):
    server.answers[f"POST {ACLS}"] = [(500, {}), (201, None)]
    assert acl.create(context(server), acl_spec()) == f"TOPIC/a/LITERAL/User:{SA}/*/READ/ALLOW"
    assert wrote(server) == [(f"POST {ACLS}", entry())] * 2, "a second one has no further effect"


def test_acls_of_several_names_are_created_in_one_call_each_once(server):
    server.answers[f"POST {ACLS}:batch"] = [(500, {}), (201, None)]
    several = acl_spec(resource_names=["b", "a", "b"], pattern_type="PREFIXED")
    assert acl.create(context(server), several) == f"TOPIC//PREFIXED/User:{SA}/*/READ/ALLOW"
    data = [entry(name, pattern_type="PREFIXED") for name in ("b", "a")]
    assert wrote(server) == [(f"POST {ACLS}:batch", {"data": data})] * 2


@pytest.mark.parametrize(
    "other",
    [
        {"resource_type": "GROUP"},
        {"pattern_type": "PREFIXED"},
        {"host": "10.0.0.1"},
        {"operation": "WRITE"},
        {"permission": "DENY"},
        {"resource_name": "b"},
    ],
)
def test_an_acl_that_differs_in_one_field_is_another_one(server, other):
    server.answers[f"GET {ACLS}"] = listing(entry(**other))
    assert acl.find_existing(context(server), acl_spec(), None) == []
    for verb in (acl.is_ready, acl.update):
        with pytest.raises(ResourceMissing, match="ACL the-id does not exist"):
            verb(context(server), acl_spec(), "the-id")
    assert wrote(server) == []


def test_names_are_no_part_of_the_filter_for_several(server):
    server.answers[f"GET {ACLS}"] = listing(entry("a"))
    several = acl_spec(resource_names=["a", "b"])
    assert acl.find_existing(context(server), several, None) == [f"TOPIC//LITERAL/User:{SA}/*/READ/ALLOW"]
    query = entry()
    del query["resource_name"]
    assert server.sent[-1].query == query


def test_an_update_adds_and_removes_names_and_leaves_those_that_stay(server):
    server.answers[f"GET {ACLS}"] = listing(entry("a"), entry("c"), entry("somebody's"))
    server.answers |= {f"POST {ACLS}": (201, None), f"DELETE {ACLS}": (200, {"data": []})}
    before = acl_spec(resource_names=["a", "b", "c"])
    acl.update(context(server, previous=before), acl_spec(resource_names=["c", "d"]), "the-id")
    assert [(sent.route, sent.body, sent.query) for sent in server.writes()] == [
        (f"POST {ACLS}", entry("d"), {}),
        (f"DELETE {ACLS}", None, entry("a")),
        (f"DELETE {ACLS}", None, entry("b")),
    ]


def test_an_update_is_possible_while_only_the_names_before_exist(server):
    server.answers[f"GET {ACLS}"] = listing(entry("a"))
    server.answers |= {f"POST {ACLS}": (201, None), f"DELETE {ACLS}": (200, {"data": []})}
    after = acl_spec(resource_names=["b"])
    with pytest.raises(ResourceMissing):
        acl.update(context(server), after, "the-id")
    acl.update(context(server, previous=acl_spec(resource_names=["a"])), after, "the-id")
    assert [sent.route for sent in server.writes()] == [f"POST {ACLS}", f"DELETE {ACLS}"]


def test_acls_are_gone_with_their_cluster(server):
    server.answers[f"GET {CLUSTER}"] = (404, {})
    assert acl.find_existing(context(server, deleting=True), acl_spec(), "the-id") == []
    with pytest.raises(ParentMissing):
        acl.find_existing(context(server), acl_spec(), "the-id")


def test_an_acl_on_the_cluster_itself_needs_no_name():
    given = {"resource_type": "CLUSTER", "operation": "ALTER", "credentials": "kafka", **IN_CLUSTER}
    parsed = parse(acl.PROPERTIES, {**given, "service_account_id": SA}, strict=True)
    assert (parsed.resource_name, parsed.pattern_type) == ("kafka-cluster", "LITERAL")
