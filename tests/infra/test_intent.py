"""The intent of the templates, resource by resource."""

from __future__ import annotations

import io
import itertools
import json
import re
import time
import urllib.request
from datetime import date
from types import MappingProxyType

import attrs
import boto3
import pytest

from config.deployments import deployment_file
from config.exports.check import NOT_JUDGED
from glue_jobs.platform import ARGUMENTS, REQUIRED_ARGUMENTS, SPARK_SETTINGS
from lambdas import contract
from lambdas.confluent.properties import CLUSTER_NAME
from lambdas.custom_resources.registry import RESOURCE_TYPES
from lambdas.monitoring import checks
from lambdas.shared import deployment as settings
from lambdas.snowflake.properties import USAGE
from tests.support import large_deployment
from tests.support.assembly_kit import synthesise
from tests.support.policies import ACCOUNT, Reader

_numbers = itertools.count(1)
#: Ids and addresses that users need.
WANTED = """
TableflowBucketName LakeBucketName AthenaWorkgroup DailyTradesFiles EnvironmentId KafkaClusterId
BootstrapServers SchemaRegistryUrl FlinkComputePoolId CatalogUri ClusterPage WarehouseName SchemaName
ReaderName ReaderSecretArn DailyTradesJobName DeadLettersUrl DashboardPage KafkaAppConsumerKeySecretArn
"""


def test_roles_in_a_shared_schema_registry_are_on_the_subjects_of_the_deployment_only(moved):
    named = {
        (resource["role"], resource["name"])
        for resource in moved.resources("Custom::LakeferryRoleBinding").values()
        if resource["scope"] == "subject"
    }
    topics = {topic.name for topic in moved.plan.deployment.topics}
    assert {name for _, name in named} == {f"{topic}-{part}" for topic in topics for part in ("key", "value")}
    assert {name for role, name in named if role == "DeveloperManage"} == {
        f"{topic}-value" for topic in topics
    }
    assert {role for role, _ in named} == {role.role for role in contract.ROLES if role.scope == "subject"}


def test_a_schema_is_deleted_for_good_only_where_the_deployment_leaves_nothing(prod):
    (schema,) = prod.resources("Custom::LakeferrySchema").values()
    assert "delete_permanently" not in schema
    assert prod.plan.deployment.keeps_data


def test_buckets_are_closed_encrypted_versioned_and_tidy(assembly):
    """I6."""
    buckets = assembly.resources("AWS::S3::Bucket")
    assert len(buckets) == 2
    for body in buckets.values():
        assert set(body["PublicAccessBlockConfiguration"].values()) == {True}
        assert body["OwnershipControls"]["Rules"] == [{"ObjectOwnership": "BucketOwnerEnforced"}]
        assert body["VersioningConfiguration"] == {"Status": "Enabled"}
        assert body["BucketEncryption"]["ServerSideEncryptionConfiguration"]
        rules = body["LifecycleConfiguration"]["Rules"]
        assert any(rule.get("AbortIncompleteMultipartUpload") for rule in rules)
        assert all(rule["Status"] == "Enabled" for rule in rules)


def test_buckets_are_reached_by_tls_only(assembly):
    """I6: by the policy, for every principal and action."""
    policies = assembly.resources("AWS::S3::BucketPolicy")
    assert len(policies) == 2
    for body in policies.values():
        denied = [item for item in body["PolicyDocument"]["Statement"] if item["Effect"] == "Deny"]
        conditions = [
            item["Condition"]
            for item in denied
            if item["Action"] == "s3:*" and item["Principal"] == {"AWS": "*"}
        ]
        assert {"Bool": {"aws:SecureTransport": "false"}} in conditions
        assert {"NumericLessThan": {"s3:TlsVersion": 1.2}} in conditions


def test_no_bucket_policy_or_key_policy_denies_a_permitted_role(assembly):
    """I7: buckets deny connections without TLS, and Tableflow's bucket writes of others; keys leave access to
    the roles' policies.
    """
    for body in assembly.resources("AWS::S3::BucketPolicy").values():
        for statement in body["PolicyDocument"]["Statement"]:
            assert statement["Effect"] == "Deny"
            if statement.get("Sid") != "LetOnlyTableflowWrite":
                assert set(statement["Condition"]) <= {"Bool", "NumericLessThan"}


def test_only_tableflow_writes_to_its_bucket(assembly):
    policies = assembly.resources("AWS::S3::BucketPolicy", "data").items()
    (((_, logical_id), statement),) = [
        (id, item)
        for id, body in policies
        for item in body["PolicyDocument"]["Statement"]
        if item.get("Sid") == "LetOnlyTableflowWrite"
    ]
    assert logical_id.startswith("TableflowBucket")
    assert set(statement["Action"]) == {"s3:PutObject", "s3:DeleteObject", "s3:DeleteObjectVersion"}
    role = assembly.plan.deployment.role_resource("tableflow")
    assert list(statement["Condition"]) == ["ArnNotEquals"]
    assert json.dumps(statement["Condition"]["ArnNotEquals"]).rstrip('"}] ').endswith(role)
    for body in assembly.resources("AWS::KMS::Key").values():
        first = body["KeyPolicy"]["Statement"][0]
        assert (first["Effect"], first["Action"]) == ("Allow", "kms:*")
        assert ":root" in json.dumps(first["Principal"])
        assert not [item for item in body["KeyPolicy"]["Statement"] if item["Effect"] == "Deny"]


