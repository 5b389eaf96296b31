"""A daily file of a topic that another team's cluster has. docs/how-to/use-the-constructs.md deploys it."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

from aws_cdk import App, Duration, Environment, Stack
from aws_cdk import aws_s3 as s3
from aws_cdk import aws_sns as sns

from stacks import constructs as lakeferry

GIVEN: Final = ("cloud_key_secret", "environment", "cluster", "tables", "files", "alarms")
SERVICES: Final = ("kafka", "schema_registry", "tableflow")

app = App()
given = {name: app.node.get_context(name) for name in GIVEN}
place = Environment(account=os.environ["CDK_DEFAULT_ACCOUNT"], region=os.environ["CDK_DEFAULT_REGION"])
stack = Stack(app, "Trades", env=place)
tables = s3.Bucket.from_bucket_name(stack, "TablesBucket", given["tables"])
files = s3.Bucket.from_bucket_name(stack, "FilesBucket", given["files"])
alarms = sns.Topic.from_topic_arn(stack, "Alarms", given["alarms"])

runtime = lakeferry.Runtime(project="trades", stage="prod", alarm_topic_arn=alarms.topic_arn)
confluent = lakeferry.ConfluentProvider(
    stack, "Confluent", runtime=runtime, cloud_key_secret=given["cloud_key_secret"]
)
environment = lakeferry.Environment.from_id(
    stack, "Environment", provider=confluent, environment_id=given["environment"]
)
cluster = lakeferry.KafkaCluster.from_id(
    stack, "Cluster", environment=environment, cluster_id=given["cluster"]
)
account = lakeferry.ServiceAccount(stack, "Account", cluster=cluster, description="Table of trades")
topic = lakeferry.Topic.from_name(stack, "Topic", cluster=cluster, name="Sales.Trades", owner=account)
storage = lakeferry.TableStorage.of_account(
    stack,
    "Storage",
    account=account,
    bucket=tables,
    glue_database=given["cluster"],  # the cluster's owner shows its tables in Glue already
    drop_tables_on_destroy=True,
)
table = topic.tableflow(storage)
for service in SERVICES:
    account.key(service).rotate(every=Duration.days(30))

exports = lakeferry.ExportBucket(stack, "Exports", runtime=runtime, bucket=files, alarms=alarms)
contract = Path(__file__).with_name("hourly_trades.toml")
lakeferry.Export(
    stack, "Trades", to=exports, table=table, contract=contract, cron="0 6 * * ? *", zone="America/New_York"
)
app.synth()
