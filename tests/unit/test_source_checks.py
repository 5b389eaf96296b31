"""`lakeferry doctor` over tables that exist: what stops the exports is named before anything is deployed."""

from __future__ import annotations

import itertools
import json

import attrs
import boto3
import pytest
from botocore.exceptions import ClientError

from lakeferry.deployment.context import DeploymentContext
from lakeferry.errors import CommandFailed
from lakeferry.health import doctor, source
from lakeferry.health.model import Result
from lakeferry.topics import schemas, tables
from lakeferry.topics.tables import GlueTable
from tests.support import shipped

_numbers = itertools.count(1)
KEY = "arn:aws:kms:us-west-2:000000000000:key/12345678-0000-0000-0000-000000000000"


@attrs.frozen
class Team:
    """A team with a bucket and a Glue database, and the deployment that reads them."""

    bucket: str
    database: str
    region: str

    def create_bucket(self, region=None):
        client = boto3.client("s3", region_name=region or self.region)
        client.create_bucket(
            Bucket=self.bucket, CreateBucketConfiguration={"LocationConstraint": region or self.region}
        )

    def create_table(self, name, *, bucket=None, kind="ICEBERG"):
        glue = boto3.client("glue")
        if self.database not in {row["Name"] for row in glue.get_databases()["DatabaseList"]}:
            glue.create_database(DatabaseInput={"Name": self.database})
        location = f"s3://{bucket or self.bucket}/1/v1/{name}/metadata/1.metadata.json"
        parameters = {"table_type": kind, "metadata_location": location}
        glue.create_table(DatabaseName=self.database, TableInput={"Name": name, "Parameters": parameters})

    def write_metadata(self, *names, **options):
        for name in names:
            boto3.client("s3").put_object(
                Bucket=self.bucket, Key=f"1/v1/{name}/metadata/1.metadata.json", Body=b"{}", **options
            )

    def create_all(self):
        self.create_bucket()
        for name in ("sales_orders", "stock_trades"):
            self.create_table(name)
        self.write_metadata("sales_orders", "stock_trades")

    def ctx(self, **changed):
        loaded = shipped.load_existing()
        named = {"glue_database": self.database, "tableflow_bucket": self.bucket, "kms_key": None, **changed}
        deployment = attrs.evolve(loaded.deployment, source=attrs.evolve(loaded.deployment.source, **named))
        return DeploymentContext(attrs.evolve(loaded, deployment=deployment))

    def look(self, **changed):
        """Return (result, message, fix) of each check by its name."""
        checks = source.look(self.ctx(**changed))
        return {check.name: (check.result, check.message, check.fix) for check in checks}

    def list_failed(self, **changed):
        """Return (name, message, fix, what is needed) of each check that failed."""
        return [
            (check.name, check.message, check.fix, check.needed)
            for check in source.look(self.ctx(**changed))
            if check.result is Result.FAIL
        ]


@pytest.fixture
def team(lake_aws):
    number = next(_numbers)
    return Team(f"source-{number}", f"lkc-source{number}", lake_aws.region)


def failed(checks):
    return {name: (message, fix) for name, (result, message, fix) in checks.items() if result is Result.FAIL}


def test_what_exists_is_named_and_passes(team):
    team.create_all()
    found = [(check.group, check.name, check.result, check.message) for check in source.look(team.ctx())]
    assert found == [
        ("storage", name, Result.OK, message)
        for name, message in {
            "source bucket": f"{team.bucket} in {team.region}; it is only read",
            "source database": f"{team.database} with 2 Iceberg tables; it is only read",
            "Glue table sales_orders": f"{team.database}.sales_orders",
            "Glue table stock_trades": f"{team.database}.stock_trades",
        }.items()
    ]


def test_a_deployment_that_creates_its_tables_has_no_source_to_check():
    assert source.look(DeploymentContext(shipped.load("dev"))) == []


def test_a_missing_bucket(team):
    team.create_table("sales_orders")
    assert team.list_failed()[0] == (
        "source bucket",
        f"there is no bucket {team.bucket}",
        "Correct `source.tableflow_bucket` in the deployment file: the location of each table has the name",
        "",
    )


