"""Another team's cluster in the simulated organization, as a new user of it finds it: topics with records and
schemas, an application's rights, and a table that Tableflow shows in AWS Glue.

Its AWS resources are in the embedded AWS, if one is attached.
"""

from __future__ import annotations

import json
from typing import Final

import attrs

from simulators.confluent import kafka
from simulators.confluent.datagen import QUICKSTARTS, Generator, remove_arg_properties
from simulators.confluent.iam import bind_role, issue_key
from simulators.confluent.kafka_log import KafkaTopic
from simulators.confluent.model import (
    CatalogIntegration,
    Cluster,
    Environment,
    KeyKind,
    ProviderIntegration,
    SchemaRegistry,
    ServiceAccount,
    TableflowTopic,
)
from simulators.confluent.organization import Organization
from simulators.confluent.provider_integrations import PROVIDER_INTEGRATIONS
from simulators.confluent.schemas import Schema
from simulators.confluent.tableflow import glue_sync, run
from simulators.core.aws_access import POLICY, allow

BUCKET: Final = "acme-payments"
_ROLE: Final = "acme-tableflow"
#: Topics with records of the last days.
_TRADES: Final = "Sales.Trades"
_PAYMENTS: Final = "payments"
_DAY: Final = 86_400
_DAYS: Final = 3
#: Milliseconds between two records at most.
_INTERVAL: Final = 60_000
#: How Tableflow writes a table, if nobody chose anything else.
TABLE_CONFIG: Final = {
    "retention_ms": "604800000",
    "error_handling": {"mode": "SUSPEND"},
    "record_failure_strategy": "SUSPEND",
    "metadata_column_naming_scheme": "DEFAULT",
}
_BUCKET_ACTIONS: Final = ("s3:GetBucketLocation", "s3:ListBucket", "s3:ListBucketMultipartUploads")
_OBJECT_ACTIONS: Final = (
    "s3:GetObject", "s3:PutObject", "s3:PutObjectTagging", "s3:DeleteObject", "s3:AbortMultipartUpload",
    "s3:ListMultipartUploadParts",
)  # fmt: skip


@attrs.frozen
class Team:
    """What the team tells a colleague: ids, and keys as `id:secret`. `deployer_key` is a Cloud key of an
    EnvironmentAdmin; the others are keys of an account that may read the cluster.
    """

    environment_id: str
    environment_name: str
    cluster_id: str
    deployer_key: str
    kafka_key: str
    schema_registry_key: str
    bucket: str


def create(org: Organization) -> Team:
    """Create the team's objects. They exist at once."""
    environment, registry = create_environment(org, org.create_id("env"), "acme")
    cluster = create_cluster(org, environment, org.create_id("lkc"))
    trades = create_topic(org, cluster, _TRADES, {"retention.ms": "2592000000"})
    payments = create_topic(org, cluster, _PAYMENTS, {})
    create_topic(org, cluster, "customers", {"cleanup.policy": "compact"})
    create_topic(org, cluster, "audit-log", {})
    for topic in (trades, payments):
        _write_records(org, registry, topic)
    application = create_account(org, "acme-application")
    for name in (_TRADES, _PAYMENTS):
        cluster.acls.append(_build_acl(application.id, name))
    integration = create_catalog_integration(org, cluster, BUCKET)
    _create_table(org, cluster, integration)
    glue_sync.begin(org, integration)
    deployer = create_account(org, "acme-deployer")
    bind_role(org, f"User:{deployer.id}", "EnvironmentAdmin", environment.crn)
    reader = create_account(org, "acme-reader")
    bind_role(org, f"User:{reader.id}", "DeveloperRead", cluster.build_crn("topic", "*"))
    bind_role(org, f"User:{reader.id}", "DeveloperRead", registry.build_subject_crn("*"))
    return Team(
        environment_id=environment.id,
        environment_name=environment.name,
        cluster_id=cluster.id,
        deployer_key=issue(org, deployer, KeyKind.CLOUD, "cloud", org.crn),
        kafka_key=issue(org, reader, KeyKind.KAFKA, cluster.id, cluster.scope),
        schema_registry_key=issue(org, reader, KeyKind.REGISTRY, registry.id, registry.crn),
        bucket=BUCKET,
    )


def create_environment(org: Organization, new: str, name: str) -> tuple[Environment, SchemaRegistry]:
    """Create an environment with this id and name, and its Schema Registry."""
    now = org.clock.now()
    environment = Environment(new, f"{org.crn}/environment={new}", now, now, name, "ADVANCED")
    org.environments[new] = environment
    registry_id = org.create_id("lsrc")
    crn = f"{environment.crn}/schema-registry={registry_id}"
    registry = SchemaRegistry(registry_id, crn, now, now, new, org.region, phase="PROVISIONED")
    org.schema_registries[registry_id] = registry
    return environment, registry


def create_cluster(org: Organization, environment: Environment, new: str) -> Cluster:
    """Create a Dedicated cluster with this id."""
    now = org.clock.now()
    crn = f"{environment.crn}/cloud-cluster={new}/kafka={new}"
    cluster = Cluster(
        new, crn, now, now, environment.id, org.region, "orders", "HIGH", "Dedicated", 0, False, cku=2,
        phase="PROVISIONED",
    )  # fmt: skip
    org.clusters[new] = cluster
    return cluster


