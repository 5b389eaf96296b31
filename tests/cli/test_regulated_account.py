"""A deployment in the account of a security department: VPC, KMS keys, permissions boundary, a bootstrap of its
own, and a catalog that Lake Formation governs.

The tests depend on each other: each continues where the previous one ended.
"""

from __future__ import annotations

import json
import os
import time
from pathlib import Path

import attrs
import boto3
import pytest

from lakeferry.local import target
from lakeferry.rehearsal import environments
from lakeferry.rehearsal.environments import SimulatedEnvironment
from lakeferry.rehearsal.harness import copy_project
from lakeferry.verification.tables import find_database
from tests.support.aws_clients import Clients, error_of
from tests.support.command import Clone
from tests.support.deployment_kit import Newcomer
from tests.support.regulated_account import OTHERS, RegulatedAccount
from tests.support.waiting import until

pytestmark = [pytest.mark.deep, pytest.mark.timeout(3000)]
STAGE = "test"
FILE = Path(__file__).parents[1] / "data" / "regulated.toml"
_DAY = 86_400
_HOUR = 3600


@attrs.frozen
class Team(Newcomer):
    """The team that deploys, in the account that it was given."""

    simulators: SimulatedEnvironment
    account: RegulatedAccount
    #: The ARN of a role that somebody else owns, and with which a person asks Athena.
    person: str

    @property
    def reader(self):
        """The line of the deployment file that names the person's role."""
        return f'athena_readers = ["{self.person}"]'

    def call(self, *words, code=0):
        return super().call(*words, "--stage", self.stage, code=code)

    def run_export(self):
        """Run the job in the embedded Glue, and return the run."""
        job = self.output("exports", "DailyTradesJobName")
        now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        self.ctx.client("glue").start_job_run(JobName=job, Arguments={"--as-of": now})
        return self.wait_for_run(job)

    def let_events_flow(self):
        """Let Confluent's clock come up to ours, and an hour pass."""
        behind = max(0, time.time() - self.simulators.confluent_now())
        self.simulators.advance_confluent(behind + _HOUR)

    def list_granted_databases(self):
        """Return the databases on which roles of the deployment have permissions of Lake Formation."""
        granted = boto3.client("lakeformation").list_permissions()["PrincipalResourcePermissions"]
        ours = [grant for grant in granted if self.ctx.deployment.prefix in json.dumps(grant["Principal"])]
        resources = [grant["Resource"] for grant in ours]
        return {
            resource["Database"]["Name"] if "Database" in resource else resource["Table"]["DatabaseName"]
            for resource in resources
        }

    def list_files(self, folder):
        prefix = f"exports/daily_trades/{folder}/"
        bucket = self.output("data", "LakeBucketName")
        listed = boto3.client("s3").list_objects_v2(Bucket=bucket, Prefix=prefix)
        return [item["Key"] for item in listed.get("Contents", [])]

    def ask_as_person(self, text):
        """Ask Athena with the person's role. Return the query once it has ended."""
        athena = Clients(self.simulators.aws).assuming(self.person).client("athena")
        workgroup = self.output("operations", "AthenaPeopleWorkgroup")
        number = athena.start_query_execution(QueryString=text, WorkGroup=workgroup)["QueryExecutionId"]

        def ended():
            query = athena.get_query_execution(QueryExecutionId=number)["QueryExecution"]
            return query if query["Status"]["State"] not in ("QUEUED", "RUNNING") else None

        return until(ended, 120.0)

    def read_as(self, *statements):
        """Read the newest file with the login of a new role. Return AWS's error, or None."""
        clients = Clients(self.simulators.aws)
        reader = clients.assuming(clients.new_role(("s3:GetObject", "*"), *statements))
        bucket = self.output("data", "LakeBucketName")
        return error_of(reader.s3.get_object, Bucket=bucket, Key=self.list_files("data")[-1])


