"""A deployment with both handshakes, made by the resource types: a bucket, roles in an AWS that enforces IAM,
and one table.

CloudFormation has what a command reads: stacks, outputs, ids of resources. The roles are created here with
the values that the stacks give them.
"""

from __future__ import annotations

from contextlib import contextmanager

import attrs
import boto3
import pytest

from lakeferry.health import confluent_to_aws, snowflake_to_aws
from lakeferry.health.model import Result
from lambdas import contract
from lambdas.custom_resources import registry, request
from lambdas.custom_resources.request import Identity
from lambdas.shared.resource import Context
from simulators.aws import settings
from simulators.aws.server import EmbeddedAws
from simulators.confluent.server import ConfluentCloud
from simulators.confluent.tableflow_lake import Lake
from simulators.core.faults import FaultClient
from simulators.snowflake.model import Domain
from simulators.snowflake.server import Snowflake
from tests.support.aws_clients import policy
from tests.support.leftovers import LEDGER
from tests.support.resource_environment import START, Invocations, Resource
from tests.support.stand_ins import Planter, Stacks, StandIns

TOPIC = "stock_trades"
#: The Glue database of the aggregates.
AGGREGATES = "aggregates_0"
SCHEMA = '{"type": "record", "name": "Trade", "fields": [{"name": "price", "type": "int"}]}'
_SECONDS = 900
#: Seconds after which Tableflow has committed, and Snowflake has refreshed.
_COMMIT_SECONDS = 301


@contextmanager
def connected_stand_ins():
    """Start stand-ins that reach each other, and set the environment to their AWS."""
    with EmbeddedAws(iam=True) as aws, pytest.MonkeyPatch.context() as patch:
        lake = Lake(aws.url, aws.region, settings.ACCESS_KEY_ID, settings.SECRET_ACCESS_KEY)
        with (
            ConfluentCloud(start=START, region=aws.region, lake=lake) as cloud,
            Snowflake(start=START, aws=aws) as snow,
        ):
            for name, value in aws.environment().items():
                patch.setenv(name, value)
            boto3.client("iam").create_user(UserName="somebody", Path="/vendor/")
            yield StandIns(aws, cloud, snow)


def all_checks(deployed):
    return [*confluent_to_aws.look(deployed.ctx), *snowflake_to_aws.look(deployed.ctx)]


def problems_of(deployed):
    return [
        (check.group, check.name, check.message)
        for check in all_checks(deployed)
        if check.result is not Result.OK
    ]


def assert_named(deployed, broken, check_name, words):
    """Assert that the failed check with this (group, name) is the only root cause, that its texts contain
    `words`, and that all checks pass after the repair.
    """
    with broken(deployed):
        (root,) = [check for check in all_checks(deployed) if check.is_root]
        assert (root.group, root.name) == check_name
        assert [word for word in words if word not in f"{root.message} {root.needed} {root.fix}"] == []
        assert root.fix
    deployed.resume()
    assert problems_of(deployed) == []


