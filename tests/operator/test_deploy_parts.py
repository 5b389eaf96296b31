"""The parts of `plan`, `deploy`, `status --drift` and `logs` that call AWS, with an embedded AWS."""

from __future__ import annotations

import json
import os
import time
import urllib.request

import attrs
import boto3
import pytest
from botocore.exceptions import ClientError

from lakeferry.deploy import checks, failure_causes, run, summary
from lakeferry.deploy import waiting as waiting_for
from lakeferry.deployment import logs
from lakeferry.deployment import stacks as deployed
from lakeferry.deployment.cdk import Cdk, CliFailed
from lakeferry.errors import LATER, NOT_SET_UP, WRONG_INPUT, CommandFailed
from lakeferry.health import aws, drift
from lakeferry.inventory import AWS, CONFLUENT
from lakeferry.local import lock, target
from lakeferry.output import Output
from lakeferry.plan import build, cost, render
from lakeferry.plan.difference import Action
from lambdas import contract
from tests.support.leftovers import QUEUE

HANDLE = {"Type": "AWS::CloudFormation::WaitConditionHandle"}


def waiting(seconds):
    """Return a resource that is created on a signal, and fails without one."""
    properties = {"Handle": {"Ref": "Handle"}, "Timeout": str(seconds)}
    return {"Type": "AWS::CloudFormation::WaitCondition", "Properties": properties}


@pytest.fixture
def assembly(ctx, tmp_path):
    """Return a function that writes what CDK would synthesise: templates of the deployment's stacks."""

    def write(**resources):
        artifacts = {}
        for name in ctx.stacks:
            template = {"Resources": resources.get(name.rpartition("-")[2], {})}
            (tmp_path / f"{name}.json").write_text(json.dumps(template))
            tags = {"project": ctx.deployment.identity.name, "stage": "test"}
            artifacts[name] = {
                "type": "aws:cloudformation:stack",
                "properties": {"templateFile": f"{name}.json", "tags": tags},
            }
        (tmp_path / "manifest.json").write_text(json.dumps({"artifacts": artifacts}))
        return Cdk(ctx, folder=tmp_path)

    return write


def plan(ctx, cdk):
    return build.build_plan(ctx, cdk, lambda _: None)


def test_a_plan_compares_with_the_deployed_stacks(ctx, stacks, assembly):
    stacks.make("data", {"Queue": QUEUE, "Old": QUEUE})
    found = plan(ctx, assembly(data={"Queue": QUEUE, "New": QUEUE}, exports={"Dead": QUEUE}))
    assert {(change.resource.logical_id, change.action) for change in found.changes} == {
        ("New", Action.CREATE), ("Old", Action.DELETE), ("Dead", Action.CREATE),
    }  # fmt: skip
    assert [phase.stack for phase in found.phases] == [
        f"{ctx.deployment.prefix}-{part}" for part in ("data", "exports")
    ]
    assert found.phases[0].last is not None
    assert found.phases[1].last is None


def test_a_plan_without_differences_is_empty(ctx, stacks, assembly):
    for name in ctx.stacks:
        stacks.make(name.rpartition("-")[2], {"Queue": QUEUE})
    wanted = {name.rpartition("-")[2]: {"Queue": QUEUE} for name in ctx.stacks}
    assert plan(ctx, assembly(**wanted)).is_empty


def test_a_stack_that_the_file_no_longer_has_is_kept_and_reported(ctx, stacks, assembly):
    name = stacks.make("snowflake", {"Queue": QUEUE})
    without = attrs.evolve(ctx.loaded, deployment=attrs.evolve(ctx.deployment, snowflake=None))
    found = plan(attrs.evolve(ctx, loaded=without), assembly())
    assert found.removed_from_file == [name]
    assert found.changes == []


def test_a_change_that_is_refused_is_not_deployed(ctx, stacks, assembly, capsys):
    name = stacks.make(
        "confluent", known=["trades"], type="Custom::LakeferryTopic", topic="trades", partitions="12"
    )
    before = boto3.client("cloudformation").describe_stacks(StackName=name)["Stacks"][0]
    fewer = {"Type": "Custom::LakeferryTopic", "Properties": {"topic": "trades", "partitions": 6}}
    with pytest.raises(CommandFailed) as failure:
        run.deploy(Output(), ctx, assembly(confluent={"Custom0": fewer}), yes=True)
    assert (failure.value.exit_code, failure.value.code) == (WRONG_INPUT, "DEPLOY-REFUSED")
    assert (
        f"topic Custom0 (trades) of {name}: partitions can't be lowered from 12 to 6" in failure.value.message
    )
    assert "CAN'T BE DEPLOYED: topic Custom0 (trades)" in capsys.readouterr().out
    assert boto3.client("cloudformation").describe_stacks(StackName=name)["Stacks"][0] == before


