"""People who query: what the templates grant them, and that nothing of somebody else is changed for it."""

from __future__ import annotations

import json

import attrs
import pytest

from config.deployments import people_rules
from tests.support.assembly_kit import synthesise
from tests.support.policies import ACCOUNT

READERS = [f"arn:aws:iam::{ACCOUNT}:role/analysts", f"arn:aws:iam::{ACCOUNT}:user/ben"]
#: Of the shipped topics, by table.
PERSONAL = {"stock_trades": {"account", "userid"}, "stock_trades_with_totals": {"userid"}}
UNSEEN = {"key", "$$headers", "$$raw-key", "$$raw-value"}


def let_people_in(plan, **changed):
    deployment = plan.deployment
    aws = attrs.evolve(deployment.aws, lake_formation=True, athena_readers=READERS)
    snowflake = attrs.evolve(
        deployment.snowflake, grant_to_users=["anna", "ben@example.com"], grant_to_roles=["ANALYSTS"]
    )
    return attrs.evolve(
        plan, deployment=attrs.evolve(deployment, aws=attrs.evolve(aws, **changed), snowflake=snowflake)
    )


@pytest.fixture(scope="module")
def people(dev, tmp_path_factory):
    assembly = synthesise(let_people_in(dev.plan), tmp_path_factory.mktemp("people"))
    assert assembly.failure == ""
    return assembly


def list_kind(assembly, kind):
    name = "".join(word.title() for word in kind.split("_"))
    return list(assembly.resources(f"Custom::Lakeferry{name}", "snowflake").values())


def test_each_view_leaves_out_what_is_personal(people):
    views = [view for view in list_kind(people, "snowflake_view") if view["name"] != "DAILY_TRADES"]
    assert len(views) == len(PERSONAL)
    for view in views:
        hidden = PERSONAL[view["name"].lower()] | UNSEEN
        assert not hidden & set(view["columns"])
        assert {"price", "$$offset"} <= set(view["columns"])


def test_the_people_s_role_has_views_only_and_the_raw_role_has_no_member(people):
    grants = list_kind(people, "snowflake_grant")
    roles = {json.dumps(grant["name"]) for grant in grants if grant["on"] == "ROLE"}
    assert not any("RawRole" in role for role in roles)
    of_people = [grant for grant in grants if "PeopleRole" in json.dumps(grant.get("to_role", ""))]
    assert {(grant.get("privilege", "USAGE"), grant["on"]) for grant in of_people} == {
        ("USAGE", "WAREHOUSE"),
        ("USAGE", "DATABASE"),
        ("USAGE", "SCHEMA"),
        ("SELECT", "VIEWS IN SCHEMA"),
    }
    schemas = [json.dumps(grant["name"]) for grant in of_people if "SCHEMA" in grant["on"]]
    assert all("ViewsSchema" in schema for schema in schemas)


def test_those_in_the_file_get_the_people_s_role(people):
    named = [grant for grant in list_kind(people, "snowflake_grant") if grant.get("named_by")]
    assert all("PeopleRole" in json.dumps(grant["name"]) for grant in named)
    assert {(grant.get("to_user"), grant.get("to_role"), grant["named_by"]) for grant in named} == {
        ("anna", None, "snowflake.grant_to_users"),
        ("ben@example.com", None, "snowflake.grant_to_users"),
        (None, "ANALYSTS", "snowflake.grant_to_roles"),
    }


def test_readers_in_athena_select_single_columns(people):
    grants = people.resources("AWS::LakeFormation::PrincipalPermissions", "operations").values()
    held = [grant for grant in grants if grant["Principal"]["DataLakePrincipalIdentifier"] in READERS]
    on_columns = [grant for grant in held if "TableWithColumns" in grant["Resource"]]
    assert len(on_columns) == len(READERS) * len(PERSONAL)
    for grant in on_columns:
        table = grant["Resource"]["TableWithColumns"]
        assert grant["Permissions"] == ["SELECT"]
        assert "ColumnWildcard" not in table, "a column that comes later would be shown"
        assert not (PERSONAL[table["Name"]] | UNSEEN) & set(table["ColumnNames"])
    others = [grant for grant in held if grant not in on_columns]
    assert all(grant["Permissions"] == ["DESCRIBE"] and "Database" in grant["Resource"] for grant in others)


def test_the_policy_for_readers_has_no_right_on_the_tables_files_and_is_attached_to_nobody(people):
    (policy,) = people.resources("AWS::IAM::ManagedPolicy", "operations").values()
    assert not {"Roles", "Users", "Groups"} & policy.keys()
    statements = policy["PolicyDocument"]["Statement"]
    on_s3 = [statement for statement in statements if "s3:" in json.dumps(statement["Action"])]
    assert "Tableflow" not in json.dumps(on_s3)
    assert "athena-people/*" in json.dumps(on_s3)
    groups = people.resources("AWS::Athena::WorkGroup")
    places = {
        json.dumps(group["WorkGroupConfiguration"]["ResultConfiguration"]["OutputLocation"])
        for group in groups.values()
    }
    assert len(places) == len(groups) == 2, "results of others may have all columns"


def test_a_deployment_without_readers_registers_nothing(dev):
    assert dev.resources("AWS::LakeFormation::Resource") == {}
    assert dev.resources("AWS::IAM::ManagedPolicy", "operations") == {}


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"lake_formation": False}, "With IAM alone"),
        ({"existing_tableflow_bucket": "theirs-tables"}, "theirs to register"),
        ({"athena_readers": [READERS[0], READERS[0]]}, "twice"),
        ({"athena_readers": ["arn:aws:iam::999999999999:role/x"], "account": ACCOUNT}, "another account"),
    ],
)
def test_readers_that_could_see_all_are_refused(dev, changed, words):
    plan = let_people_in(dev.plan, **changed)
    found = list(people_rules.people_in_athena_see_columns_only(plan.deployment, plan.sources))
    assert [key for key, _ in found] == ["aws.athena_readers"]
    assert words in found[0][1]


def test_readers_of_a_deployment_with_lake_formation_are_accepted(dev):
    plan = let_people_in(dev.plan)
    assert list(people_rules.people_in_athena_see_columns_only(plan.deployment, plan.sources)) == []
