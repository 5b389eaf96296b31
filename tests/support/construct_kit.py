"""What an app gives to the construct library, for tests of single constructs."""

from __future__ import annotations

from aws_cdk import Environment
from aws_cdk import aws_s3 as s3
from aws_cdk import aws_sns as sns
from aws_cdk.assertions import Template

from stacks import constructs as lakeferry
from stacks.constructs.table import TablesInGlue
from tests.support.assembly_kit import ROOT
from tests.support.policies import ACCOUNT

CONTRACT = ROOT / "examples" / "hourly_trades.toml"
SCHEMA = ROOT / "examples" / "trades.avsc"
ALARMS = f"arn:aws:sns:eu-west-1:{ACCOUNT}:acme-alarms"
PLACE = Environment(account=ACCOUNT, region="eu-west-1")
TABLES = TablesInGlue("lkc-abc123", "arn:aws:s3:::acme-tables")


def describe_runtime(**more):
    return lakeferry.Runtime(**{"project": "acme", "stage": "prod", "alarm_topic_arn": ALARMS, **more})


def describe_table(topic="Sales.Trades", **more):
    given = {"location": TABLES, "path": "acme-tables/data/1", **more}
    return lakeferry.Table(topic, topic.lower(), **given)


def open_cluster(stack, runtime, id="", cluster_id="lkc-abc123", **more):
    given = {"runtime": runtime, "cloud_key_secret": "acme/key", **more}
    provider = lakeferry.ConfluentProvider(stack, f"{id}Confluent", **given)
    environment = lakeferry.Environment.from_id(
        stack, f"{id}Environment", provider=provider, environment_id="env-abc123"
    )
    return lakeferry.KafkaCluster.from_id(
        stack, f"{id}Cluster", environment=environment, cluster_id=cluster_id
    )


def open_account(scope, cluster, id="Account"):
    return lakeferry.ServiceAccount(scope, id, cluster=cluster, description="tries")


def open_storage(scope, account, id="Storage", **more):
    bucket = s3.Bucket.from_bucket_name(scope, f"{id}Bucket", "acme-tables")
    given = {"bucket": bucket, "glue_database": "lkc-abc123", **more}
    return lakeferry.TableStorage.of_account(scope, id, account=account, **given)


def open_bucket(stack, runtime, id="Exports", **more):
    given = {
        "bucket": s3.Bucket.from_bucket_name(stack, f"{id}Files", "acme-files"),
        "alarms": sns.Topic.from_topic_arn(stack, f"{id}Topic", ALARMS),
        **more,
    }
    return lakeferry.ExportBucket(stack, id, runtime=runtime, **given)


def export(to, table, id="Sales", scope=None, **more):
    given = {"contract": CONTRACT, "schema": SCHEMA, "cron": "0 6,18 * * ? *", **more}
    return lakeferry.Export(scope or to.node.scope, id, to=to, table=table, **given)


def write_contract(folder, name, changes=None):
    """Write the example's contract under another name. `changes` has new texts by old ones."""
    text = CONTRACT.read_text().replace('name = "hourly_trades"', f'name = "{name}"')
    for old, new in (changes or {}).items():
        assert old in text
        text = text.replace(old, new)
    file = folder / f"{name}.toml"
    file.write_text(text)
    return file


def resources(template, kind):
    return {id: body["Properties"] for id, body in template["Resources"].items() if body["Type"] == kind}


def list_statements(template, role):
    """Return the statements of a role by their id. `role` is the beginning of its logical id."""
    (properties,) = [
        body for id, body in resources(template, "AWS::IAM::Role").items() if id.startswith(role)
    ]
    documents = [policy["PolicyDocument"] for policy in properties["Policies"]]
    return {statement["Sid"]: statement for document in documents for statement in document["Statement"]}


def render(stack):
    return Template.from_stack(stack).to_json()
