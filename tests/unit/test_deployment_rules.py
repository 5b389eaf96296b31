"""Rules between the keys of a deployment file: all that each reports, and what is just valid."""

from __future__ import annotations

import inspect

import attrs
import pytest

from config.deployments import (
    account_rules,
    existing_rules,
    export_rules,
    ownership_rules,
    people_rules,
    rules,
    source_rules,
    topic_rules,
    validation,
)
from config.deployments.confluent_model import Statement, Tableflow, Topic
from config.deployments.mail_model import Mail
from config.deployments.model import Alerts, Aws, Rotation
from tests.support.rule_kit import ALERTS, CONFLUENT, IDENTITY, SNOWFLAKE, deployment, export


def test_names_are_unique_and_so_are_the_ids_that_come_of_them():
    table = Tableflow(snowflake_table="Facts")
    topics = [
        Topic(name="a_1", tableflow=table),
        Topic(name="a_1"),
        Topic(name="a.1", tableflow=Tableflow()),
        Topic(name="b", tableflow=Tableflow(snowflake_table="FACTS")),
        Topic(name="B"),
        Topic(name="c", tableflow=Tableflow(snowflake_table="c")),
    ]
    statements = [Statement(name=name) for name in ("s", "t_x", "s", "t__x")]
    exports = [export(name) for name in ("e", "f_x", "f_x", "f__x")]
    made = deployment(topics=topics, statements=statements, exports=exports)
    same = "become the same id ({}) in the templates. Rename one"
    assert list(rules.names_are_unique(made, None)) == [
        ("topics[1].name", "a_1 is used twice"),
        ("statements[2].name", "s is used twice"),
        ("exports[2].contract", "f_x is used twice"),
        ("topics[3].tableflow.snowflake_table", "FACTS is used twice"),
        ("topics[2].name", f"a.1 and a_1 {same.format('A1')}"),
        ("topics[4].name", f"B and b {same.format('B')}"),
        ("topics[4].name", "B and b differ in capitals only, and would be one table (b) in Glue. Keep one"),
        ("statements[3].name", f"t__x and t_x {same.format('TX')}"),
        ("exports[3].contract", f"f__x and f_x {same.format('FX')}"),
    ]
    assert list(rules.names_are_unique(deployment(), None)) == []
    made = deployment(topics=[Topic(name="B"), Topic(name="b")], exports=[export("f__x"), export("f_x")])
    assert list(rules.names_are_unique(made, None)) == [
        ("topics[1].name", f"b and B {same.format('B')}"),
        ("topics[1].name", "b and B differ in capitals only, and would be one table (b) in Glue. Keep one"),
        ("exports[1].contract", f"f_x and f__x {same.format('FX')}"),
    ]


def test_tags_of_lakeferry_and_of_aws_are_taken_in_any_capitals():
    names = ("Team", "TEAM", "AREA", "Area", "project", "STAGE", "Owner", "AWS:", "aws", "owners", "a#b")
    tags = dict.fromkeys(names, "x")
    made = deployment(identity=attrs.evolve(IDENTITY, tags=tags))
    taken = "is taken: Lakeferry sets this tag, or it is AWS's own"
    same = "differs from {} in capitals only, and IAM takes both for one tag. Remove one"
    assert list(rules.tags_are_allowed(made, None)) == [
        ("deployment.tags.TEAM", same.format("Team")),
        ("deployment.tags.Area", same.format("AREA")),
        ("deployment.tags.project", taken),
        ("deployment.tags.STAGE", taken),
        ("deployment.tags.Owner", taken),
        ("deployment.tags.AWS:", taken),
        ("deployment.tags.a#b", validation.tag_name("a#b")),
    ]


@pytest.mark.parametrize("count", [0, 40, 41])
def test_aws_allows_40_tags_besides_those_of_lakeferry(count):
    tags = {f"tag{number}": "x" for number in range(count)}
    made = deployment(identity=attrs.evolve(IDENTITY, tags=tags))
    message = "there are 41, and AWS allows 40 besides those that Lakeferry sets"
    assert list(rules.tags_are_allowed(made, None)) == ([("deployment.tags", message)] if count > 40 else [])


