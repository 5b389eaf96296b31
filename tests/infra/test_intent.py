"""What the templates are for, resource by resource."""

from __future__ import annotations

import json
import re
from datetime import date

import attrs
import pytest
from assembly_kit import synthesise
from policies import ACCOUNT, Reader

from glue_jobs.contract import ARGUMENTS, REQUIRED_ARGUMENTS, SPARK_SETTINGS
from lambdas import contract

#: Ids and addresses that users need.
WANTED = """
TableflowBucketName LakeBucketName AthenaWorkgroup DailyTradesFiles EnvironmentId KafkaClusterId BootstrapServers
SchemaRegistryUrl FlinkComputePoolId CatalogUri ClusterPage WarehouseName SchemaName ReaderName ReaderSecretArn
DailyTradesJobName DeadLettersUrl DashboardPage KafkaAppConsumerKeySecretArn
"""


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
        denied = [one for one in body["PolicyDocument"]["Statement"] if one["Effect"] == "Deny"]
        conditions = [one["Condition"] for one in denied if one["Action"] == "s3:*" and one["Principal"] == {"AWS": "*"}]
        assert {"Bool": {"aws:SecureTransport": "false"}} in conditions
        assert {"NumericLessThan": {"s3:TlsVersion": 1.2}} in conditions


def test_no_bucket_policy_or_key_policy_locks_out_who_is_let_in(assembly):
    """I7: buckets deny nothing but plain connections, and keys leave it to the roles' policies."""
    for body in assembly.resources("AWS::S3::BucketPolicy").values():
        for statement in body["PolicyDocument"]["Statement"]:
            assert statement["Effect"] == "Deny"
            assert set(statement["Condition"]) <= {"Bool", "NumericLessThan"}
    for body in assembly.resources("AWS::KMS::Key").values():
        first = body["KeyPolicy"]["Statement"][0]
        assert (first["Effect"], first["Action"]) == ("Allow", "kms:*")
        assert ":root" in json.dumps(first["Principal"])
        assert not [one for one in body["KeyPolicy"]["Statement"] if one["Effect"] == "Deny"]


def test_keys_rotate_and_admit_nobody_else_but_alarms(assembly):
    """I8."""
    keys = assembly.resources("AWS::KMS::Key")
    assert keys
    for (_, name), body in keys.items():
        assert body["EnableKeyRotation"] is True
        more = body["KeyPolicy"]["Statement"][1:]
        assert bool(more) == name.startswith("AlarmKey")
        for statement in more:
            assert statement["Principal"] == {"Service": "cloudwatch.amazonaws.com"}
            assert "aws:SourceAccount" in statement["Condition"]["StringEquals"]


def test_nobody_but_tableflow_writes_to_its_bucket(assembly):
    for grant in Reader(assembly).grants():
        writes = {action for action in grant.actions if action.startswith(("s3:Put", "s3:Delete", "s3:Abort"))}
        if writes and any("TableflowBucket" in one for one in grant.resources):
            assert grant.role.startswith(("confluent.TableflowRole", "confluent.PurgeIsComplete"))


def test_every_log_group_ends(assembly):
    """I9. And every function writes to one of ours: none makes its own."""
    groups = assembly.resources("AWS::Logs::LogGroup")
    assert {body["RetentionInDays"] for body in groups.values()} == {assembly.plan.deployment.aws.log_retention_days}
    for body in assembly.resources("AWS::Lambda::Function").values():
        assert "LogGroup" in body["LoggingConfig"]
    assert not [grant for grant in Reader(assembly).grants() if "logs:CreateLogGroup" in grant.actions]


def test_data_goes_or_stays_as_the_file_says(dev, prod):
    """I20: both ways."""
    kept = {"AWS::S3::Bucket", "AWS::Glue::Database", "AWS::SecretsManager::Secret", "AWS::KMS::Key"}
    for assembly, wanted in ((dev, "Delete"), (prod, "Retain")):
        found = {
            (body["Type"], body.get("DeletionPolicy", "Delete"))
            for body in assembly.templates["data"]["Resources"].values()
            if body["Type"] in kept
        }
        assert found == {(kind, wanted) for kind in kept}
    assert {
        body["DeletionPolicy"]
        for body in prod.templates["confluent"]["Resources"].values()
        if body["Type"] == "AWS::SecretsManager::Secret"
    } == {"Delete"}


def _purged(assembly):
    resources = assembly.resources(contract.PURGE_TYPE).values()
    return sorted(next(iter(set(body) & set(contract.PURGES))) for body in resources)


def test_nothing_purges_data_that_stays(dev, prod):
    """I20."""
    assert _purged(prod) == ["secrets", "secrets"]
    assert _purged(dev) == ["bucket", "bucket", "glue_database", "secrets", "secrets"]
    assert not [grant for grant in Reader(prod).grants() if "s3:DeleteObjectVersion" in grant.actions]


