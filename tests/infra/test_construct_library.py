"""The construct library, as an app without a deployment file uses it: the example, and mistakes in props."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from aws_cdk import App, Duration, Environment, Stack, Validations
from aws_cdk import aws_iam as iam
from aws_cdk import aws_s3 as s3
from aws_cdk import aws_sns as sns
from aws_cdk.assertions import Template
from cdk_nag import AwsSolutionsChecks, NIST80053R5Checks, ServerlessChecks

from config.exports import contracts
from examples.trades import TradesStack
from stacks import constructs as lakeferry
from stacks.constructs.table import TablesInGlue
from tests.support.assembly_kit import CONTEXT, ROOT
from tests.support.policies import ACCOUNT

CONTRACT = ROOT / "examples" / "hourly_trades.toml"
ALARMS = f"arn:aws:sns:eu-west-1:{ACCOUNT}:acme-alarms"
GIVEN = {
    "cloud_key_secret": "acme/deployer",
    "environment": "env-abc123",
    "cluster": "lkc-abc123",
    "tables": "acme-tables",
    "files": "acme-files",
    "alarms": ALARMS,
}


@pytest.fixture(scope="module")
def place():
    return Environment(account=ACCOUNT, region="eu-west-1")


@pytest.fixture(scope="module")
def example(place):
    """Return the template of the example."""
    app = App(context={**CONTEXT, **GIVEN})
    return Template.from_stack(TradesStack(app, "Trades", env=place)).to_json()


def test_cdk_synthesises_the_example_without_a_warning(example, tmp_path):
    environment = {
        **os.environ,
        "CDK_OUTDIR": str(tmp_path),
        "CDK_CONTEXT_JSON": json.dumps({**CONTEXT, **GIVEN}),
        "CDK_DEFAULT_ACCOUNT": ACCOUNT,
        "CDK_DEFAULT_REGION": "eu-west-1",
    }
    command = [sys.executable, "-O", "-m", "examples.trades"]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=300)
    assert (done.returncode, done.stderr) == (0, "")
    template = json.loads((tmp_path / "Trades.template.json").read_text())
    assert template["Resources"].keys() >= example["Resources"].keys()


def test_the_rule_packs_of_cdk_nag_find_nothing_in_the_example(place, tmp_path):
    app = App(outdir=str(tmp_path), context={**CONTEXT, **GIVEN})
    Validations.of(app).add_plugins(AwsSolutionsChecks(app), ServerlessChecks(app), NIST80053R5Checks(app))
    TradesStack(app, "Trades", env=place)
    app.synth()
    assert find_violations(tmp_path) == []
    planted = App(outdir=str(tmp_path / "planted"), context=CONTEXT)
    Validations.of(planted).add_plugins(AwsSolutionsChecks(planted))
    sns.Topic(Stack(planted, "Planted"), "Topic")
    with pytest.raises(RuntimeError):
        planted.synth()
    assert find_violations(tmp_path / "planted") != []


def find_violations(folder):
    """Return the findings that nobody accepted, as rule and construct."""
    report = json.loads((folder / "validation-report.json").read_text())
    return [
        (violation["ruleName"], place["constructPath"])
        for plugin in report["pluginReports"]
        for violation in plugin["violations"]
        for place in violation["violatingConstructs"]
    ]


def resources(template, kind):
    return {id: body["Properties"] for id, body in template["Resources"].items() if body["Type"] == kind}


def list_statements(template, role):
    """Return the statements of a role by their id. `role` is the beginning of its logical id."""
    (properties,) = [
        body for id, body in resources(template, "AWS::IAM::Role").items() if id.startswith(role)
    ]
    documents = [policy["PolicyDocument"] for policy in properties["Policies"]]
    return {statement["Sid"]: statement for document in documents for statement in document["Statement"]}


def test_the_cluster_and_the_topic_are_looked_up_and_never_created(example):
    kinds = {body["Type"] for body in example["Resources"].values()}
    assert {"Custom::LakeferryExistingCluster", "Custom::LakeferryExistingTopic"} <= kinds
    created = {"Custom::LakeferryEnvironment", "Custom::LakeferryKafkaCluster", "Custom::LakeferryTopic"}
    assert kinds.isdisjoint({*created, "AWS::S3::Bucket", "AWS::SNS::Topic"})


def test_logical_ids_come_from_the_path(example):
    (table,) = resources(example, "Custom::LakeferryTableflowTopic")
    assert table.startswith("TopicTable")
    assert len(table) == len("TopicTable") + 8


def test_the_account_has_rights_on_this_one_topic_only(example):
    bound = {
        (body["role"], body["scope"], body["name"] if isinstance(body["name"], str) else "integration")
        for body in resources(example, "Custom::LakeferryRoleBinding").values()
    }
    assert bound == {
        ("ResourceOwner", "topic", "Sales.Trades"),
        ("ResourceOwner", "provider_integration", "integration"),
        ("DeveloperRead", "subject", "Sales.Trades-key"),
        ("DeveloperRead", "subject", "Sales.Trades-value"),
    }


def test_every_key_rotates(example):
    rotations = resources(example, "AWS::SecretsManager::RotationSchedule").values()
    assert [body["RotationRules"]["ScheduleExpression"] for body in rotations] == ["rate(30 days)"] * 3
    assert len(resources(example, "Custom::LakeferryApiKey")) == 3


def test_every_alarm_goes_to_the_callers_topic(example):
    alarms = resources(example, "AWS::CloudWatch::Alarm").values()
    assert len(alarms) >= 6
    assert {tuple(body["AlarmActions"]) for body in alarms} == {(ALARMS,)}
    (rule,) = resources(example, "AWS::Events::Rule").values()
    assert [target["Arn"] for target in rule["Targets"]] == [ALARMS]
    assert rule["EventPattern"]["detail"]["jobName"] == ["trades-prod-hourly_trades"]


def test_the_job_reads_its_own_table_only(example):
    statements = list_statements(example, "TradesRole")
    tables = json.dumps(statements["ReadTablesGlue"]["Resource"])
    assert "table/lkc-abc123/sales.trades" in tables
    assert "*" not in tables
    assert "table_path" in json.dumps(statements["ReadTablesS3"]["Resource"])
    assert "ReadKey" not in statements


def test_the_callers_contract_ships_with_the_job(example):
    (job,) = resources(example, "AWS::Glue::Job").values()
    assert job["DefaultArguments"]["--export"] == contracts.load(str(CONTRACT)).name
    (schedule,) = [
        body
        for id, body in resources(example, "AWS::Scheduler::Schedule").items()
        if id.startswith("TradesSchedule")
    ]
    assert (schedule["ScheduleExpression"], schedule["ScheduleExpressionTimezone"]) == (
        "cron(0 6 * * ? *)",
        "UTC",
    )


@pytest.fixture
def stack():
    return Stack(App(), "App")


@pytest.fixture
def runtime():
    return lakeferry.Runtime(project="acme", stage="prod", alarm_topic_arn=ALARMS)


@pytest.fixture
def table():
    location = TablesInGlue("lkc-abc123", "arn:aws:s3:::acme-tables")
    return lakeferry.Table("Sales.Trades", "sales.trades", location, path="data/1")


@pytest.fixture
def cluster(stack, runtime):
    provider = lakeferry.ConfluentProvider(stack, "Confluent", runtime=runtime, cloud_key_secret="acme/key")
    environment = lakeferry.Environment.from_id(
        stack, "Environment", provider=provider, environment_id="env-abc123"
    )
    return lakeferry.KafkaCluster.from_id(stack, "Cluster", environment=environment, cluster_id="lkc-abc123")


def open_bucket(stack, runtime, id="Exports", **more):
    bucket = s3.Bucket.from_bucket_name(stack, f"{id}Files", "acme-files")
    alarms = sns.Topic.from_topic_arn(stack, f"{id}Topic", ALARMS)
    return lakeferry.ExportBucket(stack, id, runtime=runtime, bucket=bucket, alarms=alarms, **more)


def export(to, table, id="Sales", **more):
    given = {"contract": CONTRACT, "cron": "0 6 * * ? *", **more}
    return lakeferry.Export(to.node.scope, id, to=to, table=table, **given)


def test_two_exports_with_one_name_are_refused(stack, runtime, table):
    exports = open_bucket(stack, runtime)
    export(exports, table)
    with pytest.raises(lakeferry.BadProps, match="export hourly_trades exists already in App/Exports/Jobs"):
        export(exports, table, "Again")


def test_two_export_buckets_with_the_same_names_are_refused(stack, runtime):
    open_bucket(stack, runtime)
    with pytest.raises(
        lakeferry.BadProps, match="App/Exports/Jobs has jobs and logs with the names acme-prod"
    ):
        open_bucket(stack, runtime, "Second")
    other = lakeferry.Runtime(project="acme", stage="test", alarm_topic_arn=ALARMS)
    open_bucket(stack, other, "Third")


def test_a_rotation_that_is_too_short_is_refused(stack, cluster):
    account = lakeferry.ServiceAccount(stack, "Account", cluster=cluster, description="tries")
    with pytest.raises(lakeferry.BadProps, match=r"can't rotate every 72 hours: .* more than 7"):
        account.key("kafka").rotate(every=Duration.days(3))


def test_all_that_does_not_fit_an_export_is_one_message(stack, runtime, table, tmp_path):
    exports = open_bucket(stack, runtime)
    contract = tmp_path / "other.toml"
    contract.write_text(CONTRACT.read_text().replace('topic = "Sales.Trades"', 'topic = "payments"'))
    with pytest.raises(lakeferry.BadProps) as refused:
        export(exports, table, contract=contract, cron="every day", zone="Mars/Olympus")
    message = str(refused.value)
    for part in ("reads topic payments", "topic Sales.Trades", "cron: ", "zone: 'Mars/Olympus'"):
        assert part in message


def test_a_contract_with_mistakes_names_all_of_them(stack, runtime, table, tmp_path):
    exports = open_bucket(stack, runtime)
    contract = tmp_path / "broken.toml"
    contract.write_text(
        CONTRACT.read_text().replace('every = "day"', 'every = "moon"').replace("version = 1", "")
    )
    with pytest.raises(lakeferry.BadProps, match=r"broken.toml: 2 mistakes"):
        export(exports, table, contract=contract)
    with pytest.raises(lakeferry.BadProps, match=r"none.toml can't be read"):
        export(exports, table, "Missing", contract=tmp_path / "none.toml")


def test_a_contract_that_hashes_needs_the_name_of_a_key(stack, runtime, tmp_path):
    weekly = ROOT / "project" / "exports" / "weekly_sales.toml"
    source = contracts.load(str(weekly)).source
    location = TablesInGlue("lkc-abc123", "arn:aws:s3:::acme-tables")
    table = lakeferry.Table(source.topic, source.table, location)
    with pytest.raises(lakeferry.BadProps, match="hashes columns: name the secret"):
        export(open_bucket(stack, runtime), table, contract=weekly)
    other = lakeferry.Runtime(project="acme", stage="test", alarm_topic_arn=ALARMS)
    keyed = open_bucket(stack, other, "Keyed", pseudonym_secret="acme/pseudonyms")
    made = export(keyed, table, "Weekly", contract=weekly)
    assert made.job_name == f"acme-test-{weekly.stem}"


@pytest.mark.parametrize(
    ("props", "problem"),
    [
        ({"project": "Acme"}, "project: 'Acme' must be 2 to 20 lower-case"),
        ({"project": "Acme", "stage": "prod-1"}, "project: .*; stage: 'prod-1' must be"),
    ],
)
def test_names_that_aws_and_the_vendors_refuse_are_refused_at_once(props, problem):
    with pytest.raises(lakeferry.BadProps, match=problem):
        lakeferry.Runtime(**{"project": "acme", "stage": "prod", "alarm_topic_arn": ALARMS, **props})


def test_ids_of_other_things_are_refused(stack, cluster):
    environment = cluster.environment
    with pytest.raises(lakeferry.BadProps, match="cluster_id: 'orders' must be a Kafka cluster's id"):
        lakeferry.KafkaCluster.from_id(stack, "Other", environment=environment, cluster_id="orders")
    with pytest.raises(lakeferry.BadProps, match="environment_id: 'lkc-1' must be an environment's id"):
        lakeferry.Environment.from_id(stack, "Wrong", provider=environment.provider, environment_id="lkc-1")
    account = lakeferry.ServiceAccount(stack, "Account", cluster=cluster, description="tries")
    with pytest.raises(lakeferry.BadProps, match="name: "):
        lakeferry.Topic.from_name(stack, "Topic", cluster=cluster, name="a topic", owner=account)


def test_all_that_does_not_fit_a_table_is_one_message(stack, cluster):
    accounts = [
        lakeferry.ServiceAccount(stack, id, cluster=cluster, description="tries") for id in ("One", "Two")
    ]
    bucket = s3.Bucket.from_bucket_name(stack, "Bucket", "acme-tables")
    storage = lakeferry.TableStorage.of_account(
        stack, "Storage", account=accounts[0], bucket=bucket, glue_database="lkc-abc123"
    )
    topic = lakeferry.Topic.from_name(stack, "Topic", cluster=cluster, name="orders", owner=accounts[1])
    settings = lakeferry.Tableflow(storage="managed", on_error="LOG")
    with pytest.raises(lakeferry.BadProps) as refused:
        topic.tableflow(storage, settings=settings)
    for part in (
        "that of another account",
        "settings.storage is managed",
        "settings.error_log_topic is error_log",
    ):
        assert part in str(refused.value)
    with pytest.raises(lakeferry.BadProps, match="glue_database: 'My Tables' must be a database's name"):
        lakeferry.TableStorage.of_account(
            stack, "Wrong", account=accounts[0], bucket=bucket, glue_database="My Tables"
        )


def test_a_reader_gets_the_table_or_the_files_and_nothing_else(stack, runtime, table):
    made = export(open_bucket(stack, runtime), table)
    for id, readable in (("TableReader", table), ("FileReader", made)):
        reader = iam.Role(stack, id, assumed_by=iam.AccountRootPrincipal())
        readable.grant_read(reader)
    policies = Template.from_stack(stack).find_resources("AWS::IAM::Policy")
    by_role = {
        id.removesuffix(id[-21:]): body["Properties"]["PolicyDocument"]["Statement"]
        for id, body in policies.items()
    }
    actions = {id: [statement["Action"] for statement in found] for id, found in by_role.items()}
    assert actions == {
        "TableReader": ["glue:GetTable", "s3:ListBucket", "s3:GetObject"],
        "FileReader": ["s3:GetObject", "s3:ListBucket"],
    }
    assert by_role["TableReader"][2]["Resource"] == "arn:aws:s3:::acme-tables/data/1*"


def test_the_stacks_of_a_deployment_file_are_made_of_the_same_classes():
    """The stacks create no object of these types themselves."""
    types = ("ExistingClusterProps", "ExistingTopicProps", "KafkaClusterProps", "EnvironmentProps")
    types += ("ApiKeyProps", "RoleBindingProps", "TableflowTopicProps", "ProviderIntegrationProps", "CfnJob(")
    sources = [file for file in Path(ROOT / "stacks").rglob("*.py") if file.parent.name != "constructs"]
    used = [(file.name, name) for file in sources for name in types if name in file.read_text()]
    assert used == []
