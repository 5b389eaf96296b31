"""Exports of the construct library: what contracts, schemas and schedules must be, and what jobs may do."""

from __future__ import annotations

import json
from datetime import date

import pytest
from aws_cdk import App, Stack
from aws_cdk import aws_events as events
from aws_cdk import aws_events_targets as targets
from aws_cdk import aws_s3 as s3
from aws_cdk import aws_sns as sns

from config.exports import contracts
from stacks import assets
from stacks import constructs as lakeferry
from tests.support.assembly_kit import ROOT
from tests.support.construct_kit import (
    PLACE,
    SCHEMA,
    describe_runtime,
    describe_table,
    export,
    list_statements,
    open_bucket,
    render,
    resources,
    write_contract,
)

#: A column that shows who made a trade.
USER = """
[[column]]
name = "who"
{source}
type = "text"
title = "Who"
description = "The user."
"""
KEPT = {"[aggregate]": "[aggregate]\nkeep_as_table = true"}


def test_two_exports_with_one_name_are_refused(stack, runtime):
    exports = open_bucket(stack, runtime)
    export(exports, describe_table())
    with pytest.raises(lakeferry.BadProps, match="export hourly_trades exists already in App/Exports/Jobs"):
        export(exports, describe_table(), "Again")


def test_two_export_buckets_with_the_same_names_are_refused(stack, runtime):
    open_bucket(stack, runtime)
    with pytest.raises(
        lakeferry.BadProps, match="App/Exports/Jobs has jobs and logs with the names acme-prod"
    ):
        open_bucket(stack, runtime, "Second")
    open_bucket(stack, describe_runtime(stage="test"), "Third")


def test_stages_in_one_bucket_have_keys_of_their_own(stack):
    for stage in ("prod", "test"):
        bucket = open_bucket(stack, describe_runtime(stage=stage), stage)
        export(bucket, describe_table(), f"{stage}Sales")
    jobs = resources(render(stack), "AWS::Glue::Job").values()
    arguments = [body["DefaultArguments"] for body in jobs]
    assert {of_job["--prefix"] for of_job in arguments} == {"acme-prod/exports", "acme-test/exports"}
    assert (
        len({of_job["--warehouse"] for of_job in arguments})
        == len({of_job["--TempDir"] for of_job in arguments})
        == 2
    )


@pytest.mark.parametrize("prefix", ["team/", "team/eu/"])
def test_two_export_buckets_with_keys_in_common_are_refused(stack, runtime, prefix):
    open_bucket(stack, runtime, prefix="team/")
    other = describe_runtime(stage="test")
    with pytest.raises(
        lakeferry.BadProps, match="prefix: App/Exports/Jobs writes to keys of the same bucket"
    ):
        open_bucket(stack, other, "Second", prefix=prefix)
    elsewhere = s3.Bucket.from_bucket_name(stack, "Elsewhere", "acme-others")
    open_bucket(stack, other, "Third", prefix=prefix, bucket=elsewhere)


@pytest.mark.parametrize("prefix", ["", "team", "/team/", "team*/", "team//"])
def test_a_prefix_ends_with_a_slash(stack, runtime, prefix):
    with pytest.raises(lakeferry.BadProps, match=r"^prefix: .* with a slash at the end, like team/"):
        open_bucket(stack, runtime, prefix=prefix)


def test_a_role_writes_to_the_folders_of_its_own_export_only(stack, runtime, tmp_path):
    exports = open_bucket(stack, runtime)
    export(exports, describe_table())
    export(exports, describe_table(), "Kept", contract=write_contract(tmp_path, "kept", KEPT))
    template = render(stack)
    plain = list_statements(template, "SalesRole")
    assert plain["WriteFiles"]["Resource"] == _name_objects("exports/hourly_trades/*")
    assert plain["UseTempDir"]["Resource"] == _name_objects("temporary/hourly_trades/*")
    assert not {"KeepAggregatesGlue", "KeepAggregatesS3"} & plain.keys()
    kept = list_statements(template, "KeptRole")
    tables = json.dumps(kept["KeepAggregatesGlue"]["Resource"])
    assert "/kept" in tables
    assert "*" not in tables
    assert "/kept/*" in json.dumps(kept["KeepAggregatesS3"]["Resource"])


