"""Make what exists before a deployment: what admins prepare, and what other teams have that the file names.

One function makes one thing, or nothing if the file doesn't name it. To add a thing, write its function and
list it in `_FUNCTIONS`. If AWS chooses the id of the thing, `chosen_ids` has it: the copy of the file that is
deployed then names this one.
"""

from __future__ import annotations

import base64
import json
import re
import secrets
from collections.abc import Callable, Mapping
from typing import Any, Final

import attrs
from pyiceberg.catalog.glue import GlueCatalog

from config.deployments.model import Deployment
from lakeferry.deployment.context import DeploymentContext
from lakeferry.health.aws import DEFAULT_QUALIFIER
from lakeferry.rehearsal import environments
from lakeferry.rehearsal.environments import SimulatedEnvironment
from lakeferry.rehearsal.events import Plan, TopicEvents, decode
from lakeferry.rehearsal.harness import TopicRecords
from lambdas.snowflake import sql
from simulators.tableflow import kafka
from simulators.tableflow.topic import Topic
from simulators.tableflow.writer import Tableflow, TableLocation

#: The bucket of the team that has the cluster.
_TEAMS_BUCKET: Final = "rehearsal-other-team"
_CATALOG: Final = re.compile(r"/organizations/(?P<organization>[^/]+)/environments/(?P<environment>[^/]+)")
_BOUNDARY: Final = {
    "Version": "2012-10-17",
    "Statement": [{"Effect": "Allow", "Action": "*", "Resource": "*"}],
}
_COMMITS: Final = 4
#: Seconds of Confluent's clock until Tableflow has committed.
_TABLEFLOW_COMMIT: Final = 310.0


@attrs.define
class Preparation:
    """What the functions need, and what they leave for later: the Cloud key of the file's owner, and the ids
    that AWS chose instead of those in the file, by the latter.
    """

    ctx: DeploymentContext
    simulators: SimulatedEnvironment
    plan: Plan
    cloud_key: dict[str, str]
    chosen_ids: dict[str, str] = attrs.Factory(dict)

    @property
    def deployment(self) -> Deployment:
        return self.ctx.deployment

    @property
    def topics(self) -> list[dict[str, Any]]:
        """Return the topics that exist already, as the simulator of Confluent takes them."""
        topics = []
        for topic in self.deployment.topics:
            if topic.existing or self.deployment.source:
                events = self.plan.events[topic.name]
                topics.append(
                    {
                        "name": topic.name,
                        "partitions": topic.new_partitions,
                        "settings": topic.config,
                        "schema": json.loads(events.schema),
                        "managed": self.deployment.source is not None,
                    }
                )
        return topics

    def ask_for(self, existing: Mapping[str, Any]) -> dict[str, dict[str, str]]:
        """Create objects at Confluent, and return the keys, each as a secret has it."""
        keys: dict[str, str] = self.simulators.ask_confluent("POST", "/existing", dict(existing))
        return {service: _split_key(key) for service, key in keys.items()}


def find_organization(deployment: Deployment) -> str:
    """Return the id of Confluent's organization, if the file has it in the address of a catalog."""
    catalog = deployment.source.catalog if deployment.source else None
    found = _CATALOG.search(catalog.uri) if catalog else None
    return found["organization"] if found else ""


def prepare(ctx: DeploymentContext, simulators: SimulatedEnvironment, plan: Plan) -> Preparation:
    """Make everything but the keys that `lakeferry secrets set` stores."""
    preparation = Preparation(ctx, simulators, plan, environments.get_cloud_key(simulators))
    for make in _FUNCTIONS:
        make(preparation)
    return preparation


def _make_permissions_boundary(preparation: Preparation) -> None:
    arn = preparation.deployment.aws.permissions_boundary
    if not arn:
        return
    path, _, name = arn.partition(":policy")[2].rpartition("/")
    preparation.ctx.client("iam").create_policy(
        PolicyName=name, Path=f"{path}/", PolicyDocument=json.dumps(_BOUNDARY)
    )


def _make_key_of_bucket(preparation: Preparation) -> None:
    """Make the KMS key of a bucket in `[source]`. The embedded AWS encrypts nothing with it."""
    source = preparation.deployment.source
    if source and source.kms_key:
        key = preparation.ctx.client("kms").create_key()["KeyMetadata"]
        preparation.chosen_ids[source.kms_key] = key["Arn"]


def _make_pseudonym_key(preparation: Preparation) -> None:
    if name := preparation.deployment.aws.pseudonym_secret:
        environments.store_secret(
            preparation.ctx, name, {"key": base64.b64encode(secrets.token_bytes(32)).decode()}
        )


def _make_tables_in_glue(preparation: Preparation) -> None:
    """Write the tables of `[source]` as Tableflow does, into a bucket and a database of another team."""
    glue = preparation.deployment.source.glue if preparation.deployment.source else None
    if glue is None:
        return
    region = preparation.ctx.region
    location = {} if region == "us-east-1" else {"LocationConstraint": region}
    configuration = {"CreateBucketConfiguration": location} if location else {}
    preparation.ctx.client("s3").create_bucket(Bucket=glue.bucket, **configuration)
    options = {"s3.endpoint": preparation.simulators.aws.url, "s3.region": region, "glue.region": region}
    catalog = GlueCatalog("lake", client=None, **{"glue.skip-name-validation": "true"}, **options)
    flow = Tableflow(catalog, TableLocation(glue.bucket, database=glue.database))
    for events in preparation.plan.events.values():
        topic = Topic(events.topic, json.loads(events.schema))
        flow.materialise(topic, list_kafka_records(events), commits=_COMMITS)


