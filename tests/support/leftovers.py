"""Objects that aborted stacks leave behind, planted in each system."""

from __future__ import annotations

import json

import boto3

from lakeferry.inventory import CONFLUENT, SNOWFLAKE

QUEUE = {"Type": "AWS::SQS::Queue"}
LEDGER = {
    "Type": "AWS::DynamoDB::Table",
    "Properties": {
        "AttributeDefinitions": [{"AttributeName": "id", "AttributeType": "S"}],
        "KeySchema": [{"AttributeName": "id", "KeyType": "HASH"}],
        "BillingMode": "PAY_PER_REQUEST",
    },
}
#: The suffix that CloudFormation gives to names.
SUFFIX = "1A2B3C4D5E6F7"


def tagged(ctx):
    return [{"Key": "project", "Value": ctx.deployment.identity.name}, {"Key": "stage", "Value": "test"}]


def plant_in_aws(ctx):
    """Create left-overs of deleted stacks, with names like CloudFormation's. Return (kind, name) of each."""
    prefix = ctx.deployment.prefix
    regional = ctx.deployment.regional_prefix
    bucket = f"{prefix}-data-tableflowbucketa0b5d15a-febe63996abfb"
    boto3.client("s3").create_bucket(
        Bucket=bucket, CreateBucketConfiguration={"LocationConstraint": ctx.region}
    )
    boto3.client("s3").put_object(Bucket=bucket, Key="0/metadata.json", Body=b"{}")
    glue = boto3.client("glue")
    database = f"lkc-{prefix.replace('-', '')}"
    glue.create_database(DatabaseInput={"Name": database})
    table = {"Name": "stock_trades", "StorageDescriptor": {"Location": f"s3://{bucket}/0/"}}
    glue.create_table(DatabaseName=database, TableInput=table)
    queue = f"{prefix}-exports-DeadLetters0A1B2C3D-{SUFFIX}"
    topic = f"{prefix}-exports-AlarmTopicD01E77F9-{SUFFIX}"
    boto3.client("sqs").create_queue(QueueName=queue)
    boto3.client("sns").create_topic(Name=topic)
    group = f"/aws/lambda/{prefix}-data-CleanupFunction0A1B2C3D-{SUFFIX}"
    boto3.client("logs").create_log_group(logGroupName=group)
    secret = f"{prefix}/confluent/flink"
    made = boto3.client("secretsmanager").create_secret(
        Name=secret, Description="API key of flink_runner for flink", SecretString="{}"
    )
    boto3.client("secretsmanager").delete_secret(SecretId=made["ARN"])
    role = f"{regional}-tableflow"
    boto3.client("iam").create_role(
        RoleName=role,
        AssumeRolePolicyDocument=json.dumps({"Version": "2012-10-17", "Statement": []}),
        Description="Confluent's Tableflow writes tables and shows them in Glue",
    )
    rule = f"{prefix}-exports-SuccessRule0A1B2C3D-{SUFFIX}"
    boto3.client("events").put_rule(Name=rule, EventPattern='{"source": ["aws.glue"]}')
    boto3.client("scheduler").create_schedule_group(Name=prefix, Tags=tagged(ctx))
    boto3.client("athena").create_work_group(Name=prefix, Description=f"Queries on the tables of {prefix}")
    boto3.client("athena").create_named_query(
        Name=f"{prefix} stock_trades: how many rows",
        Database=database,
        QueryString="SELECT 1",
        WorkGroup=prefix,
    )
    boto3.client("cloudwatch").put_metric_alarm(
        AlarmName=f"{prefix}-KeyAgeDays",
        AlarmDescription=f"KeyAgeDays of {prefix} is above 45, or the watch says nothing",
        Namespace="Lakeferry", MetricName="KeyAgeDays", Statistic="Maximum", Period=60, EvaluationPeriods=1,
        Threshold=1, ComparisonOperator="GreaterThanThreshold",
    )  # fmt: skip
    body = json.dumps({"widgets": [{"type": "text", "properties": {"markdown": prefix}}]})
    boto3.client("cloudwatch").put_dashboard(DashboardName=regional, DashboardBody=body)
    return {
        ("bucket", bucket), ("glue_database", database), ("glue_table", "stock_trades"), ("queue", queue),
        ("topic", topic), ("log_group", group), ("secret", secret), ("role", role), ("event_rule", rule),
        ("schedule_group", prefix), ("athena_workgroup", prefix), ("alarm", f"{prefix}-KeyAgeDays"),
        ("dashboard", regional), ("athena_named_query", f"{prefix} stock_trades: how many rows"),
    }  # fmt: skip


def plant_at_vendors(plant):
    """Create objects that belong to no stack. Return (system, kind, name or id) of each."""
    environment = plant.make("environment", "Environment")
    cluster = plant.make("kafka_cluster", "KafkaCluster", environment_id=environment, region="eu-west-1")
    account = plant.make("service_account", "AppManagerAccount")
    binding = plant.make(
        "role_binding", "Bound", service_account_id=account, role="CloudClusterAdmin", scope="cluster",
        environment_id=environment, cluster_id=cluster,
    )  # fmt: skip
    boto3.client("secretsmanager").create_secret(
        Name=f"{plant.ctx.deployment.prefix}/planted", SecretString="{}"
    )
    secret = f"{plant.ctx.deployment.prefix}/planted"
    key = plant.make("api_key", "WatcherKey", service_account_id=account, service="cloud", secret=secret)
    pool = plant.make(
        "flink_compute_pool", "FlinkPool", environment_id=environment, region="eu-west-1", max_cfu=5
    )
    role_arn = f"arn:aws:iam::{plant.ctx.account}:role/{plant.ctx.deployment.regional_prefix}"
    integration = plant.make(
        "provider_integration",
        "ProviderIntegration",
        environment_id=environment,
        role_arn=f"{role_arn}-tableflow",
    )
    database = plant.make("snowflake_database", "Database")
    schema = plant.make("snowflake_schema", "Schema", database=database)
    volume = plant.make(
        "snowflake_external_volume", "Volume", base_url="s3://lake/", role_arn=f"{role_arn}-snowflake"
    )
    return {
        (CONFLUENT, "environment", environment), (CONFLUENT, "kafka_cluster", cluster),
        (CONFLUENT, "service_account", account), (CONFLUENT, "role_binding", binding),
        (CONFLUENT, "api_key", key), (CONFLUENT, "flink_compute_pool", pool),
        (CONFLUENT, "provider_integration", integration), (SNOWFLAKE, "snowflake_database", database),
        (SNOWFLAKE, "snowflake_schema", schema.rpartition(".")[2]),
        (SNOWFLAKE, "snowflake_external_volume", volume),
        (SNOWFLAKE, "snowflake_warehouse", plant.make("snowflake_warehouse", "Warehouse")),
        (SNOWFLAKE, "snowflake_role", plant.make("snowflake_role", "ReaderRole")),
    }  # fmt: skip
