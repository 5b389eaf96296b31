"""Data when its deployment is destroyed: prod keeps it, dev deletes it.

Both do so in an embedded AWS that enforces IAM.
"""

from __future__ import annotations

import base64
import json

import attrs
import pytest

from glue_jobs.pseudonyms import fetch_key
from glue_jobs.store import Services
from lambdas.custom_resources.cleanup import Cleaner
from lambdas.shared.clock import Deadline
from tests.support import assembly_kit
from tests.support.policies import ACCOUNT, Reader
from tests.support.resource_environment import ManualClock
from tests.support.waiting import until

#: As CloudFormation names a secret.
KEPT = "SecretsPseudonymKey9A190727-AbCdEf123456"
KEY = bytes(range(32))


@pytest.fixture(scope="module")
def inheriting(prod, tmp_path_factory):
    """Return prod with the pseudonymisation key that an earlier deployment kept."""
    deployment = prod.plan.deployment
    aws = attrs.evolve(deployment.aws, pseudonym_secret=KEPT)
    plan = attrs.evolve(prod.plan, deployment=attrs.evolve(deployment, aws=aws))
    return assembly_kit.synthesise(plan, tmp_path_factory.mktemp("inheriting"))


def assuming(aws, assembly, *sids, **generated):
    """Return clients of a role with the statements of these ids, which one role of the assembly has.

    `generated` are ids that the stacks generate, by logical id.
    """
    grants = [grant for grant in Reader(assembly).grants() if grant.sid in sids]
    (role,) = set.intersection(*({grant.role for grant in grants if grant.sid == sid} for sid in sids))
    known = {assembly.plan.deployment.aws.region: aws.server.region, ACCOUNT: aws.server.account}
    known |= {f"<confluent.{logical_id}.id>": value for logical_id, value in generated.items()}
    statements = []
    for grant in grants:
        if grant.role != role:
            continue
        resources = grant.resources
        for name, value in known.items():
            resources = [resource.replace(name, value) for resource in resources]
        statements.append((grant.actions, resources))
    return aws.assuming(aws.new_role(*statements))


def grants_of_job(assembly):
    return [grant for grant in Reader(assembly).grants() if grant.role.startswith("exports.JobsRole")]


def test_a_job_reads_the_key_that_an_earlier_deployment_kept(inheriting, aws):
    aws.secrets.create_secret(Name=KEPT, SecretString=json.dumps({"key": base64.b64encode(KEY).decode()}))
    job = assuming(aws, inheriting, "ReadKey")
    services = Services(job.s3, job.glue, job.secrets)
    arguments = [body["DefaultArguments"] for body in inheriting.resources("AWS::Glue::Job").values()]
    named = [argument["--pseudonym-secret"] for argument in arguments if "--pseudonym-secret" in argument]
    assert {fetch_key(services, Reader(inheriting).text(name, "exports")).value for name in named} == {KEY}


def test_a_job_decrypts_the_kept_secret_and_nothing_else(inheriting):
    """The KMS key is not known: an earlier deployment created it. Secrets Manager names the secret to KMS."""
    region = inheriting.plan.deployment.aws.region
    key, secret = (
        f"arn:aws:{part}"
        for part in (f"kms:{region}:{ACCOUNT}:key/1", f"secretsmanager:{region}:{ACCOUNT}:secret:")
    )
    asked = {
        "kms:ViaService": f"secretsmanager.{region}.amazonaws.com",
        "kms:EncryptionContext:SecretARN": f"{secret}{KEPT}-AbCdEf",
    }

    def may_decrypt(key=key, **context):
        return any(grant.allows("kms:Decrypt", key, context) for grant in grants_of_job(inheriting))

    assert may_decrypt(**asked)
    for part in (f"{secret}another-AbCdEf", f"{secret}{KEPT}-two-AbCdEf", f"{secret}{KEPT}-two"):
        assert not may_decrypt(**asked | {"kms:EncryptionContext:SecretARN": part})
    assert not may_decrypt(**asked | {"kms:ViaService": f"s3.{region}.amazonaws.com"})
    assert not may_decrypt(**{name: asked[name] for name in asked if name != "kms:ViaService"})
    assert not may_decrypt(**{"kms:ViaService": asked["kms:ViaService"]})
    assert not may_decrypt(key.replace(ACCOUNT, "999999999999"), **asked)


