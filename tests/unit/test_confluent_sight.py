"""A 403 means "gone" only for a key whose owner has a role with which it would see the object."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from lambdas.confluent.properties import EnvironmentProps, KafkaClusterProps
from lambdas.confluent.sight import EFFECTIVE_AFTER
from lambdas.shared.errors import Denied, InProgress
from lambdas.shared.properties import parse
from lambdas.shared.redaction import ApiKey, Secret
from tests.support.confluent_context import ENV, LKC, ORG, cloud, give_role, listing
from tests.support.scripted_server import Scripted

THING = "/things/1"
IN_ENV = {"environment": ENV}
IN_CLUSTER = {**IN_ENV, "spec.kafka_cluster": LKC}
AT_ENV = f"/environment={ENV}"
AT_CLUSTER = f"/environment={ENV}/cloud-cluster={LKC}"
KEY = ApiKey("k", Secret("canary"))


@pytest.fixture
def server():
    with Scripted() as scripted:
        scripted.answers[f"GET {THING}"] = (403, {"error_code": 40301, "message": "Forbidden Access"})
        yield scripted


def clients(server):
    vendor = cloud(server)
    return {"cloud": vendor.cloud, "tableflow": vendor.tableflow(KEY)}


@pytest.mark.parametrize("client", ["cloud", "tableflow"])
@pytest.mark.parametrize(
    ("role", "where", "container"),
    [
        ("OrganizationAdmin", "", {}),
        ("OrganizationAdmin", "", IN_CLUSTER),
        ("EnvironmentAdmin", AT_ENV, IN_ENV),
        ("EnvironmentAdmin", AT_ENV, IN_CLUSTER),
        ("CloudClusterAdmin", AT_CLUSTER, IN_CLUSTER),
    ],
)
def test_403_means_gone_for_a_role_that_would_see_it(server, client, role, where, container):
    give_role(server, role, where)
    assert clients(server)[client].read(THING, **container) is None


@pytest.mark.parametrize("client", ["cloud", "tableflow"])
@pytest.mark.parametrize(
    ("role", "where", "container"),
    [
        ("EnvironmentAdmin", AT_ENV, {}),
        ("EnvironmentAdmin", "/environment=env-2", IN_ENV),
        ("EnvironmentAdmin", "/environment=env-10", IN_CLUSTER),
        ("CloudClusterAdmin", AT_CLUSTER, IN_ENV),
        ("CloudClusterAdmin", f"{AT_ENV}/cloud-cluster=lkc-2", IN_CLUSTER),
        ("MetricsViewer", "", IN_CLUSTER),
        ("Operator", AT_ENV, IN_ENV),
        ("ResourceOwner", AT_ENV, IN_ENV),
        ("OrganizationAdmin", AT_ENV, IN_ENV),
    ],
)
def test_403_for_any_other_role_is_an_error(server, client, role, where, container):
    give_role(server, role, where)
    with pytest.raises(Denied, match=r"CFL-UNSEEN .*sa-deployer, who owns key") as denied:
        clients(server)[client].read(THING, **container)
    assert "lakeferry forget" in str(denied.value)


def test_the_role_of_another_account_or_organization_doesn_t_count(server):
    give_role(server)
    elsewhere = {"role_name": "OrganizationAdmin", "crn_pattern": "crn://confluent.cloud/organization=other"}
    server.answers["GET /iam/v2/role-bindings"] = listing(elsewhere)
    with pytest.raises(Denied, match="CFL-UNSEEN"):
        cloud(server).cloud.read(THING)


@pytest.mark.parametrize("answer", [(403, {"message": "no"}), (401, b"<html>"), (404, {})])
@pytest.mark.parametrize("route", ["GET /iam/v2/api-keys/CLOUD", "GET /iam/v2/role-bindings"])
def test_roles_that_can_t_be_read_prove_nothing(server, route, answer):
    give_role(server)
    server.answers[route] = answer
    with pytest.raises(Denied, match=r"CFL-UNSEEN .*the roles of the owner of key CLOUD can't be read"):
        cloud(server).cloud.read(THING)


@pytest.mark.parametrize(
    ("seconds", "counts"), [(0, False), (EFFECTIVE_AFTER - 1, False), (EFFECTIVE_AFTER, True)]
)
def test_a_role_counts_only_when_it_is_effective_everywhere(server, seconds, counts):
    vendor = cloud(server)
    give_role(server, created=datetime.fromtimestamp(vendor.clock.time() - seconds, UTC).isoformat())
    if counts:
        assert vendor.cloud.read(THING) is None
        return
    with pytest.raises(InProgress, match=r"CFL-UNSEEN .*counts after 600 s"):
        vendor.cloud.read(THING)


def test_roles_are_read_once_in_an_invocation(server):
    give_role(server)
    vendor = cloud(server)
    assert vendor.cloud.read(THING) is None
    calls = len(server.sent)
    assert vendor.cloud.read(THING) is None
    assert len(server.sent) == calls + 1


@pytest.mark.parametrize(
    ("role", "where", "sees_cluster", "sees_environment"),
    [
        ("OrganizationAdmin", "", True, True),
        ("EnvironmentAdmin", AT_ENV, True, False),
        ("CloudClusterAdmin", AT_CLUSTER, False, False),
    ],
)
def test_each_resource_type_needs_the_role_that_sees_its_objects(
    server, role, where, sees_cluster, sees_environment
):
    give_role(server, role, where)
    cluster = parse(KafkaClusterProps, {"environment_id": ENV, "region": "eu-west-1"}, strict=False)
    for spec, sees in [
        (cluster, sees_cluster),
        (parse(EnvironmentProps, {}, strict=False), sees_environment),
    ]:
        if sees:
            cloud(server).require_sight(spec)
            continue
        with pytest.raises(Denied, match="CFL-UNSEEN"):
            cloud(server).require_sight(spec)


def test_the_tenant_is_the_organization_s_id(server):
    give_role(server)
    vendor = cloud(server)
    assert vendor.tenant == ORG
    assert "CFL-OTHER-ORGANIZATION" in str(vendor.wrong_tenant("other"))