def record(*fields):
    """Return an Avro schema in JSON."""
    return json.dumps(
        {"type": "record", "name": "Trade", "fields": [{"name": "id", "type": "string"}, *fields]}
    )


@pytest.fixture
def registered(ctx, plant, stacks):
    """A deployed schema, the registry's key in its secret, and the registry."""
    environment = plant.make("environment", "Environment")
    plant.make("kafka_cluster", "KafkaCluster", environment_id=environment, region=ctx.region)
    account = plant.make("service_account", "Account")
    admin = {"role": "EnvironmentAdmin", "scope": "environment", "environment_id": environment}
    plant.make("role_binding", "Subjects", service_account_id=account, **admin)
    secret = ctx.confluent_secret("schema_registry")
    boto3.client("secretsmanager").create_secret(Name=secret)
    key = {"service": "schema_registry", "secret": secret, "environment_id": environment}
    plant.make("api_key", "RegistryKey", service_account_id=account, **key)
    subject = {
        "environment_id": environment,
        "credentials": secret,
        "subject": "trades-value",
        "schema": record(),
    }
    plant.make("schema", "Schema", **subject)
    stacks.make(
        "confluent",
        known=["trades-value"],
        type="Custom::LakeferrySchema",
        subject="trades-value",
        schema=record(),
    )
    return ctx.confluent().registry(environment, ctx.secrets.read_key(secret))


def edited(schema):
    return {
        "Custom0": {
            "Type": "Custom::LakeferrySchema",
            "Properties": {"subject": "trades-value", "schema": schema},
        }
    }


def test_a_schema_that_the_registry_would_refuse_is_not_deployed(ctx, registered, assembly):
    required = {"name": "fw", "type": "string"}
    with pytest.raises(CommandFailed) as failure:
        run.deploy(Output(), ctx, assembly(confluent=edited(record(required))), yes=True)
    assert failure.value.code == "DEPLOY-REFUSED"
    assert "schema Custom0 (trades-value)" in failure.value.message
    assert "Schema Registry refuses it: /fw: the reader's field has no default" in failure.value.message
    assert "Give the field that the message names a default" in failure.value.message
    assert plan(ctx, assembly(confluent=edited(record({**required, "default": ""})))).refusals == []
    registered.put("/config/trades-value", {"compatibility": "NONE"})
    assert plan(ctx, assembly(confluent=edited(record(required)))).refusals == []
    assert registered.get("/subjects/trades-value/versions") == [1]


@pytest.mark.usefixtures("registered")
@pytest.mark.parametrize("system", ["the key", CONFLUENT])
def test_a_registry_that_cannot_be_asked_is_said_and_stops_nothing(ctx, assembly, broken, capsys, system):
    if system == CONFLUENT:
        broken(CONFLUENT, status=503)
    else:
        boto3.client("secretsmanager").delete_secret(SecretId=ctx.confluent_secret("schema_registry"))
    found = plan(ctx, assembly(confluent=edited(record({"name": "fw", "type": "string"}))))
    render.show(Output(), found)
    assert found.refusals == []
    assert (
        "NOT CHECKED: schema Custom0 (trades-value): Schema Registry could not be asked"
        in capsys.readouterr().out
    )
    assert len(render.build_document(found)["not_checked"]) == 1


def refused(ctx):
    with pytest.raises(CommandFailed) as failure:
        checks.require(ctx)
    return failure.value


@pytest.fixture
def bootstrapped():
    ssm = boto3.client("ssm")
    ssm.put_parameter(Name=aws.BOOTSTRAP_PARAMETER, Value=str(aws.BOOTSTRAP), Type="String", Overwrite=True)
    yield ssm
    ssm.delete_parameter(Name=aws.BOOTSTRAP_PARAMETER)