#: Services that a key's policy admits, by the beginning of the key's id, with the condition that limits them.
LET_IN = {
    "AlarmKey": ({"Service": "cloudwatch.amazonaws.com"}, "StringEquals", "aws:SourceAccount"),
    "JobsKey": ({"Service": "logs.<region>.amazonaws.com"}, "ArnLike", "kms:EncryptionContext:aws:logs:arn"),
}


def test_keys_rotate_and_admit_nobody_else_but_alarms_and_logs(assembly):
    """I8."""
    keys = assembly.resources("AWS::KMS::Key")
    assert keys
    for (_, name), body in keys.items():
        assert body["EnableKeyRotation"] is True
        more = body["KeyPolicy"]["Statement"][1:]
        allowed = next((LET_IN[start] for start in LET_IN if name.startswith(start)), None)
        assert bool(more) == bool(allowed), name
        for statement in more:
            principal, operator, condition = allowed
            region = assembly.plan.deployment.aws.region
            assert statement["Principal"] == {"Service": principal["Service"].replace("<region>", region)}
            assert condition in statement["Condition"][operator]


def test_logs_and_bookmarks_of_exports_are_encrypted_with_the_deployments_key(assembly):
    (_, security), *more = assembly.resources("AWS::Glue::SecurityConfiguration", "exports").items()
    assert more == []
    encryption = security["EncryptionConfiguration"]
    key = encryption["JobBookmarksEncryption"]["KmsKeyArn"]
    assert encryption["JobBookmarksEncryption"]["JobBookmarksEncryptionMode"] == "CSE-KMS"
    assert {job["SecurityConfiguration"] for job in assembly.resources("AWS::Glue::Job").values()} == {
        security["Name"]
    }
    groups = [
        body
        for body in assembly.resources("AWS::Logs::LogGroup", "exports").values()
        if "/aws-glue/" in str(body.get("LogGroupName"))
    ]
    assert len(groups) == 2
    assert all(body["KmsKeyId"] == key for body in groups)


def test_nobody_but_tableflow_writes_to_its_bucket(assembly):
    for grant in Reader(assembly).grants():
        writes = {
            action for action in grant.actions if action.startswith(("s3:Put", "s3:Delete", "s3:Abort"))
        }
        if writes and any("TableflowBucket" in resource for resource in grant.resources):
            assert grant.role.startswith(
                ("confluent.TableflowRole", "confluent.ConfluentProviderFunctionRole")
            )


def test_every_log_group_has_a_retention(assembly):
    """I9. Every function writes to one of these groups."""
    groups = assembly.resources("AWS::Logs::LogGroup")
    assert {body["RetentionInDays"] for body in groups.values()} == {
        assembly.plan.deployment.aws.log_retention_days
    }
    for body in assembly.resources("AWS::Lambda::Function").values():
        assert "LogGroup" in body["LoggingConfig"]
    assert not [grant for grant in Reader(assembly).grants() if "logs:CreateLogGroup" in grant.actions]


def test_data_is_deleted_or_kept_as_the_file_says(dev, prod):
    """I20: in both cases."""
    kept = {"AWS::S3::Bucket", "AWS::Glue::Database", "AWS::SecretsManager::Secret", "AWS::KMS::Key"}
    for assembly, part in ((dev, "Delete"), (prod, "RetainExceptOnCreate")):
        found = {
            (body["Type"], body.get("DeletionPolicy", "Delete"))
            for body in assembly.templates["data"]["Resources"].values()
            if body["Type"] in kept
        }
        assert found == {(kind, part) for kind in kept}
    assert {
        body["DeletionPolicy"]
        for body in prod.templates["confluent"]["Resources"].values()
        if body["Type"] == "AWS::SecretsManager::Secret"
    } == {"Delete"}


def test_topics_and_schemas_that_leave_the_file_are_deleted_or_kept_as_it_says(dev, prod):
    """An object that a failed deployment created goes with its rollback in both cases."""
    kinds = ("Custom::LakeferryTopic", "Custom::LakeferrySchema")
    for assembly, part in ((dev, "Delete"), (prod, "RetainExceptOnCreate")):
        resources = [
            body for body in assembly.templates["confluent"]["Resources"].values() if body["Type"] in kinds
        ]
        assert {
            (body["DeletionPolicy"], body["UpdateReplacePolicy"].replace("Retain", "RetainExceptOnCreate"))
            for body in resources
        } == {(part, part)}
    (statement,) = dev.resources("Custom::LakeferryFlinkStatement").values()
    assert statement["topic"] == "stock_trades_with_totals"
    assert "keep_table" not in statement


def test_a_deployment_takes_few_functions(dev):
    for kind, most in (
        ("AWS::Lambda::Function", 18),
        ("AWS::StepFunctions::StateMachine", 3),
        ("AWS::IAM::Role", 24),
    ):
        assert len(dev.resources(kind)) <= most, kind


