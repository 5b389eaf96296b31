"""Props of the construct library: what can't be deployed is refused, without the value of a secret."""

from __future__ import annotations

import pytest
from aws_cdk import Aws, Duration, Fn
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_secretsmanager as secretsmanager

from stacks import constructs as lakeferry
from tests.support.construct_kit import (
    describe_runtime,
    open_account,
    open_bucket,
    open_cluster,
    open_storage,
    render,
    resources,
)
from tests.support.policies import ACCOUNT

SUBNETS = {"subnet-0a1b2c3d4e5f60718": "eu-west-1a"}
GROUPS = ["sg-0a1b2c3d4e5f60718"]
#: It looks like nothing that is in use anywhere.
PASSWORD = "hunter2"


@pytest.mark.parametrize(
    ("props", "problem"),
    [
        ({"project": "Acme"}, "project: 'Acme' must be 2 to 20 lower-case"),
        ({"project": "Acme", "stage": "prod-1"}, "project: .*; stage: 'prod-1' must be"),
        ({"alarm_topic_arn": "alarms"}, "alarm_topic_arn: 'alarms' must be the ARN of an SNS topic"),
        ({"logs_key_arn": "alias/logs"}, "logs_key_arn: 'alias/logs' must be the ARN of a key"),
        ({"glue_timeout_minutes": 4}, "glue_timeout_minutes: 4 is too small: at least 10"),
        ({"glue_version": "4.0"}, "glue_version: '4.0' is none of: 5.1, 6.0"),
        ({"log_retention_days": 31}, "log_retention_days: 31 is none of"),
        ({"lambda_memory_mb": "512"}, "lambda_memory_mb: must be a whole number, not '512'"),
    ],
)
def test_a_runtime_has_the_values_that_a_deployment_file_may_have(props, problem):
    with pytest.raises(lakeferry.BadProps, match=problem):
        describe_runtime(**props)


@pytest.mark.parametrize(
    ("props", "problem"),
    [
        ({"subnets": {}}, r"network\.subnets: is empty"),
        (
            {"subnets": {"private": "eu-west-1a"}},
            r"network\.subnets\.private: 'private' must be a subnet's id",
        ),
        ({"subnets": dict.fromkeys(SUBNETS, "a")}, r"network\.subnets: 'a' must be an availability zone"),
        ({"security_groups": []}, r"network\.security_groups: is empty"),
        ({"security_groups": GROUPS * 2}, r"network\.security_groups: has one of them twice"),
        ({"security_groups": "sg-1"}, r"network\.security_groups: must be a list"),
    ],
)
def test_a_network_is_as_complete_as_that_of_a_deployment_file(props, problem):
    given = {"subnets": SUBNETS, "security_groups": GROUPS, **props}
    with pytest.raises(lakeferry.BadProps, match=problem):
        describe_runtime(network=lakeferry.Network(**given))


def test_what_is_not_known_yet_has_any_form(stack):
    group = ec2.SecurityGroup.from_security_group_id(stack, "Group", Fn.import_value("group"))
    network = lakeferry.Network(subnets=SUBNETS, security_groups=[group.security_group_id])
    topic = f"arn:aws:sns:eu-west-1:{Aws.ACCOUNT_ID}:alarms"
    runtime = describe_runtime(network=network, alarm_topic_arn=topic)
    own = secretsmanager.Secret(stack, "Own")
    open_cluster(stack, runtime, cloud_key_secret=own.secret_name)


def test_a_proxy_has_no_login_and_the_message_does_not_repeat_it():
    proxy = f"http://user:{PASSWORD}@proxy.example.com:3128"
    network = lakeferry.Network(subnets=SUBNETS, security_groups=GROUPS, proxy=proxy)
    with pytest.raises(
        lakeferry.BadProps, match=r"network\.proxy: .* a proxy's address without a login"
    ) as refused:
        describe_runtime(network=network)
    assert PASSWORD not in str(refused.value)