def _name_objects(key):
    return {"Fn::Join": ["", ["arn:", {"Ref": "AWS::Partition"}, f":s3:::acme-files/acme-prod/{key}"]]}


def test_all_that_does_not_fit_an_export_is_one_message(stack, runtime, tmp_path):
    contract = write_contract(tmp_path, "other", {'topic = "Sales.Trades"': 'topic = "payments"'})
    with pytest.raises(lakeferry.BadProps) as refused:
        export(
            open_bucket(stack, runtime),
            describe_table(),
            contract=contract,
            cron="every day",
            zone="Mars/Olympus",
        )
    message = str(refused.value)
    for part in ("reads payments", "that of Sales.Trades", "cron: ", "zone: 'Mars/Olympus'"):
        assert part in message


def test_a_contract_with_mistakes_names_all_of_them(stack, runtime, tmp_path):
    exports = open_bucket(stack, runtime)
    contract = write_contract(tmp_path, "broken", {'every = "day"': 'every = "moon"', "version = 1": ""})
    with pytest.raises(lakeferry.BadProps, match=r"broken.toml: 2 mistakes"):
        export(exports, describe_table(), contract=contract)
    with pytest.raises(lakeferry.BadProps, match=r"contract: .*none.toml: .*\n.* cannot be read"):
        export(exports, describe_table(), "Missing", contract=tmp_path / "none.toml")
    with pytest.raises(lakeferry.BadProps, match=r"schema: .*none.avsc: cannot be read"):
        export(exports, describe_table(), "Blind", schema=tmp_path / "none.avsc")


@pytest.mark.parametrize(
    "source", ['from = "userid"', 'expression = "upper(userid)"', "expression = \"concat('x', `account`)\""]
)
def test_a_personal_field_needs_a_treatment(stack, runtime, tmp_path, source):
    column = USER.format(source=source)
    changes = {"[aggregate]": f"{column}\n[aggregate]", '["symbol", "hour"]': '["symbol", "hour", "who"]'}
    with pytest.raises(
        lakeferry.BadProps, match=r"who contains personal data .* and has no `personal` entry"
    ):
        export(
            open_bucket(stack, runtime), describe_table(), contract=write_contract(tmp_path, "users", changes)
        )


def test_fields_and_their_types_are_those_of_the_schema(stack, runtime, tmp_path):
    changes = {'event_time = "kafka_timestamp"': 'event_time = "price"', 'name = "symbol"': 'name = "ticker"'}
    contract = write_contract(tmp_path, "wrong", changes | {'["symbol", "hour"]': '["ticker", "hour"]'})
    with pytest.raises(lakeferry.BadProps) as refused:
        export(open_bucket(stack, runtime), describe_table(), contract=contract)
    assert "has no field ticker" in str(refused.value)
    assert "price is int, not a timestamp" in str(refused.value)


def test_a_schema_whose_tags_nobody_reviewed_is_refused(stack, runtime, tmp_path):
    schema = tmp_path / "made.avsc"
    schema.write_text(SCHEMA.read_text().replace('"reviewed"', '"unknown"'))
    with pytest.raises(lakeferry.BadProps, match=r"the schema of Sales\.Trades was made from a table"):
        export(open_bucket(stack, runtime), describe_table(), schema=schema)


def test_a_window_is_published_while_its_rows_exist(stack, runtime, tmp_path):
    exports = open_bucket(stack, runtime)
    contract = write_contract(tmp_path, "late", {"restate_for_days = 3": "restate_for_days = 60"})
    short = describe_table(settings=lakeferry.Tableflow(rows_days=30))
    with pytest.raises(lakeferry.BadProps, match="rows_days in `settings` of the table must be at least 62"):
        export(exports, short, contract=contract)
    export(exports, describe_table(settings=lakeferry.Tableflow(rows_days=62)), "Long", contract=contract)


