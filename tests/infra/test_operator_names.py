"""The names of stacks and resources that the operator's commands expect are the templates'."""

from __future__ import annotations

import attrs

from lakeferry.deployment.context import DeploymentContext
from lakeferry.deployment.stacks import Stack, StackResource
from lakeferry.inventory import ownership, removal
from lakeferry.inventory.aws_kinds import list_aws_kinds
from lakeferry.inventory.aws_listing import list_kms_descriptions
from lakeferry.inventory.ownership import StackHistory, VendorNames
from lakeferry.inventory.recognition import matches

ACCOUNT = "111122223333"
#: Types of AWS without a row in the inventory, because they are deleted with another resource.
_PARTS = {
    "AWS::IAM::Policy", "AWS::Lambda::Permission", "AWS::S3::BucketPolicy",
    "AWS::SecretsManager::RotationSchedule", "AWS::SNS::Subscription", "AWS::SNS::TopicPolicy",
    "AWS::SQS::QueuePolicy",
}  # fmt: skip


def test_the_expected_stacks_are_those_of_the_app(assembly):
    ctx = DeploymentContext(assembly.plan)
    assert ctx.stacks == [
        f"{assembly.prefix}-{part}" for part in ("data", "confluent", "snowflake", "exports", "operations")
    ]
    assert {name.removeprefix(f"{assembly.prefix}-") for name in ctx.stacks} == set(assembly.templates)


def test_a_deployment_without_snowflake_has_no_stack_for_it(assembly):
    plan = assembly.plan
    without = attrs.evolve(plan, deployment=attrs.evolve(plan.deployment, snowflake=None))
    assert [name for name in DeploymentContext(without).stacks if "snowflake" in name] == []


def test_resources_that_are_known_by_their_ids_have_them_in_the_templates(assembly):
    given = attrs.evolve(
        assembly.plan.deployment.confluent, environment_id="env-1", environment_name="theirs"
    )
    deployment = attrs.evolve(assembly.plan.deployment, confluent=given)
    found = {(part, kind, id) for part, kind, id, _ in ownership.list_expected(deployment, ACCOUNT)}
    templates = {
        (part, resource["Properties"]["kind"], id)
        for part, template in assembly.templates.items()
        for id, resource in template["Resources"].items()
        if "kind" in resource.get("Properties", {})
    }
    # What is optional may be left from an earlier deployment.
    optional = {
        ("confluent", "service_account", f"{name}Account")
        for name in ("AppConnector", "FlinkRunner", "TableReader")
    }
    linked = ("snowflake", "snowflake_linked_database", "LinkedDatabase")
    assert linked in found - templates <= {linked, *optional}
    assert len(found) > 15


def test_every_type_in_the_templates_has_a_row(assembly):
    listed = {kind.type for kind in list_aws_kinds(assembly.plan.deployment)}
    types = {
        resource["Type"]
        for template in assembly.templates.values()
        for resource in template["Resources"].values()
        if resource["Type"].startswith("AWS::")
    }
    assert types - listed - _PARTS == set()


def test_every_kind_of_aws_can_be_removed(assembly):
    kinds = {kind.name for kind in list_aws_kinds(assembly.plan.deployment)}
    assert kinds - set(removal.ORDER) == set()


def test_keys_of_kms_are_known_by_what_the_templates_say_of_them(assembly):
    resources = [
        resource for template in assembly.templates.values() for resource in template["Resources"].values()
    ]
    described = {
        resource["Properties"]["Description"] for resource in resources if resource["Type"] == "AWS::KMS::Key"
    }
    assert described == set(list_kms_descriptions(assembly.plan.deployment))


def test_a_budget_is_recognised_by_its_name_in_the_template(assembly):
    """Also one of an earlier version, whose name had no digits at its end."""
    (pattern,) = (
        kind.recognition.custom for kind in list_aws_kinds(assembly.plan.deployment) if kind.name == "budget"
    )
    (body,) = assembly.resources("AWS::Budgets::Budget").values()
    earlier = assembly.plan.deployment.regional_prefix
    names = (body["Budget"]["BudgetName"], earlier, f"{earlier}-of-others", f"{earlier}0123abcd")
    assert [matches(pattern, name) for name in names] == [True, True, False, False]


def test_a_name_is_known_by_the_stack_that_has_it(assembly):
    deployment = assembly.plan.deployment
    stack = Stack(f"{deployment.prefix}-confluent", "id", "CREATE_COMPLETE")
    resource = StackResource(
        "KafkaCluster", "lf1:kafka_cluster:KafkaCluster:0123abcd", "Custom::X", "CREATE_COMPLETE"
    )
    names = VendorNames(deployment, ACCOUNT, StackHistory((attrs.evolve(stack, resources=(resource,)),)))
    name = names.object_name(stack.name, "KafkaCluster", "0123abcd")
    assert names.ownership(name).owner == stack.name
    assert names.ownership(f"lakeferry {name}, and a word of somebody's").owner == stack.name
    assert names.ownership(name.replace("kafkacluster", "other")).owner == "-"
    assert names.ownership("somebody-elses") is None
