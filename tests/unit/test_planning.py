"""The plan of a deployment: differences between templates, replacements, lost data, and durations."""

from __future__ import annotations

import copy
import inspect
import json

import attrs
import pytest

from lakeferry.deployment.stacks import Event, Stack
from lakeferry.output import Output
from lakeferry.plan import (
    build,
    cost,
    durations,
    ownership,
    permissions,
    references,
    refusals,
    render,
    replacement,
)
from lakeferry.plan.difference import Action, Comparison
from lakeferry.plan.render import Plan
from lakeferry.plan.templates import SynthesizedStack, TemplateResource
from lambdas.custom_resources import registry
from tests.support import shipped
from tests.support.assembly_kit import dev_templates

SECRET_TYPE = "AWS::SecretsManager::Secret"
SECRET = "cflt" + "A1b2C3d4" * 8


@pytest.fixture
def templates():
    return {f"lakeferry-dev-{part}": template for part, template in dev_templates().items()}


def standing(templates):
    return {
        name: Stack(name, f"arn:{name}", "CREATE_COMPLETE", template=template)
        for name, template in templates.items()
    }


def compared(before, after):
    wanted = [SynthesizedStack(name, template) for name, template in after.items()]
    return Comparison(wanted, standing(before)).changes()


def changed(templates, change):
    """Return the changes by logical id for a change of the templates."""
    after = copy.deepcopy(templates)
    change({name.rpartition("-")[2]: template["Resources"] for name, template in after.items()})
    return {difference.resource.logical_id: difference for difference in compared(templates, after)}


def test_before_the_first_deployment_everything_is_created(templates):
    changes = compared({}, templates)
    assert {change.action for change in changes} == {Action.CREATE}
    assert len(changes) == sum(len(template["Resources"]) for template in templates.values())
    assert {change.resource.system for change in changes} == {"AWS", "Confluent", "Snowflake"}


def test_without_a_change_nothing_would_happen(templates):
    assert compared(templates, copy.deepcopy(templates)) == []


def test_numbers_and_booleans_as_texts_are_no_change(templates):
    def as_texts(resources):
        resources["confluent"]["StockTradesTopic"]["Properties"]["partitions"] = "6"
        resources["confluent"]["KafkaCluster"]["Properties"]["deletion_protection"] = "false"

    assert changed(templates, as_texts) == {}


def test_an_explicit_default_is_no_change(templates):
    def spelt_out(resources):
        assert "availability" not in resources["confluent"]["KafkaCluster"]["Properties"]
        resources["confluent"]["KafkaCluster"]["Properties"]["availability"] = "SINGLE_ZONE"

    assert changed(templates, spelt_out) == {}


def test_a_change_in_place_has_old_and_new_value(templates):
    def slower(resources):
        resources["confluent"]["StockTradesConnector"]["Properties"]["max_interval_ms"] = 250

    (only,) = changed(templates, slower).values()
    assert (only.action, only.data_loss) == (Action.UPDATE, "")
    assert [str(why) for why in only.why] == ["max_interval_ms: 500 → 250"]


def test_replacing_a_cluster_replaces_its_objects_in_every_stack(templates):
    def two_zones(resources):
        resources["confluent"]["KafkaCluster"]["Properties"]["availability"] = "MULTI_ZONE"

    found = changed(templates, two_zones)
    assert found["KafkaCluster"].action is Action.REPLACE
    assert "topics with their records" in found["KafkaCluster"].data_loss
    assert found["StockTradesTopic"].action is Action.REPLACE
    assert found["StockTradesTopic"].data_loss == "its records"
    assert "cluster_id changes because KafkaCluster is replaced" in map(str, found["StockTradesTopic"].why)
    # Snowflake's catalog integration, in another stack, names the Glue database, whose name is the cluster's
    # id.
    assert found["Catalog"].action is Action.REPLACE
    assert found["Catalog"].resource.system == "Snowflake"
    # A resource that only refers to it in its permissions is not replaced.
    assert found[role_of(resources_of(templates, "confluent"), "TableflowRole")].action is Action.UPDATE
    assert "Environment" not in found
    assert "LakeBucket9CD7BBD2" not in found


@pytest.mark.parametrize("logical_id", ["KafkaCluster", "Environment"])
def test_a_repair_that_changes_an_id_is_refused_if_other_stacks_import_it(templates, logical_id):
    after = copy.deepcopy(templates)
    after["lakeferry-dev-confluent"]["Resources"][logical_id]["Properties"]["repair"] = "1764000000"
    (reason,) = refused(templates, after).values()
    assert reason.endswith(": lakeferry-dev-exports, lakeferry-dev-operations, lakeferry-dev-snowflake")


@pytest.mark.parametrize(
    ("part", "logical_id", "key", "value", "importers"),
    [
        ("confluent", "KafkaCluster", "availability", "MULTI_ZONE", ["exports", "operations", "snowflake"]),
        ("snowflake", "Schema", "name", "EVENTS", ["operations"]),
        ("confluent", "KafkaCluster", "max_ecku", "2", []),
    ],
)
def test_a_value_that_other_stacks_import_can_not_be_replaced(
    templates, part, logical_id, key, value, importers
):
    after = copy.deepcopy(templates)
    after[f"lakeferry-dev-{part}"]["Resources"][logical_id]["Properties"][key] = value
    reasons = refused(templates, after)
    assert list(reasons) == ([logical_id] if importers else [])
    for reason in reasons.values():
        assert "Other stacks import a value of it, and CloudFormation refuses to change that" in reason
        assert reason.endswith(": " + ", ".join(f"lakeferry-dev-{importer}" for importer in importers))


