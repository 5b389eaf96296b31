"""Keys of every service: what is asked of Confluent, what a secret then has, and what a key's test means."""

from __future__ import annotations

import json

import attrs
import pytest

from lambdas.confluent import key_services
from lambdas.confluent.resources import api_key
from lambdas.confluent.services import SERVICES
from lambdas.confluent.services.base import Connection, KeyService, Target
from lambdas.shared.errors import Denied, InProgress, LakeferryError, NotFound, ResourceMissing, Transient
from lambdas.shared.redaction import ApiKey, Secret
from tests.support.confluent_context import (
    ENV,
    KAFKA,
    KEY,
    LKC,
    NAME,
    ORG,
    SA,
    STATEMENTS,
    context,
    give_role,
    listing,
    spec,
    wrote,
)

KEYS = "/iam/v2/api-keys"
TESTS = {
    "kafka": f"GET {KAFKA}/topics",
    "schema_registry": "GET /subjects",
    "flink": f"GET {STATEMENTS}",
    "tableflow": "GET /tableflow/v1/regions",
    "cloud": "GET /org/v2/environments",
}


def key_spec(**given):
    return spec(
        api_key,
        **{"service": "kafka", "environment_id": ENV, "cluster_id": LKC, **given},
        service_account_id=SA,
        secret="filled",
    )


def listed(key_id, display_name=NAME, resource=LKC):
    return {"id": key_id, "spec": {"display_name": display_name, "resource": {"id": resource}}}


def target(service, **ids):
    common = {"environment_id": ENV, "cluster_id": LKC, "region": "eu-west-1", "compute_pool_id": "lfcp-1"}
    return Target(service, SA, **{**common, **ids})


# --- the resource


def test_update_sends_a_description_only_if_the_properties_change_it(server):
    server.answers |= {f"GET {KEYS}": listing(listed("KEY")), f"PATCH {KEYS}/KEY": (200, {})}
    described = key_spec(description="Of the sales team")
    for before in (None, described):
        api_key.update(context(server, previous=before, filled=json.dumps(KEY)), described, "KEY")
    assert wrote(server) == []
    api_key.update(context(server, previous=key_spec(), filled=json.dumps(KEY)), described, "KEY")
    assert wrote(server) == [(f"PATCH {KEYS}/KEY", {"spec": {"description": "Of the sales team"}})]


def test_a_description_may_become_the_usual_one(server):
    server.answers |= {f"GET {KEYS}": listing(listed("KEY")), f"PATCH {KEYS}/KEY": (200, {})}
    updating = context(server, previous=key_spec(description="Of the sales team"), filled=json.dumps(KEY))
    api_key.update(updating, key_spec(), "KEY")
    assert wrote(server) == [(f"PATCH {KEYS}/KEY", {"spec": {"description": "Made by Lakeferry"}})]


def test_other_keys_do_not_take_the_place_of_the_one_in_the_secret(server):
    server.answers[f"GET {KEYS}"] = listing(listed("A"), listed("Z"))
    assert api_key.find_existing(context(server, filled=json.dumps(KEY)), key_spec(), "A") == []


def test_a_key_is_created_with_its_description(server):
    server.answers |= {f"GET {KEYS}": listing(), f"POST {KEYS}": (202, {"id": "N", "spec": {"secret": "s"}})}
    api_key.create(context(server, filled=None), key_spec(description="Of the sales team"))
    ((_, body),) = wrote(server)
    assert body["spec"]["description"] == "Of the sales team"


@pytest.mark.parametrize("created", [{}, {"id": "N"}, {"id": "N", "spec": {}}, {"spec": {"secret": "s"}}])
def test_an_answer_without_a_key_is_no_key(server, created):
    server.answers |= {f"GET {KEYS}": listing(), f"POST {KEYS}": (202, created)}
    creating = context(server, filled=None)
    with pytest.raises(Transient, match="an answer lacks"):
        api_key.create(creating, key_spec())
    assert creating.secrets.client.values["filled"] is None


def test_a_key_stays_while_it_is_not_known_whether_its_secret_was_written(server):
    server.answers |= {f"GET {KEYS}": listing(), f"POST {KEYS}": (202, {"id": "N", "spec": {"secret": "s"}})}
    creating = context(server, filled=None)
    creating.secrets.client.fail_next = "InternalServiceError"
    with pytest.raises(Transient):
        api_key.create(creating, key_spec())
    assert [route for route, _ in wrote(server)] == [f"POST {KEYS}"]
    assert creating.notes == {}