@attrs.define
class Deployed:
    """A deployment in the stand-ins.

    `made` and `given` have the outputs and the properties of each object by its logical id.
    """

    stand_ins: StandIns
    ctx: object
    made: dict = attrs.Factory(dict)
    given: dict = attrs.Factory(dict)
    stack_ids: dict = attrs.Factory(dict)

    @property
    def bucket(self):
        return f"{self.ctx.deployment.prefix}-tables"

    @property
    def lake(self):
        return f"{self.ctx.deployment.prefix}-lake"

    @property
    def organization(self):
        """Return the simulator's Confluent organization, to read and to change."""
        return self.stand_ins.cloud._simulation.organization

    @property
    def account(self):
        """Return the simulator's Snowflake account, to read and to change."""
        return self.stand_ins.snow._simulation.account

    @property
    def cluster(self):
        return self.made["KafkaCluster"]["id"]

    @property
    def location(self):
        return {"environment_id": self.made["Environment"]["id"], "cluster_id": self.cluster}

    @property
    def aws_faults(self):
        return FaultClient(self.stand_ins.aws.url)

    def found(self, logical_id):
        """Return the object in Snowflake."""
        domain = Domain.INTEGRATION if logical_id == "Catalog" else Domain.VOLUME
        return self.account.find(domain, (self.made[logical_id]["name"],))

    def role(self, vendor):
        return f"{self.ctx.deployment.regional_prefix}-{vendor}"

    def arn(self, vendor):
        return f"arn:aws:iam::{self.ctx.account}:role/{self.role(vendor)}"

    def make(self, kind, logical_id, **properties):
        """Create the object, wait until it is ready, and return its outputs."""
        registered = registry.RESOURCE_TYPES[kind]
        vendor = self.ctx.confluent() if registered.vendor == registry.CONFLUENT else self.ctx.snowflake()
        part = "snowflake" if kind.startswith("snowflake_") else "confluent"
        spec = registered.handler.PROPERTIES(**properties)
        context = Context(
            vendor=vendor,
            name=Planter(self.ctx).name(kind, logical_id, **properties),
            secrets=self.ctx.secrets,
            clock=self.ctx.clock,
            notes={},
            resource_uid=request.compute_resource_uid(self.stack_ids.get(part, ""), logical_id),
        )
        made = registered.handler.create(context, spec)
        outputs = None
        while outputs is None:
            self.pass_time()
            outputs = registered.handler.is_ready(context, spec, made)
        self.made[logical_id], self.given[logical_id] = outputs, properties
        return outputs

    def pass_time(self):
        self.ctx.clock.sleep(_SECONDS)

    def resume(self):
        """Resume Tableflow's table and catalog integration after a failure; everything else recovers by
        itself.
        """
        plane = self.ctx.confluent().tableflow(self.ctx.secrets.read_key(self._secret("tableflow")))
        location = {
            "environment": {"id": self.location["environment_id"]},
            "kafka_cluster": {"id": self.cluster},
        }
        for path in (
            f"tableflow-topics/{TOPIC}",
            f"catalog-integrations/{self.made['CatalogIntegration']['id']}",
        ):
            plane.patch(f"/tableflow/v1/{path}", {"spec": {**location, "suspended": False}})
        self.ctx.clock.sleep(_COMMIT_SECONDS)

    def deploy(self):
        region = {"LocationConstraint": self.ctx.region}
        boto3.client("s3").create_bucket(Bucket=self.bucket, CreateBucketConfiguration=region)
        boto3.client("s3").create_bucket(Bucket=self.lake, CreateBucketConfiguration=region)
        outputs = {
            "TableflowBucketName": self.bucket,
            "LakeBucketName": self.lake,
            "AggregatesDatabase": AGGREGATES,
        }
        self._stack("data", {"Ledger": LEDGER}, outputs)
        self._streams()
        integration_properties = {
            "environment_id": self.location["environment_id"],
            "role_arn": self.arn("tableflow"),
        }
        outputs = {"EnvironmentId": self.location["environment_id"], "KafkaClusterId": self.cluster}
        self._stack(
            "confluent",
            {},
            outputs,
            [("provider_integration", "ProviderIntegration", integration_properties)],
        )
        self._into_aws(integration_properties)
        self._into_snowflake()
        return self

    def _stack(self, part, resources, outputs, objects=()):
        known = [str(self._identity(*found_object)) for found_object in objects]
        name = Stacks(self.ctx).make(part, resources, known=known, outputs=outputs)
        self.stack_ids[part] = boto3.client("cloudformation").describe_stacks(StackName=name)["Stacks"][0][
            "StackId"
        ]

    def _identity(self, kind, logical_id, properties):
        module = registry.RESOURCE_TYPES[kind].handler
        return Identity(kind, logical_id, request.compute_generation(module, module.PROPERTIES(**properties)))

    def _streams(self):
        """Create a topic with a schema, and the keys of its manager."""
        environment = self.make("environment", "Environment")["id"]
        self.make("kafka_cluster", "KafkaCluster", environment_id=environment, region=self.ctx.region)
        manager = self.make("service_account", "AppManagerAccount")["id"]
        registry_id = self.made["KafkaCluster"]["schema_registry_id"]
        subjects = {"environment_id": environment, "schema_registry_id": registry_id, "name": "*"}
        for role, scope, where in (
            ("CloudClusterAdmin", "cluster", self.location),
            ("DeveloperRead", "subject", subjects),
            ("DeveloperWrite", "subject", subjects),
        ):
            self.make(
                "role_binding", f"{role}{scope}", service_account_id=manager, role=role, scope=scope, **where
            )
        for service, where in (
            ("kafka", self.location),
            ("schema_registry", {"environment_id": environment}),
        ):
            self._key(service, manager, **where)
        self._key("tableflow", manager, **self.location, region=self.ctx.region)
        self.make(
            "topic", "Topic", topic=TOPIC, partitions=1, credentials=self._secret("kafka"), **self.location
        )
        self.make(
            "schema", "Schema", subject=f"{TOPIC}-value", schema=SCHEMA, environment_id=environment,
            credentials=self._secret("schema_registry"),
        )  # fmt: skip

    def _secret(self, service):
        return f"{self.ctx.deployment.prefix}/confluent/{service}"

    def _key(self, service, owner, **where):
        boto3.client("secretsmanager").create_secret(Name=self._secret(service))
        self.make(
            "api_key",
            f"{service}Key",
            service=service,
            secret=self._secret(service),
            service_account_id=owner,
            **where,
        )

    def _into_aws(self, integration_properties):
        integration = self.make("provider_integration", "ProviderIntegration", **integration_properties)["id"]
        manager = self.made["AppManagerAccount"]["id"]
        bound = {"environment_id": self.location["environment_id"], "name": integration}
        self.make(
            "role_binding",
            "Integrates",
            service_account_id=manager,
            role="ResourceOwner",
            scope="provider_integration",
            **bound,
        )
        self.write_role("tableflow")
        given = {
            **self.location,
            "credentials": self._secret("tableflow"),
            "provider_integration_id": integration,
        }
        self.make("catalog_integration", "CatalogIntegration", **given)
        self.make(
            "tableflow_topic",
            "StockTradesTable",
            **given,
            topic=TOPIC,
            bucket=self.bucket,
            await_catalog=True,
        )

    def _into_snowflake(self):
        volume = {"base_url": f"s3://{self.bucket}/", "role_arn": self.arn("snowflake")}
        catalog = {
            "role_arn": self.arn("snowflake"), "region": self.ctx.region, "account_id": self.ctx.account,
            "namespace": self.cluster, "refresh_seconds": 60,
        }  # fmt: skip
        warehouse = {**volume, "base_url": f"s3://{self.lake}/warehouse/"}
        objects = [
            ("snowflake_external_volume", "AggregatesVolume", warehouse),
            ("snowflake_external_volume", "Volume", volume),
            ("snowflake_catalog_integration", "Catalog", catalog),
        ]
        self._stack("snowflake", {}, {"SchemaName": "LAKE.RAW"}, objects)
        self.make("snowflake_database", "Database", name="LAKE")
        self.make("snowflake_schema", "Schema", database="LAKE", name="RAW")
        for found_object in objects:
            self.make(*found_object[:2], **found_object[2])
        self.write_role("snowflake")
        both = {"volume": self.made["Volume"]["name"], "integration": self.made["Catalog"]["name"]}
        self.make("snowflake_trust", "Trust", **both, namespace=self.cluster)
        self.make(
            "snowflake_iceberg_table",
            "Table",
            database="LAKE",
            schema="RAW",
            name="STOCK_TRADES",
            table=TOPIC,
            **both,
        )
        self._show_aggregates()

    def _show_aggregates(self):
        """Create a table of aggregates, as a job's run does, and show it. Its rows are those of the topic."""
        glue, s3 = boto3.client("glue"), boto3.client("s3")
        topic = glue.get_table(DatabaseName=self.cluster, Name=TOPIC)["Table"]["Parameters"]
        bucket, _, key = topic["metadata_location"].removeprefix("s3://").partition("/")
        metadata = s3.get_object(Bucket=bucket, Key=key)["Body"].read()
        own_key = f"warehouse/{AGGREGATES}/daily_trades/metadata/1.metadata.json"
        s3.put_object(Bucket=self.lake, Key=own_key, Body=metadata)
        glue.create_database(DatabaseInput={"Name": AGGREGATES})
        parameters = {**topic, "metadata_location": f"s3://{self.lake}/{own_key}"}
        glue.create_table(
            DatabaseName=AGGREGATES, TableInput={"Name": "daily_trades", "Parameters": parameters}
        )
        both = {"volume": self.made["AggregatesVolume"]["name"], "integration": self.made["Catalog"]["name"]}
        self.make("snowflake_trust", "AggregatesTrust", **both, namespace=AGGREGATES)
        self.make(
            "snowflake_iceberg_table",
            "Aggregates",
            database="LAKE",
            schema="RAW",
            name="DAILY_TRADES",
            table="daily_trades",
            namespace=AGGREGATES,
            **both,
        )

    def resource(self, kind, logical_id, **more):
        """Return the object as a custom resource of CloudFormation."""
        invocations = Invocations(
            lambda *_: self.ctx.confluent(), clock=self.ctx.clock, secrets=boto3.client("secretsmanager")
        )
        return Resource(invocations, kind, logical_id, **self.given[logical_id], **more)

    def trust(self, vendor, **instead):
        """Return the trust statements of a role as the stacks write them.

        `instead` has other principals and external ids.
        """
        if vendor == "tableflow":
            result = self.made["ProviderIntegration"]
            comers = [(result["confluent_role_arn"], result["external_id"])]
        else:
            comers = [
                (self.made[name]["iam_user_arn"], self.made[name]["external_id"])
                for name in ("Volume", "Catalog", "AggregatesVolume")
            ]
        statements = [
            {
                "Effect": "Allow",
                "Principal": {"AWS": instead.get("principal", principal)},
                "Action": "sts:AssumeRole",
                "Condition": {"StringEquals": {"sts:ExternalId": instead.get("external_id", external_id)}},
            }
            for principal, external_id in comers
        ]
        tags = {"Effect": "Allow", "Principal": {"AWS": comers[0][0]}, "Action": "sts:TagSession"}
        return [*statements, tags] if vendor == "tableflow" else statements

    def write_role(self, vendor):
        iam = boto3.client("iam")
        name = self.role(vendor)
        iam.create_role(RoleName=name, AssumeRolePolicyDocument=policy(*self.trust(vendor)))
        self.permit(vendor)

    def retrust(self, vendor, statements):
        boto3.client("iam").update_assume_role_policy(
            RoleName=self.role(vendor), PolicyDocument=policy(*statements)
        )

    def permit(self, vendor, *, without=(), more=()):
        """Give the role the permissions of the stacks, without some actions and with `more` statements."""
        needs = {"tableflow": contract.TABLEFLOW_NEEDS, "snowflake": contract.SNOWFLAKE_NEEDS}[vendor]
        bucket = f"arn:aws:s3:::{self.bucket}"
        glue = f"arn:aws:glue:{self.ctx.region}:{self.ctx.account}"
        resources_by_statement = {
            "bucket": [bucket],
            "objects": [f"{bucket}/*"],
            "tables": [
                f"{glue}:catalog",
                f"{glue}:database/{self.cluster}",
                f"{glue}:table/{self.cluster}/*",
            ],
        }
        allowed = [
            {
                "Effect": "Allow",
                "Action": [need for need in needs[on] if need not in without],
                "Resource": resources,
            }
            for on, resources in resources_by_statement.items()
        ]
        if vendor == "snowflake":
            lake = f"arn:aws:s3:::{self.lake}"
            read = [
                lake,
                f"{lake}/warehouse/*",
                f"{glue}:database/{AGGREGATES}",
                f"{glue}:table/{AGGREGATES}/*",
            ]
            actions = [action for actions in needs.values() for action in actions]
            allowed.append({"Effect": "Allow", "Action": actions, "Resource": read})
        document = policy(*allowed, *more)
        boto3.client("iam").put_role_policy(
            RoleName=self.role(vendor), PolicyName="own", PolicyDocument=document
        )

    def remove_role(self, vendor):
        boto3.client("iam").delete_role_policy(RoleName=self.role(vendor), PolicyName="own")
        boto3.client("iam").delete_role(RoleName=self.role(vendor))
