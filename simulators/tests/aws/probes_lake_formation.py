"""Probes: permissions of Lake Formation that AWS asks for, and stock MiniStack doesn't."""

import functools
import json

from simulators.tests.aws.athena_kit import Athena
from simulators.tests.aws.probe_kit import probe
from simulators.tests.aws.stack_kit import Stack
from tests.support.aws_clients import error_of, policy
from tests.support.runtime_kit import control, numbered
from tests.support.waiting import until

_TYPE = "AWS::LakeFormation::PrincipalPermissions"
GLUE = ("glue:*", "*")


def governed(function):
    """Decorate a probe: Lake Formation governs the account while it runs, and root administers it."""

    @functools.wraps(function)
    def run_governed(aws):
        if aws.server.stock:
            return False
        control(aws, "lake-formation", governs=True, administrators=[root_of(aws)])
        try:
            return function(aws)
        finally:
            control(aws, "lake-formation")

    return run_governed


def root_of(aws):
    return f"arn:aws:iam::{aws.server.account}:root"


def name_tables(database, **named):
    return {"Table": {"DatabaseName": database, **(named or {"TableWildcard": {}})}}


def grant(aws, role, resource, *permissions):
    return aws.client("lakeformation").grant_permissions(
        Principal={"DataLakePrincipalIdentifier": role}, Resource=resource, Permissions=permissions
    )


def names_of(glue, database):
    return [table["Name"] for table in glue.get_tables(DatabaseName=database)["TableList"]]


def new_tables(aws, *names):
    database = aws.new_database()
    for name in names:
        aws.glue.create_table(DatabaseName=database, TableInput={"Name": name})
    return database


@probe("lake_formation")
@governed
def permissions_are_of_one_database(aws):
    mine = new_tables(aws, "a")
    other = new_tables(aws, "a")
    role = aws.new_role(GLUE)
    glue = aws.assuming(role).glue
    before = error_of(glue.get_table, DatabaseName=mine, Name="a")
    grant(aws, role, name_tables(mine), "DESCRIBE")
    answers = [error_of(glue.get_table, DatabaseName=name, Name="a") for name in (mine, other)]
    drops = error_of(glue.delete_table, DatabaseName=mine, Name="a")
    denied = "AccessDeniedException"
    return (before, answers, drops) == (denied, [None, denied], denied)


@probe("lake_formation")
@governed
def lists_have_tables_that_the_caller_may_see(aws):
    database = new_tables(aws, "a", "b")
    role = aws.new_role(GLUE)
    glue = aws.assuming(role).glue
    hidden = error_of(glue.get_tables, DatabaseName=database)
    grant(aws, role, {"Database": {"Name": database}}, "DESCRIBE")
    nothing = names_of(glue, database)
    grant(aws, role, name_tables(database, Name="b"), "DESCRIBE")
    one = names_of(glue, database)
    grant(aws, role, name_tables(database), "DESCRIBE")
    both = names_of(glue, database)
    databases = [database_entry["Name"] for database_entry in glue.get_databases()["DatabaseList"]]
    return (hidden, nothing, one, both, databases) == (
        "AccessDeniedException",
        [],
        ["b"],
        ["a", "b"],
        [database],
    )


@probe("lake_formation")
@governed
def creators_own_what_they_create(aws):
    role = aws.new_role(GLUE)
    glue = aws.assuming(role).glue
    name = numbered("lkc-own")
    refused = error_of(glue.create_database, DatabaseInput={"Name": name})
    grant(aws, role, {"Catalog": {}}, "CREATE_DATABASE")
    glue.create_database(DatabaseInput={"Name": name})
    missing = error_of(glue.get_table, DatabaseName=name, Name="own")
    glue.create_table(DatabaseName=name, TableInput={"Name": "own"})
    other = aws.new_role(GLUE)
    grant(aws, other, {"Database": {"Name": name}}, "CREATE_TABLE")
    aws.assuming(other).glue.create_table(DatabaseName=name, TableInput={"Name": "others"})
    seen = names_of(glue, name)
    glue.delete_table(DatabaseName=name, Name="own")
    glue.delete_database(Name=name)
    left = aws.client("lakeformation").list_permissions()["PrincipalResourcePermissions"]
    wanted = ("AccessDeniedException", "EntityNotFoundException", ["own"])
    return (refused, missing, seen) == wanted and name not in json.dumps(left)


