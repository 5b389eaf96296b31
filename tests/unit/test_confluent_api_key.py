"""API keys: the secret is stored in the call that creates it, and a key without its secret is deleted."""

from __future__ import annotations

import base64
import json

import attrs
import pytest

from lambdas.confluent import key_services, secret_fields
from lambdas.confluent.key_properties import KEY_SERVICES
from lambdas.confluent.resources import api_key
from lambdas.confluent.services import base
from lambdas.shared.errors import (
    BadProperties,
    Denied,
    InProgress,
    NotFound,
    Refused,
    ResourceMissing,
    Transient,
)
from lambdas.shared.redaction import ApiKey, Secret
from lambdas.shared.secrets import reveal_fields
from tests.support.confluent_context import (
    ENV,
    KAFKA,
    KEY,
    LKC,
    NAME,
    ORG,
    SA,
    STATEMENTS,
    cloud,
    context,
    listing,
    spec,
    wrote,
)

KEYS = "/iam/v2/api-keys"
SERVICES = {
    "kafka": {"environment_id": ENV, "cluster_id": LKC},
    "schema_registry": {"environment_id": ENV},
    "flink": {"environment_id": ENV, "region": "eu-west-1", "compute_pool_id": "lfcp-1"},
    "tableflow": {"environment_id": ENV, "cluster_id": LKC, "region": "eu-west-1"},
    "cloud": {},
}
RESOURCES = {
    "kafka": {"id": LKC, "kind": "Cluster"},
    "schema_registry": {"id": "lsrc-1", "kind": "Cluster"},
    "flink": {"id": "aws.eu-west-1", "kind": "Region", "api_version": "fcpm/v2", "environment": ENV},
    "tableflow": {"id": "tableflow", "kind": "Tableflow", "api_version": "tableflow/v1"},
    "cloud": None,
}
TRIED = {
    "kafka": f"GET {KAFKA}/topics",
    "schema_registry": "GET /subjects",
    "flink": f"GET {STATEMENTS}",
    "tableflow": "GET /tableflow/v1/regions",
    "cloud": "GET /org/v2/environments",
}


def key_spec(service="kafka", **given):
    return spec(
        api_key, service_account_id=SA, service=service, secret="filled", **SERVICES[service], **given
    )


def listed(key_id, display_name=NAME, resource=LKC):
    return {
        "id": key_id,
        "spec": {"display_name": display_name, "owner": {"id": SA}, "resource": {"id": resource}},
    }


def making(server, *existing):
    server.answers[f"GET {KEYS}"] = listing(*existing)
    server.answers[f"POST {KEYS}"] = (202, {"id": "NEW", "spec": {"secret": "canary-of-a-new-key"}})


def stored(ctx):
    return json.loads(ctx.secrets.client.values["filled"] or "{}")


@pytest.mark.parametrize("service", SERVICES)
def test_create_asks_for_the_service_and_fills_the_secret(server, service):
    making(server)
    ctx = context(server, filled=None)
    assert api_key.create(ctx, key_spec(service)) == "NEW"
    body = {
        "display_name": NAME,
        "description": "Made by Lakeferry",
        "owner": {"id": SA, "kind": "ServiceAccount"},
    }
    resource = {"resource": RESOURCES[service]} if RESOURCES[service] else {}
    assert wrote(server) == [(f"POST {KEYS}", {"spec": {**body, **resource}})]
    assert (stored(ctx)["apiKey"], stored(ctx)["apiSecret"]) == ("NEW", "canary-of-a-new-key")
    assert stored(ctx)["serviceAccountId"] == SA


def test_a_client_can_connect_from_the_secret_alone(server):
    making(server)
    common = {"apiKey", "apiSecret", "serviceAccountId", "environmentId", "resourceId", "displayName"}
    fields = {}
    for service in SERVICES:
        ctx = context(server, filled=None)
        api_key.create(ctx, key_spec(service))
        fields[service] = stored(ctx)
    assert fields["kafka"] | {"bootstrap.servers": "broker:9092", "sasl.username": "NEW"} == fields["kafka"]
    assert fields["schema_registry"]["schema.registry.basic.auth.user.info"] == "NEW:canary-of-a-new-key"
    assert (
        fields["flink"] | {"compute.pool.id": "lfcp-1", "endpoint": server.url, "principal.id": SA}
        == fields["flink"]
    )
    assert fields["tableflow"]["catalog.uri"].endswith(f"/organizations/{ORG}/environments/{ENV}")
    assert set(fields["cloud"]) == common - {"environmentId", "resourceId"}
    assert all(
        common <= set(fields[service]) for service in ("kafka", "schema_registry", "flink", "tableflow")
    )
    assert all("" not in secret.values() for secret in fields.values())