def test_a_secret_that_took_no_value_must_take_its_old_one_first(server):
    server.answers |= {f"GET {KEYS}": listing(), f"POST {KEYS}": (202, {"id": "N", "spec": {"secret": "s"}})}
    creating = context(server, filled=json.dumps({"added": "stays"}))
    creating.secrets.client.fail_next = "AccessDeniedException"
    with pytest.raises(Denied):
        api_key.create(creating, key_spec())
    assert creating.notes == {"unwritable": str(creating.clock.time())}
    assert [route for route, _ in wrote(server)] == [f"POST {KEYS}", f"DELETE {KEYS}/N"]
    api_key.create(creating, key_spec())
    before, first, second = map(json.loads, creating.secrets.client.ever[-3:])
    assert before == first == {"added": "stays"}
    assert (second["added"], second["apiKey"]) == ("stays", "N")


def test_a_key_that_is_not_accepted_yet_is_named_and_counts_anew(server):
    server.answers[TESTS["kafka"]] = [(401, {}), (200, {})]
    notes = {"successes": "1"}
    waiting = context(server, notes=notes, filled=json.dumps(KEY))
    with pytest.raises(InProgress, match="CFL-KEY-NOT-READY  key KEY for kafka is not accepted yet"):
        api_key.is_ready(waiting, key_spec(), "KEY")
    assert notes == {"successes": "0"}
    assert api_key.is_ready(waiting, key_spec(), "KEY") is None
    assert notes == {"successes": "1"}
    for _ in range(2):
        assert api_key.is_ready(waiting, key_spec(), "KEY") == {"key_id": "KEY", "secret": "filled"}


@pytest.mark.parametrize("left", [{}, {"apiKey": "KEY"}, {"apiSecret": "canary-of-the-data-plane"}])
def test_a_key_without_both_its_fields_in_the_secret_is_missing(server, left):
    server.answers[f"GET {KEYS}"] = listing(listed("KEY"))
    half = context(server, filled=json.dumps(left))
    assert api_key.find_existing(half, key_spec(), "KEY") == []
    with pytest.raises(ResourceMissing, match="key KEY or its secret is not there"):
        api_key.update(half, key_spec(), "KEY")
    assert wrote(server) == []


def test_only_the_keys_of_the_account_are_listed(server):
    server.answers[f"GET {KEYS}"] = listing(listed("KEY"))
    assert api_key.find_existing(context(server, filled=json.dumps(KEY)), key_spec(), None) == ["KEY"]
    assert server.sent[0].query == {"page_size": "99", "spec.owner": SA}


@pytest.mark.parametrize("known_id", [None, "A", "B"])
def test_a_known_key_is_deleted_once(server, known_id):
    server.answers[f"GET {KEYS}"] = listing(listed("A"), listed("B", f"{NAME}/token"))
    server.answers |= {f"GET {KEYS}/{key_id}": (200, listed(key_id)) for key_id in ("A", "B")}
    deleting = context(server, deleting=True, filled=json.dumps(KEY))
    assert api_key.find_existing(deleting, key_spec(), known_id) == ["A", "B"]
    server.answers[f"DELETE {KEYS}/A"] = (204, None)
    api_key.delete(deleting, key_spec(), "A")
    assert wrote(server) == [(f"DELETE {KEYS}/A", None)]
    assert deleting.secrets.client.fields("filled") == KEY, "the secret belongs to the stack"


@pytest.mark.parametrize(("account", "is_gone"), [(SA, True), ("sa-2", False)])
def test_a_key_that_is_refused_is_gone_for_the_owner_of_its_account(server, account, is_gone):
    give_role(server, "ResourceOwner", f"/service-account={account}")
    server.answers |= {
        f"GET {KEYS}": listing(listed("A")),
        f"GET {KEYS}/OLD": (403, {"message": "no"}),
        f"GET /iam/v2/service-accounts/{SA}": (200, {"id": SA}),
    }
    deleting = context(server, deleting=True, filled=None)
    if is_gone:
        assert api_key.find_existing(deleting, key_spec(), "OLD") == ["A"]
    else:
        with pytest.raises(Denied, match="CFL-UNSEEN"):
            api_key.find_existing(deleting, key_spec(), "OLD")


@pytest.mark.parametrize(
    ("display_name", "is_managed"),
    [("a", True), ("a/", True), ("a/token", True), ("ab", False), ("ab/token", False), ("", False)],
)
def test_managed_keys_have_the_name_alone_or_before_a_slash(display_name, is_managed):
    assert api_key.is_managed(display_name, "a") is is_managed


# --- services


@pytest.mark.parametrize("missing", ["is_service_of", "find_resource", "prepare_test"])
def test_a_service_says_what_its_keys_are_for_and_how_they_are_tested(missing):
    methods = {name: lambda *given: None for name in ("is_service_of", "find_resource", "prepare_test")}
    assert type("Whole", (KeyService,), methods)()
    del methods[missing]
    with pytest.raises(TypeError, match=missing):
        type("Half", (KeyService,), methods)()


