"""Each reader logs in on each engine and tries to see each field of a table in every way that we know. The
table of what was seen is printed, and is the expected one.
"""

from __future__ import annotations

import json
import os
import sys

import pytest
from aws_cdk import App, Environment, Stack
from aws_cdk.assertions import Template
from pyiceberg.catalog import load_catalog

from config.deployments.shown_columns import choose_columns
from config.exports.topic_schema import from_avro
from lakeferry.errors import CommandFailed
from lakeferry.local import query as duckdb
from lakeferry.local.target import ExportTarget
from lakeferry.queries import hiding
from lambdas import contract
from lambdas.shared.clock import Deadline
from lambdas.shared.errors import LakeferryError
from lambdas.shared.http import Session
from lambdas.snowflake import sql
from lambdas.snowflake.client import Login, Snowflake
from simulators.core import control
from simulators.tableflow.kafka import Log
from simulators.tableflow.topic import Topic
from simulators.tableflow.writer import Tableflow, TableLocation
from stacks.constructs.athena_people import AthenaPeople, PeoplesTables, Results
from tests.support.aws_clients import Clients
from tests.support.lake_environment import NAMESPACE, Lakeside
from tests.support.snowflake_environment import DEPLOYER, deployer_key
from tests.support.tableflow_kit import sent
from tests.support.vendor_environment import STEADY
from tests.support.waiting import until

PII = {"confluent:tags": ["PII"]}
PROFILE = {
    "type": "record",
    "name": "Extras",
    "fields": [{"name": "level", "type": "int"}, {"name": "remark", "type": "string", **PII}],
}
AVRO = {
    "type": "record",
    "name": "Reading",
    "fields": [
        {"name": "n", "type": "int"},
        {"name": "state", "type": "string"},
        {"name": "code", "type": "string", **PII},
        {"name": "email", "type": "string"},
        {"name": "extras", "type": PROFILE},
    ],
}
VALUE = {
    "n": 1,
    "state": "canary-state",
    "code": "canary-code",
    "email": "canary-email",
    "extras": {"level": 1, "remark": "canary-remark"},
}
#: The value that shows that somebody saw the field. Binary values are shown in hexadecimal digits.
CANARIES = {
    "state": "canary-state",
    "code": "canary-code",
    "email": "canary-email",
    "extras": "canary-remark",
    "key": b"canary-key".hex(),
    "$$raw-key": b"canary-key".hex(),
    "$$raw-value": b"canary-code".hex(),
}
SHOWN = choose_columns(from_avro(AVRO, "readings"), ("DEFAULT",)).columns
PEOPLE = {"state"}
EVERYTHING = set(CANARIES)
TABLE = "LAKE.RAW.READINGS"
VIEW = "LAKE.VIEWS.READINGS"


class Sight(Lakeside):
    """A lake with the table `readings`, which has personal fields."""

    def _write(self):
        super()._write()
        keys = {"access-key-id": "test", "secret-access-key": "test", "region": self._server.region}
        properties = {f"client.{name}": value for name, value in keys.items()}
        places = {"glue.endpoint": self._server.url, "s3.endpoint": self._server.url}
        names = {"glue.skip-name-validation": "true"}
        catalog = load_catalog("readings", type="glue", **names, **places, **properties)
        flow = Tableflow(catalog, TableLocation(self.bucket, cluster_id=NAMESPACE))
        flow.create_table(Topic("readings", AVRO))
        flow.append("readings", Log("readings", 1).append([sent("canary-key", VALUE)]))

    @property
    def server(self):
        return self._server


@pytest.fixture(scope="module")
def sight():
    made = Sight()
    yield made
    made.close()


def was_seen(text, field):
    plain = text.lower().replace(" ", "")
    canary = CANARIES[field]
    return canary in plain


def table_of(seen):
    """Return the table of readers, engines and fields as lines of text."""
    lines = [f"{'reader':<10} {'engine':<10} " + " ".join(f"{field:<12}" for field in CANARIES)]
    for (reader, engine), fields in seen.items():
        marks = ["seen" if field in fields else "not seen" for field in CANARIES]
        lines.append(f"{reader:<10} {engine:<10} " + " ".join(f"{mark:<12}" for mark in marks))
    return lines