def test_a_bucket_in_another_region(team):
    team.create_bucket("us-west-2")
    assert team.list_failed()[0] == (
        "source bucket",
        f"{team.bucket} is in us-west-2",
        'Set `aws.region = "us-west-2"` in the deployment file: Glue, the tables and the exports are in one '
        "region",
        team.region,
    )
    assert "source bucket's KMS key" not in team.look(kms_key=KEY), "its key is not the one of this region"


def test_a_bucket_that_the_login_may_not_see_does_not_stop_a_deployment():
    """The job's role may see it."""
    forbidden = ClientError({"Error": {"Code": "403", "Message": "Forbidden"}}, "HeadBucket")
    check = source._explain_unseen_bucket("acme-tableflow", forbidden)
    assert (check.name, check.result, check.is_seen) == ("source bucket", Result.WARN, False)
    assert (check.message, check.fix) == (
        "acme-tableflow can't be checked: it belongs to another account, or you may not see it",
        "Check as somebody who may. If it is another account's, its policy must let this account read it",
    )


def test_a_bucket_for_which_s3_has_no_answer_is_a_failure():
    broken = ClientError({"Error": {"Code": "500", "Message": "Internal"}}, "HeadBucket")
    check = source._explain_unseen_bucket("acme-tableflow", broken)
    assert (check.name, check.result, check.is_seen) == ("source bucket", Result.FAIL, False)


def test_a_missing_database(team):
    team.create_bucket()
    checks = team.look()
    message, fix = failed(checks)["source database"]
    assert message == f"NO-DATABASE: there is no Glue database {team.database} in {team.region}"
    assert "lkc-…" in fix
    assert list(checks) == ["source bucket", "source database"]


def test_a_database_without_iceberg_tables(team):
    team.create_bucket()
    team.create_table("sales_orders", kind="EXTERNAL_TABLE")
    assert team.list_failed() == [
        (
            "source database",
            f"Glue shows you no Iceberg tables in {team.database}",
            "Correct `source.glue_database` in the deployment file, or connect Tableflow's Glue integration: it "
            "creates the tables. If Lake Formation governs the database, ask for DESCRIBE on its tables",
            "",
        )
    ]


def test_a_topic_without_a_table(team):
    team.create_bucket()
    team.create_table("sales_orders")
    team.create_table("stock_trades", kind="EXTERNAL_TABLE")
    team.create_table("another")
    assert team.list_failed()[-1] == (
        "Glue table stock_trades",
        f"{team.database}.stock_trades is not an Iceberg table",
        "Correct the topic's name in the deployment file. Iceberg tables: another, sales_orders",
        "",
    )


def test_a_topic_that_nobody_writes(team):
    team.create_bucket()
    team.create_table("sales_orders")
    message, _ = failed(team.look())["Glue table stock_trades"]
    assert message == f"{team.database}.stock_trades does not exist"


def test_a_table_in_another_bucket(team):
    team.create_bucket()
    team.create_table("sales_orders", bucket="elsewhere")
    team.create_table("stock_trades")
    team.write_metadata("stock_trades")
    assert team.list_failed() == [
        (
            "Glue table sales_orders",
            f"{team.database}.sales_orders is in bucket elsewhere",
            "Set `source.tableflow_bucket` in the deployment file to that bucket. Tables of two buckets need two "
            "deployments",
            team.bucket,
        )
    ]


def test_tables_with_a_key_that_the_file_does_not_name(team):
    """The bucket's own encryption is that of new objects: the tables' files decide."""
    team.create_all()
    kms = boto3.client("kms")
    arn, another = (kms.create_key()["KeyMetadata"]["Arn"] for _ in range(2))
    team.write_metadata("stock_trades", ServerSideEncryption="aws:kms", SSEKMSKeyId=arn)
    file = f"s3://{team.bucket}/1/v1/stock_trades/metadata/1.metadata.json"
    for named in (None, another):
        assert team.list_failed(kms_key=named) == [
            (
                "Glue table stock_trades",
                f"{file} is encrypted with {arn}, and the exports may not use that",
                f'Set `source.kms_key = "{arn}"` in the deployment file',
                named or "",
            )
        ]
    checks = team.look(kms_key=arn)
    assert failed(checks) == {}
    assert checks["source bucket's KMS key"][1] == arn


