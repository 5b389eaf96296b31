"""Secrets, documents and stacks, with stand-ins of boto3's clients."""

from __future__ import annotations

import json

import pytest
from botocore.exceptions import ClientError, ConnectTimeoutError

from lambdas.custom_resources.request import CloudFormationStacks
from lambdas.custom_resources.state import DynamoDocuments, Versioned
from lambdas.shared.errors import Denied, NotFound, Transient
from lambdas.shared.redaction import SHOWN, redact
from lambdas.shared.secrets import SecretStore, is_secret
from tests.support.resource_environment import MemorySecrets


def refused(code):
    return ClientError({"Error": {"Code": code, "Message": "canary"}}, "Operation")


class Table:
    """Implements three calls of DynamoDB, with the two conditions in use. A page of a scan has one item.

    `refuse` is raised once.
    """

    def __init__(self):
        self.items = {}
        self.refuse = None

    def get_item(self, **asked):
        assert asked["ConsistentRead"]
        self._perhaps_refuse()
        item = self.items.get((asked["TableName"], asked["Key"]["id"]["S"]))
        return {"Item": item} if item else {}

    def put_item(self, **asked):
        self._perhaps_refuse()
        key = (asked["TableName"], asked["Item"]["id"]["S"])
        there = self.items.get(key)
        wanted = {
            "attribute_not_exists(id)": lambda: there is None,
            "version = :over": lambda: (
                there is not None and there["version"] == asked["ExpressionAttributeValues"][":over"]
            ),
        }
        if not wanted[asked["ConditionExpression"]]():
            raise refused("ConditionalCheckFailedException")
        self.items[key] = asked["Item"]

    def scan(self, **asked):
        assert asked["ConsistentRead"]
        self._perhaps_refuse()
        items = [item for (table, _), item in sorted(self.items.items()) if table == asked["TableName"]]
        after = asked.get("ExclusiveStartKey", {"id": {"S": ""}})["id"]["S"]
        first, *others = [item for item in items if item["id"]["S"] > after] or [None]
        return {
            "Items": [first] if first else [],
            **({"LastEvaluatedKey": {"id": first["id"]}} if others else {}),
        }

    def _perhaps_refuse(self):
        error = self.refuse
        self.refuse = None
        if error:
            raise error


def test_a_document_is_only_written_over_the_version_that_was_read():
    documents = DynamoDocuments(Table(), "ledger")
    assert documents.read("a") == Versioned({}, 0)
    assert documents.write("a", {"n": 1}, 0, None)
    assert not documents.write("a", {"n": 9}, 0, None)
    assert documents.read("a") == Versioned({"n": 1}, 1)
    assert documents.write("a", {"n": 2}, 1, None)
    assert not documents.write("a", {"n": 9}, 1, None)
    assert documents.read("a") == Versioned({"n": 2}, 2)
    assert documents.read("b") == Versioned({}, 0)


def test_the_documents_of_all_pages_are_read():
    table = Table()
    documents = DynamoDocuments(table, "ledger")
    assert list(documents.read_all()) == []
    for number in range(3):
        documents.write(f"document-{number}", {"n": number}, 0, None)
    DynamoDocuments(table, "another").write("document-3", {"n": 3}, 0, None)
    assert list(documents.read_all()) == [{"n": 0}, {"n": 1}, {"n": 2}]
    table.refuse = refused("ProvisionedThroughputExceededException")
    with pytest.raises(Transient):
        list(documents.read_all())


def test_a_document_may_expire():
    table = Table()
    DynamoDocuments(table, "ledger").write("a", {}, 0, 1234.9)
    assert table.items["ledger", "a"]["expires"] == {"N": "1234"}


@pytest.mark.parametrize(
    "error", [refused("ProvisionedThroughputExceededException"), ConnectTimeoutError(endpoint_url="x")]
)
def test_a_refusal_of_dynamodb_is_temporary(error):
    table = Table()
    documents = DynamoDocuments(table, "ledger")
    table.refuse = error
    with pytest.raises(Transient) as raised:
        documents.read("a")
    assert "canary" not in str(raised.value)
    table.refuse = error
    with pytest.raises(Transient):
        documents.write("a", {}, 0, None)


def test_a_secret_is_read_field_by_field():
    store = SecretStore(MemorySecrets(it='{"apiKey": "id", "apiSecret": "canary", "n": 1}'))
    assert {name: value.reveal() for name, value in store.read("it").items()} == {
        "apiKey": "id",
        "apiSecret": "canary",
        "n": "1",
    }
    key = store.read_key("it")
    assert (key.id, key.secret.reveal()) == ("id", "canary")
    assert "canary" not in repr(store.read("it"))