def report(seen):
    """Show the table with `pytest -s`, and in the report of a failure."""
    sys.stdout.write("\n".join(table_of(seen)) + "\n")
    return seen


# --- Snowflake


@pytest.fixture(scope="module")
def snowflake(sight):
    """What the stack creates, with a user in each role, and two users whom the file would name."""
    make = sight.make
    database = make("snowflake_database", "Database", name="LAKE")["name"]
    raw = make("snowflake_schema", "Schema", database=database, name="RAW")["full_name"]
    views = make("snowflake_schema", "ViewsSchema", database=database, name="VIEWS")["full_name"]
    warehouse = make("snowflake_warehouse", "Warehouse", name="READING")["name"]
    places = sight.trust_properties()
    source = {name: places[name] for name in ("volume", "integration")}
    table = make(
        "snowflake_iceberg_table",
        "Table",
        database="LAKE",
        schema="RAW",
        name="READINGS",
        table="readings",
        **source,
    )["full_name"]
    make(
        "snowflake_view",
        "View",
        database="LAKE",
        schema="VIEWS",
        name="READINGS",
        table=table,
        columns=list(SHOWN),
    )
    run_as_admin(sight, "CREATE USER ROTATOR", "CREATE DATABASE OWN")
    for name in contract.SNOWFLAKE_ROLES:
        make("snowflake_role", f"{name.title()}Role", name=name.upper())
    for number, grant in enumerate(contract.SNOWFLAKE_GRANTS):
        if grant.on == "USER":
            continue
        schema = views if grant.role == "people" else raw
        on = {"WAREHOUSE": warehouse, "DATABASE": database}.get(grant.on, schema)
        given = {"privilege": grant.privilege, "on": grant.on, "name": on, "to_role": grant.role.upper()}
        make("snowflake_grant", f"Grant{number}", **given)
    run_as_admin(sight, "CREATE ROLE ANALYSTS")
    for user in ("PERSON", "ANALYST", "READER_U", "RAW_U", "ROTATION_U", "OUTSIDER"):
        run_as_admin(
            sight, f"CREATE USER {user} RSA_PUBLIC_KEY='{deployer_key().public}' DEFAULT_SECONDARY_ROLES=()"
        )
    make("snowflake_grant", "ToPerson", on="ROLE", name="PEOPLE", to_user="PERSON", named_by="grant_to_users")
    make(
        "snowflake_grant",
        "ToAnalysts",
        on="ROLE",
        name="PEOPLE",
        to_role="ANALYSTS",
        named_by="grant_to_roles",
    )
    members = {"ANALYSTS": "ANALYST", "READER": "READER_U", "RAW": "RAW_U", "ROTATION": "ROTATION_U"}
    for role, user in members.items():
        run_as_admin(sight, f"GRANT ROLE {role} TO USER {user}")
    for role in ("PEOPLE", "ANALYSTS", "READER", "RAW", "ROTATION", "PUBLIC"):
        run_as_admin(sight, f"CREATE SCHEMA OWN.X_{role}", f"GRANT USAGE ON DATABASE OWN TO ROLE {role}")
        run_as_admin(sight, f"GRANT OWNERSHIP ON SCHEMA OWN.X_{role} TO ROLE {role}")
    return sight


def run_as_admin(sight, *statements):
    given = sight.simulation.credentials
    for statement in statements:
        ask(sight, given["user"], given["role"], statement, key=sight.admin_key)


@pytest.fixture(scope="module", autouse=True)
def admin_key(sight):
    from pathlib import Path

    from lambdas.shared.redaction import Secret
    from lambdas.snowflake import keypair

    text = Path(sight.simulation.credentials["private_key_file"]).read_text()
    sight.admin_key = keypair.load(Secret(text))


def ask(sight, user, role, statement, key=None):
    """Return the rows of a statement."""
    session = Session(Deadline(sight.clock, sight.clock.time() + 600), retry=STEADY, adapter=sight.wire)
    login = Login(sight.account.identifier, user, role, "READING")
    return Snowflake(session, sight.clock, login, key or deployer_key(), sight.url).run(sql.Sql(statement))