def test_a_flink_pool_exists_only_with_a_statement(dev, prod):
    for assembly, pools in ((dev, 1), (prod, 0)):
        assert bool(assembly.plan.deployment.statements) == bool(pools)
        assert len(assembly.resources("Custom::LakeferryFlinkComputePool")) == pools
        assert ("FlinkComputePoolId" in assembly.templates["confluent"]["Outputs"]) == bool(pools)
        keys = [
            key for key in assembly.resources("Custom::LakeferryApiKey").values() if key["service"] == "flink"
        ]
        assert ["compute_pool_id" in key for key in keys] == [True] * pools


def test_every_function_traces_and_logs_json(assembly):
    for body in assembly.resources("AWS::Lambda::Function").values():
        assert body["TracingConfig"] == {"Mode": "Active"}
        assert body["LoggingConfig"]["LogFormat"] == "JSON"


def _cleaned_up(assembly):
    resources = assembly.resources(contract.CLEANUP_TYPE).values()
    return sorted(next(iter(set(body) & set(contract.CLEANUPS))) for body in resources)


def test_kept_data_is_not_cleaned_up(dev, prod):
    """I20."""
    assert _cleaned_up(prod) == []
    assert _cleaned_up(dev) == ["bucket", "bucket", "glue_database"]
    assert not [grant for grant in Reader(prod).grants() if "s3:DeleteObjectVersion" in grant.actions]


def test_tables_of_a_protected_cluster_are_not_cleaned_up(dev, tmp_path):
    """CloudFormation would empty Tableflow's bucket before it finds that it can't delete the topics."""
    confluent = attrs.evolve(dev.plan.deployment.confluent, deletion_protection=True)
    plan = attrs.evolve(dev.plan, deployment=attrs.evolve(dev.plan.deployment, confluent=confluent))
    assembly = synthesise(plan, tmp_path)
    assert [
        body.get("bucket") for body in assembly.resources(contract.CLEANUP_TYPE, "confluent").values()
    ] == []


def test_custom_resources_have_the_type_and_timeout_of_their_schema(assembly):
    seen = set()
    for template in assembly.templates.values():
        for body in template["Resources"].values():
            if body["Type"].startswith("Custom::") and body["Type"] not in contract.OTHER_TYPES:
                given = body["Properties"]
                fields = attrs.fields_dict(RESOURCE_TYPES[given["kind"]].handler.PROPERTIES)
                seen.add(given["kind"])
                assert body["Type"] == contract.resource_type(given["kind"])
                assert {name for name, field in fields.items() if field.default is attrs.NOTHING} <= set(
                    given
                )
                assert set(given) <= {*fields, "kind", "ServiceToken", "ServiceTimeout"}
                assert int(given["ServiceTimeout"]) >= contract.TOTAL_TIMEOUT_SECONDS
    left = set(RESOURCE_TYPES) - seen
    assert left <= {
        "snowflake_linked_database",
        "connector",
        "flink_statement",
        "flink_compute_pool",
        "schema",
        "existing_cluster",
        "existing_topic",
    }


def test_each_account_has_the_rights_that_the_contract_says(dev):
    bindings = [body for body in dev.resources("Custom::LakeferryRoleBinding").values()]
    assert sorted(
        (
            binding["role"],
            binding["scope"],
            binding.get("name") if isinstance(binding.get("name"), str) else "",
        )
        for binding in bindings
    ) == sorted(
        (role.role, role.scope, role.name)
        for role in contract.ROLES
        if role.account != "table_reader"  # no table of dev.toml is in Confluent's storage
    )
    entries = {
        (body["operation"], body["resource_type"], name)
        for body in dev.resources("Custom::LakeferryAcl").values()
        for name in body.get("resource_names") or [body.get("resource_name", CLUSTER_NAME)]
    }
    topics = {topic.name for topic in dev.plan.deployment.topics}
    assert {name for operation, kind, name in entries if (operation, kind) == ("READ", "TOPIC")} == topics
    assert ("WRITE", "TOPIC", "stock_trades") in entries
    assert ("WRITE", "TOPIC", "stock_trades_with_totals") not in entries


def export_jobs(assembly):
    """Return the jobs of exports by part and logical id."""
    jobs = assembly.resources("AWS::Glue::Job")
    return {key: body for key, body in jobs.items() if "--export" in body["DefaultArguments"]}


def test_the_job_is_as_the_file_and_the_jobs_contract_define(assembly):
    jobs = export_jobs(assembly)
    deployment = assembly.plan.deployment
    assert len(jobs) == len(deployment.exports)
    for body in jobs.values():
        given = body["DefaultArguments"]
        own = {name[2:] for name in given if name[2:] in ARGUMENTS}
        assert own >= set(REQUIRED_ARGUMENTS) - {"as-of"}
        assert (body["GlueVersion"], body["NumberOfWorkers"], body["WorkerType"], body["Timeout"]) == (
            deployment.aws.glue_version, deployment.aws.glue_workers, deployment.aws.glue_worker_type,
            deployment.aws.glue_timeout_minutes,
        )  # fmt: skip
        conf = Reader(assembly).text(given["--conf"], "exports")
        assert (
            conf.count("--conf ") == len(SPARK_SETTINGS) + 1
        )  # warehouse and region, and none before the first
        # Glue's documentation doesn't say how it splits the argument. Values without blanks can be split in
        # one way only.
        assert not any(" " in word for word in conf.split(" --conf "))
        for name, value in SPARK_SETTINGS.items():
            assert f"{name}={value}" in conf
        assert f"spark.sql.catalog.lake.client.region={deployment.aws.region}" in conf.split(" --conf ")
        assert (given["--region"], given["--enable-job-insights"]) == (deployment.aws.region, "false")
        assert body["ExecutionProperty"] == {"MaxConcurrentRuns": 1}
        assert body["MaxRetries"] == 0