def refused(before, after):
    """Return the reasons of refused changes by logical id."""
    comparison = Comparison(
        [SynthesizedStack(name, template) for name, template in after.items()], standing(before)
    )
    return {
        refusal.resource.logical_id: refusal.reason
        for refusal in refusals.find(comparison, comparison.changes())
    }


def with_properties(templates, logical_id, **properties):
    """Return templates whose resource of the Confluent stack has these properties too, None for none."""
    changed = copy.deepcopy(templates)
    given = resources_of(changed, "confluent")[logical_id]["Properties"]
    given |= {name: value for name, value in properties.items() if value is not None}
    for name, value in properties.items():
        if value is None:
            given.pop(name, None)
    return changed


STATEMENT = "StockTradesWithTotalsStatement"
OTHER = "CREATE TABLE x AS SELECT 1"
DROPPING = {"drop_on_edit": True}
COMPACTED = {"cleanup.policy": "compact"}


@pytest.mark.sampled(8)
@pytest.mark.parametrize(
    ("logical_id", "before", "after", "reason"),
    [
        (
            "StockTradesTopic",
            {"partitions": "12"},
            {"partitions": 6},
            "partitions can't be lowered from 12 to 6",
        ),
        (
            "StockTradesTopic",
            {"partitions": 12},
            {"partitions": None},
            "partitions can't be lowered from 12 to 6",
        ),
        ("StockTradesTopic", {"partitions": 6}, {"partitions": 12}, ""),
        ("KafkaCluster", {"max_ecku": "4"}, {"max_ecku": None}, "max_ecku can't be removed"),
        ("KafkaCluster", {"max_ecku": "4"}, {"max_ecku": 2}, ""),
        ("KafkaCluster", {}, {"max_ecku": 2}, ""),
        (
            "StockTradesTable",
            {"data_retention_ms": "2592000000"},
            {"data_retention_ms": None},
            "rows_days can't be removed",
        ),
        ("StockTradesTable", {"data_retention_ms": "2592000000"}, {"data_retention_ms": "7776000000"}, ""),
        ("StockTradesTopic", {}, {"config": COMPACTED}, "cleanup.policy decides how Tableflow writes"),
        (
            "StockTradesTopic",
            {"config": COMPACTED},
            {"config": None},
            "cleanup.policy decides how Tableflow writes",
        ),
        ("StockTradesTopic", {}, {"config": {"retention.ms": "1000"}}, ""),
        (STATEMENT, {}, {"sql": OTHER}, ""),
        (STATEMENT, {}, {"sql": OTHER, "insert_sql": None}, "new query is not proved to be stateless"),
        (STATEMENT, {"insert_sql": None}, {"sql": OTHER, "insert_sql": "x"}, "by an earlier release"),
        (STATEMENT, {}, {"sql": OTHER, "columns": ["side"]}, "its columns change (price, quantity,"),
        (STATEMENT, {}, {"sql": OTHER, "reads": ["orders"]}, "reads other tables (orders, stock_trades)"),
        (STATEMENT, {}, {"sql": OTHER, "head": "CREATE TABLE x"}, "the text before its query changes"),
        (STATEMENT, {}, {"properties": {"sql.state-ttl": "1 d"}, "insert_sql": None}, "to be stateless"),
        (STATEMENT, {}, {"head": "CREATE TABLE x"}, ""),
        (
            STATEMENT,
            {},
            {**DROPPING, "sql": OTHER},
            "Tableflow reads stock_trades_with_totals",
        ),
        (STATEMENT, {}, {**DROPPING, "sql": OTHER, "tableflow_topics": None}, "Tableflow reads stock"),
        (
            STATEMENT,
            {"tableflow_topics": None},
            {**DROPPING, "sql": OTHER, "tableflow_topics": ["x"]},
            "Tableflow reads x",
        ),
        (STATEMENT, {"tableflow_topics": None}, {**DROPPING, "sql": OTHER}, ""),
        (STATEMENT, {}, {"tableflow_topics": None}, ""),
        ("FlinkPool", {"max_cfu": "20"}, {"max_cfu": 10}, "max_cfu can't be lowered from 20 to 10"),
        ("FlinkPool", {"max_cfu": "20"}, {"max_cfu": None}, "max_cfu can't be lowered from 20 to 10"),
        ("FlinkPool", {"max_cfu": "5"}, {"max_cfu": 50}, ""),
        (
            "Environment",
            {"stream_governance": "ADVANCED"},
            {"stream_governance": None},
            "can't be lowered from ADVANCED",
        ),
        ("Environment", {}, {"stream_governance": "ADVANCED"}, ""),
        (
            "KafkaCluster",
            {"type": "Standard"},
            {"type": "Basic"},
            "type can't be lowered from Standard to Basic",
        ),
    ],
)
def test_what_confluent_can_not_change_can_not_be_deployed(templates, logical_id, before, after, reason):
    deployed = with_properties(templates, logical_id, **before)
    found = refused(deployed, with_properties(deployed, logical_id, **after))
    assert list(found) == ([logical_id] if reason else [])
    assert reason in found.get(logical_id, "")


