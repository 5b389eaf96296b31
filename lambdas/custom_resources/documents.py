"""A DynamoDB table of small JSON documents, each written only over the version that was read."""

from __future__ import annotations

import json
from typing import Any, Final, NamedTuple, Protocol

import attrs
from botocore.exceptions import ClientError

from lambdas.shared.aws import DynamoDb, error_code, told

KEY_ATTRIBUTE: Final = "id"
EXPIRY_ATTRIBUTE: Final = "expires"


class Versioned(NamedTuple):
    """Version 0 stands for a document that doesn't exist."""

    document: dict[str, Any]
    version: int


class Documents(Protocol):
    def read(self, key: str) -> Versioned: ...

    def write(self, key: str, document: dict[str, Any], over: int, expires: float | None) -> bool:
        """Write as version `over` + 1; False where somebody else has written since. May be removed after `expires`."""


@attrs.frozen
class DynamoDocuments:
    """The table's partition key is a string called `id`; its time-to-live attribute is `expires`."""

    client: DynamoDb
    table: str

    def read(self, key: str) -> Versioned:
        with told(f"reading table {self.table}"):
            found = self.client.get_item(TableName=self.table, Key={KEY_ATTRIBUTE: {"S": key}}, ConsistentRead=True)
        item = found.get("Item")
        return Versioned(json.loads(item["document"]["S"]), int(item["version"]["N"])) if item else Versioned({}, 0)

    def write(self, key: str, document: dict[str, Any], over: int, expires: float | None) -> bool:
        item = {
            KEY_ATTRIBUTE: {"S": key},
            "version": {"N": str(over + 1)},
            "document": {"S": json.dumps(document)},
            **({EXPIRY_ATTRIBUTE: {"N": str(int(expires))}} if expires is not None else {}),
        }
        condition: dict[str, Any] = {"ConditionExpression": f"attribute_not_exists({KEY_ATTRIBUTE})"}
        if over:
            condition = {"ConditionExpression": "version = :over", "ExpressionAttributeValues": {":over": {"N": str(over)}}}
        with told(f"writing table {self.table}"):
            try:
                self.client.put_item(TableName=self.table, Item=item, **condition)
            except ClientError as error:
                if error_code(error) == "ConditionalCheckFailedException":
                    return False
                raise
        return True