def test_temporary_files_of_a_job_are_in_the_lake_and_expire(assembly):
    (lake,) = (body for (_, name), body in assembly.resources("AWS::S3::Bucket").items() if "Lake" in name)
    (rule,) = (rule for rule in lake["LifecycleConfiguration"]["Rules"] if rule.get("Prefix") == "temporary/")
    assert (rule["Status"], rule["ExpirationInDays"]) == ("Enabled", 7)
    for body in assembly.resources("AWS::Glue::Job").values():
        folder = Reader(assembly).text(body["DefaultArguments"]["--TempDir"], "exports")
        assert re.fullmatch(r"s3://<data\.LakeBucket\w+>/temporary/", folder)


@pytest.fixture(scope="module")
def moved(dev, tmp_path_factory):
    """Dev with the other version of Glue, a first day of its exports, an existing environment, and a linked
    database in Snowflake for all tables.
    """
    deployment = dev.plan.deployment
    changed = attrs.evolve(
        deployment,
        aws=attrs.evolve(deployment.aws, glue_version="6.0"),
        exports=[attrs.evolve(export, first_day=date(2027, 1, 4)) for export in deployment.exports],
        confluent=attrs.evolve(deployment.confluent, environment_id="env-abc123", environment_name="shared"),
        snowflake=attrs.evolve(deployment.snowflake, linked_database=True),
        topics=[
            attrs.evolve(topic, tableflow=attrs.evolve(topic.tableflow, snowflake_table=None))
            if topic.tableflow
            else topic
            for topic in deployment.topics
        ],
    )
    plan = attrs.evolve(dev.plan, deployment=changed)
    return synthesise(plan, tmp_path_factory.mktemp("moved"), with_assets=True)


def test_the_version_of_glue_is_the_deployment_files(dev, moved):
    for assembly, version in ((dev, "5.1"), (moved, "6.0")):
        assert {job["GlueVersion"] for job in assembly.resources("AWS::Glue::Job").values()} == {version}


def test_a_job_knows_how_many_partitions_its_topic_has_and_ends_before_glue_stops_it(dev):
    """The topics of the exports are one that the deployment creates and one that a Flink statement
    creates.
    """
    deployment = dev.plan.deployment
    for job in export_jobs(dev).values():
        arguments = job["DefaultArguments"]
        plain = dev.plan.sources.plain_contract(arguments["--export"])
        (topic,) = (topic for topic in deployment.topics if topic.name == plain.source.topic)
        assert arguments["--partitions"] == str(dev.plan.sources.partitions(topic))
        assert (
            int(arguments["--time-limit-minutes"])
            == job["Timeout"] - 5
            == deployment.aws.glue_timeout_minutes - 5
        )


def test_a_first_day_of_the_deployments_own_reaches_the_job_and_the_watch(dev, moved):
    for assembly, day in ((dev, None), (moved, "2027-01-04")):
        jobs = export_jobs(assembly).values()
        assert {job["DefaultArguments"].get("--first-day") for job in jobs} == {day}
        assert [export["first_day"] for export in settings_of(assembly, "operations")["exports"]] == [
            day or ""
        ]


def test_the_catalogs_address_is_reported_also_in_an_environment_that_exists(dev, moved):
    """The organization is part of the cluster's CRN."""
    for assembly in (dev, moved):
        start, organization, *_ = assembly.templates["confluent"]["Outputs"]["CatalogUri"]["Value"][
            "Fn::Join"
        ][1]
        assert start.endswith("/iceberg/catalog/organizations/")
        inner = organization["Fn::Select"][1]["Fn::Split"][1]["Fn::Select"][1]["Fn::Split"]
        assert inner == ["organization=", {"Fn::GetAtt": ["KafkaCluster", "rbac_resource_name"]}]
    assert "env-abc123" in json.dumps(moved.templates["confluent"]["Outputs"]["CatalogUri"])
    assert moved.resources("Custom::LakeferryEnvironment") == {}


def test_the_watch_gets_the_key_of_snowflakes_reader_only_where_it_asks_about_tables(dev, moved):
    for assembly, asks in ((dev, True), (moved, False)):
        (watch,) = [
            body["Environment"]["Variables"]
            for (_, name), body in assembly.resources("AWS::Lambda::Function", "operations").items()
            if name.startswith("Watch")
        ]
        assert (contract.SNOWFLAKE_SECRET in watch) == asks
        reader = Reader(assembly)
        ((_, secret),) = assembly.resources("AWS::SecretsManager::Secret", "snowflake")
        arn = reader.text({"Ref": secret}, "snowflake")
        grants = [grant for grant in reader.grants() if grant.role.startswith("operations.Watch")]
        assert any(grant.covers("secretsmanager:GetSecretValue", arn) for grant in grants) == asks
        assert any(grant.covers("secretsmanager:DescribeSecret", arn) for grant in grants)


