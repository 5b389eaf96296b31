"""Calls that go wrong, at every route of the simulator: each is answered as the vendor's file declares for
that operation.
"""

import re

import pytest

from simulators.confluent.model import KeyKind
from simulators.confluent.routes import ROUTES
from simulators.confluent.server import ConfluentCloud
from simulators.confluent.simulation import REGION
from tests.support import confluent_contract
from tests.support.confluent_kit import LONG, Client, Organization, scope_of

#: Not in the files that the vendor publishes: the Iceberg REST catalog, the metrics, and private networks.
_OTHERS = ("/iceberg/", "/v2/metrics/", "/networking/v1/")
BODIES = (
    None,
    [],
    {},
    {"spec": {}},
    {"spec": 7},
    {"data": 7},
    {"display_name": 7, "spec": {"environment": {"id": "env-none"}}},
)


@pytest.fixture(scope="module")
def cloud():
    with ConfluentCloud(seed=7) as running:
        yield running


@pytest.fixture(scope="module")
def built(cloud):
    """A cluster in an environment, and by plane and kind of key a client that may do everything there."""
    org = Organization(cloud)
    environment = org.environment()
    cluster = org.cluster(environment)
    admin = org.administrator(cluster)
    for role, scope in (
        ("EnvironmentAdmin", f"{org.crn}/environment={environment}"),
        ("OrganizationAdmin", org.crn),
    ):
        org.bind(admin, role, scope)
    cloud.advance(LONG)
    (region,) = org.control.get("/fcpm/v2/regions", cloud="AWS", region_name=REGION)["data"]
    flink = {"id": region["id"], "kind": "Region", "api_version": "fcpm/v2", "environment": environment}
    clients = {
        KeyKind.CLOUD: org.control,
        KeyKind.KAFKA: org.kafka(cluster, admin),
        KeyKind.REGISTRY: org.schemas(environment, admin),
        KeyKind.FLINK: Client(region["http_endpoint"], *org.key(admin, flink)),
        KeyKind.TABLEFLOW: org.tableflow(admin),
    }
    ids = {
        "cluster_id": cluster["id"], "kafka_cluster_id": cluster["id"], "environment_id": environment,
        "environment": environment, "organization": org.id,
    }  # fmt: skip
    query = {
        "environment": environment,
        "spec.kafka_cluster": cluster["id"],
        "crn_pattern": scope_of(cluster),
    }
    return clients, ids, query


def path_of(route, ids):
    return re.sub(r"\{(\w+)\}", lambda found: ids.get(found[1], "none"), route.path)


@pytest.mark.parametrize(
    "route",
    [tested_route for tested_route in ROUTES if not tested_route.path.startswith(_OTHERS)],
    ids=lambda each: f"{each.method} {each.path}",
)
def test_whatever_goes_wrong_is_answered_as_the_vendors_file_declares(built, route):
    clients, ids, query = built
    right = clients[route.api.key]
    strangers = [Client(right.url, "NOBODY", "wrong"), Client(right.url)]
    broken = []

    def call(client, path, query, body):
        try:
            response = client.raw(route.method, path, params=query, json=body)
            if response.status_code == 404 and route.path == "/tableflow/v1/tableflow-topics":
                broken.append(f"{body}: an incomplete body must be refused before its topic is looked up")
        except confluent_contract.ContractBroken as error:
            broken.append(f"{body} {query}: {error}")

    for client in strangers:
        call(client, path_of(route, ids), query, None)
    for wrong in (
        {},
        {"environment": "env-none", "spec.kafka_cluster": "lkc-none", "crn_pattern": "crn://none"},
    ):
        call(right, path_of(route, ids), wrong, None)
    call(right, path_of(route, {}), query, None)
    for body in BODIES:
        call(right, path_of(route, ids), query, body)
    assert not broken, "\n".join(broken)