class DataStack:
    """The data stack of an assembly in an embedded AWS."""

    def __init__(self, assembly, aws):
        template = assembly.templates["data"]
        self.name = f"{assembly.prefix}-data"
        self._resources = template["Resources"]
        self._outputs = template["Outputs"]
        self._client = aws.client("cloudformation")

    def create(self, **more):
        """Return the stack's status once it is settled.

        `more` are resources that are created after all others.
        """
        template = {"Resources": self._resources | more, "Outputs": self._outputs}
        self._id = self._client.create_stack(StackName=self.name, TemplateBody=json.dumps(template))[
            "StackId"
        ]
        return self._settled()

    def delete(self):
        self._client.delete_stack(StackName=self._id)
        return self._settled()

    @property
    def outputs(self):
        (stack,) = self._client.describe_stacks(StackName=self._id)["Stacks"]
        return {output["OutputKey"]: output["OutputValue"] for output in stack["Outputs"]}

    def _settled(self):
        def status():
            (stack,) = self._client.describe_stacks(StackName=self._id)["Stacks"]
            return "" if stack["StackStatus"].endswith("_IN_PROGRESS") else stack["StackStatus"]

        return until(status, 60.0)


@pytest.fixture
def data(prod, aws):
    """Return prod's data stack, and remove what it keeps: the embedded AWS gives the secrets of two stacks
    the same name.
    """
    stack = DataStack(prod, aws)
    yield stack
    stack.delete()
    for name in databases(aws, prod):
        aws.glue.delete_database(Name=name)
    for name in secrets(aws, prod):
        aws.secrets.delete_secret(SecretId=name, ForceDeleteWithoutRecovery=True)


def databases(aws, assembly):
    beginning = assembly.prefix.replace("-", "_")
    return [
        listed_database["Name"]
        for listed_database in aws.glue.get_databases()["DatabaseList"]
        if listed_database["Name"].startswith(beginning)
    ]


def secrets(aws, assembly):
    return [
        item["Name"]
        for item in aws.secrets.list_secrets()["SecretList"]
        if assembly.prefix in item.get("Description", "")
    ]


def left(aws, assembly):
    """Return the data of the deployment that exists in the account."""
    buckets = [
        bucket["Name"]
        for bucket in aws.s3.list_buckets()["Buckets"]
        if bucket["Name"].startswith(assembly.prefix)
    ]
    return [*databases(aws, assembly), *buckets, *secrets(aws, assembly)]


def test_a_deployment_that_kept_its_data_can_be_created_again(data, aws, prod):
    """The new one begins with a bucket and a database of its own: it may not read the tables in the bucket
    that was kept.
    """
    assert data.create() == "CREATE_COMPLETE"
    first = data.outputs
    aws.glue.create_table(DatabaseName=first["AggregatesDatabase"], TableInput={"Name": "weekly_sales"})
    assert data.delete() == "DELETE_COMPLETE"
    kept = left(aws, prod)
    assert {first["AggregatesDatabase"], first["LakeBucketName"]} <= set(kept)
    assert data.create() == "CREATE_COMPLETE"
    second = data.outputs
    assert second["LakeBucketName"] != first["LakeBucketName"]
    assert aws.glue.get_tables(DatabaseName=second["AggregatesDatabase"])["TableList"] == []
    location = aws.glue.get_database(Name=second["AggregatesDatabase"])["Database"]["LocationUri"]
    assert location == f"s3://{second['LakeBucketName']}/warehouse/{second['AggregatesDatabase']}"
    assert set(kept) < set(left(aws, prod))


def test_a_first_deployment_that_fails_leaves_no_data_and_can_be_tried_again(data, aws, prod):
    before = left(aws, prod)
    broken = {
        "Type": "AWS::Athena::WorkGroup",
        "Properties": {"Name": prod.prefix},
        "DependsOn": sorted(prod.templates["data"]["Resources"]),
    }
    assert data.create(Broken=broken) == "ROLLBACK_COMPLETE"
    assert left(aws, prod) == before
    assert data.delete() == "DELETE_COMPLETE"
    assert data.create() == "CREATE_COMPLETE"


def test_a_workgroup_in_which_somebody_has_queried_is_deleted(data, aws, prod):
    """It is no data: the results are in the bucket, which stays."""
    assert data.create() == "CREATE_COMPLETE"
    aws.client("athena").start_query_execution(QueryString="SELECT 1", WorkGroup=prod.prefix)
    assert data.delete() == "DELETE_COMPLETE"


def test_the_function_that_deletes_tableflows_database_has_the_permissions(dev, aws):
    """Glue asks for permission on everything in a database that is deleted."""
    database = aws.new_database()
    aws.glue.create_table(
        DatabaseName=database,
        TableInput={"Name": "stock_trades", "StorageDescriptor": {"Location": "s3://b/0"}},
    )
    function = assuming(aws, dev, "DropTables", "ReadLakeFormation", KafkaCluster=database)
    clock = ManualClock()
    cleaner = Cleaner(function.client, aws.server.account, Deadline(clock, clock.time() + 90))
    assert cleaner.remove({"glue_database": database, "table_bucket": "b"})
    assert database not in [
        listed_database["Name"] for listed_database in aws.glue.get_databases()["DatabaseList"]
    ]
