"""`doctor` holds the schema that a Flink statement shows against the one that is registered."""

from __future__ import annotations

import json

import pytest

from config.deployments import flink_origins
from config.exports.avro_document import build_document
from lakeferry.deployment.context import Addresses, DeploymentContext
from lakeferry.health import registered_schemas
from lakeferry.health.model import Result
from lambdas.confluent.rest_client import RestClient
from lambdas.shared.clock import Deadline, SystemClock
from lambdas.shared.http import Session
from lambdas.shared.redaction import ApiKey, Secret
from simulators.confluent.server import ConfluentCloud
from tests.support import shipped
from tests.support.confluent_kit import Organization

TOPIC = "store_orders_flat"
FILE = f"project/flink/{TOPIC}/create.sql"


@pytest.fixture(scope="module")
def cloud():
    with ConfluentCloud() as cloud:
        yield cloud


class Registry:
    """A Schema Registry, and the deployment of orders.toml that has a key for it."""

    def __init__(self, cloud):
        organization = Organization(cloud)
        environment = organization.environment()
        organization.cluster(environment)
        self._registry = organization.registry(environment)
        owner = organization.account("owner")
        subjects = f"{self._registry['metadata']['resource_name']}/subject=*"
        organization.bind(owner, "ResourceOwner", subjects)
        key = organization.key(owner, {"id": self._registry["id"], "kind": "Cluster"})
        clock = SystemClock()
        session = Session(Deadline(clock, clock.time() + 60))
        url = self._registry["spec"]["http_endpoint"]
        self.client = RestClient(session, clock, url, ApiKey(key[0], Secret(key[1])))
        self.loaded = shipped.load("orders")
        (self.topic,) = (topic for topic in self.loaded.deployment.topics if topic.name == TOPIC)

    def derive(self):
        schema = flink_origins.derive_schema(TOPIC, self.loaded.sources, self.loaded.deployment)
        return build_document(schema.type, TOPIC)

    def register(self, document):
        self.client.post(f"/subjects/{TOPIC}-value/versions", {"schema": json.dumps(document)})

    def check(self):
        ctx = DeploymentContext(self.loaded, Addresses())
        return registered_schemas.check_topic(ctx, self.client, self.topic)


@pytest.fixture
def registry(cloud):
    cloud.reset()
    return Registry(cloud)


def find(document, name):
    (field,) = (field for field in document["fields"] if field["name"] == name)
    return field


def test_the_schema_that_flink_registered_is_the_one_of_the_statement(registry):
    registry.register(registry.derive())
    check = registry.check()
    assert (check.result, check.message) == (Result.OK, f"{FILE} makes the registered fields")


def test_another_type_is_a_failure_with_a_way_forward(registry):
    document = registry.derive()
    find(document, "store_id")["type"] = "long"
    document["fields"].pop()
    registry.register(document)
    check = registry.check()
    assert check.result is Result.FAIL
    assert check.message == (
        f'{FILE}: order_lines is not in the registered schema; store_id is "long", and {FILE} has "integer"'
    )
    assert "Put the registered schema into project/topics/store_orders_flat.avsc" in check.fix


def test_a_tag_that_no_source_field_has_is_a_failure(registry):
    document = registry.derive()
    find(document, "status")["confluent:tags"] = ["PII"]
    find(document, "customer_since")["confluent:tags"] = ["PII"]
    registry.register(document)
    check = registry.check()
    assert check.result is Result.FAIL
    assert check.message == f"{FILE}: status has the tag PII, and not in {FILE}", "the other one is known"


def test_a_topic_without_a_registered_schema_is_not_compared(registry):
    check = registry.check()
    assert check.result is Result.WARN
    assert check.message == f"{FILE} can't be compared: Schema Registry has no subject {TOPIC}-value"