@pytest.mark.parametrize(
    ("keys", "is_valid"),
    [
        ({}, True),
        ({"environment_id": "env-a", "environment_name": "shared"}, True),
        ({"environment_id": "env-a"}, False),
        ({"environment_name": "shared"}, False),
    ],
)
def test_an_environment_has_both_id_and_name(keys, is_valid):
    message = "and environment_name go together: set both for an existing environment, neither for a new one"
    made = deployment(confluent=attrs.evolve(CONFLUENT, **keys))
    found = list(rules.environment_has_id_and_name(made, None))
    assert found == ([] if is_valid else [("confluent.environment_id", message)])
    assert list(rules.environment_has_id_and_name(deployment(confluent=None), None)) == []


@pytest.mark.parametrize(
    ("availability", "units", "is_valid"),
    [
        ("MULTI_ZONE", 1, False),
        ("MULTI_ZONE", 2, True),
        ("MULTI_ZONE", 3, True),
        ("MULTI_ZONE", None, True),
        ("SINGLE_ZONE", 1, True),
    ],
)
def test_a_cluster_in_several_zones_has_two_units(availability, units, is_valid):
    made = deployment(confluent=attrs.evolve(CONFLUENT, availability=availability, max_ecku=units))
    message = "is 1, and a cluster of MULTI_ZONE needs 2 at least"
    assert list(rules.zones_have_units(made, None)) == ([] if is_valid else [("confluent.max_ecku", message)])
    assert list(rules.zones_have_units(deployment(confluent=None), None)) == []


def test_everything_that_keeps_snowflake_from_a_table_is_reported():
    upserts = Tableflow(snowflake_table="A", write_mode="UPSERT", storage="managed")
    topics = [
        Topic(name="plain"),
        Topic(name="quiet", tableflow=Tableflow(write_mode="UPSERT", shown_in_glue=False)),
        Topic(name="a", tableflow=upserts),
    ]
    key = "topics[2].tableflow.snowflake_table"
    glue = (key, "Snowflake finds tables through Glue, and this one is not in Glue")
    deletes = (
        key,
        "Tableflow may write equality deletes to a table of upserts, and Snowflake can't read those",
    )
    nothing = (
        "snowflake",
        "has no tables to read: no topic is a table in Glue. Set enabled = false, or add [topics.tableflow]",
    )
    disabled = (key, "there is no [snowflake], or it is not enabled")

    def find(topics, snowflake):
        return list(rules.snowflake_can_read_tables(deployment(topics=topics, snowflake=snowflake), None))

    assert find(topics, SNOWFLAKE) == [glue, deletes, nothing]
    assert (
        find(topics, None)
        == find(topics, attrs.evolve(SNOWFLAKE, enabled=False))
        == [disabled, glue, deletes]
    )
    assert find([*topics[:2], Topic(name="a", tableflow=Tableflow(snowflake_table="A"))], SNOWFLAKE) == []
    assert find([Topic(name="a", tableflow=Tableflow())], SNOWFLAKE) == []
    assert find([], None) == []


def test_readers_of_snowflake_have_names_of_their_own():
    def find(**keys):
        made = deployment(snowflake=attrs.evolve(SNOWFLAKE, user="ADMIN", deployer_warehouse="WORK", **keys))
        return list(rules.snowflake_names_differ_from_the_deployers(made, None))

    stays = "is the deployer's, which exists already and stays after `lakeferry destroy`"
    assert find() == find(user_name="WORK", warehouse="ADMIN") == []
    assert find(user_name="admin", warehouse="work") == [
        ("snowflake.user_name", f"admin {stays}"),
        ("snowflake.warehouse", f"work {stays}"),
    ]
    assert list(rules.snowflake_names_differ_from_the_deployers(deployment(), None)) == []