def test_the_policy_of_a_topic_without_a_table_may_change(templates):
    deployed = with_properties(templates, "StockTradesTable", topic="others")
    assert refused(deployed, with_properties(deployed, "StockTradesTopic", config=COMPACTED)) == {}


@pytest.mark.parametrize(
    ("leaves", "expected"), [(["Schema"], ["StockTradesSchema"]), (["Schema", "Topic"], [])]
)
def test_the_schema_of_records_that_stay_can_not_be_removed(templates, leaves, expected):
    deployed = copy.deepcopy(templates)
    after = copy.deepcopy(templates)
    subject = {"kind": "schema", "subject": "stock_trades-value", "ServiceToken": "arn"}
    for assembly in (deployed, after):
        resources_of(assembly, "confluent")["StockTradesSchema"] = {
            "Type": "Custom::LakeferrySchema",
            "Properties": subject,
        }
    for name in leaves:
        del resources_of(after, "confluent")[f"StockTrades{name}"]
    logical_ids = {name for name, reason in refused(deployed, after).items() if "its records" in reason}
    assert logical_ids == set(expected)


@pytest.mark.parametrize(
    ("logical_id", "resource_type", "way_out"),
    [
        ("KafkaCluster", "Custom::LakeferryExistingCluster", "can't be given away"),
        ("StockTradesTopic", "Custom::LakeferryExistingTopic", "with on_destroy = keep"),
    ],
)
def test_what_was_created_can_not_be_called_existing(templates, logical_id, resource_type, way_out):
    """A cluster is deleted with its deployment even if the data is kept."""
    after = copy.deepcopy(templates)
    resources_of(after, "confluent")[logical_id]["Type"] = resource_type
    reason = refused(templates, after)[logical_id]
    assert reason.endswith(way_out)
    assert ("on_destroy" in reason) == (logical_id == "StockTradesTopic")


TOTALS = "stock_trades_with_totals"


@pytest.mark.parametrize(("keep", "reason"), [("false", "would delete with its records"), ("true", "")])
def test_a_topic_that_a_statement_drops_can_not_be_called_existing(templates, keep, reason):
    deployed = with_properties(templates, STATEMENT, topic=TOTALS, keep_table=keep)
    after = copy.deepcopy(deployed)
    del resources_of(after, "confluent")[STATEMENT]
    resources_of(after, "confluent")["TotalsTopic"] = {
        "Type": "Custom::LakeferryExistingTopic",
        "Properties": {"kind": "existing_topic", "topic": TOTALS, "ServiceToken": "arn"},
    }
    found = refused(deployed, after)
    assert ("TotalsTopic" in found) == bool(reason)
    assert reason in found.get("TotalsTopic", "")


@pytest.mark.parametrize(("remaining", "reason"), [("acme/kafka", ""), ("acme/other", "acme/kafka, which")])
def test_an_object_is_not_deleted_with_a_key_that_the_file_no_longer_names(templates, remaining, reason):
    deployed = with_properties(templates, "StockTradesTopic", credentials="acme/kafka")
    after = copy.deepcopy(deployed)
    del resources_of(after, "confluent")["StockTradesTopic"]
    resources_of(after, "confluent")["Rights"] = {
        "Type": "AWS::IAM::ManagedPolicy",
        "Properties": {"PolicyDocument": {"Resource": f"arn:aws:secretsmanager:secret:{remaining}-??????"}},
    }
    found = refused(deployed, after).get("StockTradesTopic", "")
    assert (reason in found) if reason else ("acme/kafka" not in found)


def test_a_replaced_topic_may_have_fewer_partitions(templates):
    deployed = with_properties(templates, "StockTradesTopic", partitions=12)
    assert (
        refused(deployed, with_properties(deployed, "StockTradesTopic", partitions=6, topic="others")) == {}
    )


def test_a_change_that_is_refused_is_no_data_loss(templates, capsys):
    after = with_properties(templates, STATEMENT, sql=OTHER, **DROPPING)
    comparison = Comparison(
        [SynthesizedStack(name, template) for name, template in after.items()], standing(templates)
    )
    changes = comparison.changes()
    plan = plan_of(changes, refusals=refusals.find(comparison, changes))
    render.show(Output(), plan)
    printed = capsys.readouterr().out
    assert "DATA LOSS" not in printed
    shown = f"{STATEMENT} (stock_trades_with_totals)"
    assert (
        f"CAN'T BE DEPLOYED: flink statement {shown} of lakeferry-dev-confluent: Tableflow reads "
        "stock_trades_with_totals" in printed
    )
    assert "give the new version its own name and topic" in printed
    document = render.build_document(plan)
    assert document["losses"] == []
    (only,) = document["refused"]
    assert (only["resource"], only["reason"]) == (shown, refused(templates, after)[STATEMENT])