def test_a_table_whose_metadata_is_gone(team):
    team.create_all()
    boto3.client("s3").delete_object(Bucket=team.bucket, Key="1/v1/stock_trades/metadata/1.metadata.json")
    assert team.list_failed() == [
        (
            "Glue table stock_trades",
            f"there is no s3://{team.bucket}/1/v1/stock_trades/metadata/1.metadata.json, to which Glue leads",
            "Look at the table in Tableflow: it was moved, or somebody deleted its files",
            "",
        )
    ]


def test_a_disabled_key(team):
    team.create_all()
    kms = boto3.client("kms")
    arn = kms.create_key()["KeyMetadata"]["Arn"]
    kms.disable_key(KeyId=arn)
    ((name, message, fix, needed),) = team.list_failed(kms_key=arn)
    assert (name, needed) == ("source bucket's KMS key", "Enabled")
    assert (f"{arn} is Disabled" in message, "enable-key" in fix) == (True, True)


def test_a_key_that_does_not_exist(team):
    team.create_all()
    arn = f"arn:aws:kms:{team.region}:000000000000:key/12345678-0000-0000-0000-000000000000"
    assert team.list_failed(kms_key=arn) == [
        (
            "source bucket's KMS key",
            f"there is no key {arn}",
            "Correct `source.kms_key` in the deployment file",
            "",
        )
    ]


ORDER_ID = {"id": 1, "name": "order_id", "type": "string", "required": True}
TOTAL = {"id": 2, "name": "total", "type": "decimal(12, 2)", "required": False}


@pytest.fixture
def imports(team, tmp_path):
    """Return a function that writes a table's metadata with these columns and imports the schema."""
    team.create_bucket()
    team.create_table("sales_orders")
    (tmp_path / "topics").mkdir()

    def import_schema(*columns, replace=False):
        metadata = {"current-schema-id": 7, "schemas": [{"schema-id": 7, "fields": list(columns)}]}
        boto3.client("s3").put_object(
            Bucket=team.bucket,
            Key="1/v1/sales_orders/metadata/1.metadata.json",
            Body=json.dumps(metadata).encode(),
        )
        ctx = team.ctx()
        sources = attrs.evolve(ctx.loaded.sources, root=tmp_path)
        ctx = DeploymentContext(attrs.evolve(ctx.loaded, sources=sources))
        topics = schemas.select_topics(ctx, ["sales_orders"])
        (imported,) = schemas.import_schemas(ctx, topics, replace=replace)
        file = str(tmp_path / "topics" / "sales_orders.avsc")
        of_table = ("sales_orders", file, len(columns), schemas.TABLE, "")
        assert (imported.topic, imported.file, imported.fields, imported.read_from, imported.why) == of_table
        return imported.state, imported.changes

    return import_schema


def test_a_schema_is_written_once(imports, tmp_path):
    assert imports(ORDER_ID) == ("written", ())
    file = tmp_path / "topics" / "sales_orders.avsc"
    file.write_text(file.read_text().replace('"unknown"', '"reviewed"'))
    assert imports(ORDER_ID) == ("unchanged", ())
    assert '"reviewed"' in file.read_text()
    assert file.read_text().startswith('{\n  "'), "people read and review the file"


def test_a_file_with_other_fields_is_kept(imports, tmp_path):
    imports(ORDER_ID)
    file = tmp_path / "topics" / "sales_orders.avsc"
    kept = file.read_text()
    assert imports(TOTAL) == ("differs", ("order_id is not in the table", "total is new"))
    assert file.read_text() == kept
    longer = {**ORDER_ID, "type": "long"}
    assert imports(longer) == ("differs", ('order_id is "long", and the file has "string"',))
    assert imports(longer, replace=True) == ("written", ('order_id is "long", and the file has "string"',))
    assert '"long"' in file.read_text()
    assert sorted(path.name for path in (tmp_path / "topics").iterdir()) == ["sales_orders.avsc"]