def attempts_on_all_in_snowflake(role):
    own = f"OWN.X_{role}"
    yield from (f"SELECT * FROM {place}" for place in (TABLE, VIEW))
    yield f"SELECT * FROM {TABLE} AT(OFFSET => -60)"
    yield f"CREATE VIEW {own}.V AS SELECT * FROM {TABLE}"
    yield f"CREATE VIEW {own}.W AS SELECT * FROM {VIEW}"
    yield f"CREATE TABLE {own}.T CLONE {TABLE}"
    yield f"CREATE TABLE {own}.U AS SELECT * FROM {TABLE}"
    yield from (f"SELECT * FROM {own}.{name}" for name in ("V", "W", "T", "U"))
    yield f"ALTER VIEW {VIEW} UNSET SECURE"
    yield f"CREATE OR REPLACE VIEW {VIEW} AS SELECT * FROM {TABLE}"
    yield f"GRANT SELECT ON ICEBERG TABLE {TABLE} TO ROLE {role}"
    yield f"SELECT * FROM {TABLE}"


def attempts_in_snowflake(field):
    column = f'"{field.upper()}"'
    yield from (f"SELECT {column} FROM {place}" for place in (TABLE, VIEW))
    yield f"SELECT V.{column} FROM {VIEW} AS V"
    yield f"WITH X AS (SELECT * FROM {VIEW}) SELECT {column} FROM X"
    yield f"SELECT STATE FROM {VIEW} WHERE {column} IS NULL UNION ALL SELECT MAX({column}) FROM {TABLE}"


def describing(name):
    yield f"SELECT GET_DDL('VIEW', '{VIEW}')"
    yield f"SELECT GET_DDL('TABLE', '{TABLE}')"
    yield f"DESC VIEW {VIEW}"
    yield f"DESC ICEBERG TABLE {TABLE}"
    yield "SHOW VIEWS IN DATABASE LAKE"
    yield "SELECT * FROM LAKE.INFORMATION_SCHEMA.VIEWS"
    yield f"SELECT COLUMN_NAME FROM LAKE.INFORMATION_SCHEMA.COLUMNS WHERE COLUMN_NAME = '{name.upper()}'"


def try_in_snowflake(sight, user, role, statements):
    """Return all answers as text. What the simulator can't do is no answer of Snowflake's."""
    answers = []
    unknown = []
    for statement in statements:
        try:
            answers.append(json.dumps([list(row.values()) for row in ask(sight, user, role, statement)]))
        except LakeferryError as refused:
            unknown += [statement] if "not simulated" in refused.what else []
    assert unknown == [] or role in ("READER", "RAW"), unknown
    return "\n".join(answers)


IN_SNOWFLAKE = {
    "person": ("PERSON", "PEOPLE", PEOPLE),
    "analyst": ("ANALYST", "ANALYSTS", PEOPLE),
    "outsider": ("OUTSIDER", "PUBLIC", set()),
    "rotation": ("ROTATION_U", "ROTATION", set()),
    "reader": ("READER_U", "READER", EVERYTHING),
    "raw": ("RAW_U", "RAW", EVERYTHING),
}


def test_in_snowflake_each_reader_sees_what_it_should(snowflake):
    seen = {}
    for reader, (user, role, _) in IN_SNOWFLAKE.items():
        attempts = list(attempts_on_all_in_snowflake(role))
        for field in CANARIES:
            attempts += attempts_in_snowflake(field)
        answers = try_in_snowflake(snowflake, user, role, attempts)
        seen[reader, "snowflake"] = {field for field in CANARIES if was_seen(answers, field)}
    assert report(seen) == {(name, "snowflake"): fields for name, (_, _, fields) in IN_SNOWFLAKE.items()}


@pytest.mark.parametrize("reader", ["person", "analyst", "outsider", "rotation"])
def test_in_snowflake_no_description_names_a_hidden_column(snowflake, reader):
    user, role, _ = IN_SNOWFLAKE[reader]
    for field in EVERYTHING - PEOPLE:
        answers = try_in_snowflake(snowflake, user, role, describing(field))
        assert f'"{field.upper()}"' not in answers.replace('\\"', '"')