def test_a_value_that_other_stacks_import_can_not_be_removed(templates):
    """As where `pseudonym_secret` is set in a deployment that has created its own key."""
    deployed = copy.deepcopy(templates)
    after = copy.deepcopy(templates)
    (secret,) = [
        name
        for name, resource in deployed["lakeferry-dev-data"]["Resources"].items()
        if resource["Type"] == SECRET_TYPE
    ]
    exported = {"Value": {"Ref": secret}, "Export": {"Name": "of-data"}}
    deployed["lakeferry-dev-data"].setdefault("Outputs", {})["It"] = exported
    for assembly in (deployed, after):
        assembly["lakeferry-dev-exports"]["Outputs"]["User"] = {"Value": {"Fn::ImportValue": "of-data"}}
    del after["lakeferry-dev-data"]["Resources"][secret]
    comparison = Comparison(
        [SynthesizedStack(name, template) for name, template in after.items()], standing(deployed)
    )
    (refused,) = refusals.find(comparison, comparison.changes())
    assert refused.resource.logical_id == secret
    assert refused.reason.endswith(": lakeferry-dev-exports")
    del after["lakeferry-dev-exports"]["Outputs"]["User"]
    comparison = Comparison(
        [SynthesizedStack(name, template) for name, template in after.items()], standing(deployed)
    )
    (refused,) = refusals.find(comparison, comparison.changes())
    assert "deploy lakeferry-dev-exports --exclusively -c stage=dev` first, then deploy" in refused.reason


def test_the_tables_of_an_own_cluster_can_not_become_those_of_another(templates):
    """As where [confluent] is replaced by [source]: the bucket would leave the data stack."""
    after = copy.deepcopy(templates)
    del after["lakeferry-dev-confluent"], after["lakeferry-dev-snowflake"]
    resources = after["lakeferry-dev-data"]["Resources"]
    (bucket, _) = [name for name in resources if name.startswith("TableflowBucket")]
    del resources[bucket]
    assert "Put [confluent] back" in refused(templates, after)[bucket]
    assert not any("[source]" in reason for reason in refused(templates, templates).values())


def test_an_object_that_keeps_its_name_can_not_be_replaced(templates):
    """As where iam_path changes: roles that vendors assume have fixed names."""
    after = copy.deepcopy(templates)
    roles = {}
    for template in after.values():
        for logical_id, body in template["Resources"].items():
            if body["Type"] == "AWS::IAM::Role":
                body["Properties"]["Path"] = "/team/"
                roles[logical_id] = body["Properties"].get("RoleName")
    found = {
        name: reason
        for name, reason in refused(templates, after).items()
        if "CloudFormation can't replace" in reason
    }
    assert set(found) == {logical_id for logical_id, name in roles.items() if name}
    assert len(found) == 2
    assert all(reason.startswith("Path can't be changed") for reason in found.values())
    for logical_id in found:
        after_renamed = copy.deepcopy(after)
        for template in after_renamed.values():
            if logical_id in template["Resources"]:
                template["Resources"][logical_id]["Properties"]["RoleName"] = "another"
        assert logical_id not in {
            name
            for name, reason in refused(templates, after_renamed).items()
            if "CloudFormation can't replace" in reason
        }


def test_every_type_with_a_fixed_name_is_known(templates):
    """Names of these are no names in the account: of a policy in its role, of a metric, of what a permission
    is for.
    """
    no_names = {"MetricName", "PolicyName", "FunctionName", "GroupName", "DisplayName"}
    fixed = {
        (body["Type"], key)
        for template in templates.values()
        for body in template["Resources"].values()
        for key in body.get("Properties", {})
        if key.endswith("Name") and body["Type"].startswith("AWS::") and key not in no_names
    }
    # Several saved queries may have one name.
    assert fixed - {("AWS::Athena::NamedQuery", "Name")} == set(refusals._NAMES.items())


def test_another_text_of_a_statement_drops_its_target_if_the_file_says_so(templates):
    def other(resources):
        properties = resources["confluent"]["StockTradesWithTotalsStatement"]["Properties"]
        properties.update(DROPPING)
        properties["sql"] = properties["sql"].replace("stock_trades", "other_trades", 1)

    only = changed(templates, other)["StockTradesWithTotalsStatement"]
    assert only.action is Action.RECREATE
    assert "DROP TABLE" in only.data_loss
    assert (
        "Tables over the topic that it drops stop following it: tableflow topic StockTradesWithTotalsTable"
        in only.data_loss
    )
    assert "iceberg table" in only.data_loss


def test_another_text_of_a_statement_drops_nothing_otherwise(templates):
    only = changed(
        templates, lambda resources: resources["confluent"][STATEMENT]["Properties"].update(sql=OTHER)
    )[STATEMENT]
    assert (only.action, only.data_loss) == (Action.UPDATE, "")


def test_the_differing_part_of_a_long_value_is_shown(templates):
    def other(resources):
        properties = resources["confluent"]["StockTradesWithTotalsStatement"]["Properties"]
        assert len(properties["sql"]) > 100
        properties["sql"] = properties["sql"].rstrip().removesuffix(";") + " LIMIT 7;"

    (why,) = changed(templates, other)["StockTradesWithTotalsStatement"].why
    assert ("LIMIT 7" in why.before, "LIMIT 7" in why.after) == (False, True)
    assert len(why.after) < 80


def role_of(resources, words):
    return next(
        name for name, body in resources.items() if body["Type"] == "AWS::IAM::Role" and words in name
    )


def job_of(resources):
    return next(name for name, body in resources.items() if body["Type"] == "AWS::Glue::Job")


def resources_of(templates, part):
    return next(template["Resources"] for name, template in templates.items() if name.endswith(f"-{part}"))


