"""The construct library in several stacks and accounts: what works, and what is refused with advice."""

from __future__ import annotations

import json

import pytest
from aws_cdk import App, NestedStack, Stack
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_s3 as s3

from stacks import constructs as lakeferry
from tests.support.construct_kit import (
    ALARMS,
    PLACE,
    describe_table,
    export,
    open_account,
    open_bucket,
    open_cluster,
    open_storage,
    render,
    resources,
)
from tests.support.policies import ACCOUNT

GOVERNED = {"project": "acme", "stage": "prod", "alarm_topic_arn": ALARMS, "lake_formation": True}


def write_table(stack, runtime, **more):
    cluster = open_cluster(stack, runtime)
    account = open_account(stack, cluster)
    topic = lakeferry.Topic.from_name(stack, "Topic", cluster=cluster, name="Sales.Trades", owner=account)
    return topic.tableflow(open_storage(stack, account, **more))


@pytest.mark.parametrize("nested", [False, True])
def test_everything_at_a_vendor_is_in_the_stack_of_its_provider(stack, cluster, nested):
    other = NestedStack(stack, "Inner") if nested else Stack(stack.node.root, "Second")
    account = open_account(stack, cluster)
    attempts = [
        lambda: lakeferry.Topic.from_name(other, "Topic", cluster=cluster, name="orders", owner=account),
        lambda: open_account(other, cluster, "Theirs"),
        lambda: open_storage(other, account),
    ]
    for attempt in attempts:
        with pytest.raises(
            lakeferry.BadProps, match=r"not in the stack of its provider, .* Create it in stack App,"
        ):
            attempt()


def test_a_nested_stack_can_have_everything(runtime):
    outer = Stack(App(), "Outer")
    inner = NestedStack(outer, "Inner")
    table = write_table(inner, runtime)
    export(open_bucket(inner, runtime), table)
    outer.node.root.synth()


def test_an_export_is_in_the_stack_of_its_bucket_and_its_table_in_any(runtime):
    app = App()
    first = Stack(app, "First", env=PLACE)
    table = write_table(first, runtime)
    second = Stack(app, "Second", env=PLACE)
    exports = open_bucket(second, runtime)
    with pytest.raises(
        lakeferry.BadProps, match=r"to: Second/Exports is in another stack\. .* in stack Second;"
    ):
        export(exports, table, scope=first)
    export(exports, table)
    reader = iam.Role(second, "Reader", assumed_by=iam.AccountRootPrincipal())
    table.grant_read(reader)
    app.synth()


def test_the_advice_about_a_second_bucket_can_be_followed_in_another_stack(runtime):
    app = App()
    open_bucket(Stack(app, "First"), runtime)
    second = Stack(app, "Second")
    with pytest.raises(
        lakeferry.BadProps, match="Create the exports in stack First with its ExportBucket, or use"
    ):
        open_bucket(second, runtime)


def test_a_reader_gets_the_table_or_the_files_and_nothing_else(stack, runtime):
    table = describe_table()
    made = export(open_bucket(stack, runtime), table)
    for id, readable in (("TableReader", table), ("FileReader", made)):
        reader = iam.Role(stack, id, assumed_by=iam.AccountRootPrincipal())
        readable.grant_read(reader)
    by_role = list_policies(stack)
    actions = {id: [statement["Action"] for statement in statements] for id, statements in by_role.items()}
    assert actions == {
        "TableReader": ["glue:GetTable", "s3:ListBucket", "s3:GetObject"],
        "FileReader": ["s3:GetObject", "s3:ListBucket"],
    }
    assert json.dumps(by_role["TableReader"][2]["Resource"]).count(":s3:::acme-tables/data/1*") == 1


def list_policies(stack):
    """Return the statements of each role's policy, by the role's id."""
    policies = resources(render(stack), "AWS::IAM::Policy")
    return {id[:-21]: body["PolicyDocument"]["Statement"] for id, body in policies.items()}


def test_a_reader_of_files_may_decrypt_them(runtime):
    stack = Stack(App(), "App", env=PLACE)
    own = s3.Bucket(stack, "Own", encryption=s3.BucketEncryption.KMS, encryption_key=kms.Key(stack, "Key"))
    made = export(open_bucket(stack, runtime, bucket=own), describe_table())
    made.grant_read(iam.Role(stack, "Reader", assumed_by=iam.AccountRootPrincipal()))
    (statements,) = list_policies(stack).values()
    (decrypting,) = [statement for statement in statements if statement["Action"] == "kms:Decrypt"]
    assert "s3.eu-west-1." in json.dumps(decrypting["Condition"]["StringEquals"]["kms:ViaService"])


