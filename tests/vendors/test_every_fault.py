"""Every resource type of both vendors through its whole life, with every fault at every call.

The simulator, which doesn't use the client's code, has exactly the wanted objects after each step, and none
at the end.
"""

from __future__ import annotations

import functools

import attrs
import pytest

from lambdas.confluent.resources import service_account, topic
from lambdas.custom_resources import registry
from lambdas.custom_resources.registry import RESOURCE_TYPES, ResourceType
from tests.support import confluent_contract, snowflake_contract
from tests.support.matrix import LIVES, calls_of, campaign, live, past


@pytest.fixture(scope="session")
def drawn(request):
    """Return the outcome of the drawn lives of a type, which several tests use."""
    return functools.cache(functools.partial(campaign, seed=request.config.getoption("sample_seed")))


@pytest.mark.deep
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("kind", LIVES)
def test_any_fault_at_every_single_call(kind):
    outcome = campaign(kind)
    assert not outcome.wrong, (
        f"{len(outcome.wrong)} of {len(outcome.pairs)}: {list(outcome.wrong.items())[:5]}"
    )
    assert outcome.exchanges >= 10
    assert outcome.against_contract == []


@pytest.mark.slow
def test_an_update_is_not_skipped_where_the_configuration_can_not_be_read():
    """Snowflake refuses for a moment to tell how a linked database is configured."""
    before = past("snowflake_linked_database")
    calls = [
        number
        for number, call in calls_of(before, "snowflake_linked_database", every=True)
        if "_CONFIG(" in call.statement
    ]
    assert calls
    for number in calls:
        live(before, "snowflake_linked_database", number, "403 for a while")
    before.org.close()


def test_every_kind_has_a_life():
    assert LIVES.keys() == RESOURCE_TYPES.keys()


@pytest.mark.sampled(3)
@pytest.mark.parametrize("kind", LIVES)
def test_any_fault_at_any_call_leads_to_the_same_end(drawn, kind):
    outcome = drawn(kind)
    assert outcome.pairs
    result = [f"{pair.fault}, call {pair.call}: {wrong}" for pair, wrong in outcome.wrong.items()]
    assert not result, f"{len(result)} of {len(outcome.pairs)}:\n" + "\n".join(result[:10])


@pytest.mark.sampled(3)
@pytest.mark.parametrize("kind", LIVES)
def test_requests_and_responses_match_the_vendors_specification(drawn, kind):
    assert drawn(kind).exchanges >= drawn(kind).sorts > 1
    assert drawn(kind).against_contract == []


@pytest.mark.parametrize(
    ("body", "query", "message"),
    [
        ({"display_name": 7}, "", "7 is not of type 'string'"),
        ({"display_name": "lake"}, "pagesize=5", "parameter 'pagesize'"),
        (
            {"display_name": "lake", "stream_governance_config": {"package": "ESSENTIALS", "zone": "a"}},
            "",
            "has 'zone', which",
        ),
    ],
)
def test_a_request_that_the_specification_does_not_allow_is_found(body, query, message):
    confluent_contract.check_request(
        "POST", "/org/v2/environments", "", "application/json", {"display_name": "lake"}
    )
    with pytest.raises(confluent_contract.ContractBroken, match=message):
        confluent_contract.check_request("POST", "/org/v2/environments", query, "application/json", body)
    with pytest.raises(confluent_contract.ContractBroken, match="lacks environment"):
        confluent_contract.check_request("GET", "/cmk/v2/clusters", "", "", None)


@pytest.mark.parametrize(
    ("body", "query", "message"),
    [
        ({"statement": "SELECT 1", "timeout": "600"}, "", "'600' is not of type 'integer'"),
        ({"statement": "SELECT 1", "multi_statement_count": 1}, "", "multi_statement_count"),
        ({"statement": "SELECT 1"}, "request_id=1", "request_id"),
        ({}, "", "'statement' is a required property"),
    ],
)
def test_a_request_that_snowflake_does_not_document_is_found(body, query, message):
    path = "/api/v2/statements"
    snowflake_contract.check_request(
        "POST", path, "async=false", "application/json", {"statement": "SELECT 1"}
    )
    with pytest.raises(snowflake_contract.ContractBroken, match=message):
        snowflake_contract.check_request("POST", path, query, "application/json", body)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("kind", LIVES)
def test_nothing_is_written_where_nothing_differs(kind):
    before = past(kind)
    org = before.org
    resource = org.resource(kind, "It", **before.given)
    resource.create()
    assert "-UNEXPECTED" not in org.log.getvalue()
    org.wire.calls.clear()
    resource.update()
    assert org.wire.calls
    assert not [call for call in org.wire.calls if not call.reads]
    org.close()


class Doubling:
    """A resource type that creates everything twice."""

    def __getattr__(self, name):
        return getattr(service_account, name)

    def create(self, context, spec):
        service_account.create(attrs.evolve(context, name="another"), spec)
        return service_account.create(context, spec)


def test_an_unwanted_object_is_found():
    before = past("service_account", types={"service_account": ResourceType(Doubling(), registry.CONFLUENT)})
    with pytest.raises(AssertionError, match=r"found .*, expected"):
        live(before, "service_account")
    before.org.close()


class Careless:
    """A resource type of topics that also changes a topic of somebody else, and removes their ACLs."""

    def __getattr__(self, name):
        return getattr(topic, name)

    def update(self, context, spec, object_id):
        topic.update(context, spec, object_id)
        settings = {"data": [{"name": "retention.ms", "value": "2000"}]}
        route = f"/kafka/v3/clusters/{spec.cluster_id}/topics/orders-eu/configs:alter"
        key = context.secrets.read_key(spec.credentials)
        context.vendor.kafka(spec.environment_id, spec.cluster_id, key).post(route, settings, repeatable=True)


def test_a_change_of_what_others_have_is_found():
    types = {**RESOURCE_TYPES, "topic": ResourceType(Careless(), registry.CONFLUENT)}
    before = past("topic", types=types)
    with pytest.raises(AssertionError, match=r"objects of others were changed: .*orders-eu"):
        live(before, "topic")
    before.org.close()


def test_a_secret_in_the_log_is_found():
    before = past("api_key")
    before.org.thaw(before.frozen)
    resource = before.org.resource("api_key", "It", **before.given)
    resource.create()
    assert not before.org.leaks()
    before.org.log.write(before.org.secrets.fields("the-secret")["apiSecret"])
    assert before.org.leaks()
    before.org.close()