@pytest.mark.usefixtures("bootstrapped")
def test_with_all_prerequisites_nothing_is_reported(ctx):
    checks.require(ctx)


def test_all_missing_prerequisites_are_reported_together(stand_ins):
    ctx = stand_ins.deployment(prepared=False)
    failure = refused(ctx)
    assert (failure.exit_code, failure.code) == (NOT_SET_UP, "DEPLOY-NOT-READY")
    result = [detail["what"] for detail in failure.details]
    assert len(result) == 3
    assert "AWS: bootstrap: eu-west-1 is not bootstrapped for CDK" in result
    assert f"there is no secret {ctx.deployment.confluent.cloud_key_secret}" in result
    assert "lakeferry secrets set snowflake --stage test" in failure.hint


def test_an_old_bootstrap_is_not_enough(ctx, bootstrapped):
    bootstrapped.put_parameter(Name=aws.BOOTSTRAP_PARAMETER, Value="5", Type="String", Overwrite=True)
    assert "version 5 (needed: 6 at least)" in refused(ctx).message


@pytest.mark.usefixtures("bootstrapped")
def test_an_account_with_too_few_concurrent_executions_is_not_ready(ctx, broken):
    broken(
        AWS,
        status=200,
        path="/2016-08-19/account-settings",
        body=json.dumps({"AccountLimit": {"ConcurrentExecutions": 10}}),
    )
    assert "AWS: Lambda concurrent executions: 10, " in refused(ctx).message


@pytest.mark.usefixtures("bootstrapped")
def test_a_failed_check_of_doctor_stops_a_deployment_before_it_starts(ctx, broken):
    broken(CONFLUENT, status=401, shape="json", code="401")
    failure = refused(ctx)
    assert (failure.exit_code, failure.code) == (NOT_SET_UP, "DEPLOY-NOT-READY")
    assert "Confluent: Cloud key" in failure.message


@pytest.mark.usefixtures("bootstrapped")
def test_keys_that_may_not_be_read_do_not_stop_a_deployment(ctx, broken):
    """docs/how-to/deploy-from-ci.md: without permission to read keys, commands read AWS only."""
    target = {"x-amz-target": "secretsmanager.GetSecretValue"}
    broken(AWS, headers=target, status=400, shape="aws-json", code="AccessDeniedException")
    checks.require(ctx)


@pytest.mark.usefixtures("bootstrapped")
def test_a_secret_without_a_key_or_scheduled_for_deletion_is_missing(ctx):
    secrets = boto3.client("secretsmanager")
    name = ctx.deployment.confluent.cloud_key_secret
    secrets.delete_secret(SecretId=name)
    assert "is about to be deleted" in refused(ctx).message
    secrets.delete_secret(SecretId=name, ForceDeleteWithoutRecovery=True)
    secrets.create_secret(Name=name)
    assert f"there is no key in secret {name}" in refused(ctx).message


@pytest.mark.usefixtures("bootstrapped")
def test_a_missing_login_is_the_only_message(ctx, monkeypatch):
    monkeypatch.delenv("AWS_ACCESS_KEY_ID")
    monkeypatch.delenv("AWS_SECRET_ACCESS_KEY")
    fresh = attrs.evolve(ctx)
    assert [detail["what"] for detail in refused(fresh).details] == [
        "can't call AWS, because nobody is logged in (NoCredentialsError)"
    ]


@pytest.mark.usefixtures("bootstrapped")
def test_a_stack_in_progress_is_left_alone(ctx, stacks, assembly, capsys):
    name = stacks.make("data", {"Queue": QUEUE, "Handle": HANDLE})
    template = {"Resources": {"Queue": QUEUE, "Handle": HANDLE, "Wait": waiting(600)}}
    stacks.client.update_stack(StackName=name, TemplateBody=json.dumps(template))
    failure = refused(ctx)
    assert (failure.exit_code, failure.code) == (LATER, "STACK-BUSY")
    assert name in failure.message
    render.show(Output(), plan(ctx, assembly()))
    assert f"OUT OF DATE: stack {name} is UPDATE_IN_PROGRESS" in capsys.readouterr().out
    signal = json.dumps({"Status": "SUCCESS", "Reason": "", "UniqueId": "1", "Data": ""}).encode()
    url = stacks.client.describe_stack_resource(StackName=name, LogicalResourceId="Handle")[
        "StackResourceDetail"
    ]
    urllib.request.urlopen(
        urllib.request.Request(url["PhysicalResourceId"], signal, {"Content-Type": ""}, method="PUT"),
        timeout=30,
    ).close()
    await_end(stacks.client, name)