def test_a_key_whose_secret_was_lost_is_deleted_and_replaced(server):
    others = (listed("ROTATED", f"{NAME}/token"), listed("OTHER", f"{NAME}-other"), listed("HAND", "by hand"))
    making(server, listed("LOST"), *others)
    server.answers[f"DELETE {KEYS}/LOST"] = (204, None)
    ctx = context(server, filled=None)
    assert api_key.find_existing(ctx, key_spec(), None) == []
    assert api_key.create(ctx, key_spec()) == "NEW"
    assert [route for route, _ in wrote(server)] == [f"DELETE {KEYS}/LOST", f"POST {KEYS}"]


def test_a_secret_that_can_not_be_stored_is_reported_and_the_key_is_found_again(server):
    making(server)
    ctx = context(server, filled=None)
    ctx.secrets.client.fail_next = "InternalServiceError"
    with pytest.raises(Transient) as failed:
        api_key.create(ctx, key_spec())
    assert "canary" not in str(failed.value)
    making(server, listed("NEW"))
    assert api_key.find_existing(ctx, key_spec(), None) == []
    with pytest.raises(NotFound):
        api_key.create(context(server), key_spec())


def test_the_key_in_the_secret_is_kept_whoever_created_it(server):
    server.answers[f"GET {KEYS}"] = listing(listed("OLD"), listed("KEY", "named by hand"))
    ctx = context(server, filled=json.dumps(KEY))
    assert api_key.find_existing(ctx, key_spec(), "OLD") == ["KEY"]


@pytest.mark.parametrize("resource", ["lkc-2", "cloud", ""])
def test_a_key_for_something_else_is_not_kept(server, resource):
    server.answers[f"GET {KEYS}"] = listing(listed("KEY", resource=resource))
    assert api_key.find_existing(context(server, filled=json.dumps(KEY)), key_spec(), None) == []


@pytest.mark.parametrize(
    ("found", "service", "same"),
    [
        ("env-1.aws.eu-west-1", "flink", True),
        ("AWS.EU-WEST-1", "flink", True),
        ("aws.eu-west-2", "flink", False),
        ("Tableflow", "tableflow", True),
        ("Cloud", "cloud", True),
        ("", "cloud", True),
        (LKC, "cloud", False),
    ],
)
def test_a_resource_is_recognised_in_confluents_other_form(found, service, same):
    assert key_services.is_key_for(listed("K", resource=found), RESOURCES[service]) is same


@pytest.mark.parametrize(("status", "works"), [(200, True), (401, False), (400, None)])
def test_a_key_works_where_its_service_accepts_it_and_another_error_is_no_answer(server, status, works):
    server.answers["GET /tableflow/v1/regions"] = (status, {"data": []} if works else {})
    target = base.Target("tableflow", "sa-1")
    key = ApiKey("K", Secret("s"))
    if works is None:
        with pytest.raises(Refused):
            key_services.accepts_key(cloud(server), target, key)
    else:
        assert key_services.accepts_key(cloud(server), target, key) is works


def test_all_keys_of_the_name_are_deleted_with_the_resource(server):
    keys = [listed("A"), listed("B", f"{NAME}/token-1"), listed("C", f"{NAME}-x"), listed("D", "by hand")]
    server.answers[f"GET {KEYS}"] = listing(*keys)
    server.answers[f"GET {KEYS}/D"] = (200, keys[3])
    ctx = context(server, deleting=True, filled=json.dumps({**KEY, "apiKey": "D"}))
    assert api_key.find_existing(ctx, key_spec(), "D") == ["A", "B", "D"]
    assert api_key.find_existing(ctx, key_spec(), "GONE") == ["A", "B"]


def test_keys_of_an_account_that_is_gone_are_gone(server):
    server.answers[f"GET {KEYS}"] = (403, {})
    server.answers[f"GET /iam/v2/service-accounts/{SA}"] = (200, {})
    ctx = context(server, deleting=True, filled=None)
    with pytest.raises(Denied):
        api_key.find_existing(ctx, key_spec(), "K")
    server.answers[f"GET /iam/v2/service-accounts/{SA}"] = (404, {})
    assert api_key.find_existing(ctx, key_spec(), "K") == []


@pytest.mark.parametrize("service", SERVICES)
def test_two_successes_in_a_row_make_a_key_ready(server, service):
    ctx = context(server, filled=json.dumps(KEY))
    outcomes = [(200, []), (401, b"<html>"), (200, {}), (200, {})]
    server.answers[TRIED[service]] = list(outcomes)
    ready = []
    for _ in outcomes:
        try:
            ready.append(api_key.is_ready(ctx, key_spec(service), "KEY"))
        except InProgress as not_yet:
            ready.append(not_yet.kind.code)
    assert ready == [None, "CFL-KEY-NOT-READY", None, {"key_id": "KEY", "secret": "filled"}]
    tried = {sent.headers["authorization"] for sent in server.sent if sent.route == TRIED[service]}
    assert tried == {"Basic " + base64.b64encode(f"{KEY['apiKey']}:{KEY['apiSecret']}".encode()).decode()}