@pytest.mark.parametrize(
    "value",
    [
        f'{{"apiKey": "ABC", "apiSecret": "{PASSWORD}"}}',
        f"arn:aws:secretsmanager:eu-west-1:{ACCOUNT}:secret:{PASSWORD}-AbCdEf",
        PASSWORD + "Zk9Qw3Rt7Yu1Xp5Lm8Nb2Vc4Gh6Jd0Fs",
    ],
)
def test_secrets_are_given_by_name_and_never_repeated(stack, runtime, value):
    attempts = [
        lambda: open_cluster(stack, runtime, "One", cloud_key_secret=value),
        lambda: open_cluster(stack, runtime, "Two", brought_keys=[("KafkaKey", value)]),
        lambda: open_bucket(stack, runtime, pseudonym_secret=value),
    ]
    for attempt in attempts:
        with pytest.raises(lakeferry.BadProps, match=r"a secret") as refused:
            attempt()
        assert PASSWORD not in str(refused.value)


@pytest.mark.parametrize(
    ("settings", "problem"),
    [
        ({"on_error": "LOGG"}, r"settings\.on_error: 'LOGG' is none of: .* Did you mean LOG\?"),
        ({"snapshots_days": 0}, r"settings\.snapshots_days: 0 is too small: at least 1"),
        ({"rows_days": 5}, r"settings\.rows_days: 5 is too small"),
        ({"formats": ["DELTA"]}, r"settings\.formats can't have DELTA"),
        ({"write_mode": "UPSERT"}, r"settings\.write_mode is UPSERT, and that of Topic\.from_name APPEND"),
        ({"shown_in_glue": False}, r"settings\.shown_in_glue is False, but"),
        ({"snowflake_table": "TRADES"}, r"settings\.snowflake_table is for a deployment file"),
    ],
)
def test_settings_that_tableflow_refuses_or_nothing_uses_are_refused(stack, cluster, settings, problem):
    account = open_account(stack, cluster)
    topic = lakeferry.Topic.from_name(stack, "Topic", cluster=cluster, name="orders", owner=account)
    with pytest.raises(lakeferry.BadProps, match=problem):
        topic.tableflow(open_storage(stack, account), settings=lakeferry.Tableflow(**settings))


def test_all_that_does_not_fit_a_table_is_one_message(stack, cluster):
    accounts = [open_account(stack, cluster, id) for id in ("One", "Two")]
    storage = open_storage(stack, accounts[0])
    topic = lakeferry.Topic.from_name(stack, "Topic", cluster=cluster, name="orders", owner=accounts[1])
    with pytest.raises(lakeferry.BadProps) as refused:
        topic.tableflow(storage, settings=lakeferry.Tableflow(storage="managed", on_error="LOG"))
    for part in (
        "that of another account",
        "settings.storage is managed",
        "settings.error_log_topic is error_log",
    ):
        assert part in str(refused.value)
    with pytest.raises(lakeferry.BadProps, match="glue_database: 'My Tables' must be a database's name"):
        open_storage(stack, accounts[1], "Wrong", glue_database="My Tables")


def test_a_topic_has_one_object_and_a_table_one_topic(stack, cluster):
    account = open_account(stack, cluster)
    storage = open_storage(stack, account)
    known = {"cluster": cluster, "owner": account}
    lakeferry.Topic.from_name(stack, "Topic", name="orders", **known).tableflow(storage)
    with pytest.raises(lakeferry.BadProps, match="topic orders of the cluster is App/Topic already"):
        lakeferry.Topic.from_name(stack, "Again", name="orders", **known)
    other = lakeferry.Topic.from_name(stack, "Other", name="Orders", **known)
    with pytest.raises(lakeferry.BadProps, match="App/Topic turned on Tableflow for topic orders already"):
        other.tableflow(storage)
    environment = cluster.environment
    with pytest.raises(lakeferry.BadProps, match="Kafka cluster lkc-abc123 is App/Cluster already"):
        lakeferry.KafkaCluster.from_id(stack, "Same", environment=environment, cluster_id="lkc-abc123")


def test_tableflow_is_turned_on_once(stack, cluster):
    account = open_account(stack, cluster)
    storage = open_storage(stack, account)
    topic = lakeferry.Topic.from_name(stack, "Topic", cluster=cluster, name="orders", owner=account)
    topic.tableflow(storage)
    with pytest.raises(lakeferry.BadProps, match="App/Topic turned on Tableflow for topic orders already"):
        topic.tableflow(storage)