@attrs.define
class WithoutWork(Cdk):
    """A CDK CLI that finds nothing to do, because somebody else began another update after the plan was
    made.
    """

    others: object = None

    def deploy(self, report, *stacks, meanwhile=None):
        self.others()


def deployed_beside(ctx, stacks, cdk, resources):
    """Deploy `cdk` while somebody else updates the stack of the data to `resources`."""
    name = f"{ctx.deployment.prefix}-data"

    def update():
        stacks.client.update_stack(StackName=name, TemplateBody=json.dumps({"Resources": resources}))

    return run.deploy(Output(), ctx, WithoutWork(ctx, cdk.folder, others=update), yes=True)


def test_a_deployment_that_another_one_rolled_back_is_not_deployed(ctx, stacks, assembly, capsys):
    name = stacks.make("data", {"Queue": QUEUE, "Handle": HANDLE})
    wanted = {"Queue": QUEUE, "Handle": HANDLE, "Dead": QUEUE}
    with pytest.raises(CommandFailed) as failure:
        deployed_beside(ctx, stacks, assembly(data=wanted), {**wanted, "Wait": waiting(1)})
    assert (failure.value.exit_code, failure.value.code) == (LATER, "DEPLOY-OVERTAKEN")
    assert f"{name} is UPDATE_ROLLBACK_COMPLETE" in failure.value.message
    assert "then deploy again" in failure.value.hint
    assert "Deployed" not in capsys.readouterr().out
    assert "Dead" not in {resource["LogicalResourceId"] for resource in resources_of(stacks, name)}


def resources_of(stacks, name):
    return stacks.client.describe_stack_resources(StackName=name)["StackResources"]


def test_a_deployment_that_another_one_completed_is_deployed(ctx, stacks, assembly, capsys):
    for stack in ctx.stacks:
        stacks.make(stack.rpartition("-")[2], {"Queue": QUEUE})
    wanted = {"Queue": QUEUE, "Dead": QUEUE}
    others = {stack.rpartition("-")[2]: {"Queue": QUEUE} for stack in ctx.stacks}
    document = deployed_beside(ctx, stacks, assembly(**{**others, "data": wanted}), wanted)
    assert [change["logical_id"] for change in document["changes"]] == ["Dead"]
    assert f"Deployed {ctx.deployment.prefix}" in capsys.readouterr().out


@pytest.mark.parametrize(
    "said",
    [
        "InvalidChangeSetStatusException: ChangeSet [arn] cannot be executed in its current status of "
        "[EXECUTE_IN_PROGRESS]",
        "ValidationError: Stack:arn:aws:x is in UPDATE_IN_PROGRESS state and can not be updated.",
        "ChangeSetNotFoundException: ChangeSet [cdk-deploy-change-set] does not exist",
    ],
)
def test_a_deployment_that_is_refused_because_of_another_one_says_so(ctx, stacks, assembly, said):
    def refuse():
        raise CliFailed("deploy", ["  failed: ", said])

    stacks.make("data", {"Queue": QUEUE})
    folder = assembly(data={"Queue": QUEUE, "Dead": QUEUE}).folder
    with pytest.raises(CommandFailed, match="another deployment works on the same stacks") as failure:
        run.deploy(Output(), ctx, WithoutWork(ctx, folder, others=refuse), yes=True)
    assert failure.value.code == "DEPLOY-OVERTAKEN"


def test_nothing_is_deployed_while_another_process_deploys_the_stage():
    with (
        lock.hold_lock(target.STATE / "deploy-held.lock", AssertionError),
        pytest.raises(CommandFailed) as failure,
    ):
        run.run_deploy(Output(quiet=True), "held", yes=True)
    assert failure.value.code == "STACK-BUSY"
    assert f"process {os.getpid()} is deploying stage held in this clone" in failure.value.message
    with pytest.raises(CommandFailed) as failure:
        run.run_deploy(Output(quiet=True), "held", yes=True)
    assert failure.value.code == "DEPLOYMENT-FILE"
    (target.STATE / "deploy-held.lock").unlink()