@pytest.mark.parametrize(
    ("defect", "undo"),
    [
        ("GRANT ROLE RAW TO ROLE PEOPLE", "REVOKE ROLE RAW FROM ROLE PEOPLE"),
        (
            f"GRANT SELECT ON ICEBERG TABLE {TABLE} TO ROLE PEOPLE",
            f"REVOKE SELECT ON ICEBERG TABLE {TABLE} FROM ROLE PEOPLE",
        ),
        (f"CREATE OR REPLACE VIEW {VIEW} COPY GRANTS AS SELECT * FROM {TABLE}", ""),
    ],
)
def test_a_planted_defect_shows(snowflake, defect, undo):
    def run(statement):
        return ask(snowflake, DEPLOYER, DEPLOYER, statement)

    (view,) = run("SHOW VIEWS IN SCHEMA LAKE.VIEWS")
    repaired = view["text"].replace("CREATE SECURE VIEW", "CREATE OR REPLACE SECURE VIEW")
    run("GRANT USAGE ON SCHEMA LAKE.RAW TO ROLE PEOPLE")
    run(defect)
    everything = [f"SELECT * FROM {TABLE}", f"SELECT * FROM {VIEW}"]
    seen = try_in_snowflake(snowflake, "PERSON", "PEOPLE", everything)
    run(undo or repaired.replace(" COMMENT=", " COPY GRANTS COMMENT="))
    run("REVOKE USAGE ON SCHEMA LAKE.RAW FROM ROLE PEOPLE")
    after = try_in_snowflake(snowflake, "PERSON", "PEOPLE", everything)
    assert (was_seen(seen, "code"), was_seen(after, "code"), was_seen(after, "state")) == (True, False, True)


# --- Athena


@pytest.fixture(scope="module")
def athena(sight, snowflake):
    """The construct's stack in an account that Lake Formation governs, and roles that exist."""
    aws = sight.aws
    root = f"arn:aws:iam::{sight.server.account}:root"
    own = {"integration": ["DESCRIBE", "SELECT"]}
    body = {"governs": True, "administrators": [root], "grants": own}
    control.call(sight.server.url, "POST", "/lake-formation", body)
    results = aws.new_bucket()
    roles = {name: aws.new_role(("sts:GetCallerIdentity", "*")) for name in ("person", "outsider", "raw")}
    app = App()
    stack = Stack(app, "People", env=Environment(account=sight.server.account, region=sight.server.region))
    tables = PeoplesTables(
        NAMESPACE, f"arn:aws:s3:::{sight.bucket}", "", {"readings": [column.lower() for column in SHOWN]}
    )
    AthenaPeople(
        stack,
        "AthenaPeople",
        name="lakeferry-people",
        tables=tables,
        results=Results(results, f"arn:aws:s3:::{results}", "athena-people", ""),
        readers=[roles["person"]],
        scan_limit_bytes=10**9,
    )
    template = Template.from_stack(stack).to_json()
    for section in ("Rules", "Parameters"):
        template.pop(section, None)
    stacks = aws.client("cloudformation")
    stacks.create_stack(
        StackName="People", TemplateBody=json.dumps(template), Capabilities=["CAPABILITY_IAM"]
    )

    def status():
        return stacks.describe_stacks(StackName="People")["Stacks"][0]["StackStatus"]

    until(lambda: not status().endswith("_IN_PROGRESS"), 60.0)
    assert status() == "CREATE_COMPLETE", stacks.describe_stack_events(StackName="People")["StackEvents"]
    created = stacks.describe_stack_resources(StackName="People")["StackResources"]
    (policy,) = [
        item["PhysicalResourceId"] for item in created if item["ResourceType"] == "AWS::IAM::ManagedPolicy"
    ]
    for role in roles.values():
        aws.iam.attach_role_policy(RoleName=role.rpartition("/")[2], PolicyArn=policy)
    whole = {"Table": {"DatabaseName": NAMESPACE, "Name": "readings"}}
    aws.client("lakeformation").grant_permissions(
        Principal={"DataLakePrincipalIdentifier": roles["raw"]},
        Resource=whole,
        Permissions=["SELECT", "DESCRIBE"],
    )
    yield sight, roles
    control.call(sight.server.url, "POST", "/lake-formation", {})


