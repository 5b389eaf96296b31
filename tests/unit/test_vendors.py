"""The vendors' clients: created when needed, once per invocation, and without the other vendor's
variables.
"""

from __future__ import annotations

import json

import pytest
from test_resources_handler import CONFLUENT, ENVIRONMENT, SNOWFLAKE

from lambdas import contract
from lambdas.confluent.client import Confluent
from lambdas.custom_resources import registry
from lambdas.handlers.custom_resource import build_vendor_clients
from lambdas.shared.clock import Deadline
from lambdas.shared.errors import LakeferryError, NotFound
from lambdas.shared.secrets import SecretStore
from lambdas.snowflake.client import Snowflake
from tests.support.resource_environment import ManualClock, MemorySecrets
from tests.support.snowflake_context import pair

KEY = json.dumps({"apiKey": "KEY", "apiSecret": "canary-of-the-cloud-key"})


def connections(environment, **secrets):
    clock = ManualClock()
    store = SecretStore(MemorySecrets(**secrets))
    return build_vendor_clients({**ENVIRONMENT, **environment}, store, Deadline(clock, clock.now + 90))


def snowflake_secret():
    return json.dumps(
        {"account": "myorg-acct", "user": "LAKEFERRY", "privateKey": pair().private_pem.reveal()}
    )


def test_one_vendor_needs_nothing_of_the_other():
    confluent = connections(CONFLUENT, **{"cloud-key": KEY})[registry.CONFLUENT]
    assert isinstance(confluent(), Confluent)
    snowflake = connections(SNOWFLAKE, **{"snowflake-key": snowflake_secret()})[registry.SNOWFLAKE]
    assert isinstance(snowflake(), Snowflake)


def test_confluents_addresses_can_be_set():
    own = connections(CONFLUENT, **{"cloud-key": KEY})[registry.CONFLUENT]()
    assert own.url == "https://api.confluent.cloud"
    given = {contract.CONFLUENT_URL: "http://127.0.0.1:8090", contract.CATALOG_URL: "http://127.0.0.1:8091"}
    moved = connections(CONFLUENT | given, **{"cloud-key": KEY})[registry.CONFLUENT]()
    moved.organization_id = "org-1"
    assert moved.url == "http://127.0.0.1:8090"
    assert moved.catalog_url("eu-west-1", "env-1").startswith("http://127.0.0.1:8091/iceberg/")


def test_missing_variables_of_a_vendor_are_reported_when_it_is_used():
    made = connections({})
    for vendor, needed in ((registry.CONFLUENT, CONFLUENT), (registry.SNOWFLAKE, SNOWFLAKE)):
        with pytest.raises(LakeferryError) as missing:
            made[vendor]()
        assert missing.value.kind.code == "LF-SETTINGS"
        assert all(name in missing.value.what for name in needed)
        assert "_URL" not in missing.value.what, "addresses are for tests"


@pytest.mark.parametrize("name", SNOWFLAKE)
def test_each_of_snowflake_s_variables_is_needed(name):
    variables = {variable: value for variable, value in SNOWFLAKE.items() if variable != name}
    with pytest.raises(LakeferryError, match=f"^.*{name} not set"):
        connections(variables, **{"snowflake-key": snowflake_secret()})[registry.SNOWFLAKE]()


def test_a_client_is_created_once():
    connect = connections(SNOWFLAKE, **{"snowflake-key": snowflake_secret()})[registry.SNOWFLAKE]
    assert connect() is connect()


def test_snowflakes_client_has_the_settings():
    client = connections(SNOWFLAKE, **{"snowflake-key": snowflake_secret()})[registry.SNOWFLAKE]()
    assert client.url == "https://myorg-acct.snowflakecomputing.com"
    assert (client.login.role, client.login.warehouse) == ("LAKEFERRY", "LAKEFERRY"), "as SHOW prints them"
    local = {**SNOWFLAKE, contract.SNOWFLAKE_URL: "http://127.0.0.1:9/"}
    assert (
        connections(local, **{"snowflake-key": snowflake_secret()})[registry.SNOWFLAKE]().url
        == "http://127.0.0.1:9"
    )


def test_a_key_that_is_missing_is_reported():
    with pytest.raises(NotFound) as missing:
        connections(SNOWFLAKE)[registry.SNOWFLAKE]()
    assert missing.value.kind.code == "AWS-SECRET-MISSING"