def await_end(client, name):
    while client.describe_stacks(StackName=name)["Stacks"][0]["StackStatus"].endswith("_IN_PROGRESS"):
        pass


def test_new_events_are_returned_once_and_in_order(ctx, stacks):
    name = stacks.make("data", {"Queue": QUEUE})
    watch = deployed.EventWatch(ctx.client("cloudformation"), ctx.stacks)
    assert watch.new() == []
    stacks.client.update_stack(
        StackName=name, TemplateBody=json.dumps({"Resources": {"Queue": QUEUE, "More": QUEUE}})
    )
    await_end(stacks.client, name)
    seen = watch.new()
    assert seen[0].is_of_stack
    assert seen[0].status == "UPDATE_IN_PROGRESS"
    assert {"More"} <= {event.logical_id for event in seen}
    assert [event.at for event in seen] == sorted(event.at for event in seen)
    assert watch.new() == []


def test_a_stack_that_fails_has_a_cause(ctx, stacks):
    watch = deployed.EventWatch(ctx.client("cloudformation"), ctx.stacks)
    name = f"{ctx.deployment.prefix}-data"
    template = {"Resources": {"Queue": QUEUE, "Handle": HANDLE, "Wait": waiting(1)}}
    stacks.client.create_stack(StackName=name, TemplateBody=json.dumps(template))
    await_end(stacks.client, name)
    cause = failure_causes.find(watch.new())
    assert cause is not None
    assert cause.where == f"CloudFormation::WaitCondition Wait in {name}"


def test_a_protected_stack_whose_creation_failed_can_be_deleted(ctx, stacks):
    name = f"{ctx.deployment.prefix}-data"
    template = {"Resources": {"Queue": QUEUE, "Handle": HANDLE, "Wait": waiting(1)}}
    stacks.client.create_stack(
        StackName=name, TemplateBody=json.dumps(template), EnableTerminationProtection=True
    )
    await_end(stacks.client, name)
    (stack,) = deployed.read(ctx).values()
    assert (stack.status, stack.is_protected) == ("ROLLBACK_COMPLETE", True)
    with pytest.raises(ClientError, match="TerminationProtection"):
        stacks.client.delete_stack(StackName=name)
    deployed.unprotect_failed_creation(ctx, stack)
    stacks.delete(name)
    assert deployed.read(ctx) == {}


def test_a_rollback_that_failed_is_continued(ctx, stacks):
    """An update fails, and a resource can't be set back until somebody corrects what stops it."""
    name = stacks.make("data", {"Handle": HANDLE}, ["one"], refuses=["one"])
    template = stacks.client.get_template(StackName=name)["TemplateBody"]
    template["Resources"]["Custom0"]["Properties"]["refuses"] = "no"
    template["Resources"]["Wait"] = {**waiting(1), "DependsOn": "Custom0"}
    stacks.client.update_stack(
        StackName=name, TemplateBody=json.dumps(template), Capabilities=["CAPABILITY_IAM"]
    )
    await_end(stacks.client, name)
    (stack,) = deployed.read(ctx).values()
    assert stack.status == "UPDATE_ROLLBACK_FAILED"
    said = []
    with pytest.raises(
        CommandFailed, match=f"the rollback of stack {name} failed again; it is UPDATE_ROLLBACK_FAILED"
    ):
        deployed.continue_rollback(ctx, stack, said.append)
    stacks.correct(name)
    deployed.continue_rollback(ctx, stack, said.append)
    (stack,) = deployed.read(ctx).values()
    assert (stack.status, set(said)) == ("UPDATE_ROLLBACK_COMPLETE", {f"{name}: continuing its rollback"})
    deployed.continue_rollback(ctx, stack, said.append)  # nothing to do


def test_a_protected_stack_that_was_created_stays_protected(ctx, stacks):
    stacks.make("data", {"Queue": QUEUE}, protected=True)
    (stack,) = deployed.read(ctx).values()
    deployed.unprotect_failed_creation(ctx, stack)
    assert next(iter(deployed.read(ctx).values())).is_protected