def create_topic(
    org: Organization, cluster: Cluster, name: str, settings: dict[str, str], partitions: int = 6
) -> KafkaTopic:
    """Create a topic that calls find at once."""
    topic = kafka.create_topic(org, cluster, name, partitions, settings)
    topic.visible = topic.created - _DAY
    return topic


def _write_records(org: Organization, registry: SchemaRegistry, topic: KafkaTopic) -> None:
    """Register the schema of trades, and write records of the last days to all partitions."""
    file, _ = QUICKSTARTS["STOCK_TRADES"]
    annotated = file.read_text()
    text = json.dumps(remove_arg_properties(json.loads(annotated)))
    version = registry.schemas.register(f"{topic.name}-value", Schema("AVRO", text, ()))
    config = {"schema.string": annotated, "max.interval": str(_INTERVAL)}
    now = org.clock.now()
    Generator(config, version.id, org.random, now - _DAYS * _DAY).fill(topic, now)


def create_account(org: Organization, name: str) -> ServiceAccount:
    now = org.clock.now()
    new = org.create_id("sa")
    account = ServiceAccount(new, f"{org.crn}/service-account={new}", now, now, name, "Another team's")
    org.service_accounts[new] = account
    return account


def issue(org: Organization, owner: ServiceAccount, kind: KeyKind, resource: str, scope: str) -> str:
    key = issue_key(org, owner.id, kind, resource, scope, delay=0)
    return f"{key.id}:{key.secret}"


def _create_table(org: Organization, cluster: Cluster, integration: CatalogIntegration) -> None:
    """Let Tableflow write payments into the team's bucket."""
    now = org.clock.now()
    crn = f"{cluster.build_crn('topic', _PAYMENTS)}/tableflow=iceberg"
    provider = integration.integration
    table = TableflowTopic(
        _PAYMENTS, crn, now, now, cluster.environment, cluster.id, BUCKET, provider, TABLE_CONFIG, "APPEND"
    )
    table.schema = dict(run.build_table_topic(org, table).schema)
    org.tableflow_topics[table.key] = table
    run.begin(org, table)


def create_catalog_integration(
    org: Organization, cluster: Cluster, bucket: str, database: str = ""
) -> CatalogIntegration:
    """Let Tableflow show all tables of the cluster in Glue, with a role that may write to the bucket, which
    is created too.
    """
    now = org.clock.now()
    provider = _create_provider_integration(org, cluster, bucket)
    new = org.create_id("tci")
    catalog = CatalogIntegration(
        new,
        f"{cluster.scope}/catalog-integration={new}",
        now,
        now,
        cluster.environment,
        cluster.id,
        "acme",
        provider.id,
        database,
    )
    org.catalog_integrations[new] = catalog
    return catalog


def _create_provider_integration(org: Organization, cluster: Cluster, bucket: str) -> ProviderIntegration:
    now = org.clock.now()
    new = org.create_id("cspi")
    account = "000000000000"
    vendor = PROVIDER_INTEGRATIONS.compute_attributes(org, new)
    if org.lake:
        account = org.lake.root.client("sts").get_caller_identity()["Account"]
        _create_role(org, bucket, vendor["vendor_role_arn"], vendor["external_id"])
    environment = org.environments[cluster.environment]
    provider = ProviderIntegration(
        new,
        f"{environment.crn}/provider-integration={new}",
        now,
        now,
        environment=environment.id,
        name="acme",
        role_arn=f"arn:aws:iam::{account}:role/{_ROLE}",
        **vendor,
    )
    org.provider_integrations[new] = provider
    return provider


def _create_role(org: Organization, bucket: str, vendor_role: str, external_id: str) -> None:
    """Create the team's bucket, and the role with which Tableflow writes to it and to Glue."""
    assert org.lake is not None, "callers check for it"
    s3 = org.lake.root.client("s3")
    location = {} if org.region == "us-east-1" else {"LocationConstraint": org.region}
    s3.create_bucket(Bucket=bucket, **({"CreateBucketConfiguration": location} if location else {}))
    trust = {
        "Version": "2012-10-17",
        "Statement": [
            {
                "Effect": "Allow",
                "Principal": {"AWS": vendor_role},
                "Action": "sts:AssumeRole",
                "Condition": {"StringEquals": {"sts:ExternalId": external_id}},
            },
            {"Effect": "Allow", "Principal": {"AWS": vendor_role}, "Action": "sts:TagSession"},
        ],
    }
    iam = org.lake.root.client("iam")
    iam.create_role(RoleName=_ROLE, AssumeRolePolicyDocument=json.dumps(trust))
    policies = {
        "bucket": allow(list(_BUCKET_ACTIONS), resource=f"arn:aws:s3:::{bucket}"),
        "objects": allow(list(_OBJECT_ACTIONS), resource=f"arn:aws:s3:::{bucket}/*"),
        "tables": allow(["glue:*"], resource="*"),
    }
    for name, policy in policies.items():
        iam.put_role_policy(RoleName=_ROLE, PolicyName=f"{POLICY}-{name}", PolicyDocument=policy)


def _build_acl(account: str, topic: str) -> dict[str, str]:
    return {
        "resource_type": "TOPIC",
        "resource_name": topic,
        "pattern_type": "LITERAL",
        "principal": f"User:{account}",
        "host": "*",
        "operation": "WRITE",
        "permission": "ALLOW",
    }
