"""The systems that an operator's command works with: an embedded AWS, and both vendors' simulators behind
HTTP.
"""

from __future__ import annotations

import io
import itertools
import json
import zipfile
from pathlib import Path

import attrs
import boto3

from config.deployments import deployment_file
from config.exports.check import NOT_JUDGED
from lakeferry.deployment import snowflake_admin
from lakeferry.deployment import stacks as deployed
from lakeferry.deployment.context import Addresses, DeploymentContext
from lakeferry.inventory.known import open_states
from lambdas import contract
from lambdas.custom_resources import registry, request
from lambdas.custom_resources.state import KnownObject, ResourceState
from lambdas.shared.clock import Deadline
from lambdas.shared.http import Session
from lambdas.shared.redaction import Secret
from lambdas.shared.resource import Context
from lambdas.snowflake import keypair, sql
from lambdas.snowflake.client import Login, Snowflake
from tests.support.resource_environment import ManualClock
from tests.support.waiting import PATIENCE, until

FILE = """
[deployment]
name = "{name}"
stage = "{stage}"
owner = "a team"
on_destroy = "{on_destroy}"
[aws]
region = "eu-west-1"
[confluent]
cloud_key_secret = "{name}/confluent-cloud-key"
{confluent}
[[topics]]
name = "stock_trades"
datagen = "STOCK_TRADES"
tableflow = {{ snowflake_table = "STOCK_TRADES" }}
[snowflake]
account = "{account}"
key_secret = "{name}/snowflake-deployer"
{snowflake}
[[exports]]
contract = "daily_trades"
cron = "15 1,9 * * ? *"
zone = "America/New_York"
[alerts]
engineers = ["engineers@example.com"]
"""
_names = itertools.count(1)
_PAIR = []


@attrs.define
class StandIns:
    """`cloud` and `snow` are the simulators. Their clocks advance with the operator's."""

    aws: object
    cloud: object
    snow: object
    clock: ManualClock = attrs.field(init=False)

    def __attrs_post_init__(self):
        self.clock = ManualClock(self.pass_time)

    def pass_time(self, seconds):
        self.cloud.advance(seconds)
        self.snow.advance(seconds)

    def deployment(self, *, on_destroy="delete", name=None, prepared=True, confluent="", snowflake=""):
        """Return the context of a new deployment, with the keys that its admins would store.

        `confluent` and `snowflake` are further lines of their tables in the file.
        """
        name = name or f"ferry{next(_names)}"
        account = self.snow.credentials["account"]
        text = FILE.format(
            name=name,
            stage="test",
            on_destroy=on_destroy,
            account=account,
            confluent=confluent,
            snowflake=snowflake,
        )
        ctx = DeploymentContext(
            deployment_file.parse(text, name="test.toml", judge=NOT_JUDGED),
            Addresses(self.cloud.url, "", self.snow.url),
            clock=self.clock,
        )
        if prepared:
            self.prepare(ctx)
        return ctx

    def prepare(self, ctx):
        key = self.cloud.credentials
        _secret(
            ctx.deployment.confluent.cloud_key_secret,
            apiKey=key["cloud_api_key"],
            apiSecret=key["cloud_api_secret"],
        )
        wanted = ctx.deployment.snowflake
        pair = self._deployer()
        _secret(
            wanted.key_secret, account=wanted.account, user=wanted.user, privateKey=pair.private_pem.reveal()
        )

    def _deployer(self):
        """Return the one key pair of all deployments in the account, which share the deployer."""
        if not _PAIR:
            _PAIR.append(keypair.make())
        admin = self.admin()
        for line in (
            snowflake_admin.script().replace(snowflake_admin.PUBLIC_KEY, _PAIR[0].public).splitlines()
        ):
            admin.run(sql.statement(line.removesuffix(";")))
        admin.run(sql.statement(f"ALTER USER LAKEFERRY SET RSA_PUBLIC_KEY='{_PAIR[0].public}'"))
        return _PAIR[0]

    def admin(self):
        result = self.snow.credentials
        key = keypair.load(Secret(Path(result["private_key_file"]).read_text()))
        login = Login(result["account"], result["user"], result["role"])
        deadline = Deadline(self.clock, self.clock.time() + 10**9)
        return Snowflake(Session(deadline), self.clock, login, key, self.snow.url)


def show_bodies(ctx, service):
    """Copy the body of each call to a service into a header.

    A fault's rule can match headers, and bodies name what is meant.
    """

    def copy(params, **_):
        params["headers"]["x-body"] = repr(params["body"])

    ctx.client(service).meta.events.register("before-call", copy)


def _secret(name, **fields):
    boto3.client("secretsmanager").create_secret(Name=name, SecretString=json.dumps(fields))


@attrs.define
class Planter:
    """Creates a deployment's objects at the vendors as its functions do, with the same verbs and names."""

    ctx: DeploymentContext

    def name(self, kind, logical_id, **properties):
        result = self.ctx.deployment.identity
        part = "snowflake" if kind.startswith("snowflake_") else "confluent"
        module = registry.RESOURCE_TYPES[kind].handler
        return contract.build_object_name(
            project=result.name,
            stage=result.stage,
            region=self.ctx.region,
            account=self.ctx.account,
            stack=f"{self.ctx.deployment.prefix}-{part}",
            logical_id=logical_id,
            generation=request.compute_generation(module, module.PROPERTIES(**properties)),
        )

    def make(self, kind, logical_id, called="", **properties):
        """Create an object and return its id once it is ready. `called` is its name if a person chose it."""
        registered = registry.RESOURCE_TYPES[kind]
        vendor = self.ctx.confluent() if registered.vendor == registry.CONFLUENT else self.ctx.snowflake()
        spec = registered.handler.PROPERTIES(**properties)
        context = Context(
            vendor=vendor,
            name=called or self.name(kind, logical_id, **properties),
            secrets=self.ctx.secrets,
            clock=self.ctx.clock,
            notes={},
            resource_uid="planted",
        )
        made = registered.handler.create(context, spec)
        self.ctx.clock.sleep(900)
        return made