def test_a_changed_resource_is_drift_and_an_unchanged_one_is_not(ctx, stacks):
    stacks.make("data", {"Queue": {"Type": "AWS::SQS::Queue", "Properties": {"VisibilityTimeout": 30}}})
    assert [item for item in drift.detect(ctx) if item.status in ("MODIFIED", "DELETED")] == []
    (queue,) = deployed.read_physical_ids(ctx, deployed.require_part(ctx, "data")).values()
    boto3.client("sqs").set_queue_attributes(QueueUrl=queue, Attributes={"VisibilityTimeout": "60"})
    (found,) = [item for item in drift.detect(ctx) if item.status == "MODIFIED"]
    assert (found.type, found.name) == ("AWS::SQS::Queue", "Queue")
    assert "VisibilityTimeout" in found.details


@pytest.fixture
def wrote(stacks):
    """A function of the exports' stack, and a way to write into its log."""
    return writer(stacks, "exports", contract.NOTIFY)


def writer(stacks, part, handler):
    group = {"Type": "AWS::Logs::LogGroup"}
    function = {
        "Type": "AWS::Lambda::Function",
        "Properties": {
            "Handler": handler,
            "Runtime": "python3.12",
            "Role": "arn:aws:iam::000000000000:role/none",
            "Code": {"ZipFile": "def handler(event, context): pass"},
            "LoggingConfig": {"LogGroup": {"Ref": "Group"}},
        },
    }
    name = stacks.make(part, {"Group": group, "Notify": function})
    client = boto3.client("logs")
    (group_name,) = (
        listed_summary["PhysicalResourceId"]
        for listed_summary in stacks.client.list_stack_resources(StackName=name)["StackResourceSummaries"]
        if listed_summary["LogicalResourceId"] == "Group"
    )

    def write(stream, *lines):
        client.create_log_stream(logGroupName=group_name, logStreamName=stream)
        result = [{"timestamp": at * 1000, "message": text} for at, text in lines]
        client.put_log_events(logGroupName=group_name, logStreamName=stream, logEvents=result)

    return write


@pytest.mark.parametrize(
    ("reason", "code", "what"),
    [
        (
            "Received response status [FAILED] from custom resource. Message returned: Operation timed out",
            "CFL-RATE",
            "HTTP 429",
        ),
        ("CFL-INVALID  creating topic Topic: HTTP 400. What to do: x", "CFL-INVALID", "HTTP 400"),
    ],
)
def test_a_resource_that_timed_out_has_the_reason_for_which_it_waited(ctx, stacks, reason, code, what):
    write = writer(stacks, "confluent", contract.CUSTOM_RESOURCE)
    now = int(time.time())

    def waited(resource, code, reason):
        return json.dumps(
            {"level": "INFO", "message": "waiting", "resource": resource, "code": code, "reason": reason}
        )

    write(
        "one",
        (now - 20, waited("Topic", "CFL-UNAVAILABLE", "HTTP 503")),
        (now - 10, waited("Topic", "CFL-RATE", "HTTP 429")),
    )
    write("two", (now - 5, waited("Other", "CFL-CONFLICT", "HTTP 409")), (now - 4, "not JSON"))
    (stack,) = deployed.read(ctx).values()
    failed = deployed.Event(
        "1", stack.name, stack.id, "Topic", "", "Custom::LakeferryTopic", "CREATE_FAILED", reason, now
    )
    found = waiting_for.explain(ctx, failure_causes.find([failed]), failed)
    assert (found.code, found.where) == (code, f"topic Topic in {stack.name}")
    assert what in found.what
    assert found.fix


def test_a_resource_that_timed_out_without_a_log_has_the_message_of_aws(ctx, stacks):
    name = stacks.make("data", {"Queue": QUEUE})
    (stack,) = deployed.read(ctx).values()
    failed = deployed.Event(
        "1", name, stack.id, "T", "", "Custom::LakeferryTopic", "CREATE_FAILED", "Operation timed out", 1.0
    )
    cause = failure_causes.find([failed])
    assert waiting_for.explain(ctx, cause, failed) == cause
    gone = attrs.evolve(failed, stack_id=stack.id.replace("/", "/gone", 1))
    assert waiting_for.explain(ctx, cause, gone) == cause