def permitted(templates, change):
    """Return the changes of permissions by logical id."""
    after = copy.deepcopy(templates)
    change({name.rpartition("-")[2]: template["Resources"] for name, template in after.items()})
    stacks = [SynthesizedStack(name, template) for name, template in after.items()]
    return {
        permission_change.logical_id: permission_change
        for permission_change in permissions.compare(stacks, standing(templates))
    }


def own_statements(resources):
    return resources["confluent"][role_of(resources["confluent"], "TableflowRole")]["Properties"]["Policies"][
        0
    ]["PolicyDocument"]["Statement"]


def test_an_action_added_to_a_role_is_shown_with_its_resources(templates):
    def more(resources):
        own_statements(resources)[0]["Action"] = "s3:DeleteBucket"

    (only,) = permitted(templates, more).values()
    assert only.broadens
    assert [line.split(" on ")[0] for line in only.added] == ["allow s3:DeleteBucket"]
    assert all("TableflowBucket" in line for line in (*only.added, *only.removed))
    (why,) = changed(templates, more)[only.logical_id].why
    assert why.property.startswith("Policies[0].PolicyDocument.Statement[0].Action")
    assert "s3:DeleteBucket" in why.after


def test_a_removed_condition_allows_more_and_a_changed_one_is_shown(templates):
    def anybody(resources):
        role = resources["confluent"][role_of(resources["confluent"], "TableflowRole")]
        for statement in role["Properties"]["AssumeRolePolicyDocument"]["Statement"]:
            statement.pop("Condition", None)

    (only,) = permitted(templates, anybody).values()
    assert only.broadens
    assert all(" if " not in line for line in only.added)
    assert any("sts:ExternalId" in line for line in only.removed)


def test_a_removed_permission_is_shown_and_is_no_broadening(templates):
    def less(resources):
        del own_statements(resources)[0]

    (only,) = permitted(templates, less).values()
    assert (only.broadens, only.added) == (False, ())
    assert only.removed


def test_changes_of_denials_managed_policies_and_boundaries_are_found(templates):
    def looser(resources):
        policy = next(body for body in resources["data"].values() if body["Type"] == "AWS::S3::BucketPolicy")
        statements = policy["Properties"]["PolicyDocument"]["Statement"]
        statements.remove(next(statement for statement in statements if statement["Effect"] == "Deny"))
        role = resources["confluent"][role_of(resources["confluent"], "TableflowRole")]["Properties"]
        role["ManagedPolicyArns"] = ["arn:aws:iam::aws:policy/AdministratorAccess"]

    changes = list(permitted(templates, looser).values())
    assert [change.broadens for change in changes] == [True, True]
    assert any(line.startswith("deny ") for change in changes for line in change.removed)
    assert any(
        "allow whatever policy arn:aws:iam::aws:policy/AdministratorAccess allows" in change.added
        for change in changes
    )


def test_another_content_of_an_asset_is_no_change_of_permissions(templates):
    def asset(digest):
        def change(resources):
            own_statements(resources)[0]["Resource"] = f"arn:aws:s3:::cdk-assets/{digest * 64}.json"

        return change

    before = copy.deepcopy(templates)
    asset("a")({name.rpartition("-")[2]: template["Resources"] for name, template in before.items()})
    assert permitted(before, asset("b")) == {}
    assert permitted(before, asset("short")) != {}


def test_the_same_statements_grouped_otherwise_are_no_change(templates):
    def grouped(resources):
        statements = own_statements(resources)
        statements.reverse()
        for statement in statements:
            if isinstance(statement["Action"], list):
                statement["Action"].reverse()

    assert permitted(templates, grouped) == {}


def test_changed_permissions_are_shown_in_full_and_new_ones_counted(templates, capsys):
    def more(resources):
        own_statements(resources)[0]["Action"] = [
            f"s3:{'Very' * 20}LongAction{number}" for number in range(30)
        ]

    changes = list(permitted(templates, more).values())
    new = permissions.compare([SynthesizedStack(name, template) for name, template in templates.items()], {})
    plan = plan_of([], permissions=[*changes, *new[:5]], deployed=["lakeferry-dev-confluent"])
    render.show(
        Output(),
        attrs.evolve(
            plan, permissions=[*changes, *(change for change in new if change.stack.endswith("-data"))]
        ),
    )
    printed = capsys.readouterr().out
    assert all(f"LongAction{number}" in printed for number in range(30))
    assert "policies in new stacks" in printed
    assert plan.broadened[0] == changes[0]


def test_recreating_a_missing_object_is_a_change_without_loss(templates):
    def repaired(resources):
        resources["confluent"]["StockTradesTopic"]["Properties"]["repair"] = "1764000000"

    (only,) = changed(templates, repaired).values()
    assert (only.action, only.data_loss) == (Action.UPDATE, "")
    assert [str(why) for why in only.why] == ["object: missing → created again"]
    after = copy.deepcopy(templates)
    after["lakeferry-dev-confluent"]["Resources"]["StockTradesTopic"]["Properties"]["repair"] = "1764000000"
    assert compared(after, templates) == []


def test_another_comment_in_a_statement_is_no_change(templates):
    def remarked(resources):
        properties = resources["confluent"]["StockTradesWithTotalsStatement"]["Properties"]
        properties["sql"] = "-- another comment\n" + properties["sql"]

    assert changed(templates, remarked) == {}