def test_the_reader_may_read_the_linked_database(moved):
    grants = [
        body
        for body in moved.resources("Custom::LakeferrySnowflakeGrant").values()
        if "Linked" in str(body["name"])
    ]
    assert {(body.get("privilege", USAGE), body["on"]) for body in grants} == {
        ("USAGE", "DATABASE"), ("USAGE", "SCHEMAS IN DATABASE"), ("SELECT", "ICEBERG TABLES IN DATABASE"),
    }  # fmt: skip
    assert {str(body["to_role"]) for body in grants} == {"{'Fn::GetAtt': ['ReaderRole', 'name']}"}


def test_a_statement_knows_which_of_its_topics_are_tables(dev):
    (statement,) = dev.resources("Custom::LakeferryFlinkStatement").values()
    assert statement["tableflow_topics"] == ["stock_trades_with_totals"]


def settings_of(assembly, part):
    """The object that the part's function reads, from the assets that are published with it."""
    (url,) = [
        Reader(assembly).text(body["Environment"]["Variables"][contract.SETTINGS], part)
        for body in assembly.resources("AWS::Lambda::Function", part).values()
        if contract.SETTINGS in body.get("Environment", {}).get("Variables", {})
    ]
    return json.loads((assembly.folder / f"asset.{url.rpartition('/')[2]}").read_text())


def test_a_function_can_read_its_published_settings(assembly, tmp_path):
    """The function's own reader reads them from a folder in place of a bucket."""

    class Folder:
        def get_object(self, Bucket, Key):  # noqa: N803  (AWS's words)
            return {"Body": io.BytesIO((tmp_path / Key).read_bytes()), "ETag": "1"}

    (tmp_path / "settings.json").write_text(json.dumps(settings_of(assembly, "operations")))
    held = settings.read(Folder(), "s3://assets/settings.json")
    deployment = assembly.plan.deployment
    assert [table.topic for table in held.tables] == [topic.name for topic in deployment.tables]
    assert [export.job for export in held.exports] == [job["Name"] for job in export_jobs(assembly).values()]
    topics = {
        body["TopicName"]
        for body in assembly.resources("AWS::SNS::Topic").values()
        if "_" in body["TopicName"]
    }
    assert {f"{assembly.prefix}_{export.export}" for export in held.exports} == topics
    assert {
        body["Name"] for body in assembly.resources("AWS::SecretsManager::Secret").values() if "Name" in body
    } == set(held.secrets)
    assert held.deployer_secrets == ["lakeferry/confluent-cloud-key", "lakeferry/snowflake-deployer"]


def test_only_an_export_that_hashes_gets_the_key(assembly):
    for body in export_jobs(assembly).values():
        given = body["DefaultArguments"]
        hashes = bool(assembly.plan.sources.contract(given["--export"], None).hashed)
        assert ("--pseudonym-secret" in given) == hashes


def test_each_export_starts_as_of_its_scheduled_time_in_its_zone(assembly):
    """N1, N2: a few tries within hours, then the dead-letter queue. The next run catches up."""
    schedules = [
        body
        for body in assembly.resources("AWS::Scheduler::Schedule", "exports").values()
        if "GroupName" in body
    ]
    exports = assembly.plan.deployment.exports
    assert sorted(
        (schedule["ScheduleExpression"], schedule["ScheduleExpressionTimezone"]) for schedule in schedules
    ) == sorted((f"cron({export.cron})", export.zone) for export in exports)
    for body in schedules:
        target = body["Target"]
        assert (
            Reader(assembly).text(target["Arn"], "exports").endswith(":scheduler:::aws-sdk:glue:startJobRun")
        )
        arguments = json.loads(Reader(assembly).text(target["Input"], "exports"))
        assert arguments["Arguments"] == {"--as-of": "<aws.scheduler.scheduled-time>"}
        assert target["RetryPolicy"]["MaximumRetryAttempts"] <= 24
        assert target["RetryPolicy"]["MaximumEventAgeInSeconds"] <= 6 * 3600
        assert target["DeadLetterConfig"]
        assert body["FlexibleTimeWindow"] == {"Mode": "OFF"}


def test_only_results_of_our_runs_are_reported(assembly):
    """N5, N10: the rules match Glue's events about our jobs, so no mail causes another."""
    rules = assembly.resources("AWS::Events::Rule")
    jobs = sorted(body["Name"] for body in export_jobs(assembly).values())
    states = {}
    for body in rules.values():
        pattern = body["EventPattern"]
        assert (pattern["source"], pattern["detail-type"]) == (["aws.glue"], ["Glue Job State Change"])
        for state in pattern["detail"]["state"]:
            states.setdefault(state, []).extend(pattern["detail"]["jobName"])
        (target,) = body["Targets"]
        assert target["DeadLetterConfig"]
    assert {state: sorted(named) for state, named in states.items()} == dict.fromkeys(
        ["SUCCEEDED", "FAILED", "TIMEOUT", "STOPPED", "ERROR", "EXPIRED"], jobs
    )


