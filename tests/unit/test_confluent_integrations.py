"""Flink pools, provider integrations and catalog integrations."""

from __future__ import annotations

import pytest
from confluent_context import ENV, IN_CLUSTER, IN_ENV, LKC, NAME, context, spec, wrote

from lambdas.confluent.resources import catalog_integration, flink_compute_pool, provider_integration
from lambdas.shared.errors import BadProperties, InProgress, ReplacementRequired, ResourceFailed


def test_compute_pool(server):
    route = "/fcpm/v2/compute-pools"
    pool = {"id": "lfcp-1", "spec": {"display_name": NAME, "max_cfu": 10}, "status": {"phase": "PROVISIONED"}}
    server.answers |= {f"POST {route}": (202, pool), f"GET {route}/lfcp-1": (200, pool), f"PATCH {route}/lfcp-1": (200, {})}
    wanted = spec(flink_compute_pool, region="eu-west-1", **IN_ENV)
    assert flink_compute_pool.create(context(server), wanted) == "lfcp-1"
    assert flink_compute_pool.is_ready(context(server), wanted, "lfcp-1")["rest_endpoint"] == server.url
    flink_compute_pool.update(context(server), wanted, "lfcp-1")
    flink_compute_pool.update(context(server), spec(flink_compute_pool, region="eu-west-1", max_cfu="20", **IN_ENV), "lfcp-1")
    env = {"environment": {"id": ENV}}
    created = {"spec": {"display_name": NAME, "cloud": "AWS", "region": "eu-west-1", "max_cfu": 10, **env}}
    assert wrote(server) == [(f"POST {route}", created), (f"PATCH {route}/lfcp-1", {"spec": {"max_cfu": 20, **env}})]
    with pytest.raises(BadProperties):
        spec(flink_compute_pool, region="eu-west-1", max_cfu="7", **IN_ENV)


def test_provider_integration(server):
    route, arn = "/pim/v1/integrations", "arn:aws:iam::111122223333:role/r"
    config = {"iam_role_arn": "arn:vendor", "external_id": "uuid", "customer_iam_role_arn": arn}
    server.answers |= {f"POST {route}": (201, {"id": "cspi-1"}), f"DELETE {route}/cspi-1": (204, None)}
    server.answers[f"GET {route}/cspi-1"] = (200, {"id": "cspi-1", "display_name": NAME, "config": config, "usages": ["crn://x"]})
    wanted = spec(provider_integration, role_arn=arn, **IN_ENV)
    assert provider_integration.create(context(server), wanted) == "cspi-1"
    assert wrote(server)[0][1] == {
        "display_name": NAME,
        "provider": "AWS",
        "config": {"kind": "AwsIntegrationConfig", "customer_iam_role_arn": arn},
        "environment": {"id": ENV},
    }
    outputs = provider_integration.is_ready(context(server), wanted, "cspi-1")
    assert (outputs["confluent_role_arn"], outputs["external_id"]) == ("arn:vendor", "uuid")
    with pytest.raises(InProgress, match="crn://x"):
        provider_integration.delete(context(server), wanted, "cspi-1")
    server.answers[f"GET {route}/cspi-1"] = (200, {"usages": []})
    provider_integration.delete(context(server), wanted, "cspi-1")
    assert [sent.route for sent in server.writes()] == [f"POST {route}", f"DELETE {route}/cspi-1"]


def catalog_spec(**given):
    return spec(catalog_integration, credentials="tableflow", **IN_CLUSTER, **{"provider_integration_id": "cspi-1", **given})


def test_catalog_integration(server):
    route = "/tableflow/v1/catalog-integrations"
    place = {"environment": {"id": ENV}, "kafka_cluster": {"id": LKC}}

    def there(phase="PENDING", **config):
        glue = {"kind": "AwsGlue", "provider_integration_id": "cspi-1", **config}
        found = {
            "id": "tci-1",
            "spec": {"display_name": NAME, "config": glue},
            "status": {"phase": phase, "error_message": "why"},
        }
        server.answers[f"GET {route}/tci-1"] = (200, found)

    server.answers |= {f"POST {route}": (202, {"id": "tci-1"}), f"PATCH {route}/tci-1": (200, {})}
    assert catalog_integration.create(context(server), catalog_spec()) == "tci-1"
    config = {"kind": "AwsGlue", "provider_integration_id": "cspi-1"}
    assert wrote(server) == [(f"POST {route}", {"spec": {"display_name": NAME, **place, "config": config}})]
    for phase in ("PENDING", "CONNECTED"):
        there(phase)
        assert catalog_integration.is_ready(context(server), catalog_spec(), "tci-1")["database"] == LKC
    assert server.sent[-1].query == {"environment": ENV, "spec.kafka_cluster": LKC}
    catalog_integration.update(context(server), catalog_spec(), "tci-1")
    catalog_integration.update(context(server), catalog_spec(database="own"), "tci-1")
    changed = {"config": {"kind": "AwsGlue", "custom_database": "own"}}
    assert wrote(server)[1:] == [(f"PATCH {route}/tci-1", {"spec": {**place, **changed}})]
    there(custom_database="own")
    for other in ({}, {"database": "own", "provider_integration_id": "cspi-2"}):
        with pytest.raises(ReplacementRequired):
            catalog_integration.update(context(server), catalog_spec(**other), "tci-1")


def test_a_failed_catalog_integration_is_resumed_once_a_minute_and_reported(server):
    found = {"id": "tci-1", "status": {"phase": "FAILED", "error_message": "no glue:CreateTable"}}
    server.answers["GET /tableflow/v1/catalog-integrations/tci-1"] = (200, found)
    server.answers["PATCH /tableflow/v1/catalog-integrations/tci-1"] = (200, {})
    result = context(server)
    for seconds, patches in ((0, 1), (5, 1), (60, 2)):
        result.clock.now += seconds
        with pytest.raises(ResourceFailed, match="no glue:CreateTable"):
            catalog_integration.is_ready(result, catalog_spec(), "tci-1")
        assert len(server.writes()) == patches
    assert server.writes()[0].body["spec"]["suspended"] is False