def test_functions_users_and_roles_that_exist_can_read(runtime):
    stack = Stack(App(), "App", env=PLACE)
    function = lambda_.Function(
        stack,
        "Function",
        code=lambda_.Code.from_inline("pass"),
        handler="index.main",
        runtime=lambda_.Runtime.PYTHON_3_12,
    )
    role = iam.Role.from_role_arn(stack, "Role", f"arn:aws:iam::{ACCOUNT}:role/analysts")
    table = describe_table(lake_formation=True)
    for grantee in (function, role, role, iam.User(stack, "User")):
        table.grant_read(grantee)
    template = render(stack)
    assert len(resources(template, "AWS::IAM::Policy")) == 3
    grants = resources(template, "AWS::LakeFormation::PrincipalPermissions").values()
    identifiers = {json.dumps(body["Principal"]) for body in grants}
    assert (len(identifiers), len(grants)) == (3, 6)


def test_a_role_sees_the_database_of_several_tables_by_one_grant():
    """Two resources would be one object of Lake Formation."""
    stack = Stack(App(), "App", env=PLACE)
    cluster = open_cluster(stack, lakeferry.Runtime(**GOVERNED))
    account = open_account(stack, cluster)
    storage = open_storage(stack, account, drop_tables_on_destroy=True)
    reader = iam.Role(stack, "Reader", assumed_by=iam.AccountRootPrincipal())
    for name in ("orders", "payments"):
        topic = lakeferry.Topic.from_name(stack, name, cluster=cluster, name=name, owner=account)
        topic.tableflow(storage).grant_read(reader)
    grants = resources(render(stack), "AWS::LakeFormation::PrincipalPermissions").values()
    granted = [json.dumps([body["Principal"], body["Resource"]]) for body in grants]
    assert len(granted) == len(set(granted)) == 6


def test_whoever_would_get_no_policy_is_refused(runtime):
    stack = Stack(App(), "App", env=PLACE)
    table = describe_table()
    made = export(open_bucket(stack, runtime), table)
    other = "999988887777"
    arn = f"arn:aws:iam::{other}:role/analysts"
    for readable in (table, made):
        for nobody in (
            iam.AccountPrincipal(other),
            iam.ArnPrincipal(arn),
            iam.ServicePrincipal("a.amazonaws.com"),
        ):
            with pytest.raises(lakeferry.BadProps, match="grantee: it is no role, user or function"):
                readable.grant_read(nobody)
    theirs = iam.Role.from_role_arn(stack, "Theirs", arn)
    with pytest.raises(
        lakeferry.BadProps, match=f"is of account {other}, whose policies this app can't change"
    ):
        made.grant_read(theirs)
    with pytest.raises(lakeferry.BadProps, match=f"is of account {other}"):
        table.grant_read(theirs)


def test_where_lake_formation_governs_readers_and_cleanup_get_its_permissions():
    stack = Stack(App(), "App", env=PLACE)
    runtime = lakeferry.Runtime(**GOVERNED)
    table = write_table(stack, runtime, drop_tables_on_destroy=True)
    export(open_bucket(stack, runtime), table)
    table.grant_read(iam.Role(stack, "Reader", assumed_by=iam.AccountRootPrincipal()))
    template = render(stack)
    by_principal = {}
    for id, body in template["Resources"].items():
        if body["Type"] != "AWS::LakeFormation::PrincipalPermissions":
            continue
        granted = body["Properties"]
        (role, _) = granted["Principal"]["DataLakePrincipalIdentifier"]["Fn::GetAtt"]
        table_name = granted["Resource"].get("Table", {}).get("Name")
        if table_name:
            by_principal[role[:6]] = (table_name, granted["Permissions"], body.get("DeletionPolicy"))
            assert [name for name in body["DependsOn"] if name.startswith("TopicTable")], id
    assert by_principal == {
        "Reader": ("sales.trades", ["DESCRIBE", "SELECT"], None),
        "SalesR": ("sales.trades", ["DESCRIBE", "SELECT"], None),
        "Conflu": ("sales.trades", ["DESCRIBE", "DROP"], "Retain"),
    }


def test_buckets_of_the_app_itself_hold_tables(runtime):
    stack = Stack(App(), "App", env=PLACE)
    table = write_table(stack, runtime, bucket=s3.Bucket(stack, "Own"))
    export(open_bucket(stack, runtime), table)
    template = render(stack)
    (role,) = [body for id, body in template["Resources"].items() if id.startswith("SalesRole")]
    statements = role["Properties"]["Policies"][0]["PolicyDocument"]["Statement"]
    (files,) = [item["Resource"] for item in statements if item["Sid"] == "ReadTablesS3"]
    start, *_, path, end = files["Fn::Join"][1]
    assert (start, end) == ("arn:", "*")
    assert path["Fn::Select"][1]["Fn::Split"][0] == "s3://"