@probe("lake_formation")
@governed
def administrators_and_creators_grant(aws):
    database = new_tables(aws)
    role = aws.new_role(GLUE, ("lakeformation:*", "*"))
    client = aws.assuming(role)
    by_role = error_of(grant, client, role, {"Database": {"Name": database}}, "DROP")
    unknown = error_of(grant, aws, f"{role}-none", {"Database": {"Name": database}}, "DROP")
    missing = error_of(grant, aws, role, {"Database": {"Name": "lkc-none"}}, "DROP")
    wrong = error_of(grant, aws, role, {"Database": {"Name": database}}, "SELECT")
    no_iam = error_of(aws.assuming(aws.new_role(GLUE)).client("lakeformation").get_data_lake_settings)
    denied = "AccessDeniedException"
    return (by_role, unknown, missing, wrong, no_iam) == (
        denied,
        "InvalidInputException",
        "EntityNotFoundException",
        "InvalidInputException",
        denied,
    )


@probe("lake_formation")
@governed
def stacks_grant_and_revoke(aws):
    database = new_tables(aws, "a")
    role = aws.new_role(GLUE)
    glue = aws.assuming(role).glue
    properties = {
        "Principal": {"DataLakePrincipalIdentifier": role},
        "Resource": name_tables(database),
        "Permissions": ["DESCRIBE", "DROP"],
        "PermissionsWithGrantOption": [],
    }
    stack = Stack(aws, _TYPE, **properties)
    granted = error_of(glue.get_table, DatabaseName=database, Name="a")
    stack.update(**properties | {"Permissions": ["DROP"]})
    changed = error_of(glue.get_table, DatabaseName=database, Name="a")
    deleted = stack.delete()
    revoked = error_of(glue.delete_table, DatabaseName=database, Name="a")
    missing = Stack(aws, _TYPE, **properties | {"Resource": name_tables("lkc-none")})
    denied = "AccessDeniedException"
    return (granted, changed, deleted, revoked, missing.status) == (
        None,
        denied,
        "DELETE_COMPLETE",
        denied,
        "ROLLBACK_COMPLETE",
    )


@probe("lake_formation")
@governed
def a_stack_grants_with_the_role_of_the_stack(aws):
    database = new_tables(aws)
    role = aws.new_role(GLUE)
    deployer = aws.new_role(("*", "*"))
    properties = {
        "Principal": {"DataLakePrincipalIdentifier": role},
        "Resource": {"Database": {"Name": database}},
        "Permissions": ["DESCRIBE"],
        "PermissionsWithGrantOption": [],
    }
    grants = {"It": {"Type": _TYPE, "Properties": properties}}
    creates = {"It": {"Type": "AWS::Glue::Database", "Properties": {"CatalogId": aws.server.account}}}
    creates["It"]["Properties"]["DatabaseInput"] = {"Name": numbered("lkc-stack")}
    before = [status_of_stack(aws, deployer, resources) for resources in (grants, creates)]
    control(aws, "lake-formation", governs=True, administrators=[root_of(aws), deployer])
    after = [status_of_stack(aws, deployer, resources) for resources in (grants, creates)]
    return (before, after) == (["ROLLBACK_COMPLETE"] * 2, ["CREATE_COMPLETE"] * 2)


def status_of_stack(aws, role, resources):
    stacks = aws.client("cloudformation")
    name = numbered("with-role")
    stacks.create_stack(StackName=name, TemplateBody=json.dumps({"Resources": resources}), RoleARN=role)

    def status():
        return stacks.describe_stacks(StackName=name)["Stacks"][0]["StackStatus"]

    until(lambda: not status().endswith("_IN_PROGRESS"), 30.0)
    return status()


