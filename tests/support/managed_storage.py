"""A Kafka cluster with a topic whose table is in Confluent's storage, and a key that may read it."""

from __future__ import annotations

import json

import boto3
from pyiceberg.catalog.rest import RestCatalog

from simulators.core import control
from tests.support.confluent_kit import LONG, Organization, scope_of

TOPIC = "stock_trades"
#: Monday, 2024-03-04, in seconds.
START = 1_709_510_400


class ManagedStorage:
    """The table has the events of the days since START that passed. `aws` is Confluent's account."""

    def __init__(self, cloud, aws, *, days, partitions=6):
        self.cloud = cloud
        self.aws = aws
        self.org = Organization(cloud)
        self.environment = self.org.environment()
        self.cluster = self.org.cluster(self.environment)
        self.id = self.cluster["id"]
        self.admin = self.org.administrator(self.cluster)
        self._create_table(days, partitions)
        self.reader = self.org.account("reader")
        self.org.bind(self.reader, "DeveloperRead", f"{scope_of(self.cluster)}/kafka={self.id}/topic={TOPIC}")
        cloud.advance(LONG)

    def _create_table(self, days, partitions):
        org = self.org
        kafka = org.kafka(self.cluster, self.admin)
        body = {"topic_name": TOPIC, "partitions_count": partitions}
        kafka.post(f"/kafka/v3/clusters/{self.id}/topics", body, 201)
        self.cloud.advance(60)
        config = {
            "connector.class": "DatagenSource",
            "name": TOPIC,
            "kafka.auth.mode": "SERVICE_ACCOUNT",
            "kafka.service.account.id": self.admin,
            "kafka.topic": TOPIC,
            "output.data.format": "AVRO",
            "quickstart": "STOCK_TRADES",
            "max.interval": "600000",
            "tasks.max": "1",
        }
        connectors = f"/connect/v1/environments/{self.environment}/clusters/{self.id}/connectors"
        org.control.post(connectors, {"name": TOPIC, "config": config}, 201)
        self.cloud.advance(LONG)
        spec = {
            "display_name": TOPIC,
            "storage": {"kind": "Managed"},
            "environment": {"id": self.environment},
            "kafka_cluster": {"id": self.id},
        }
        org.tableflow(self.admin).post("/tableflow/v1/tableflow-topics", {"spec": spec}, 202)
        self.cloud.advance(days * 86_400)
        org.control.delete(f"{connectors}/{TOPIC}", 200)
        self.cloud.advance(LONG)

    @property
    def catalog_uri(self):
        path = f"organizations/{self.org.id}/environments/{self.environment}"
        return f"{self.cloud.catalog_url}/iceberg/catalog/{path}"

    def create_key(self, account=None):
        resource = {"id": "tableflow", "kind": "Tableflow", "api_version": "tableflow/v1"}
        return self.org.key(account or self.reader, resource)

    def delete_key(self, key_id):
        self.org.control.delete(f"/iam/v2/api-keys/{key_id}")
        self.cloud.advance(LONG)

    def store_key(self, name, key):
        """Store the key in a secret, which may exist."""
        fields = {"apiKey": key[0], "apiSecret": key[1], "catalog.uri": self.catalog_uri}
        client = boto3.client("secretsmanager")
        try:
            client.put_secret_value(SecretId=name, SecretString=json.dumps(fields))
        except client.exceptions.ResourceNotFoundException:
            client.create_secret(Name=name, SecretString=json.dumps(fields))
        return name

    def end_credentials(self):
        """End the credentials that the catalog has given so far, and return their number."""
        body = {"role": "confluent-reader-*"}
        return control.call(self.aws.server.url, "POST", "/sessions/end", body)["ended"]

    def read_events(self):
        """Return the table's rows, as PyIceberg reads them with a key of its own, in the order of Kafka."""
        catalog = RestCatalog(
            "tableflow",
            uri=self.catalog_uri,
            credential=":".join(self.create_key()),
            scope="catalog",
            **{"oauth2-server-uri": f"{self.catalog_uri}/v1/oauth/tokens"},
        )
        rows = catalog.load_table((self.id, TOPIC)).scan().to_arrow().to_pylist()
        return sorted(rows, key=lambda row: (row["$$partition"], row["$$offset"]))
