"""A daily file of a topic that another team's cluster has. docs/how-to/use-the-constructs.md deploys it."""

from __future__ import annotations

import os
from pathlib import Path

import aws_cdk as cdk
from aws_cdk import aws_s3 as s3
from aws_cdk import aws_sns as sns
from constructs import Construct

from stacks import constructs as lakeferry


class TradesStack(cdk.Stack):
    """The context of the CDK (`-c`) names what exists: cluster, buckets, topic of alarms, Cloud API key."""

    def __init__(self, scope: Construct, id: str, *, env: cdk.Environment) -> None:
        super().__init__(scope, id, env=env)
        from_context = self.node.get_context
        alarms = sns.Topic.from_topic_arn(self, "Alarms", from_context("alarms"))
        tables = s3.Bucket.from_bucket_name(self, "Tables", from_context("tables"))
        files = s3.Bucket.from_bucket_name(self, "Files", from_context("files"))
        runtime = lakeferry.Runtime(project="trades", stage="prod", alarm_topic_arn=alarms.topic_arn)

        provider = lakeferry.ConfluentProvider(
            self, "Confluent", runtime=runtime, cloud_key_secret=from_context("cloud_key_secret")
        )
        environment = lakeferry.Environment.from_id(
            self, "Environment", provider=provider, environment_id=from_context("environment")
        )
        cluster = lakeferry.KafkaCluster.from_id(
            self, "Cluster", environment=environment, cluster_id=from_context("cluster")
        )
        account = lakeferry.ServiceAccount(self, "Account", cluster=cluster, description="Table of trades")
        topic = lakeferry.Topic.from_name(self, "Topic", cluster=cluster, name="Sales.Trades", owner=account)
        storage = lakeferry.TableStorage.of_account(
            self,
            "Storage",
            account=account,
            bucket=tables,
            glue_database=from_context("cluster"),  # the cluster's owner shows its tables in Glue already
            drop_tables_on_destroy=True,
        )
        table = topic.tableflow(storage)
        for key in account.keys:
            key.rotate(every=cdk.Duration.days(30))

        exports = lakeferry.ExportBucket(self, "Exports", runtime=runtime, bucket=files, alarms=alarms)
        contract = Path(__file__).with_name("hourly_trades.toml")
        schema = Path(__file__).with_name("trades.avsc")
        lakeferry.Export(
            self, "Trades", to=exports, table=table, contract=contract, schema=schema, cron="0 6,18 * * ? *"
        )


if __name__ == "__main__":
    app = cdk.App()
    account = os.environ["CDK_DEFAULT_ACCOUNT"]
    TradesStack(app, "Trades", env=cdk.Environment(account=account, region=os.environ["CDK_DEFAULT_REGION"]))
    app.synth()
