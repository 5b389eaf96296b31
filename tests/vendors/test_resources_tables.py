"""The ledger's table and the secrets, in an embedded AWS."""

from __future__ import annotations

import itertools
import json

import boto3
import pytest

from lambdas import contract
from lambdas.custom_resources.request import CloudFormationStacks
from lambdas.custom_resources.state import DynamoDocuments, Versioned
from lambdas.handlers.runtime import AWS_CONFIG
from lambdas.shared.errors import NotFound, Refused
from lambdas.shared.secrets import SecretStore
from simulators.core.faults import FaultClient
from tests.support.confluent_environment import Organization


@pytest.fixture
def table(aws):
    client = aws.client("dynamodb")
    client.create_table(
        TableName="ledger",
        KeySchema=[{"AttributeName": contract.STATE_KEY, "KeyType": "HASH"}],
        AttributeDefinitions=[{"AttributeName": contract.STATE_KEY, "AttributeType": "S"}],
        BillingMode="PAY_PER_REQUEST",
    )
    yield client
    client.delete_table(TableName="ledger")


def test_a_document_is_written_only_over_the_version_that_was_read(table):
    documents = DynamoDocuments(table, "ledger")
    assert documents.read("a") == Versioned({}, 0)
    assert documents.write("a", {"text": "ü", "none": None}, 0, None)
    assert not documents.write("a", {}, 0, None)
    assert documents.write("a", {"n": 2}, 1, 1_800_000_000.5)
    assert not documents.write("a", {}, 1, None)
    assert documents.read("a") == Versioned({"n": 2}, 2)
    assert list(documents.read_all()) == [{"n": 2}]
    item = table.get_item(TableName="ledger", Key={"id": {"S": "a"}})["Item"]
    assert item[contract.STATE_EXPIRY] == {"N": "1800000000"}


@pytest.fixture
def org(aws, table):
    """An organization whose states are in the embedded AWS. Calls are repeated as in Lambda."""
    org = Organization()
    where = {"endpoint_url": aws.server.url, "region_name": aws.server.region}
    client = boto3.client(
        "dynamodb", **where, aws_access_key_id="test", aws_secret_access_key="test", config=AWS_CONFIG
    )
    org.invocations.documents = DynamoDocuments(client, "ledger")
    yield org
    org.close()


def test_a_lost_answer_of_any_write_fails_no_resource(aws, org):
    """boto3 then sends the write again, and its condition no longer holds."""
    faults = FaultClient(aws.server.url)
    lost = {"fault": "effect_then_reset", "headers": {"x-amz-target": "DynamoDB_20120810.PutItem"}}
    try:
        for number in itertools.count(1):
            one = org.resource("service_account", f"Number{number}")
            faults.rule({**lost, "nth": number})
            one.create()
            assert [id for kind, id in org.objects() if kind == "service_accounts"] == [one.outputs["id"]]
            one.delete()
            (rule,) = faults.state()["rules"]
            if not rule["hits"]:
                break
    finally:
        faults.clear()
    assert number > 5


def test_a_table_that_is_gone_is_reported(aws):
    with pytest.raises(Refused, match="ResourceNotFoundException"):
        DynamoDocuments(aws.client("dynamodb"), "no-such-table").read("a")


def test_a_secret_is_filled_once_per_version(aws):
    arn = aws.secrets.create_secret(Name="lakeferry/test/kafka")["ARN"]
    store = SecretStore(aws.secrets)
    assert store.read(arn) == {}
    for _ in range(2):
        store.write(arn, {"apiKey": "K1", "apiSecret": "one"}, version="K1")
    store.write("lakeferry/test/kafka", {"apiKey": "K2", "apiSecret": "two"}, version="K2")
    assert store.read_key(arn).secret.reveal() == "two"
    versions = aws.secrets.list_secret_version_ids(SecretId=arn)["Versions"]
    assert len(versions) == 2
    assert (
        json.loads(aws.secrets.get_secret_value(SecretId=arn, VersionStage="AWSPREVIOUS")["SecretString"])[
            "apiKey"
        ]
        == "K1"
    )
    with pytest.raises(NotFound):
        store.write("lakeferry/test/none", {}, version="K1")


def test_a_missing_stack_has_no_direction(aws):
    stacks = CloudFormationStacks(aws.client("cloudformation"))
    stack = aws.arn("cloudformation", "stack/none/11111111-2222-3333-4444-555555555555")
    with pytest.raises(Refused, match="ValidationError"):
        stacks.is_forward(stack)
    assert not stacks.is_creating(stack, "Toy")