def test_a_table_in_another_bucket_is_created_again(templates):
    def elsewhere(resources):
        resources["confluent"]["StockTradesTable"]["Properties"]["bucket"] = "another-bucket"

    (only,) = changed(templates, elsewhere).values()
    assert only.action is Action.RECREATE
    assert only.data_loss == (
        "the Iceberg table with all its rows; the new one begins with the oldest record that the topic "
        "still has"
    )


def test_the_rows_of_a_table_in_confluents_storage_go_with_it(templates):
    before = copy.deepcopy(templates)
    (stack,) = [template for name, template in before.items() if name.endswith("-confluent")]
    stack["Resources"]["StockTradesTable"]["Properties"]["storage"] = "managed"
    (only,) = compared(before, templates)
    assert (only.action, only.data_loss) == (
        Action.RECREATE,
        "the Iceberg table with all its rows, which are in Confluent's storage; the new one begins with the "
        "oldest record that the topic still has",
    )


def test_a_removed_table_has_no_new_one(templates):
    def less(resources):
        del resources["confluent"]["StockTradesTable"]

    (only,) = changed(templates, less).values()
    assert (only.action, only.data_loss) == (Action.DELETE, "the Iceberg table with all its rows")


def test_what_aws_cannot_rename_is_replaced_by_its_own_schema(templates):
    def renamed(resources):
        resources["data"]["TableflowBucketA0B5D15A"]["Properties"]["BucketName"] = "mine"
        resources["exports"][job_of(resources["exports"])]["Properties"]["NumberOfWorkers"] = 5

    found = changed(templates, renamed)
    assert (found["TableflowBucketA0B5D15A"].action, found["TableflowBucketA0B5D15A"].data_loss) == (
        Action.REPLACE, "everything in it",
    )  # fmt: skip
    assert found[job_of(resources_of(templates, "exports"))].action is Action.UPDATE
    # Tableflow can write elsewhere only with another table.
    assert found["StockTradesTable"].action is Action.RECREATE


def test_a_nested_property_is_compared_by_itself(templates):
    def budget(resources):
        (name,) = (
            name for name, body in resources["operations"].items() if body["Type"] == "AWS::Budgets::Budget"
        )
        resources["operations"][name]["Properties"]["Budget"]["BudgetLimit"]["Amount"] = 5000

    (only,) = changed(templates, budget).values()
    assert only.action is Action.UPDATE
    (why,) = only.why
    assert (why.before.count("5000"), why.after.count("5000")) == (0, 1)
    assert "budget_name" not in why.after.lower()


@pytest.mark.parametrize("policy", ["Retain", "RetainExceptOnCreate"])
def test_a_removed_resource_is_deleted_unless_its_stack_retains_it(templates, policy):
    def less(resources):
        del resources["confluent"]["StockTradesTopic"]
        del resources["data"]["LakeBucket9CD7BBD2"]

    templates["lakeferry-dev-data"]["Resources"]["LakeBucket9CD7BBD2"]["DeletionPolicy"] = policy
    found = changed(templates, less)
    assert (found["StockTradesTopic"].action, found["StockTradesTopic"].data_loss) == (
        Action.DELETE,
        "its records",
    )
    assert (found["LakeBucket9CD7BBD2"].action, found["LakeBucket9CD7BBD2"].data_loss) == (Action.RETAIN, "")


def test_a_retained_bucket_is_not_lost_when_it_is_replaced(templates):
    def renamed(resources):
        resources["data"]["LakeBucket9CD7BBD2"]["Properties"]["BucketName"] = "mine"

    templates["lakeferry-dev-data"]["Resources"]["LakeBucket9CD7BBD2"]["UpdateReplacePolicy"] = "Retain"
    assert changed(templates, renamed)["LakeBucket9CD7BBD2"].data_loss == ""


def test_deleting_the_pseudonymisation_key_is_data_loss(templates):
    def less(resources):
        (name,) = (
            name for name, body in resources["data"].items() if body["Type"] == "AWS::SecretsManager::Secret"
        )
        del resources["data"][name]

    (only,) = changed(templates, less).values()
    assert "pseudonymisation" in only.data_loss


def test_a_stack_whose_first_deployment_failed_is_created_again(templates):
    fallen = Stack("lakeferry-dev-data", "arn", "ROLLBACK_COMPLETE", template={})
    assert not fallen.is_active
    changes = Comparison(
        [SynthesizedStack("lakeferry-dev-data", templates["lakeferry-dev-data"])], {}
    ).changes()
    assert {change.action for change in changes} == {Action.CREATE}


def test_every_resource_type_that_replaces_objects_in_updates_is_listed():
    renewing = {
        name
        for name, resource_type in registry.RESOURCE_TYPES.items()
        if "ReplacementRequired(" in inspect.getsource(inspect.getmodule(resource_type.handler.update))
    }
    assert set(replacement.RECREATED_ON) == renewing


def test_an_unlisted_resource_type_that_replaces_objects_is_found():
    assert "raise ReplacementRequired(" in inspect.getsource(
        registry.RESOURCE_TYPES["tableflow_topic"].handler.update
    )
    assert "ReplacementRequired(" not in inspect.getsource(registry.RESOURCE_TYPES["topic"].handler)