@pytest.mark.parametrize("status", [400, 401, 403, 404])
def test_four_responses_of_the_flink_gateway_mean_an_unknown_key(server, status):
    server.answers[TRIED["flink"]] = (status, {})
    with pytest.raises(InProgress):
        api_key.is_ready(context(server, filled=json.dumps(KEY)), key_spec("flink"), "KEY")


def test_update_brings_the_secret_s_other_fields_up_to_date_and_writes_nothing_else(server):
    server.answers[f"GET {KEYS}"] = listing(listed("KEY"))
    ctx = context(server, filled=json.dumps(KEY))
    api_key.update(ctx, key_spec(), "KEY")
    filled = stored(ctx)
    assert filled["bootstrap.servers"] == "broker:9092"
    tokens = len(ctx.secrets.client.tokens)
    api_key.update(ctx, key_spec(), "KEY")
    assert len(ctx.secrets.client.tokens) == tokens
    assert wrote(server) == []


@pytest.mark.parametrize("lost", [False, True])
def test_fields_that_somebody_added_to_the_secret_stay(server, lost):
    """`api.key` is a field of other services' secrets: a rotation changes it too."""
    added = {"added": "stays", "api.key": "KEY"}
    ctx = context(server, filled=json.dumps({**KEY, **added, "bootstrap.servers": "old:9092"}))
    if lost:
        making(server)
        api_key.create(ctx, key_spec())
    else:
        server.answers[f"GET {KEYS}"] = listing(listed("KEY"))
        api_key.update(ctx, key_spec(), "KEY")
    id = "NEW" if lost else "KEY"
    wanted = {
        "added": "stays",
        "api.key": id,
        "apiKey": id,
        "sasl.username": id,
        "bootstrap.servers": "broker:9092",
    }
    assert stored(ctx) | wanted == stored(ctx)
    tokens = len(ctx.secrets.client.tokens)
    server.answers[f"GET {KEYS}"] = listing(listed(id))
    api_key.update(ctx, key_spec(), id)
    assert len(ctx.secrets.client.tokens) == tokens


def test_a_field_that_the_properties_no_longer_give_is_removed(server):
    server.answers[f"GET {KEYS}"] = listing(listed("KEY", resource="aws.eu-west-1"))
    ctx = context(server, filled=json.dumps({**KEY, "added": "stays", "compute.pool.id": "lfcp-1"}))
    api_key.update(ctx, attrs.evolve(key_spec("flink"), compute_pool_id=""), "KEY")
    assert stored(ctx)["added"] == "stays"
    assert "compute.pool.id" not in stored(ctx)


def test_update_finds_that_a_key_is_gone(server):
    server.answers[f"GET {KEYS}"] = listing()
    with pytest.raises(ResourceMissing):
        api_key.update(context(server, filled=json.dumps(KEY)), key_spec(), "KEY")


@pytest.mark.parametrize(
    ("service", "missing"),
    [("kafka", {"environment_id", "cluster_id"}), ("flink", {"environment_id", "region"})],
)
def test_each_service_requires_its_properties(service, missing):
    with pytest.raises(BadProperties) as bad:
        spec(api_key, service_account_id=SA, service=service, secret="x")
    assert {name for name, _ in bad.value.problems} == missing


def test_every_service_has_fields_requirements_and_a_test_call():
    assert secret_fields.SERVICES == tuple(SERVICES) == tuple(KEY_SERVICES)
    key = ApiKey("id", Secret("canary"))
    for service in SERVICES:
        held = reveal_fields(secret_fields.build_fields(service, key, base.Connection(SA, "r")))
        assert held["apiSecret"] == "canary"


def test_a_secret_that_cant_be_written_costs_one_key_and_not_one_at_every_retry(server):
    making(server)
    server.answers[f"DELETE {KEYS}/NEW"] = (204, None)
    ctx = context(server, filled=None)
    for _ in range(5):
        ctx.secrets.client.fail_next = "AccessDeniedException"
        with pytest.raises(Denied):
            api_key.create(ctx, key_spec())
    assert server.routes.count(f"POST {KEYS}") == server.routes.count(f"DELETE {KEYS}/NEW") == 1
    assert api_key.create(ctx, key_spec()) == "NEW"
    assert stored(ctx)["apiSecret"] == "canary-of-a-new-key"