@pytest.fixture(scope="module")
def team(tmp_path_factory):
    root = tmp_path_factory.mktemp("regulated")
    copy_project(root)
    name = "MYORGANIZATION-MYACCOUNT"
    opened = environments.open_environment(name, time.time() - 3 * _DAY, flink=False)
    with opened as simulators, target.set_environment(simulators.variables):
        account = RegulatedAccount(simulators.aws, os.environ | simulators.variables)
        person = Clients(simulators.aws).new_role(("sts:GetCallerIdentity", "*"))
        made = Team(Clone(root), STAGE, simulators.variables, simulators, account, person)
        text = account.describe(FILE.read_text()).replace("= 500", "= 30000")
        made.file.write_text(text.replace("[aws]", f"[aws]\n{made.reader}"))
        environments.prepare(made.ctx, simulators)
        yield made


@pytest.fixture(scope="module")
def before(team):
    return team.account.fingerprint()


def test_it_deploys(team, before):
    team.call("deploy", "--yes")
    assert team.call("plan", "--check")["changes"] == []


def test_functions_and_jobs_run_in_the_network(team):
    network = team.account.network
    functions = team.ctx.client("lambda").list_functions()["Functions"]
    ours = [function for function in functions if team.ctx.deployment.prefix in function["FunctionName"]]
    assert ours
    for function in ours:
        assert function["VpcConfig"]["VpcId"] == network.vpc, function["FunctionName"]
    job = team.ctx.client("glue").get_job(JobName=team.output("exports", "DailyTradesJobName"))["Job"]
    assert len(job["Connections"]["Connections"]) == len(network.subnets)


def test_the_table_is_seen_everywhere(team):
    team.let_events_flow()
    team.simulators.advance_snowflake(300)
    (table,) = team.call("status")["tables"]
    hops = {name: hop["state"] for name, hop in table.items() if isinstance(hop, dict)}
    assert set(hops.values()) == {"ok"}, table
    checks = team.call("doctor")["checks"]
    assert [check for check in checks if check["result"] == "fail"] == []


def test_the_table_is_exported_and_read_with_the_key(team):
    run = team.run_export()
    assert run["JobRunState"] == "SUCCEEDED", run.get("ErrorMessage")
    assert team.list_files("data")
    assert team.read_as(("kms:Decrypt", team.account.keys["data"])) is None
    assert team.read_as() == "AccessDenied"


def test_a_person_asks_athena_and_sees_what_is_not_personal(team):
    clients = Clients(team.simulators.aws)
    clients.iam.attach_role_policy(
        RoleName=team.person.rpartition("/")[2], PolicyArn=team.output("operations", "AthenaPeoplePolicyArn")
    )
    table = f'"{find_database(team.ctx)}"."stock_trades"'
    price = team.ask_as_person(f"SELECT min(price) FROM {table}")
    assert price["Status"]["State"] == "SUCCEEDED", price
    everything = team.ask_as_person(f"SELECT * FROM {table} LIMIT 1")
    assert everything["Status"]["State"] == "SUCCEEDED", everything
    for column in ("account", "userid"):
        refused = team.ask_as_person(f"SELECT {column} FROM {table}")
        assert refused["Status"]["State"] == "FAILED", refused
        assert column in refused["Status"]["StateChangeReason"]
    found = (
        clients.assuming(team.person)
        .client("athena")
        .get_query_results(QueryExecutionId=everything["QueryExecutionId"])["ResultSet"]["ResultSetMetadata"][
            "ColumnInfo"
        ]
    )
    names = {column["Name"] for column in found}
    assert "price" in names
    assert not names & {"account", "userid", "key", "$$raw-value"}


def test_keys_rotate(team):
    secret = team.ctx.confluent_secret("tableflow")
    held = team.ctx.secrets.read_key(secret).id
    team.call("rotate", secret, "--now", "--yes")
    assert team.ctx.secrets.read_key(secret).id != held
    assert team.call("status", "--drift")["drift"] == []


