"""Constructs by themselves, in an empty stack."""

from __future__ import annotations

import pytest
from aws_cdk import App, Duration, Stack
from aws_cdk.assertions import Template
from constructs import Construct

from lambdas import contract
from lambdas.confluent.properties import AclProps, TopicProps
from lambdas.shared.settings import FunctionSettings, RotationSettings
from stacks.constructs.cleanup import CleanupOnDestroy
from stacks.constructs.rotation import KeyRotation
from stacks.constructs.runtime import BadProps, Runtime
from stacks.constructs.secrets import StackSecrets
from stacks.constructs.vendor import VendorProvider
from tests.support import assembly_kit  # noqa: F401  (finds Node for CDK)
from tests.support.policies import ACCOUNT


@pytest.fixture(scope="module")
def runtime():
    return Runtime(
        project="lakeferry", stage="dev", alarm_topic_arn=f"arn:aws:sns:eu-west-1:{ACCOUNT}:alarms"
    )


@pytest.fixture
def stack():
    return Stack(App(context={"repair": "7:Bare/OrdersTopic"}), "Bare")


@pytest.fixture
def provider(stack, runtime):
    return VendorProvider(
        stack, "Vendor", runtime=runtime, settings=FunctionSettings(), statements=[], fixed_ids=True
    )


def topic(**more):
    return TopicProps(
        environment_id="env-1", cluster_id="lkc-1", credentials="secret", topic="orders", **more
    )


def properties(stack, kind):
    (body,) = Template.from_stack(stack).find_resources(kind).values()
    return body["Properties"]


def test_a_provider_is_one_function_of_ours_and_three_of_the_framework(stack, provider):
    functions = Template.from_stack(stack).find_resources("AWS::Lambda::Function").values()
    assert len(functions) == 4
    assert sum(body["Properties"]["Handler"] == contract.CUSTOM_RESOURCE for body in functions) == 1


def test_a_resources_logical_id_is_its_construct_id_at_any_depth(stack, provider):
    deep = Construct(Construct(stack, "One"), "Two")
    provider.create(deep, "OrdersTopic", topic())
    assert Template.from_stack(stack).find_resources("Custom::LakeferryTopic").keys() == {"OrdersTopic"}


def test_without_fixed_ids_a_logical_id_comes_from_the_path(stack, runtime):
    named = VendorProvider(stack, "Vendor", runtime=runtime, settings=FunctionSettings(), statements=[])
    for part in ("One", "Two"):
        named.create(Construct(stack, part), "OrdersTopic", topic())
    ids = Template.from_stack(stack).find_resources("Custom::LakeferryTopic").keys()
    assert sorted(id[:14] for id in ids) == ["OneOrdersTopic", "TwoOrdersTopic"]


def test_a_template_has_only_properties_that_differ_from_the_defaults(stack, provider):
    provider.create(stack, "Orders", topic(partitions=3, config={}))
    body = properties(stack, "Custom::LakeferryTopic")
    assert {name: value for name, value in body.items() if not name.startswith("Service")} == {
        "kind": "topic", "environment_id": "env-1", "cluster_id": "lkc-1", "credentials": "secret",
        "topic": "orders", "partitions": 3,
    }  # fmt: skip


def test_outputs_are_attributes_and_dependencies_hold(stack, provider):
    first = provider.create(stack, "OrdersTopic", topic())
    provider.create(
        stack,
        "Entry",
        AclProps(
            environment_id="env-1",
            cluster_id="lkc-1",
            credentials="secret",
            service_account_id="sa-1",
            resource_type="TOPIC",
            resource_name=first.outputs.name,
            operation="READ",
        ),
    ).after(first)
    (body,) = Template.from_stack(stack).find_resources("Custom::LakeferryAcl").values()
    assert body["Properties"]["resource_name"] == {"Fn::GetAtt": ["OrdersTopic", "name"]}
    assert body["DependsOn"] == ["OrdersTopic"]
    with pytest.raises(AttributeError):
        first.outputs.nonsense  # noqa: B018
    with pytest.raises(TypeError):
        topic(partition=3)


def test_only_the_resource_that_is_to_be_repaired_gets_the_mark(stack, provider):
    for id in ("OrdersTopic", "OtherTopic"):
        provider.create(stack, id, topic())
    found = Template.from_stack(stack).find_resources("Custom::LakeferryTopic")
    assert {id: body["Properties"].get(contract.REPAIR) for id, body in found.items()} == {
        "OrdersTopic": "7",
        "OtherTopic": None,
    }


def test_a_cleanup_names_one_object(stack):
    CleanupOnDestroy(stack, "Empty", service_token="arn", bucket="lake")
    assert properties(stack, contract.CLEANUP_TYPE) == {"ServiceToken": "arn", "bucket": "lake"}


@pytest.fixture
def rotation(stack, provider, runtime):
    """Return a rotation, a secret that it may rotate, and the resource that fills the secret."""
    secrets = StackSecrets(stack, "Secrets", runtime=runtime, purpose="tries")
    secret = secrets.empty("KeySecret", "confluent/key", "a key")
    created = KeyRotation(
        stack,
        "KeyRotation",
        runtime=runtime,
        secrets=secrets,
        provider=provider,
        settings=RotationSettings(),
    )
    return created, secret, provider.create(stack, "Orders", topic())


def test_a_rotation_must_be_longer_than_the_grace_of_a_replaced_key(rotation):
    created, secret, filled = rotation
    for interval in (Duration.days(7), Duration.hours(200), Duration.days(366)):
        with pytest.raises(BadProps, match=r"whole days, more than 7, .* and at most 365"):
            created.rotate(secret, filled, every=interval)


def test_a_secret_rotates_once_it_is_filled(stack, rotation):
    created, secret, filled = rotation
    created.rotate(secret, filled, every=Duration.days(30))
    (schedule,) = Template.from_stack(stack).find_resources("AWS::SecretsManager::RotationSchedule").values()
    assert schedule["Properties"]["RotationRules"]["ScheduleExpression"] == "rate(30 days)"
    assert "Orders" in schedule["DependsOn"]
    assert secret.name == "lakeferry-dev/confluent/key"
    alarms = {
        body["Properties"]["AlarmName"].removeprefix(f"{stack.stack_name}-")
        for body in Template.from_stack(stack).find_resources("AWS::CloudWatch::Alarm").values()
    }
    own = {"KeyRotationFunctionErrors", "KeyRotationFunctionThrottles", "RevocationsUndelivered"}
    assert {alarm for alarm in alarms if "Rotation" in alarm or "Revocation" in alarm} == own