def test_each_list_of_mails_has_an_address_once():
    twice = ["a@example.com", "b@example.com", "A@Example.com", "a@example.com"]
    exports = [
        export("one", recipients=["a@example.com"]),
        export("two", recipients=twice),
        export("none"),
    ]
    made = deployment(alerts=Alerts(engineers=[]), exports=exports)
    repeated = ["has A@Example.com twice. Remove one", "has a@example.com twice. Remove one"]
    assert list(rules.mails_reach_somebody_once(made, None)) == [
        ("alerts.engineers", "is empty: alarms and the AWS budget need at least one address"),
        *(("exports[1].recipients", message) for message in repeated),
    ]
    made = deployment(alerts=Alerts(engineers=twice))
    assert list(rules.mails_reach_somebody_once(made, None)) == [
        ("alerts.engineers", message) for message in repeated
    ]


@pytest.mark.parametrize(
    ("identity", "is_valid"),
    [
        (None, True),
        ("Exports@Mail.example.com", True),
        ("mail.example.com", True),
        ("MAIL.Example.com", True),
        ("example.com", True),
        ("exports@mail.Example.com", False),
        ("ample.com", False),
        ("x.mail.example.com", False),
        ("other@mail.example.com", False),
        ("Another@mail.example.com", False),
    ],
)
def test_an_identity_covers_the_sender(identity, is_valid):
    sender = "Exports@Mail.example.com"
    made = deployment(mail=Mail(sender=f"Exports <{sender}>", identity=identity))
    message = (
        f"{identity} does not cover the sender {sender}. Name the address or its domain, or leave it out"
    )
    assert list(rules.identity_covers_sender(made, None)) == (
        [] if is_valid else [("mail.identity", message)]
    )
    assert list(rules.identity_covers_sender(deployment(), None)) == []


@pytest.mark.parametrize("region", ["eu-west-1", "eu-central-2"])
@pytest.mark.parametrize("budget", [True, False, None])
def test_a_budget_is_where_cloudformation_has_budgets(region, budget):
    made = deployment(aws=Aws(region=region), alerts=attrs.evolve(ALERTS, budget=budget))
    message = (
        "can't be true: CloudFormation has no budgets in eu-central-2. Leave it out; AWS Budgets in the console "
        "work for the whole account"
    )
    is_wrong = budget and region == "eu-central-2"
    assert list(rules.budget_exists_in_region(made, None)) == (
        [("alerts.budget", message)] if is_wrong else []
    )


@pytest.mark.parametrize(
    ("account", "owner", "is_valid"),
    [
        ("111122223333", "111122223333", True),
        ("111122223333", "aws", True),
        (None, "444455556666", True),
        ("111122223333", None, True),
        ("111122223333", "444455556666", False),
    ],
)
def test_a_boundary_is_one_of_the_account(account, owner, is_valid):
    boundary = owner and f"arn:aws:iam::{owner}:policy/edge"
    made = deployment(aws=Aws(region="eu-west-1", account=account, permissions_boundary=boundary))
    message = "is a policy of another account, and the deployment is for 111122223333"
    found = list(rules.boundary_is_in_account(made, None))
    assert found == ([] if is_valid else [("aws.permissions_boundary", message)])


@pytest.mark.parametrize(("every", "grace", "is_valid"), [(8, 7, True), (7, 7, False), (6, 7, False)])
def test_a_replaced_key_is_revoked_before_the_next_rotation(every, grace, is_valid):
    made = deployment(rotation=Rotation(every_days=every, grace_days=grace))
    message = f"must be less than every_days ({every}): the next rotation needs the slot of the replaced key"
    found = list(rules.grace_is_shorter_than_rotation(made, None))
    assert found == ([] if is_valid else [("rotation.grace_days", message)])


MODULES = (
    account_rules,
    existing_rules,
    export_rules,
    ownership_rules,
    people_rules,
    rules,
    source_rules,
    topic_rules,
)


def test_every_rule_about_a_deployment_is_applied():
    """Commands that write schemas leave out only the one that needs them."""
    defined = {
        function
        for module in MODULES
        for name, function in inspect.getmembers(module, inspect.isfunction)
        if not name.startswith("_")
        and list(inspect.signature(function).parameters) == ["deployment", "sources"]
    }
    assert len(rules.RULES) == len(defined)
    assert set(rules.RULES) == defined
    without = [rule for rule in rules.RULES if rule is not export_rules.exports_match_topics]
    assert list(rules.RULES_WITHOUT_SCHEMAS) == without
    assert len(without) == len(rules.RULES) - 1