_ANSWERS = """
import json, urllib.request
def handler(event, context):
    given = event["ResourceProperties"]
    refused = event["RequestType"] in ("Update", "Delete") and given.get("refuses") == "yes"
    if event["RequestType"] == "Delete" and given.get("waits") == "yes":
        return
    body = {name: event[name] for name in ("StackId", "RequestId", "LogicalResourceId")}
    body |= {"Status": "FAILED" if refused else "SUCCESS", "Reason": "as the test wants", "PhysicalResourceId": given["id"]}
    sent = urllib.request.Request(event["ResponseURL"], json.dumps(body).encode(), {"Content-Type": ""}, method="PUT")
    urllib.request.urlopen(sent, timeout=10)
"""
_TRUST = {
    "Version": "2012-10-17",
    "Statement": [
        {"Effect": "Allow", "Principal": {"Service": "lambda.amazonaws.com"}, "Action": "sts:AssumeRole"}
    ],
}


#: The function that answers for custom resources, and its role.
_FUNCTION = {
    "Role": {"Type": "AWS::IAM::Role", "Properties": {"AssumeRolePolicyDocument": _TRUST}},
    "Answers": {
        "Type": "AWS::Lambda::Function",
        "Properties": {
            "Handler": "index.handler",
            "Runtime": "python3.12",
            "Role": {"Fn::GetAtt": ["Role", "Arn"]},
            "Code": {"ZipFile": _ANSWERS},
        },
    },
}


@attrs.define
class Stacks:
    """CloudFormation stacks with a deployment's names and a test's resources."""

    ctx: DeploymentContext

    @property
    def client(self):
        return boto3.client("cloudformation")

    def make(
        self,
        part,
        resources=None,
        known=(),
        *,
        refuses=(),
        protected=False,
        outputs=None,
        type="Custom::Lakeferry",
        **more,
    ):
        """Create a stack and return its name.

        `known` are physical ids of custom resources; changing or deleting those of `refuses` fails.
        `remember` writes states.
        """
        name = f"{self.ctx.deployment.prefix}-{part}"
        custom = {
            f"Custom{number}": {
                "Type": type,
                # As the functions refer to the table of their states, it is deleted after the objects.
                **({"DependsOn": "States"} if "States" in (resources or {}) else {}),
                "Properties": {
                    "ServiceToken": {"Fn::GetAtt": ["Answers", "Arn"]},
                    "id": id,
                    "refuses": "yes" if id in refuses else "no",
                    **more,
                },
            }
            for number, id in enumerate(known)
        }
        template = {"Resources": {**(_FUNCTION if known else {}), **custom, **(resources or {})}}
        template["Outputs"] = {
            key: {"Value": value, "Export": {"Name": f"{name}:{key}"}}
            for key, value in (outputs or {}).items()
        }
        self.client.create_stack(
            StackName=name,
            TemplateBody=json.dumps(template),
            Capabilities=["CAPABILITY_IAM"],
            EnableTerminationProtection=protected,
            Tags=[
                {"Key": "project", "Value": self.ctx.deployment.identity.name},
                {"Key": "stage", "Value": "test"},
            ],
        )
        self.client.get_waiter("stack_create_complete").wait(
            StackName=name, WaiterConfig={"Delay": 0.1, "MaxAttempts": 300}
        )
        return name

    def remember(self, name, identity, object_id, given, **facts):
        """Write the state that the functions would have of a custom resource. The stack must have a table
        (LEDGER).

        `given` are its properties, None for a state of an earlier release.
        """
        stack = deployed.describe(self.ctx, name, with_resources=True)
        kind, logical_id, generation = identity.split(":")[1:]
        row = ResourceState(
            "planted",
            "Create",
            "",
            self.ctx.clock.time(),
            self.ctx.object_name(name, logical_id, generation),
            given={} if given is None else {"ServiceToken": "arn", "kind": kind, **given},
            facts=KnownObject(object_id=object_id, **{"owned": True, **facts}),
        )
        key = request.build_state_key(stack.id, request.parse_physical_id(identity))
        open_states(self.ctx, stack).change(key, lambda _: row)

    def correct(self, name):
        """Make the function of custom resources refuse nothing any more."""
        function = self.client.describe_stack_resource(StackName=name, LogicalResourceId="Answers")[
            "StackResourceDetail"
        ]
        packed = io.BytesIO()
        with zipfile.ZipFile(packed, "w") as archive:
            archive.writestr("index.py", _ANSWERS.replace('== "yes"', '== "never"'))
        changed = {"FunctionName": function["PhysicalResourceId"], "ZipFile": packed.getvalue()}
        boto3.client("lambda").update_function_code(**changed)

    def delete(self, name):
        """Delete a stack and return its final status, or "" if it is gone."""
        id = self.client.describe_stacks(StackName=name)["Stacks"][0]["StackId"]
        self.client.delete_stack(StackName=name)
        (stack,) = until(lambda: self._ended(id), PATIENCE)
        return "" if stack["StackStatus"] == "DELETE_COMPLETE" else stack["StackStatus"]

    def _ended(self, id):
        stacks = self.client.describe_stacks(StackName=id)["Stacks"]
        return [stack for stack in stacks if not stack["StackStatus"].endswith("_IN_PROGRESS")]