def test_a_topic_that_becomes_no_table_has_none(stack, cluster):
    account = open_account(stack, cluster)
    known = {"cluster": cluster, "owner": account}
    topic = lakeferry.Topic.from_name(stack, "Topic", name="orders", write_mode="", **known)
    with pytest.raises(lakeferry.BadProps, match='write_mode="", which means that there is no table'):
        topic.tableflow(open_storage(stack, account))
    with pytest.raises(lakeferry.BadProps, match="write_mode: 'UPSET' is none of: APPEND, UPSERT"):
        lakeferry.Topic.from_name(stack, "Other", name="payments", write_mode="UPSET", **known)


def test_a_topic_of_upserts_needs_no_settings(stack, cluster):
    account = open_account(stack, cluster)
    topic = lakeferry.Topic.from_name(
        stack, "Topic", cluster=cluster, name="orders", owner=account, write_mode="UPSERT"
    )
    table = topic.tableflow(open_storage(stack, account), adopt=True)
    assert table.settings.write_mode == "UPSERT"
    (body,) = resources(render(stack), "Custom::LakeferryTableflowTopic").values()
    assert body["adopt"] is True


def test_tableflow_waits_for_the_right_to_turn_it_on(stack, cluster):
    account = open_account(stack, cluster)
    topic = lakeferry.Topic(stack, "Topic", cluster=cluster, name="orders", owner=account)
    topic.tableflow(open_storage(stack, account))
    template = render(stack)["Resources"]
    (table,) = [body for body in template.values() if body["Type"] == "Custom::LakeferryTableflowTopic"]
    (owner,) = [
        id
        for id, body in template.items()
        if body["Properties"].get("name") == "orders" and "role" in body["Properties"]
    ]
    assert owner in table["DependsOn"]


def test_ids_of_other_things_are_refused(stack, cluster):
    environment = cluster.environment
    with pytest.raises(lakeferry.BadProps, match="cluster_id: 'orders' must be a Kafka cluster's id"):
        lakeferry.KafkaCluster.from_id(stack, "Other", environment=environment, cluster_id="orders")
    with pytest.raises(lakeferry.BadProps, match="environment_id: 'lkc-1' must be an environment's id"):
        lakeferry.Environment.from_id(stack, "Wrong", provider=environment.provider, environment_id="lkc-1")
    account = open_account(stack, cluster)
    with pytest.raises(lakeferry.BadProps, match="name: "):
        lakeferry.Topic.from_name(stack, "Topic", cluster=cluster, name="a topic", owner=account)


def test_an_account_has_one_storage(stack, cluster):
    account = open_account(stack, cluster)
    open_storage(stack, account)
    with pytest.raises(lakeferry.BadProps, match="account: App/Account has a TableStorage already"):
        open_storage(stack, account, "Second")


def test_a_rotation_that_is_too_short_is_refused(stack, cluster):
    account = open_account(stack, cluster)
    with pytest.raises(lakeferry.BadProps, match=r"can't rotate every 72 hours: .* more than 7"):
        account.key("kafka").rotate(every=Duration.days(3))


def test_how_keys_rotate_has_the_limits_of_a_deployment_file(stack, runtime):
    with pytest.raises(
        lakeferry.BadProps, match="keep: 9 is too large: at most 4; grace_days: 0 is too small"
    ):
        open_cluster(stack, runtime, keep=9, grace_days=0)


def test_the_rotations_of_two_providers_have_alarms_of_their_own(stack, runtime):
    for id, cluster_id in (("", "lkc-abc123"), ("Other", "lkc-def456")):
        cluster = open_cluster(stack, runtime, id, cluster_id)
        open_account(stack, cluster, f"{id}Account").key("kafka").rotate(every=Duration.days(30))
    names = [body["AlarmName"] for body in resources(render(stack), "AWS::CloudWatch::Alarm").values()]
    assert len([name for name in names if name.endswith("RevocationsUndelivered")]) == 2
    assert len(set(names)) == len(names)