def test_a_schedule_has_a_second_run_for_each_window(stack, runtime):
    exports = open_bucket(stack, runtime)
    with pytest.raises(
        lakeferry.BadProps, match="cron: starts hourly_trades only once before its next window"
    ):
        export(exports, describe_table(), cron="0 6 * * ? *")


def test_the_first_day_is_plausible(stack, runtime):
    with pytest.raises(
        lakeferry.BadProps, match="first_day: 1970-01-01 is not a day on which windows can begin"
    ):
        export(open_bucket(stack, runtime), describe_table(), first_day=date(1970, 1, 1))


def test_a_contract_that_hashes_needs_the_name_of_a_key(stack, runtime):
    weekly = ROOT / "project" / "exports" / "weekly_sales.toml"
    source = contracts.load(str(weekly)).source
    given = {"contract": weekly, "schema": ROOT / "project" / "topics" / f"{source.topic}.avsc"}
    table = describe_table(source.topic)
    with pytest.raises(lakeferry.BadProps, match="hashes columns: name the secret"):
        export(open_bucket(stack, runtime), table, **given)
    keyed = open_bucket(stack, describe_runtime(stage="test"), "Keyed", pseudonym_secret="acme/pseudonyms")
    made = export(keyed, table, "Weekly", **given)
    assert made.job_name == f"acme-test-{weekly.stem}"


def test_exports_have_one_rule_for_their_failures_and_the_queue_few_statements(stack, runtime, tmp_path):
    """SQS takes ten conditions in a policy. Zips aren't part of it, so the contracts are the same but for a name."""
    exports = open_bucket(stack, runtime)
    names = [f"export_{number}" for number in range(17)]
    for name in names:
        export(exports, describe_table(), name, contract=write_contract(tmp_path, name))
    template = render(stack)
    rules = resources(template, "AWS::Events::Rule").values()
    listed = [body["EventPattern"]["detail"]["jobName"] for body in rules]
    assert listed == [[f"acme-prod-{name}" for name in names[:16]], ["acme-prod-export_16"]]
    (policy,) = resources(template, "AWS::SQS::QueuePolicy").values()
    assert len([item for item in policy["PolicyDocument"]["Statement"] if "Condition" in item]) == 3


def test_alarms_may_publish_to_a_topic_that_the_app_creates(stack, runtime):
    alarms = sns.Topic(stack, "Alarms")
    export(open_bucket(stack, runtime, alarms=alarms), describe_table())
    (policy,) = resources(render(stack), "AWS::SNS::TopicPolicy").values()
    by_service = {
        statement["Principal"]["Service"]: statement for statement in policy["PolicyDocument"]["Statement"]
    }
    assert by_service.keys() == {"cloudwatch.amazonaws.com", "events.amazonaws.com"}
    assert by_service["cloudwatch.amazonaws.com"]["Condition"] == {
        "StringEquals": {"aws:SourceAccount": {"Ref": "AWS::AccountId"}}
    }


def test_a_rule_alone_would_lock_alarms_out():
    """The defect that the library prevents: CDK's own target lets only events in."""
    stack = Stack(App(), "Planted")
    rule = events.Rule(stack, "Rule", event_pattern=events.EventPattern(source=["aws.glue"]))
    rule.add_target(targets.SnsTopic(sns.Topic(stack, "Alarms")))
    (policy,) = resources(render(stack), "AWS::SNS::TopicPolicy").values()
    assert "cloudwatch" not in json.dumps(policy)


def test_buckets_of_the_app_itself_hold_files(runtime):
    stack = Stack(App(), "App", env=PLACE)
    export(open_bucket(stack, runtime, bucket=s3.Bucket(stack, "Own")), describe_table())
    (job,) = resources(render(stack), "AWS::Glue::Job").values()
    assert "Ref" in job["DefaultArguments"]["--bucket"]


def test_the_zip_of_one_export_does_not_take_the_place_of_anothers(tmp_path):
    files = {name: write_contract(tmp_path, name) for name in ("first", *"abcdefg")}
    build = tmp_path / "build"
    built = [assets.build_glue_zip(build, {name: file}) for name, file in files.items()]
    assert [zip_file for zip_file in built if not zip_file.exists()] == []