def test_the_log_of_a_function_is_found_and_reported_in_the_order_of_time(ctx, wrote):
    now = int(time.time())
    wrote("a", (now - 30, "START RequestId: 1"), (now - 20, "second"), (now - 9, "fourth"))
    wrote("b", (now - 25, "first"), (now - 15, "third"), (now - 5, "END RequestId: 1"))
    (run,) = logs.read_runs(ctx, "notification", 3)
    assert [line.text for line in run.lines] == ["second", "third", "fourth"]
    (run,) = logs.read_runs(ctx, "notification", 9, everything=True)
    assert run.lines[0].text == "START RequestId: 1"
    assert len(run.lines) == 6


def test_the_log_of_a_run_with_many_executors_is_complete(ctx, stacks):
    stacks.make("exports", {"Queue": QUEUE})
    glue = boto3.client("glue")
    client = boto3.client("logs")
    group = f"/aws-glue/{ctx.deployment.prefix}/output"
    job = f"{ctx.deployment.prefix}-daily_trades"
    command = {"Name": "glueetl", "ScriptLocation": "s3://none/script.py"}
    glue.create_job(Name=job, Role="arn:aws:iam::000000000000:role/none", Command=command)
    id = glue.start_job_run(JobName=job)["JobRunId"]
    client.create_log_group(logGroupName=group)
    streams = [id, *(f"{id}_g-{number:03}" for number in range(60))]
    now = int(time.time() * 1000)
    for stream in streams:
        client.create_log_stream(logGroupName=group, logStreamName=stream)
        client.put_log_events(
            logGroupName=group,
            logStreamName=stream,
            logEvents=[{"timestamp": now, "message": f"of {stream}"}],
        )
    (run,) = logs.read_runs(ctx, "daily_trades", 1)
    assert {line.text for line in run.lines} >= {f"of {stream}" for stream in streams}


def test_json_lines_of_lambda_itself_are_not_shown(ctx, wrote):
    now = int(time.time())
    report = json.dumps(
        {"time": "2027-01-04T01:15:00.000Z", "type": "platform.report", "record": {"requestId": "1"}}
    )
    ours = json.dumps({"level": "ERROR", "message": "failed"})
    wrote("a", (now - 9, report), (now - 8, ours), (now - 7, report.replace(" ", "")))
    (run,) = logs.read_runs(ctx, "notification", 9)
    assert [line.text for line in run.lines] == [ours]


def test_a_secret_in_a_log_is_not_shown(ctx, wrote):
    secret = "cflt" + "A1b2C3d4" * 8
    wrote("a", (int(time.time()), f"refused: {secret}"))
    (run,) = logs.read_runs(ctx, "notification", 9)
    assert secret not in run.lines[0].text


def test_a_name_without_a_log_is_reported_with_the_names_that_have_one(ctx):
    with pytest.raises(CommandFailed) as failure:
        logs.read_runs(ctx, "nosuch", 1)
    assert (failure.value.exit_code, failure.value.code) == (WRONG_INPUT, "LOGS-UNKNOWN")
    assert (
        failure.value.hint == "There are: daily_trades, confluent, snowflake, rotation, notification, watch"
    )


def test_the_function_that_opens_links_has_a_log_if_the_file_has_links(ctx, stacks):
    writer(stacks, "exports", contract.OPEN_LINK)("a", (int(time.time()), "opened"))
    (export,) = ctx.deployment.exports
    linked = attrs.evolve(export, link_days=7, recipients=("ann@example.com",))
    with_links = attrs.evolve(ctx.deployment, exports=(linked,))
    ctx = attrs.evolve(ctx, loaded=attrs.evolve(ctx.loaded, deployment=with_links))
    assert "links" in logs.list_sources(ctx)
    (run,) = logs.read_runs(ctx, "links", 9)
    assert [line.text for line in run.lines] == ["opened"]


def test_a_part_that_is_not_deployed_is_reported(ctx):
    with pytest.raises(CommandFailed) as failure:
        logs.read_runs(ctx, "notification", 1)
    assert (failure.value.exit_code, failure.value.code) == (WRONG_INPUT, "NOT-DEPLOYED")


def test_a_first_deployment_ends_with_who_must_confirm_a_mail(ctx, capsys):
    """Every deployment has engineers; the export of this one has no recipients."""
    for is_first in (True, False):
        summary.show(Output(), ctx, [], cost.estimate(ctx.loaded), is_first=is_first)
        assert ("engineers get no alarms" in capsys.readouterr().out) == is_first