def test_an_event_about_a_run_is_kept_for_a_day_and_then_for_two_weeks(dev):
    """N3: EventBridge keeps it while the function can't be invoked, then the dead-letter queue, which has an
    alarm.
    """
    for body in dev.resources("AWS::Events::Rule").values():
        assert body["Targets"][0]["RetryPolicy"]["MaximumEventAgeInSeconds"] == 24 * 3600
    (function,) = [
        body
        for body in dev.resources("AWS::Lambda::Function", "exports").values()
        if body["Handler"] == contract.NOTIFY
    ]
    (queue,) = dev.resources("AWS::SQS::Queue", "exports").items()
    assert queue[0][1] in json.dumps(function["DeadLetterConfig"])
    assert queue[1]["MessageRetentionPeriod"] == 14 * 24 * 3600


AGES = ("TopicAgeHours", "IcebergAgeHours", "GlueAgeHours", "SnowflakeAgeHours")
STATES = (
    *AGES,
    "TableflowStopped",
    "RowsSkipped",
    "ExportLateHours",
    "RotationOverdueDays",
    contract.UNMEASURED,
)


def alarms_on_metrics(assembly):
    """Return the alarms on the watch's metrics, by metric."""
    alarms = assembly.resources("AWS::CloudWatch::Alarm", "operations").values()
    return {body["MetricName"]: body for body in alarms if body["Namespace"] == contract.METRICS}


def test_a_limit_of_hours_is_honoured_within_the_hour(assembly):
    """The shortest limit in a deployment file is an hour."""
    alarms = alarms_on_metrics(assembly)
    assert set(alarms) == {*contract.METRIC_DIMENSIONS, contract.UNMEASURED}
    (schedule,) = assembly.resources("AWS::Scheduler::Schedule", "operations").values()
    assert schedule["ScheduleExpression"] == f"cron(0/{contract.WATCH_MINUTES} * * * ? *)"
    for metric in (*STATES, "KeyAgeDays", "DeployerKeyAgeDays"):
        body = alarms[metric]
        assert body["Period"] == contract.WATCH_MINUTES * 60
        assert body["Period"] * body["EvaluationPeriods"] < 3600
        assert body["Dimensions"] == [{"Name": "Deployment", "Value": assembly.prefix}]


def test_a_watch_that_stops_is_mailed(assembly):
    for metric, body in alarms_on_metrics(assembly).items():
        waits = metric == "RecipientsUnconfirmed"
        assert body["TreatMissingData"] == ("notBreaching" if waits else "missing")
        assert bool(body.get("InsufficientDataActions")) != waits
        assert body["AlarmActions"]
        assert body["OKActions"]


def test_recipients_have_a_day_to_confirm(assembly):
    body = alarms_on_metrics(assembly)["RecipientsUnconfirmed"]
    assert body["Period"] * body["EvaluationPeriods"] == 86400
    assert "DatapointsToAlarm" not in body


def test_every_function_of_ours_has_alarms_for_its_errors_and_for_starts_that_aws_refused(assembly):
    """Functions of CDK's provider framework have none: one of them fails whenever its waiter must continue to
    wait.
    """
    reader = Reader(assembly)
    for part in assembly.templates:
        ours = {
            logical_id
            for (_, logical_id), body in assembly.resources("AWS::Lambda::Function", part).items()
            if body["Runtime"].startswith("python")
        }
        alarms = [
            body
            for body in assembly.resources("AWS::CloudWatch::Alarm", part).values()
            if body["Namespace"] == "AWS/Lambda"
        ]
        for metric, periods in (("Errors", 1), ("Throttles", 3)):
            found = [body for body in alarms if body["MetricName"] == metric]
            assert sorted(body["Dimensions"][0]["Value"]["Ref"] for body in found) == sorted(ours)
            assert {body["EvaluationPeriods"] for body in found} <= {periods}
        for body in alarms:
            assert (body["Statistic"], body["Period"], body["Threshold"]) == ("Sum", 300, 0)
            assert body["AlarmName"].startswith(f"{assembly.prefix}-")
            (topic,) = {reader.text(arn, part) for arn in [*body["AlarmActions"], *body["OKActions"]]}
            assert topic.endswith(f":{assembly.prefix}-alarms")


@pytest.fixture
def deploy_alarms(dev, lake_aws):
    """Return a function that creates the deployment's alarms in an embedded AWS, with new names each time."""
    return lambda: AlarmedDeployment(dev, lake_aws)


class AlarmedDeployment:
    healthy = MappingProxyType({(metric, "x"): 0.0 for metric in contract.METRIC_DIMENSIONS})

    def __init__(self, assembly, aws):
        self._client = boto3.client("cloudwatch")
        self._aws = aws
        self._name = f"{assembly.prefix}{next(_numbers)}"
        for metric, body in alarms_on_metrics(assembly).items():
            given = {
                name: value for name, value in body.items() if not name.endswith("Actions") and name != "Tags"
            }
            whole = [{"Name": contract.DEPLOYMENT_DIMENSION, "Value": self._name}]
            self._client.put_metric_alarm(
                **given | {"AlarmName": f"{self._name}-{metric}", "Dimensions": whole}
            )

    def watch(self, *runs):
        """Publish one run of the watch for each set of values, the last one now."""
        for ago, values in enumerate(reversed(runs)):
            at = time.time() - 1 - ago * contract.WATCH_MINUTES * 60
            checks.emit(self._client, values, self._name, at)

    def states(self, seconds=0):
        """Return the states by metric after so many seconds without another run."""
        body = json.dumps({"seconds": seconds}).encode()
        request = urllib.request.Request(
            f"{self._aws.url}/_simulator/alarms/evaluate", data=body, method="POST"
        )
        with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(request) as answer:
            found = json.load(answer)
        return {
            name.removeprefix(f"{self._name}-"): found[name]
            for name in found
            if name.startswith(f"{self._name}-")
        }