def test_a_table_of_another_format_is_named(team):
    team.create_table("sales_orders", kind="EXTERNAL_TABLE")
    ctx = team.ctx()
    with pytest.raises(CommandFailed) as refused:
        schemas.import_schemas(ctx, schemas.select_topics(ctx, ["sales_orders"]), replace=False)
    assert (refused.value.code, refused.value.message, refused.value.hint) == (
        "NO-TABLE",
        f"table {team.database}.sales_orders is not an Iceberg table",
        f"Iceberg tables of {team.database}: none",
    )


def test_a_column_that_tableflow_does_not_write_is_named(imports):
    with pytest.raises(CommandFailed) as refused:
        imports(ORDER_ID, {**TOTAL, "type": "variant"})
    assert (refused.value.code, refused.value.message) == (
        "TABLE-UNREADABLE",
        "the table of sales_orders: column total has type variant, which Tableflow doesn't write",
    )


def test_a_table_without_its_metadata_is_named(team):
    team.create_bucket()
    team.create_table("sales_orders")
    ctx = team.ctx()
    with pytest.raises(CommandFailed, match="table sales_orders: there is no object s3://") as refused:
        schemas.import_schemas(ctx, schemas.select_topics(ctx, ["sales_orders"]), replace=False)
    assert refused.value.code == "TABLE-UNREADABLE"


def test_nothing_of_confluent_or_snowflake_is_checked(team):
    groups = {probe.group.name for probe in doctor.list_probes(team.ctx())}
    assert groups == {"tools", "file", "AWS", "network", "KMS keys", "storage"}


def test_an_import_names_the_tables_that_exist(team):
    team.create_table("stock_trades")
    ctx = team.ctx()
    with pytest.raises(CommandFailed) as refused:
        schemas.import_schemas(ctx, schemas.select_topics(ctx, ["sales_orders"]), replace=False)
    assert (refused.value.code, refused.value.message, refused.value.hint) == (
        "NO-TABLE",
        f"table {team.database}.sales_orders does not exist",
        f"Iceberg tables of {team.database}: stock_trades",
    )
    with pytest.raises(CommandFailed, match="nosuch is not a table of the file"):
        schemas.select_topics(ctx, ["nosuch"])


def test_tables_are_listed_by_name(team):
    for name, kind in (("b", "ICEBERG"), ("c", "EXTERNAL_TABLE"), ("a", "iceberg")):
        team.create_table(name, kind=kind)
    location = f"s3://{team.bucket}/1/v1/{{}}/metadata/1.metadata.json"
    listed = [GlueTable("a", location.format("a")), GlueTable("b", location.format("b")), GlueTable("c", "")]
    assert tables.list_tables(team.ctx(), team.database) == listed
    assert [tables.find_table(team.ctx(), team.database, name) for name in "abcd"] == [*listed, None]
    assert tables.find_table(team.ctx(), "nowhere", "a") is None


def test_metadata_in_a_bucket_that_is_gone_cannot_be_read(team):
    table = GlueTable("orders", f"s3://{team.bucket}/1/1.metadata.json")
    with pytest.raises(CommandFailed) as refused:
        tables.read_metadata(team.ctx(), table)
    assert refused.value.code == "TABLE-UNREADABLE"
    assert refused.value.message.startswith("table orders: ")
    team.create_bucket()
    with pytest.raises(CommandFailed) as refused:
        tables.read_metadata(team.ctx(), table)
    assert refused.value.message == f"table orders: there is no object {table.metadata}"
    boto3.client("s3").put_object(Bucket=team.bucket, Key="1/1.metadata.json", Body=b'{"a": 1}')
    assert tables.read_metadata(team.ctx(), table) == {"a": 1}


def test_the_database_of_a_cluster_is_known_once_that_is_deployed(lake_aws):
    ctx = DeploymentContext(shipped.load("dev"))
    with pytest.raises(CommandFailed) as refused:
        tables.find_database(ctx)
    assert refused.value.code == "NOT-DEPLOYED"
    template = {
        "Resources": {"Topic": {"Type": "AWS::SNS::Topic"}},
        "Outputs": {"KafkaClusterId": {"Value": "lkc-made"}},
    }
    client = boto3.client("cloudformation")
    client.create_stack(StackName=f"{ctx.deployment.prefix}-confluent", TemplateBody=json.dumps(template))
    assert tables.find_database(ctx) == "lkc-made"
    client.delete_stack(StackName=f"{ctx.deployment.prefix}-confluent")