def test_custom_resources_use_words_that_their_kind_knows(assembly):
    seen = set()
    for template in assembly.templates.values():
        for body in template["Resources"].values():
            if body["Type"].startswith("Custom::") and body["Type"] != contract.PURGE_TYPE:
                given = body["Properties"]
                known = contract.KINDS[given["kind"]]
                seen.add(given["kind"])
                assert body["Type"] == contract.resource_type(given["kind"])
                assert set(known.required) <= set(given)
                assert set(given) <= {*known.required, *known.optional, "kind", "format", "ServiceToken", "ServiceTimeout"}
                assert given["format"] == contract.FORMAT
                assert int(given["ServiceTimeout"]) >= contract.TOTAL_TIMEOUT_SECONDS
    left = set(contract.KINDS) - seen
    assert left <= {"snowflake_linked_database", "connector", "flink_statement", "schema"}


def test_each_account_has_the_rights_that_the_contract_says(dev):
    bindings = [body for body in dev.resources("Custom::LakeferryRoleBinding").values()]
    assert sorted(
        (one["role"], one["scope"], one.get("name") if isinstance(one.get("name"), str) else "") for one in bindings
    ) == sorted((role.role, role.scope, role.name) for role in contract.ROLES)
    entries = {
        (body["operation"], body["resource_type"], body["resource_name"])
        for body in dev.resources("Custom::LakeferryAcl").values()
    }
    topics = {topic.name for topic in dev.plan.deployment.topics}
    assert {name for operation, kind, name in entries if (operation, kind) == ("READ", "TOPIC")} == topics
    assert ("WRITE", "TOPIC", "stock_trades") in entries
    assert ("WRITE", "TOPIC", "stock_trades_with_totals") not in entries


def test_the_job_is_what_the_file_and_the_jobs_contract_say(assembly):
    jobs = assembly.resources("AWS::Glue::Job")
    deployment = assembly.plan.deployment
    assert len(jobs) == len(deployment.exports)
    for body in jobs.values():
        given = body["DefaultArguments"]
        own = {name[2:] for name in given if name[2:] in ARGUMENTS}
        assert own >= set(REQUIRED_ARGUMENTS) - {"as-of"}
        assert (body["GlueVersion"], body["NumberOfWorkers"], body["WorkerType"], body["Timeout"]) == (
            "5.1", deployment.aws.glue_workers, deployment.aws.glue_worker_type, deployment.aws.glue_timeout_minutes,
        )  # fmt: skip
        conf = Reader(assembly).text(given["--conf"], "exports")
        assert conf.count("--conf ") == len(SPARK_SETTINGS)
        for name, value in SPARK_SETTINGS.items():
            assert f"{name}={value}" in conf
        assert body["ExecutionProperty"] == {"MaxConcurrentRuns": 1}
        assert body["MaxRetries"] == 0


def test_a_first_day_of_the_deployments_own_reaches_the_job_and_the_watch(dev, tmp_path):
    exports = [attrs.evolve(export, first_day=date(2027, 1, 4)) for export in dev.plan.deployment.exports]
    moved = attrs.evolve(dev.plan, deployment=attrs.evolve(dev.plan.deployment, exports=exports))
    for assembly, day in ((dev, None), (synthesise(moved, tmp_path / "moved"), "2027-01-04")):
        jobs = assembly.resources("AWS::Glue::Job").values()
        assert {job["DefaultArguments"].get("--first-day") for job in jobs} == {day}
        (watched,) = [
            body["Environment"]["Variables"][contract.WATCHED]
            for body in assembly.resources("AWS::Lambda::Function", "operations").values()
            if contract.WATCHED in body.get("Environment", {}).get("Variables", {})
        ]
        assert [each.get("first_day") for each in json.loads(Reader(assembly).text(watched, "operations"))["exports"]] == [day]


def test_only_an_export_that_hashes_gets_the_key(assembly):
    for body in assembly.resources("AWS::Glue::Job").values():
        given = body["DefaultArguments"]
        hashes = bool(assembly.plan.sources.contract(given["--export"], None).hashed)
        assert ("--pseudonym-secret" in given) == hashes


def test_each_export_starts_as_of_its_scheduled_time_in_its_zone(assembly):
    """N1, N2: few tries within hours, then the dead-letter queue; the next run catches up."""
    schedules = [body for body in assembly.resources("AWS::Scheduler::Schedule", "exports").values() if "GroupName" in body]
    exports = assembly.plan.deployment.exports
    assert sorted((one["ScheduleExpression"], one["ScheduleExpressionTimezone"]) for one in schedules) == sorted(
        (f"cron({export.cron})", export.zone) for export in exports
    )
    for body in schedules:
        target = body["Target"]
        assert Reader(assembly).text(target["Arn"], "exports").endswith(":scheduler:::aws-sdk:glue:startJobRun")
        said = json.loads(Reader(assembly).text(target["Input"], "exports"))
        assert said["Arguments"] == {"--as-of": "<aws.scheduler.scheduled-time>"}
        assert target["RetryPolicy"]["MaximumRetryAttempts"] <= 24
        assert target["RetryPolicy"]["MaximumEventAgeInSeconds"] <= 6 * 3600
        assert target["DeadLetterConfig"]
        assert body["FlexibleTimeWindow"] == {"Mode": "OFF"}


