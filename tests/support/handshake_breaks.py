"""Ways to break a working handshake in IAM, in S3 and Glue, at Confluent and at Snowflake.

Each is undone at its end.
"""

from __future__ import annotations

import json
from contextlib import contextmanager

import attrs
import boto3

from lambdas.snowflake import sql
from tests.support.handshake_environment import TOPIC

FOREIGN = "arn:aws:iam::000000000000:user/vendor/somebody"
NOT_YOURS = "<ErrorResponse><Error><Code>AccessDenied</Code></Error></ErrorResponse>"
DENIED = {"Effect": "Deny", "Action": "s3:PutObject", "Resource": "*"}


@contextmanager
def overridden(thing, **values):
    """Change the simulator's object directly, to values that no API accepts, and restore it at the end."""
    before = {name: getattr(thing, name) for name in values}
    for name, value in values.items():
        setattr(thing, name, value)
    yield
    for name, value in before.items():
        setattr(thing, name, value)


@contextmanager
def trust(
    d, vendor, number=0, *, principal=None, external_id=None, without=None, denied=None, denied_when=None
):
    """Change one statement of a role's trust; `without` removes a condition or the statement, `denied` adds
    one for an action.
    """
    statements = d.trust(vendor)
    if principal:
        statements[number]["Principal"] = {"AWS": principal}
    if external_id:
        statements[number]["Condition"]["StringEquals"]["sts:ExternalId"] = external_id
    if without == "condition":
        del statements[number]["Condition"]
    if without == "statement":
        del statements[number]
    if denied:
        condition = {"Condition": denied_when} if denied_when else {}
        statements.append({"Effect": "Deny", "Principal": {"AWS": "*"}, "Action": denied} | condition)
    d.retrust(vendor, statements)
    yield
    d.retrust(vendor, d.trust(vendor))


@contextmanager
def no_role(d, vendor):
    d.remove_role(vendor)
    yield
    d.write_role(vendor)


@contextmanager
def policy_of(d, vendor, **changed):
    d.permit(vendor, **changed)
    yield
    d.permit(vendor)


def lacks(vendor, action):
    return lambda d: policy_of(d, vendor, without=[action])


def lake_is_closed(d):
    """Deny Snowflake's role the files of aggregates, in the bucket of the exports."""
    files = f"arn:aws:s3:::{d.lake}/warehouse/*"
    return policy_of(d, "snowflake", more=[{"Effect": "Deny", "Action": "s3:GetObject", "Resource": [files]}])


@contextmanager
def file_of_a_stranger(d):
    boto3.client("s3").put_object(Bucket=d.bucket, Key="reports/2026.csv", Body=b"x")
    yield
    boto3.client("s3").delete_object(Bucket=d.bucket, Key="reports/2026.csv")


@contextmanager
def aws_says(d, **rule):
    d.aws_faults.rule({"fault": "error", "times": 0, **rule})
    yield
    d.aws_faults.clear()


def bucket_says(d, **rule):
    return aws_says(d, path=f"/{d.bucket}", **rule)


@contextmanager
def bucket_policy(d, vendor):
    refused = {
        "Effect": "Deny",
        "Principal": {"AWS": d.arn(vendor)},
        "Action": "s3:*",
        "Resource": f"arn:aws:s3:::{d.bucket}*",
    }
    document = json.dumps({"Version": "2012-10-17", "Statement": [refused]})
    boto3.client("s3").put_bucket_policy(Bucket=d.bucket, Policy=document)
    yield
    boto3.client("s3").delete_bucket_policy(Bucket=d.bucket)


@contextmanager
def table_dropped(d):
    boto3.client("glue").delete_table(DatabaseName=d.cluster, Name=TOPIC)
    yield


@contextmanager
def table_elsewhere(d):
    given = {
        "Name": TOPIC,
        "Parameters": {"table_type": "ICEBERG", "metadata_location": "s3://elsewhere/metadata/1.json"},
    }
    boto3.client("glue").update_table(DatabaseName=d.cluster, TableInput=given)
    yield


@contextmanager
def secret_holds(d, name, **fields):
    client = boto3.client("secretsmanager")
    before = client.get_secret_value(SecretId=name)["SecretString"]
    client.put_secret_value(SecretId=name, SecretString=json.dumps({**json.loads(before), **fields}))
    yield
    client.put_secret_value(SecretId=name, SecretString=before)


def tableflow_key(d, **fields):
    return secret_holds(d, f"{d.ctx.deployment.prefix}/confluent/tableflow", **fields)


def a_cloud_key(d):
    """Store a Cloud key as Tableflow's, a mistake that Confluent's console makes easy."""
    key = d.stand_ins.cloud.credentials
    return tableflow_key(d, apiKey=key["cloud_api_key"], apiSecret=key["cloud_api_secret"])


def integration(d, **values):
    return overridden(d.organization.provider_integrations[d.made["ProviderIntegration"]["id"]], **values)


def catalog(d, **values):
    return overridden(d.organization.catalog_integrations[d.made["CatalogIntegration"]["id"]], **values)


@contextmanager
def catalog_gone(d):
    held = d.organization.catalog_integrations.pop(d.made["CatalogIntegration"]["id"])
    yield
    d.organization.catalog_integrations[held.id] = held


def topic(d, **values):
    return overridden(d.organization.tableflow_topics[d.cluster, TOPIC], **values)


@contextmanager
def topic_off(d):
    held = d.organization.tableflow_topics.pop((d.cluster, TOPIC))
    yield
    d.organization.tableflow_topics[held.key] = held


@contextmanager
def volume(d, logical_id="Volume", **values):
    """Replace a volume's location."""
    found = d.found(logical_id)
    before = found.locations
    found.locations = [attrs.evolve(before[0], **values)]
    yield
    found.locations = before


def snowflakes_catalog(d, **values):
    return overridden(d.found("Catalog"), **values)


@contextmanager
def snowflakes_object_gone(d, logical_id):
    held = d.found(logical_id)
    del d.account._objects[held.key]
    yield
    d.account.add(held)


@contextmanager
def frozen(d):
    run(d, "ALTER ICEBERG TABLE LAKE.RAW.STOCK_TRADES SET AUTO_REFRESH=FALSE")
    yield
    run(d, "ALTER ICEBERG TABLE LAKE.RAW.STOCK_TRADES SET AUTO_REFRESH=TRUE")


def run(d, text):
    return d.ctx.snowflake().run(sql.statement(text))