def test_a_key_s_id_and_its_connection_may_be_shown_and_any_other_field_may_not():
    """CloudFormation gets the id as an output, and logs have clusters and hosts."""
    fields = {
        "apiKey": "ABCDEFGH12345678",
        "apiSecret": "canary-canary",
        "endpoint": "https://lsrc.example",
        "added": "Tr0ub4dor&3-by-somebody",
        "adminPassword": "ordinary",
        "owner": "lakeferry",
        "stage": "production",
        "contact": "data-team@example.com",
    }
    held = SecretStore(MemorySecrets(it=json.dumps(fields))).read("it")
    assert held.keys() == fields.keys()
    assert redact("ABCDEFGH12345678 at https://lsrc.example") == "ABCDEFGH12345678 at https://lsrc.example"
    assert redact("canary-canary, Tr0ub4dor&3-by-somebody, ordinary") == f"{SHOWN}, {SHOWN}, {SHOWN}"
    words = "lakeferry-dev in production of data-team@example.com"
    assert redact(words) == words, "ordinary words that somebody added occur in names and messages"


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("note", "q7Xv2LmP9sTz4kRw"),
        ("note", "cfltAbCdEfGh"),
        ("note", "deadbeefdeadbeef0123456789abcdef"),
        ("sasl.jaas.config", "required"),
        ("apiToken", "production"),
        ("note", "-----BEGIN PRIVATE KEY-----"),
        ("note", "aBcDeFgHiJkLmNoPqRsT"),
    ],
)
def test_a_field_that_looks_or_is_called_secret_is_secret(field, value):
    assert is_secret(field, value)


def test_a_secret_without_a_value_is_empty():
    store = SecretStore(MemorySecrets(it=None))
    assert store.read("it") == store.read("other") == {}
    with pytest.raises(NotFound) as missing:
        store.read_key("it")
    assert missing.value.kind.code == "AWS-SECRET-MISSING"
    assert missing.value.patience == 60.0, "a value that was just written may not be readable yet"


def test_a_denied_secret_may_also_not_exist():
    """AWS denies a name without its six characters where the role may read other secrets only, whether it
    exists or not.
    """

    class Denying:
        def get_secret_value(self, **asked):
            raise refused("AccessDeniedException")

    with pytest.raises(Denied) as denied:
        SecretStore(Denying()).read_key("it")
    reason = "it doesn't exist, or the function may not read it or use its key"
    assert denied.value.what.startswith("reading secret it: AccessDeniedException")
    assert denied.value.what.endswith(f"({reason})")


@pytest.mark.parametrize("value", ["canary", "[1]", '"canary"', "null", '{"apiKey": "canary"}'])
def test_a_malformed_secret_is_reported_and_not_shown(value):
    with pytest.raises(NotFound) as raised:
        SecretStore(MemorySecrets(it=value)).read_key("it")
    assert raised.value.kind.code == "AWS-SECRET-SHAPE"
    assert "canary" not in str(raised.value)


def test_a_version_is_written_once():
    secrets = MemorySecrets(it=None)
    store = SecretStore(secrets)
    store.write("it", {"a": "1"}, version="k1")
    secrets.values["it"] = "changed by rotation"
    store.write("it", {"a": "1"}, version="k1")
    assert secrets.values["it"] == "changed by rotation"
    store.write("it", {"a": "2"}, version="k2")
    assert json.loads(secrets.values["it"]) == {"a": "2"}
    assert all(32 <= len(token) <= 64 for token in secrets.tokens)


def test_a_secret_that_does_not_exist_can_not_be_filled():
    with pytest.raises(NotFound):
        SecretStore(MemorySecrets()).write("it", {}, version="k1")


class CloudFormation:
    def __init__(self, stack=None, resource=None):
        self.stack = stack
        self.resource = resource

    def describe_stacks(self, **asked):
        return {"Stacks": [{"StackStatus": self.stack}]}

    def describe_stack_resource(self, **asked):
        if self.resource in ("ValidationError", "Throttling", "AccessDenied"):
            raise refused(self.resource)
        return {"StackResourceDetail": {"ResourceStatus": self.resource}}


@pytest.mark.parametrize(
    ("status", "forward", "rolling_back"),
    [
        ("CREATE_IN_PROGRESS", True, False),
        ("UPDATE_IN_PROGRESS", True, False),
        ("ROLLBACK_IN_PROGRESS", False, True),
        ("UPDATE_ROLLBACK_IN_PROGRESS", False, True),
        ("UPDATE_ROLLBACK_COMPLETE_CLEANUP_IN_PROGRESS", False, True),
        ("UPDATE_COMPLETE_CLEANUP_IN_PROGRESS", False, False),
        ("DELETE_IN_PROGRESS", False, False),
    ],
)
def test_the_direction_of_a_stack(status, forward, rolling_back):
    stacks = CloudFormationStacks(CloudFormation(stack=status))
    assert (stacks.is_forward("stack"), stacks.is_rolling_back("stack")) == (forward, rolling_back)


@pytest.mark.parametrize(("code", "kind"), [("Throttling", Transient), ("AccessDenied", Denied)])
def test_an_error_never_decides_whether_a_resource_is_being_created(code, kind):
    with pytest.raises(kind):
        CloudFormationStacks(CloudFormation(resource=code)).is_creating("stack", "it")


@pytest.mark.parametrize(
    ("status", "creating"),
    [
        ("CREATE_IN_PROGRESS", True),
        ("UPDATE_IN_PROGRESS", True),
        ("DELETE_COMPLETE", False),
        ("ValidationError", False),
    ],
)
def test_whether_a_resource_is_being_created(status, creating):
    assert CloudFormationStacks(CloudFormation(resource=status)).is_creating("stack", "it") is creating