def test_what_came_of_a_run_is_told_and_nothing_else(assembly):
    """N5, N10: the rules hear Glue's word about our jobs, so no mail makes another."""
    rules = assembly.resources("AWS::Events::Rule")
    jobs = sorted(body["Name"] for body in assembly.resources("AWS::Glue::Job").values())
    states = []
    for body in rules.values():
        pattern = body["EventPattern"]
        assert (pattern["source"], pattern["detail-type"]) == (["aws.glue"], ["Glue Job State Change"])
        assert sorted(pattern["detail"]["jobName"]) == jobs
        states += pattern["detail"]["state"]
        (target,) = body["Targets"]
        assert target["DeadLetterConfig"]
    assert sorted(states) == ["ERROR", "EXPIRED", "FAILED", "STOPPED", "SUCCEEDED", "TIMEOUT"]


def test_what_no_event_told_is_told_within_the_hour(dev):
    """N3: by a call in the words that the notification knows."""
    from lambdas.handlers import notification

    (body,) = [one for one in dev.resources("AWS::Scheduler::Schedule", "exports").values() if "GroupName" not in one]
    assert json.loads(body["Target"]["Input"]) == notification.CATCH_UP
    assert body["ScheduleExpression"] == "cron(40 * * * ? *)"


def test_silence_is_an_alarm(assembly):
    """N6: what the watch says nothing about counts as bad, within CloudWatch's seven days."""
    alarms = assembly.resources("AWS::CloudWatch::Alarm")
    by_metric = {body["MetricName"]: body for body in alarms.values()}
    for metric in ("TopicAgeHours", "IcebergAgeHours", "GlueAgeHours", "SnowflakeAgeHours", "ExportLateHours", "KeyAgeDays"):
        body = by_metric[metric]
        assert body["TreatMissingData"] == "breaching"
        assert body["Period"] * body["EvaluationPeriods"] <= 7 * 86400
        assert body["Dimensions"] == [{"Name": "Deployment", "Value": assembly.prefix}]
    for body in alarms.values():
        assert body["AlarmActions"]
        assert body["OKActions"]
    assert by_metric["ApproximateNumberOfMessagesVisible"]


def test_recipients_are_told_that_they_must_confirm(assembly):
    """N7."""
    assert "confirm" in assembly.templates["exports"]["Outputs"]["Unconfirmed"]["Value"]
    mails = [body["Endpoint"] for body in assembly.resources("AWS::SNS::Subscription").values()]
    deployment = assembly.plan.deployment
    assert sorted(mails) == sorted(
        [*deployment.alerts.engineers, *[one for export in deployment.exports for one in export.recipients]]
    )


def test_keys_are_rotated_by_secrets_manager_and_by_nobody_else(assembly):
    schedules = assembly.resources("AWS::SecretsManager::RotationSchedule")
    assert len(schedules) == 8
    for body in schedules.values():
        assert body["RotateImmediatelyOnUpdate"] is False
        assert body["RotationRules"]["ScheduleExpression"] == f"rate({assembly.plan.deployment.rotation.every_days} days)"
    for body in assembly.resources("AWS::Lambda::Permission").values():
        if body["Principal"] == "secretsmanager.amazonaws.com":
            assert Reader(assembly).text(body["SourceAccount"], "confluent") == ACCOUNT
            assert body["SourceArn"]


def test_secrets_hold_no_value_and_their_key_stands_beside_them(assembly):
    """I4, and the trap of a key in another stack."""
    for (part, _), body in assembly.resources("AWS::SecretsManager::Secret").items():
        assert "SecretString" not in body
        key = body["KmsKeyId"]["Fn::GetAtt"][0]
        assert assembly.templates[part]["Resources"][key]["Type"] == "AWS::KMS::Key"


def test_functions_get_names_of_secrets_and_no_values(assembly):
    """I4, I13."""
    for body in assembly.resources("AWS::Lambda::Function").values():
        for name, value in body.get("Environment", {}).get("Variables", {}).items():
            if name.endswith("_SECRET"):
                name_or_arn = value.keys() == {"Fn::ImportValue"} if isinstance(value, dict) else re.fullmatch(r"[a-z/-]+", value)
                assert name_or_arn, value


def test_everything_carries_its_tags(assembly):
    for part in assembly.templates:
        told = json.loads((assembly.folder / "manifest.json").read_text())["artifacts"][f"{assembly.prefix}-{part}"][
            "properties"
        ]["tags"]
        assert {"project": "lakeferry", "owner": "data-platform team"}.items() <= told.items()


@pytest.mark.parametrize("part", ["data", "confluent", "snowflake", "exports", "operations"])
def test_templates_stay_far_from_cloudformations_limits(assembly, part):
    template = assembly.templates[part]
    assert len(template["Resources"]) < 300
    assert len(json.dumps(template)) < 500_000


def test_every_stack_tells_what_a_user_needs(dev):
    told = {
        name
        for template in dev.templates.values()
        for name, output in template.get("Outputs", {}).items()
        if "Export" not in output
    }
    assert told >= set(WANTED.split())