def test_a_service_without_ids_addresses_and_fields_of_its_own():
    service = SERVICES["cloud"]
    connection = Connection(SA, "")
    assert service.complete_target(target("cloud"), {"resourceId": "x"}) == target("cloud")
    assert service.complete_connection(None, target("cloud"), connection) == connection
    key = ApiKey("k", Secret("canary"))
    assert service.build_key_fields(key) == service.build_fields(key, connection) == {}
    assert service.REFUSES_UNKNOWN_KEYS is False


@pytest.mark.parametrize(
    ("stored", "read_target"),
    [
        ({}, Target("cloud", "")),
        ({"resourceId": "", "serviceAccountId": SA}, Target("cloud", SA)),
        (
            {"resourceId": LKC, "serviceAccountId": SA, "environmentId": ENV},
            Target("kafka", SA, ENV, cluster_id=LKC),
        ),
        ({"resourceId": "lsrc-1", "environmentId": ENV}, Target("schema_registry", "", ENV)),
        ({"resourceId": "tableflow", "environmentId": ENV}, Target("tableflow", "", ENV)),
        ({"resourceId": "Tableflow"}, Target("tableflow", "")),
        (
            {"resourceId": "env-1.aws.eu-west-1", "environmentId": ENV, "compute.pool.id": "lfcp-1"},
            Target("flink", "", ENV, region="eu-west-1", compute_pool_id="lfcp-1"),
        ),
        ({"resourceId": "eu-west-1"}, Target("flink", "", region="eu-west-1")),
    ],
)
def test_the_service_of_a_secret_is_recognised_by_its_resource(stored, read_target):
    assert key_services.read_target(stored) == read_target


@pytest.mark.parametrize("resource", ["lkc-11", "xlkc-1", "env-1/lkc-1", "lkc", ""])
def test_an_id_that_only_ends_like_another_is_another_one(resource):
    assert not key_services.is_key_for(listed("K", resource=resource), {"id": "lkc-1"})


def test_a_key_of_one_resource_is_no_cloud_key():
    assert key_services.is_key_for({"id": "K", "spec": {}}, None)
    assert key_services.is_key_for(listed("K", resource="CLOUD"), None)
    assert not key_services.is_key_for(listed("K"), None)


@pytest.mark.parametrize(
    ("service", "differs"),
    [
        ("cloud", {"resource_id": ""}),
        ("kafka", {"resource_id": LKC, "endpoint": "broker:9092"}),
        ("schema_registry", {"resource_id": "lsrc-1", "endpoint": "server"}),
        ("flink", {"resource_id": "aws.eu-west-1", "endpoint": "server"}),
        ("tableflow", {"resource_id": "Tableflow", "catalog_uri": "catalog"}),
    ],
)
def test_the_connection_of_each_service(server, service, differs):
    vendor = context(server).vendor
    values = {"server": server.url, "catalog": vendor.catalog_url("eu-west-1", ENV)}
    expected = Connection(
        service_account_id=SA,
        resource_id="",
        environment_id=ENV,
        organization_id=ORG,
        cluster_id=LKC,
        compute_pool_id="lfcp-1",
    )
    changed = {name: values.get(value, value) for name, value in differs.items()}
    assert key_services.find_connection(vendor, target(service)) == attrs.evolve(expected, **changed)


def test_a_client_can_not_connect_to_a_cluster_that_is_gone(server):
    with pytest.raises(ResourceMissing, match="Kafka cluster lkc-2 is gone"):
        key_services.find_connection(context(server).vendor, target("kafka", cluster_id="lkc-2"))


@pytest.mark.parametrize("service", TESTS)
@pytest.mark.parametrize("status", [200, 400, 401, 403, 404, 409, 500])
def test_what_the_test_of_a_key_means(server, service, status):
    vendor = context(server).vendor
    server.answers[TESTS[service]] = (status, {"data": []})
    key = ApiKey("k", Secret("canary"))
    refused = {401, 403, 404} | ({400, 409} if service == "flink" else set())
    if status in (200, *refused):
        assert key_services.accepts_key(vendor, target(service), key) is (status == 200)
    else:
        with pytest.raises(LakeferryError):
            key_services.accepts_key(vendor, target(service), key)
    assert server.routes[-1] == TESTS[service]


def test_the_test_of_a_flink_or_cloud_key_reads_one_object(server):
    vendor = context(server).vendor
    server.answers[TESTS["flink"]] = (200, {"data": []})
    for service in ("flink", "cloud"):
        key_services.accepts_key(vendor, target(service), ApiKey("k", Secret("canary")))
        assert server.sent[-1].query == {"page_size": "1"}


def test_a_key_whose_secret_is_gone_can_not_be_tested(server):
    with pytest.raises(NotFound, match="secret filled has no value"):
        api_key.is_ready(context(server, filled=None), key_spec(), "KEY")