def test_a_new_deployment_starts_without_an_alarm_and_a_silent_watch_raises_one(deploy_alarms):
    """Nobody has confirmed a subscription yet, which raises no alarm on the first day."""
    deployment = deploy_alarms()
    first = deployment.states()
    assert first.pop("RecipientsUnconfirmed") == "OK"
    assert set(first.values()) == {"INSUFFICIENT_DATA"}
    deployment.watch(deployment.healthy | {("RecipientsUnconfirmed", "x"): 1.0})
    assert set(deployment.states().values()) == {"OK"}
    silent = deployment.states(seconds=6 * contract.WATCH_MINUTES * 60)
    assert silent.pop("RecipientsUnconfirmed") == "OK"
    assert set(silent.values()) == {"INSUFFICIENT_DATA"}


@pytest.mark.parametrize("metric", STATES)
def test_a_problem_in_two_runs_raises_its_alarm_and_no_other(deploy_alarms, metric):
    healthy = AlarmedDeployment.healthy
    wrong = (
        healthy | {("GlueAgeHours", "y"): None}
        if metric == contract.UNMEASURED
        else healthy | {(metric, "y"): 200.0}
    )
    deployment = deploy_alarms()
    deployment.watch(healthy, healthy, wrong)
    assert "ALARM" not in deployment.states().values()
    deployment = deploy_alarms()
    deployment.watch(healthy, wrong, wrong)
    assert {name for name, state in deployment.states().items() if state == "ALARM"} == {metric}


def test_users_learn_that_recipients_must_confirm(assembly):
    """N7."""
    assert "confirm" in assembly.templates["exports"]["Outputs"]["Unconfirmed"]["Value"]
    mails = [body["Endpoint"] for body in assembly.resources("AWS::SNS::Subscription").values()]
    deployment = assembly.plan.deployment
    assert sorted(mails) == sorted(
        [
            *deployment.alerts.engineers,
            *[recipient for export in deployment.exports for recipient in export.recipients],
        ]
    )


def test_only_secrets_manager_rotates_keys(assembly):
    schedules = assembly.resources("AWS::SecretsManager::RotationSchedule")
    assert len(schedules) == len(assembly.resources("Custom::LakeferryApiKey")) + 1
    assert len(schedules) >= 8
    for body in schedules.values():
        assert body["RotateImmediatelyOnUpdate"] is False
        assert (
            body["RotationRules"]["ScheduleExpression"]
            == f"rate({assembly.plan.deployment.rotation.every_days} days)"
        )
    for body in assembly.resources("AWS::Lambda::Permission").values():
        if body["Principal"] == "secretsmanager.amazonaws.com":
            assert Reader(assembly).text(body["SourceAccount"], "confluent") == ACCOUNT
            assert body["SourceArn"]


@pytest.mark.parametrize("part", ["confluent", "snowflake"])
def test_replaced_keys_are_revoked_within_hours_of_the_end_of_their_grace(assembly, part):
    """The schedule calls the function that rotates them, with all secrets of the stack."""
    (schedule,) = assembly.resources("AWS::Scheduler::Schedule", part).values()
    assert schedule["ScheduleExpression"] == "cron(15 0/6 * * ? *)"
    reader = Reader(assembly)
    event = json.loads(reader.text(schedule["Target"]["Input"], part))
    secrets = [
        reader.text({"Ref": secret}, part)
        for _, secret in assembly.resources("AWS::SecretsManager::Secret", part)
    ]
    assert event["operation"] == contract.REVOKE_EXPIRED
    assert sorted(event["secrets"]) == sorted(secrets)
    ((_, queue),) = assembly.resources("AWS::SQS::Queue", part)
    assert reader.text(schedule["Target"]["DeadLetterConfig"]["Arn"], part) == f"<{part}.{queue}.Arn>"
    (alarm,) = [
        body
        for body in assembly.resources("AWS::CloudWatch::Alarm", part).values()
        if body["Namespace"] == "AWS/SQS"
    ]
    assert queue in json.dumps(alarm["Dimensions"])


def test_the_functions_that_fill_secrets_may_do_so_with_those_secrets_only(assembly):
    """Not with other secrets whose names begin alike."""
    for (part, name), body in assembly.resources("AWS::IAM::Role").items():
        for policy in body.get("Policies", []):
            for statement in policy["PolicyDocument"]["Statement"]:
                allowed = (
                    statement["Action"] if isinstance(statement["Action"], list) else [statement["Action"]]
                )
                if "secretsmanager:PutSecretValue" in allowed:
                    given = (
                        statement["Resource"]
                        if isinstance(statement["Resource"], list)
                        else [statement["Resource"]]
                    )
                    assert "*" not in json.dumps(given), (part, name)