def list_kafka_records(events: TopicEvents) -> list[kafka.Record]:
    """Return the records with the offsets that Kafka gives them."""
    records = []
    for record in TopicRecords.from_events(events).records:
        value = decode(base64.b64decode(record.avro), events.schema)
        key = base64.b64decode(record.key) if record.key is not None else None
        position = (record.partition, record.offset, record.timestamp)
        records.append(kafka.Record(events.topic, *position, key, value))
    return records


def _make_catalog(preparation: Preparation) -> None:
    """Make the tables of `[source]` in Confluent's storage, and a key that may only read them."""
    catalog = preparation.deployment.source.catalog if preparation.deployment.source else None
    if catalog is None:
        return
    found = _CATALOG.search(catalog.uri)
    environment = found["environment"] if found else ""
    keys = preparation.ask_for(
        {
            "environment_id": environment,
            "environment_name": "rehearsal",
            "cluster_id": catalog.cluster_id,
            "topics": preparation.topics,
        }
    )
    environments.store_secret(preparation.ctx, catalog.key_secret, keys["reader"])
    for events in preparation.plan.events.values():
        produce(preparation.simulators, events.topic, events.records)
    preparation.simulators.advance_confluent(_TABLEFLOW_COMMIT)


def _make_environment(preparation: Preparation) -> None:
    """Make the environment of `[confluent]`, the cluster with its topics, and the keys that people bring."""
    confluent = preparation.deployment.confluent
    if confluent is None or confluent.environment_id is None:
        return
    keys = preparation.ask_for(
        {
            "environment_id": confluent.environment_id,
            "environment_name": confluent.environment_name or "rehearsal",
            "cluster_id": confluent.cluster_id or "",
            "glue_database": confluent.glue_database or "",
            "bucket": _TEAMS_BUCKET,
            "topics": preparation.topics if confluent.cluster_id else [],
        }
    )
    preparation.cloud_key = keys["deployer"]
    for service, name in confluent.brought_keys.items():
        environments.store_secret(preparation.ctx, name, keys[service])


def _verify_sender(preparation: Preparation) -> None:
    """Make the identity of `[mail]` in SES, which the embedded AWS verifies at once."""
    mail = preparation.deployment.mail
    if mail:
        preparation.ctx.client("sesv2").create_email_identity(EmailIdentity=mail.verified_identity)


def _make_people_in_snowflake(preparation: Preparation) -> None:
    """Create the users and roles of `[snowflake]`, as the account's admin does."""
    settings = preparation.deployment.snowflake
    if settings is None or not preparation.deployment.uses_snowflake:
        return
    statements = [
        sql.by_name("CREATE USER {name}", sql.to_exact_name(user)) for user in settings.grant_to_users
    ]
    statements += [
        sql.by_name("CREATE ROLE {name}", sql.to_exact_name(role)) for role in settings.grant_to_roles
    ]
    for statement in statements:
        environments.open_admin(preparation.simulators).run(statement)


def _make_readers_in_athena(preparation: Preparation) -> None:
    """Create the roles of `athena_readers`, which people of the account may assume. They may do nothing."""
    trust = {
        "Effect": "Allow",
        "Principal": {"AWS": f"arn:aws:iam::{preparation.ctx.account}:root"},
        "Action": "sts:AssumeRole",
    }
    document = json.dumps({"Version": "2012-10-17", "Statement": [trust]})
    for reader in preparation.deployment.aws.athena_readers:
        path, _, name = reader.partition(":role")[2].rpartition("/")
        preparation.ctx.client("iam").create_role(
            Path=f"{path}/", RoleName=name, AssumeRolePolicyDocument=document
        )


def _govern_catalog(preparation: Preparation) -> None:
    """Let Lake Formation govern the catalog. CDK's role for CloudFormation administers it, and the engineer
    who calls the commands may read all tables.
    """
    if not preparation.deployment.aws.lake_formation:
        return
    account = preparation.ctx.account
    role = f"cdk-{DEFAULT_QUALIFIER}-cfn-exec-role-{account}-{preparation.ctx.region}"
    administrators = [f"arn:aws:iam::{account}:role/{role}", f"arn:aws:iam::{account}:root"]
    engineer = {"root": ["DESCRIBE", "SELECT"]}
    body = {"governs": True, "administrators": administrators, "grants": engineer}
    preparation.simulators.ask_aws("POST", "/lake-formation", body)


#: In the order in which they are called.
_FUNCTIONS: Final[tuple[Callable[[Preparation], None], ...]] = (
    _verify_sender,
    _govern_catalog,
    _make_readers_in_athena,
    _make_people_in_snowflake,
    _make_permissions_boundary,
    _make_pseudonym_key,
    _make_key_of_bucket,
    _make_tables_in_glue,
    _make_catalog,
    _make_environment,
)


def produce(simulators: SimulatedEnvironment, topic: str, records: Any) -> None:
    """Write records to a topic as a program of its owner would, each into its partition."""
    documents = [
        {
            "partition": record.partition,
            "timestamp": record.timestamp,
            "key": record.key,
            "value": record.avro,
        }
        for record in records
    ]
    simulators.ask_confluent("POST", "/produce", {"topic": topic, "records": documents})


def _split_key(key: str) -> dict[str, str]:
    key_id, _, secret = key.partition(":")
    return {"apiKey": key_id, "apiSecret": secret}