@pytest.mark.parametrize("kind", sorted(registry.RESOURCE_TYPES))
def test_replacing_values_are_properties_of_the_resource_type(kind):
    resource = TemplateResource(
        "s", "R", {"Type": "Custom::Lakeferry" + "".join(word.capitalize() for word in kind.split("_"))}
    )
    rule = replacement.find_rule(resource)
    known = set(inspect.signature(registry.RESOURCE_TYPES[kind].handler.PROPERTIES).parameters)
    assert {path[0] for path in (*rule.replaced, *rule.recreated)} <= known
    assert resource.kind == kind


def test_an_unknown_type_of_aws_is_never_reported_as_replaced():
    assert (
        replacement.find_rule(TemplateResource("s", "R", {"Type": "AWS::Nothing::Here"}))
        == replacement.Rule()
    )


def test_a_secret_that_somebody_put_into_a_template_is_not_shown(templates):
    def leaked(resources):
        resources["exports"][job_of(resources["exports"])]["Properties"]["DefaultArguments"]["--key"] = SECRET

    (only,) = changed(templates, leaked).values()
    assert only.why
    assert SECRET not in json.dumps(render._as_document(only))


@pytest.mark.parametrize(
    ("value", "references_found"),
    [
        ({"Ref": "A"}, [("s", "A")]),
        ({"Fn::GetAtt": ["A", "Arn"]}, [("s", "A")]),
        ({"Fn::GetAtt": "A.Arn"}, [("s", "A")]),
        ({"Fn::ImportValue": "theirs"}, [("t", "B")]),
        ({"Fn::ImportValue": "unheard-of"}, []),
        ({"Fn::Sub": "x${A}y${B.Arn}z${!C}"}, [("s", "A"), ("s", "B")]),
        ({"Fn::Sub": ["x${A}y${Own}", {"Own": {"Ref": "D"}}]}, [("s", "D"), ("s", "A")]),
        ([{"a": {"Fn::Join": ["", ["x", {"Ref": "A"}]]}}, "Ref"], [("s", "A")]),
    ],
)
def test_references_are_found_in_every_form(value, references_found):
    assert list(references.find_references("s", value, {"theirs": ("t", "B")})) == references_found


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        ({"Fn::Join": ["", ["a-", {"Ref": "B"}]]}, "a-B"),
        ({"Fn::GetAtt": ["A", "Arn"]}, "A.Arn"),
        ({"Fn::ImportValue": "theirs"}, "B"),
        (None, "nothing"),
        (True, "true"),
        ({"b": 1, "a": [2]}, '{"a": [2], "b": 1}'),
        ("x\n  y", "x y"),
        ({"S3Key": "0" * 64 + ".zip"}, '{"S3Key": "00000000….zip"}'),
    ],
)
def test_values_are_formatted_for_people(value, shown):
    assert references.format_short(value, {"theirs": ("t", "B")}) == shown


def test_a_long_value_keeps_its_beginning_and_its_end():
    shown = references.format_short("a" * 100 + "b" * 100, {})
    assert len(shown) < 80
    assert (shown[0], shown[-1]) == ("a", "b")


def plan_of(changes, **more):
    plan = shipped.load("dev")
    result = {
        "settings": [],
        "phases": [],
        "cost": cost.estimate(plan),
        "deployed": [],
        "removed_from_file": [],
    }
    return Plan(
        prefix="lakeferry-dev", account="1", region="eu-west-1", changes=changes, **{**result, **more}
    )


def test_data_loss_is_printed_first(templates, capsys):
    def less(resources):
        del resources["confluent"]["StockTradesTopic"]
        resources["confluent"]["StockTradesConnector"]["Properties"]["max_interval_ms"] = 250

    render.show(Output(), plan_of(list(changed(templates, less).values())))
    printed = capsys.readouterr().out
    assert printed.index("DATA LOSS") < printed.index("max_interval_ms")
    assert "delete Confluent topic StockTradesTopic (stock_trades), which deletes its records" in printed
    assert "DELETE" in printed


def test_new_resources_are_counted_unless_all_are_requested(templates, capsys):
    plan = plan_of(compared({}, templates))
    render.show(Output(), plan)
    short = capsys.readouterr().out
    render.show(Output(verbose=True), plan)
    whole = capsys.readouterr().out
    assert "and 3 more" in short
    assert "SchemaRegistryAccount" not in short
    assert "SchemaRegistryAccount" in whole
    assert "TableflowBucketA0B5D15A" in whole


def test_outputs_tags_and_protection_are_changes_too(templates):
    template = templates["lakeferry-dev-data"]
    changed_template = copy.deepcopy(template)
    changed_template["Outputs"]["Another"] = {"Value": {"Ref": "LakeBucket9CD7BBD2"}}
    before = Stack("d", "arn", "CREATE_COMPLETE", template=template, tags={"owner": "me"})
    settings = list(
        build._compare_settings(
            SynthesizedStack("d", changed_template, {"owner": "you"}, is_protected=True), before
        )
    )
    assert [(setting.what, setting.before, setting.after) for setting in settings] == [
        ("tag owner", "me", "you"),
        ("output Another", "nothing", "LakeBucket9CD7BBD2"),
        ("protection against deletion", "off", "on"),
    ]
    assert not plan_of([], settings=settings).is_empty
    assert plan_of([]).is_empty