def attempts_in_athena(field):
    name = f'"{NAMESPACE}"."readings"'
    yield f'SELECT "{field}" FROM {name}'
    yield f'WITH x AS (SELECT * FROM {name}) SELECT state FROM x WHERE "{field}" IS NOT NULL'


EVERYTHING_IN_ATHENA = ("SELECT * FROM readings", 'SELECT * FROM "readings$snapshots"', "DESCRIBE readings")


def ask_athena(client, text):
    number = client.start_query_execution(
        QueryString=text, WorkGroup="lakeferry-people", QueryExecutionContext={"Database": NAMESPACE}
    )["QueryExecutionId"]

    def ended():
        found = client.get_query_execution(QueryExecutionId=number)["QueryExecution"]["Status"]
        return found if found["State"] not in ("QUEUED", "RUNNING") else None

    if until(ended, 120.0)["State"] != "SUCCEEDED":
        return ""
    return json.dumps(client.get_query_results(QueryExecutionId=number)["ResultSet"]["Rows"])


IN_ATHENA = {"person": PEOPLE, "outsider": set(), "raw": EVERYTHING}


@pytest.mark.slow
def test_in_athena_each_reader_sees_what_it_should(athena):
    sight, roles = athena
    seen = {}
    for reader, role in roles.items():
        client = sight.aws.assuming(role).client("athena")
        attempts = list(EVERYTHING_IN_ATHENA)
        for field in CANARIES if reader == "person" else ():
            attempts += attempts_in_athena(field)
        answers = "".join(ask_athena(client, text) for text in attempts)
        seen[reader, "athena"] = {field for field in CANARIES if was_seen(answers, field)}
    assert report(seen) == {(name, "athena"): fields for name, fields in IN_ATHENA.items()}


def test_a_person_in_athena_can_not_read_the_files(athena):
    sight, roles = athena
    person = sight.aws.assuming(roles["person"])
    keys = [entry["Key"] for entry in sight.aws.s3.list_objects_v2(Bucket=sight.bucket)["Contents"]]
    for call in (
        lambda: person.s3.list_objects_v2(Bucket=sight.bucket),
        lambda: person.s3.get_object(Bucket=sight.bucket, Key=keys[0]),
    ):
        with pytest.raises(person.s3.exceptions.ClientError, match="AccessDenied"):
            call()


# --- DuckDB, on the machine of who asks


def test_lakeferry_query_hides_fields_in_duckdb_unless_raw(sight):
    aws: Clients = sight.aws
    assert aws
    known = hiding.Hiding(
        {"readings": choose_columns(from_avro(AVRO, "readings"), ("DEFAULT",))}, [NAMESPACE]
    )
    target = ExportTarget(bucket=sight.bucket, database=NAMESPACE)
    seen = {("person", "duckdb"): set(), ("raw", "duckdb"): set()}
    with pytest.MonkeyPatch.context() as patch:
        for name, value in sight.server.environment().items():
            patch.setenv(name, value)
        assert os.environ["AWS_ENDPOINT_URL"] == sight.server.url
        for field in CANARIES:
            for text in (f'SELECT "{field}" FROM readings', "SELECT * FROM readings"):
                rows = duckdb.query(target, text).rows
                if was_seen(_to_text(rows), field):
                    seen["raw", "duckdb"].add(field)
                try:
                    hiding.find_named(text, "duckdb", known)
                    rows = duckdb.query(target, text, {"readings": SHOWN}).rows
                except CommandFailed:
                    continue
                if was_seen(_to_text(rows), field):
                    seen["person", "duckdb"].add(field)
    assert report(seen) == {("person", "duckdb"): PEOPLE, ("raw", "duckdb"): EVERYTHING}


def _to_text(rows):
    cells = [cell for row in rows for cell in row]
    return str([cell.hex() if isinstance(cell, bytes) else cell for cell in cells])
