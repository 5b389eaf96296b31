"""Environment and Kafka cluster: what they send, what they take for their own, and that they write only what differs."""

from __future__ import annotations

import pytest
from confluent_context import CLUSTER, ENV, LKC, NAME, ORG, context, listing, spec, wrote

from lambdas.confluent.resources import environment, kafka_cluster
from lambdas.shared.errors import BadProperties, Denied, InProgress, LakeferryError, Refused, ResourceFailed, ResourceMissing

ENVIRONMENT = {
    "id": ENV,
    "display_name": NAME,
    "metadata": {"resource_name": "crn://e"},
    "stream_governance_config": {"package": "ESSENTIALS"},
}


def test_environment_create(server):
    server.answers["POST /org/v2/environments"] = (201, ENVIRONMENT)
    assert environment.create(context(server), spec(environment, stream_governance="ADVANCED")) == ENV
    body = {"display_name": NAME, "stream_governance_config": {"package": "ADVANCED"}}
    assert wrote(server) == [("POST /org/v2/environments", body)]


def test_environment_outputs(server):
    server.answers[f"GET /org/v2/environments/{ENV}"] = (200, ENVIRONMENT)
    assert environment.is_ready(context(server), spec(environment), ENV) == {
        "id": ENV,
        "name": NAME,
        "resource_name": "crn://e",
        "organization_id": ORG,
        "stream_governance": "ESSENTIALS",
    }


@pytest.mark.parametrize(
    ("changed", "package", "sent"),
    [
        ({}, "ESSENTIALS", None),
        ({}, "ADVANCED", {"stream_governance_config": {"package": "ADVANCED"}}),
        ({"stream_governance_config": {"package": "ADVANCED"}}, "ESSENTIALS", None),
        ({"display_name": "by hand"}, "ESSENTIALS", {"display_name": NAME}),
    ],
)
def test_environment_update(server, changed, package, sent):
    server.answers[f"GET /org/v2/environments/{ENV}"] = (200, {**ENVIRONMENT, **changed})
    server.answers[f"PATCH /org/v2/environments/{ENV}"] = (200, {})
    environment.update(context(server), spec(environment, stream_governance=package), ENV)
    assert wrote(server) == ([(f"PATCH /org/v2/environments/{ENV}", sent)] if sent else [])


def test_environment_adopts_by_its_whole_name_and_by_what_is_known(server):
    others = [{"id": "env-2", "display_name": NAME + "x"}, {"id": "env-3", "display_name": NAME}, ENVIRONMENT]
    server.answers["GET /org/v2/environments"] = listing(*others)
    assert environment.find_existing(context(server), spec(environment), None) == ["env-3", ENV]
    server.answers["GET /org/v2/environments/env-9"] = (200, {"id": "env-9"})
    assert environment.find_existing(context(server), spec(environment), "env-9") == ["env-9", "env-3", ENV]
    assert environment.find_existing(context(server), spec(environment), "env-gone") == ["env-3", ENV]


def test_what_is_gone_is_reported_as_vanished_and_deleted_quietly(server):
    for verb in (environment.is_ready, environment.update):
        with pytest.raises(ResourceMissing):
            verb(context(server), spec(environment), ENV)
    environment.delete(context(server), spec(environment), ENV)


def cluster_spec(**given):
    return spec(kafka_cluster, environment_id=ENV, region="eu-west-1", **given)


def test_cluster_create(server):
    server.answers["POST /cmk/v2/clusters"] = (202, {"id": LKC})
    assert kafka_cluster.create(context(server), cluster_spec(max_ecku="2")) == LKC
    assert wrote(server)[0][1] == {
        "spec": {
            "display_name": NAME,
            "availability": "SINGLE_ZONE",
            "cloud": "AWS",
            "region": "eu-west-1",
            "config": {"kind": "Standard", "max_ecku": 2},
            "environment": {"id": ENV},
            "deletion_protection": False,
        }
    }


@pytest.mark.parametrize("kind", ["Enterprise", "Dedicated", "Freight", "standard"])
def test_cluster_types_without_public_topics_are_refused_with_the_reason(kind):
    with pytest.raises(BadProperties, match="private network"):
        cluster_spec(type=kind)


def test_cluster_is_ready_with_its_schema_registry_and_not_before(server):
    result = context(server)
    outputs = kafka_cluster.is_ready(result, cluster_spec(), LKC)
    assert outputs["bootstrap_servers"] == "broker:9092"
    assert outputs["rest_endpoint"] == outputs["schema_registry_endpoint"] == server.url
    assert outputs["rbac_resource_name"] == f"crn://confluent.cloud/organization={ORG}/environment={ENV}/cloud-cluster={LKC}"
    assert set(outputs) == set(kafka_cluster.PROPERTIES.OUTPUTS._fields)
    server.answers["GET /srcm/v3/clusters"] = listing()
    with pytest.raises(InProgress):
        kafka_cluster.is_ready(result, cluster_spec(), LKC)
    for phase in ("PROVISIONING", "SOMETHING_NEW"):
        server.answers[f"GET {CLUSTER}"] = (200, {"status": {"phase": phase}, "spec": {"http_endpoint": "x"}})
        assert kafka_cluster.is_ready(result, cluster_spec(), LKC) is None
    server.answers[f"GET {CLUSTER}"] = (200, {"status": {"phase": "FAILED"}})
    with pytest.raises(ResourceFailed):
        kafka_cluster.is_ready(result, cluster_spec(), LKC)


@pytest.mark.parametrize(
    ("now", "wanted", "sent"),
    [
        ({"availability": "LOW"}, {}, None),
        ({}, {"deletion_protection": "true"}, {"deletion_protection": True}),
        ({"config": {"kind": "Basic"}}, {}, {"config": {"kind": "Standard"}}),
        ({"config": {"kind": "Standard"}}, {"type": "Basic"}, None),
        ({"config": {"kind": "Standard", "max_ecku": 2}}, {"max_ecku": "2"}, None),
        ({"config": {"kind": "Standard", "max_ecku": 2}}, {"max_ecku": "4"}, {"config": {"kind": "Standard", "max_ecku": 4}}),
    ],
)
def test_cluster_update(server, now, wanted, sent):
    server.answers[f"GET {CLUSTER}"] = (200, {"spec": {"display_name": NAME, "config": {"kind": "Standard"}, **now}})
    server.answers[f"PATCH {CLUSTER}"] = (200, {})
    kafka_cluster.update(context(server), cluster_spec(**wanted), LKC)
    body = {"spec": {**sent, "environment": {"id": ENV}}} if sent else None
    assert wrote(server) == ([(f"PATCH {CLUSTER}", body)] if sent else [])


def test_a_protected_cluster_is_not_deleted(server):
    server.answers[f"GET {CLUSTER}"] = (200, {"spec": {"deletion_protection": True}})
    with pytest.raises(LakeferryError, match="deletion_protection to false") as refused:
        kafka_cluster.delete(context(server), cluster_spec(), LKC)
    assert not isinstance(refused.value, Refused)
    assert wrote(server) == []


def test_what_was_in_an_environment_that_is_gone_is_gone(server):
    server.answers["GET /cmk/v2/clusters"] = (403, {"message": "no"})
    assert kafka_cluster.find_existing(context(server, deleting=True), cluster_spec(), None) == []
    with pytest.raises(Denied):
        kafka_cluster.find_existing(context(server), cluster_spec(), None)
    server.answers[f"GET /org/v2/environments/{ENV}"] = (200, ENVIRONMENT)
    with pytest.raises(Denied):
        kafka_cluster.find_existing(context(server, deleting=True), cluster_spec(), None)