def test_a_disabled_key_is_named(team):
    kms = boto3.client("kms")
    key = team.account.keys["data"]
    kms.disable_key(KeyId=key)
    run = team.run_export()
    kms.enable_key(KeyId=key)
    assert (run["JobRunState"], key in run["ErrorMessage"]) == ("FAILED", True), run
    assert team.run_export()["JobRunState"] == "SUCCEEDED"


def test_it_is_updated(team):
    team.file.write_text(team.file.read_text().replace("glue_workers = 2", "glue_workers = 3"))
    team.call("deploy", "--yes")
    assert team.call("plan", "--check")["changes"] == []
    job = team.ctx.client("glue").get_job(JobName=team.output("exports", "DailyTradesJobName"))["Job"]
    assert job["NumberOfWorkers"] == 3


def test_a_policy_that_its_owner_attached_is_detached_first(team):
    refused = team.call("destroy", "--confirm", STAGE, code=7)
    assert refused["code"] == "DESTROY-ATTACHED"
    policy = team.output("operations", "AthenaPeoplePolicyArn")
    Clients(team.simulators.aws).iam.detach_role_policy(
        RoleName=team.person.rpartition("/")[2], PolicyArn=policy
    )


def test_nothing_of_the_deployment_is_left(team, before):
    team.call("destroy", "--confirm", STAGE)
    items = team.call("inventory")["items"]
    assert [item for item in items if item["verdict"] in ("orphaned", "unknown")] == []
    (database,) = [item for item in items if item["kind"] == "glue_database"]
    assert (database["verdict"], "Lake Formation" in database["why"]) == ("retained", True)
    assert team.list_granted_databases() == {database["name"]}
    assert team.account.fingerprint() == before


#: Buckets that exist, and that other teams use.
TABLES = "acme-tables"
LAKE = "acme-lake"


@pytest.fixture(scope="module")
def guest(team):
    """Return a team that was given buckets too, after the first deployment is destroyed."""
    team.account.create_bucket(TABLES, "tables")
    team.account.create_bucket(LAKE, "data")
    team.account.add_objects(LAKE)
    team.account.govern()
    made = attrs.evolve(team, stage="shared")
    text = team.file.read_text().replace('stage = "test"', 'stage = "shared"')
    text = text.replace(team.reader, "")  # Only a bucket of the deployment can be registered.
    given = f'[aws]\nexisting_tableflow_bucket = "{TABLES}"\nexisting_lake_bucket = "{LAKE}"'
    made.file.write_text(text.replace("[aws]", given))
    return made


@pytest.fixture(scope="module")
def buckets(guest):
    return {name: guest.account.fingerprint_bucket(name) for name in (TABLES, LAKE)}


def test_it_deploys_into_buckets_that_exist(guest, buckets):
    guest.call("deploy", "--yes")
    guest.let_events_flow()
    guest.simulators.advance_snowflake(300)
    assert [check for check in guest.call("doctor")["checks"] if check["result"] == "fail"] == []
    run = guest.run_export()
    assert run["JobRunState"] == "SUCCEEDED", run.get("ErrorMessage")
    keys = [item["Key"] for item in boto3.client("s3").list_objects_v2(Bucket=LAKE)["Contents"]]
    assert [key for key in keys if key.startswith(f"{guest.ctx.deployment.prefix}/exports/daily_trades/")]
    assert {key for key in keys if not key.startswith(f"{guest.ctx.deployment.prefix}/")} == {*OTHERS}


def test_what_others_have_in_the_buckets_stays(guest, buckets, before):
    guest.call("destroy", "--confirm", "shared")
    items = guest.call("inventory")["items"]
    assert [item for item in items if item["verdict"] in ("orphaned", "unknown")] == []
    for name, content in buckets.items():
        left = guest.account.fingerprint_bucket(name)
        assert {key: left.get(key) for key in content} == content
    assert guest.account.fingerprint() == before