def test_functions_may_decrypt_the_keys_that_people_stored_and_nothing_else(assembly):
    """Whatever KMS key these secrets have: its ARN is not known, and the secret's name is in its encryption
    context.
    """
    deployment = assembly.plan.deployment
    region = assembly.plan.deployment.aws.region
    readers = {
        "confluent.ConfluentProviderFunctionRole": deployment.confluent.cloud_key_secret,
        "confluent.KeyRotationFunctionRole": deployment.confluent.cloud_key_secret,
        "snowflake.SnowflakeProviderFunctionRole": deployment.snowflake.key_secret,
    }
    key = f"arn:aws:kms:{region}:{ACCOUNT}:key/theirs"
    secret = f"arn:aws:secretsmanager:{region}:{ACCOUNT}:secret:"
    for role, name in readers.items():
        grants = [grant for grant in Reader(assembly).grants() if grant.role.startswith(role)]

        def may(name, service="secretsmanager", grants=grants):
            context = {
                "kms:ViaService": f"{service}.{region}.amazonaws.com",
                "kms:EncryptionContext:SecretARN": f"{secret}{name}-a1B2c3",
            }
            return any(grant.allows("kms:Decrypt", key, context) for grant in grants)

        assert (may(name), may(f"{name}-2"), may(name, "s3")) == (True, False, False), role


def test_secrets_have_no_value_and_their_key_is_in_the_same_stack(assembly):
    """I4. A key in another stack could be deleted first."""
    for (part, _), body in assembly.resources("AWS::SecretsManager::Secret").items():
        assert "SecretString" not in body
        key = body["KmsKeyId"]["Fn::GetAtt"][0]
        assert assembly.templates[part]["Resources"][key]["Type"] == "AWS::KMS::Key"


def test_functions_get_names_of_secrets_and_no_values(assembly):
    """I4, I13."""
    for body in assembly.resources("AWS::Lambda::Function").values():
        for name, value in body.get("Environment", {}).get("Variables", {}).items():
            if name.endswith("_SECRET"):
                name_or_arn = (
                    value.keys() == {"Fn::ImportValue"}
                    if isinstance(value, dict)
                    else re.fullmatch(r"[a-z/-]+", value)
                )
                assert name_or_arn, value


def test_everything_carries_its_tags(assembly):
    for part in assembly.templates:
        result = json.loads((assembly.folder / "manifest.json").read_text())["artifacts"][
            f"{assembly.prefix}-{part}"
        ]["properties"]["tags"]
        assert {"project": "lakeferry", "owner": "data-platform team"}.items() <= result.items()


@pytest.mark.parametrize("part", ["data", "confluent", "snowflake", "exports", "operations"])
def test_templates_stay_far_from_cloudformations_limits(assembly, part):
    template = assembly.templates[part]
    assert len(template["Resources"]) < 300
    assert len(json.dumps(template)) < 500_000


def test_every_stack_has_the_outputs_that_users_need(dev):
    result = {
        name
        for template in dev.templates.values()
        for name, output in template.get("Outputs", {}).items()
        if "Export" not in output
    }
    assert result >= set(WANTED.split())


@pytest.fixture(scope="module")
def large(tmp_path_factory, dev):
    root = tmp_path_factory.mktemp("large")
    plan = deployment_file.parse(large_deployment.write(root), name="large.toml", root=root, judge=NOT_JUDGED)
    assembly = synthesise(plan, tmp_path_factory.mktemp("assembly"))
    assert assembly.failure == ""
    return assembly


@pytest.mark.deep
def test_a_hundred_tables_and_fifty_exports_stay_within_the_limits_of_aws(large):
    reader = Reader(large)
    assert len(large.resources("Custom::LakeferryTableflowTopic")) == large_deployment.TABLES == 100
    assert len(large.resources("AWS::Glue::Job")) == large_deployment.EXPORTS == 50
    for part, template in large.templates.items():
        assert len(template["Resources"]) <= 500, part
        assert len(template.get("Outputs", {})) <= 200, part
        assert (large.folder / f"{large.prefix}-{part}.template.json").stat().st_size <= 1_000_000, part
    for (part, name), body in large.resources("AWS::IAM::Role").items():
        policies = [reader.text(policy["PolicyDocument"], part) for policy in body.get("Policies", [])]
        assert sum(len(json.dumps(policy, separators=(",", ":"))) for policy in policies) <= 10_240, name
    for (part, name), body in large.resources("AWS::Lambda::Function").items():
        variables = body.get("Environment", {}).get("Variables", {})
        assert (
            sum(len(key) + len(str(reader.text(value, part))) for key, value in variables.items()) <= 4096
        ), name
    for body in large.resources("AWS::SQS::QueuePolicy").values():
        statements = body["PolicyDocument"]["Statement"]
        assert len(statements) <= 20
        assert sum("Condition" in statement for statement in statements) <= 10
    for (part, name), body in large.resources("AWS::Events::Rule").items():
        assert len(json.dumps(reader.text(body["EventPattern"], part))) <= 2048, name