@probe("lake_formation")
@governed
def athena_wants_to_select(aws):
    athena = Athena(aws)
    client = athena.as_role()
    role = aws.iam.list_roles()["Roles"][-1]["Arn"]
    database = athena.table.name()[0]
    reasons = []
    for permission in ("DESCRIBE", "SELECT"):
        grant(aws, role, name_tables(database, Name="trades"), permission)
        ended = athena.run("SELECT id FROM trades", client)
        reasons.append(ended["Status"].get("StateChangeReason", ""))
    return "Relation contains no accessible columns" in reasons[0] and reasons[1] == ""


def reader_of_some_columns(aws, athena, *more):
    """Return the ARN of a role that may ask Athena, read no file but results, and select one column."""
    group = aws.arn("athena", f"workgroup/{athena.workgroup}")
    role = aws.new_role(
        ("athena:*", group),
        ("glue:GetTable", "*"),
        ("s3:PutObject", f"arn:aws:s3:::{athena.bucket}/athena/*"),
        ("s3:GetObject", f"arn:aws:s3:::{athena.bucket}/athena/*"),
        ("s3:GetBucketLocation", f"arn:aws:s3:::{athena.bucket}"),
        *more,
    )
    columns = {"DatabaseName": athena.database, "Name": "trades", "ColumnNames": ["id"]}
    grant(aws, role, {"TableWithColumns": columns}, "SELECT")
    return role


def location_role(aws, athena):
    name = numbered("location")
    trust = {
        "Effect": "Allow",
        "Principal": {"Service": "lakeformation.amazonaws.com"},
        "Action": "sts:AssumeRole",
    }
    role = aws.iam.create_role(RoleName=name, AssumeRolePolicyDocument=policy(trust))["Role"]["Arn"]
    allowed = {"Effect": "Allow", "Action": ["s3:GetObject", "s3:ListBucket"], "Resource": "*"}
    aws.iam.put_role_policy(RoleName=name, PolicyName="own", PolicyDocument=policy(allowed))
    return role


@probe("lake_formation")
@governed
def columns_are_selected_in_registered_locations(aws):
    """Of a table in a registered location, Athena shows the columns that were granted, with the role of the
    location.
    """
    athena = Athena(aws)
    athena.table  # noqa: B018  (the property creates it)
    data_access = ("lakeformation:GetDataAccess", "*")
    role = reader_of_some_columns(aws, athena, data_access)
    client = aws.assuming(role).client("athena")
    ask = "SELECT * FROM trades"
    before = athena.run(ask, client)["Status"]["State"]
    location = f"arn:aws:s3:::{athena.bucket}/lake"
    aws.client("lakeformation").register_resource(ResourceArn=location, RoleArn=location_role(aws, athena))
    every = athena.results(athena.run(ask, client))
    hidden = athena.run("SELECT name FROM trades", client)["Status"]["State"]
    without = reader_of_some_columns(aws, athena)
    refused = athena.run(ask, aws.assuming(without).client("athena"))["Status"].get("StateChangeReason", "")
    seen = aws.assuming(role).glue.get_table(DatabaseName=athena.database, Name="trades")["Table"]["Name"]
    aws.client("lakeformation").deregister_resource(ResourceArn=location)
    after = athena.run(ask, client)["Status"]["State"]
    return (before, every[0], len(every), hidden, "GetDataAccess" in refused, seen, after) == (
        "FAILED",
        ["id"],
        3,
        "FAILED",
        True,
        "trades",
        "FAILED",
    )


@probe("lake_formation")
@governed
def only_columns_that_exist_are_granted(aws):
    athena = Athena(aws)
    athena.table  # noqa: B018  (the property creates it)
    role = aws.new_role(GLUE)
    table = {"DatabaseName": athena.database, "Name": "trades"}
    missing = error_of(grant, aws, role, {"TableWithColumns": table | {"ColumnNames": ["none"]}}, "SELECT")
    wrong = error_of(grant, aws, role, {"TableWithColumns": table | {"ColumnNames": ["id"]}}, "DROP")
    return (missing, wrong) == ("EntityNotFoundException", "InvalidInputException")