def test_a_phase_takes_as_long_as_its_slow_resources(templates):
    changes = compared({}, templates)
    confluent, data = (
        durations.expect_phase(f"lakeferry-dev-{part}", changes) for part in ("confluent", "data")
    )
    assert confluent.low > data.low
    assert confluent.high >= sum(high for _, high in durations.ESTIMATES.values()) - 10
    assert durations.expect_phase("lakeferry-dev-data", []) is None
    assert set(durations.ESTIMATES) <= set(registry.RESOURCE_TYPES)


@pytest.mark.parametrize(
    ("seconds", "expected_message"), [(5, "5s"), (192, "3m12s"), (3600, "1h00m"), (7384, "2h03m")]
)
def test_durations_are_written_for_people(seconds, expected_message):
    assert durations.format_duration(seconds) == expected_message


def events(*result):
    """Return CloudFormation's events, the newest first: (logical id, status, minute)."""
    return [
        Event(
            id="", stack="s", stack_id="arn", logical_id=name, physical_id="arn" if name == "stack" else name,
            type="AWS::CloudFormation::Stack" if name == "stack" else "AWS::S3::Bucket",
            status=status, reason="", at=minute * 60.0,
        )
        for name, status, minute in result
    ]  # fmt: skip


def test_the_last_duration_is_the_last_successful_deployments():
    result = events(
        ("stack", "UPDATE_ROLLBACK_COMPLETE", 99), ("stack", "UPDATE_ROLLBACK_IN_PROGRESS", 98),
        ("stack", "UPDATE_IN_PROGRESS", 90), ("stack", "UPDATE_COMPLETE", 30),
        ("stack", "UPDATE_COMPLETE_CLEANUP_IN_PROGRESS", 29), ("bucket", "UPDATE_COMPLETE", 28),
        ("stack", "UPDATE_IN_PROGRESS", 20), ("stack", "CREATE_COMPLETE", 9),
        ("stack", "CREATE_IN_PROGRESS", 1),
    )  # fmt: skip
    assert durations.measure(result) == 600
    assert durations.measure(events(("stack", "CREATE_IN_PROGRESS", 1))) is None


# --- objects that others have, and records


def shared_environment(resources, name="env-abc123"):
    """Name an environment in the file, as its template then is: `environment_id` is a text, and no
    environment is created.
    """
    text = json.dumps(resources["confluent"]).replace('{"Fn::GetAtt": ["Environment", "id"]}', f'"{name}"')
    resources["confluent"].clear()
    resources["confluent"].update(json.loads(text))
    del resources["confluent"]["Environment"]


def edited(templates, change):
    after = copy.deepcopy(templates)
    change({name.rpartition("-")[2]: template["Resources"] for name, template in after.items()})
    return after


def test_naming_the_environment_that_the_deployment_created_is_refused(templates):
    found = refused(templates, edited(templates, shared_environment))
    assert "would delete it with everything in it" in found["Environment"]
    assert "Environment" not in refused(edited(templates, shared_environment), templates)


def protect(resources):
    resources["confluent"]["KafkaCluster"]["Properties"]["deletion_protection"] = True


def without_topic(resources):
    del resources["confluent"]["StockTradesTopic"]


def other_text(resources):
    statement = resources["confluent"]["StockTradesWithTotalsStatement"]["Properties"]
    statement["sql"] += " WHERE TRUE"
    statement.update(DROPPING)
    statement.pop("tableflow_topics", None)


@pytest.mark.parametrize(
    ("change", "logical_id"),
    [(without_topic, "StockTradesTopic"), (other_text, "StockTradesWithTotalsStatement")],
)
def test_records_of_a_protected_cluster_are_not_deleted(templates, change, logical_id):
    resources = {name.rpartition("-")[2]: template["Resources"] for name, template in templates.items()}
    resources["confluent"]["StockTradesWithTotalsStatement"]["Properties"].pop("tableflow_topics", None)
    protected = edited(templates, protect)
    assert (
        "deletion_protection of the cluster is on"
        in refused(protected, edited(protected, change))[logical_id]
    )
    for before, after in ((templates, edited(templates, change)), (protected, edited(templates, change))):
        assert logical_id not in refused(before, after)


def test_a_topic_that_another_resource_still_has_can_not_be_created(templates):
    def by_flink(resources):
        topic = resources["confluent"].pop("StockTradesTopic")["Properties"]["topic"]
        statement = copy.deepcopy(resources["confluent"]["StockTradesWithTotalsStatement"])
        statement["Properties"]["topic"] = topic
        resources["confluent"]["StockTradesStatement"] = statement

    after = edited(templates, by_flink)
    assert "exists until another resource deletes it" in refused(templates, after)["StockTradesStatement"]
    assert "exists until another resource deletes it" in refused(after, templates)["StockTradesTopic"]


def test_what_the_file_adopts_is_shown(templates):
    def adopts(resources):
        resources["confluent"]["StockTradesTopic"]["Properties"]["adopt"] = True

    changes = compared(templates, edited(templates, adopts))
    assert [resource.logical_id for resource in ownership.list_adopted(changes)] == ["StockTradesTopic"]
    assert [
        resource.logical_id for resource in ownership.list_adopted(compared({}, edited(templates, adopts)))
    ] == ["StockTradesTopic"]
    assert ownership.list_adopted(compared(edited(templates, adopts), templates)) == []
