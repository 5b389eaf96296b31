"""Rotation in the embedded AWS, which calls our function as it ships, with least privilege, against both
simulators.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys

import pytest

from lambdas import contract
from simulators.confluent.organization import Delays
from simulators.confluent.server import ConfluentCloud
from simulators.snowflake.server import Snowflake
from tests.support.assembly_kit import dev_templates
from tests.support.aws_clients import error_of
from tests.support.rotation_deployment import PATIENCE, Deployment
from tests.support.rotation_kit import ROOT, let_in, new_function
from tests.support.runtime_kit import control
from tests.support.waiting import until

NAMES = ("kafka", "snowflake")


@pytest.fixture(scope="module")
def cloud():
    with ConfluentCloud(delays=Delays(kafka_key=0, other_key=0), time_scale=1.0) as cloud:
        yield cloud


@pytest.fixture(scope="module")
def deployment(aws, cloud):
    with Snowflake(time_scale=1.0) as snowflake:
        yield Deployment(aws, cloud, snowflake)


@pytest.mark.parametrize("name", NAMES)
def test_the_first_deploy_tests_and_does_not_rotate(deployment, name):
    before = deployment.fields(name), deployment.stages(name), deployment.live(name)
    asked = {
        "RotationLambdaARN": deployment.function,
        "RotationRules": {"ScheduleExpression": "rate(30 days)"},
    }
    deployment.aws.secrets.rotate_secret(SecretId=deployment.arn(name), RotateImmediately=False, **asked)
    until(lambda: len(deployment.stages(name)) == 1, PATIENCE)
    assert (deployment.fields(name), deployment.stages(name), deployment.live(name)) == before
    described = deployment.aws.secrets.describe_secret(SecretId=deployment.arn(name))
    assert described["RotationEnabled"]
    assert (described["NextRotationDate"] - described["CreatedDate"]).days == 30


@pytest.mark.parametrize("name", NAMES)
def test_rotate_secret_runs_the_four_steps_through_the_function(deployment, name):
    before = deployment.key(name)
    version = deployment.rotate(name, RotationLambdaARN=deployment.function)
    assert deployment.key(name, "AWSPREVIOUS") == before
    assert deployment.live(name) == {before, deployment.key(name)}
    described = deployment.aws.secrets.describe_secret(SecretId=deployment.arn(name))
    assert described["LastRotatedDate"] >= described["CreatedDate"]
    again = deployment.aws.functions.invoke(
        FunctionName=deployment.function,
        Payload=json.dumps(
            {"Step": "finishSecret", "SecretId": deployment.arn(name), "ClientRequestToken": version}
        ),
    )
    assert json.loads(again["Payload"].read()) == {"outcome": "already current"}


@pytest.mark.parametrize("name", NAMES)
def test_revoking_takes_the_replaced_key_away_at_once(deployment, name):
    replaced = deployment.key(name, "AWSPREVIOUS")
    kept = deployment.key(name)
    result = deployment.ask(operation="revoke", secret=deployment.arn(name))
    assert result == {"secret": f"rotated/{name}", "revoked": [replaced], "unmanaged": [], "kept": kept}
    assert deployment.live(name) == {kept}


def test_status_lists_live_keys(deployment):
    result = deployment.ask(operation="status", secret=deployment.arn("snowflake"))
    assert (result["current_label"], result["enabled"], len(result["keys"])) == ("RSA_PUBLIC_KEY_2", True, 1)


def test_an_error_of_the_function_reaches_the_caller(deployment):
    answer = deployment.ask(operation="revoke", secret=deployment.admin.replace("admin", "nothing"))
    assert answer["errorMessage"].startswith("AWS-REFUSED  ")


def test_the_function_s_role_can_do_nothing_else(deployment):
    other = deployment.aws.secrets.create_secret(Name="rotated/other", SecretString="{}")["ARN"]
    role = deployment.aws.functions.get_function(FunctionName=deployment.function)["Configuration"]["Role"]
    assert (
        error_of(deployment.aws.assuming(role).secrets.get_secret_value, SecretId=other)
        == "AccessDeniedException"
    )


_CHILD = """
import json, os, sys
from lambdas.handlers import rotation
class Context:
    def get_remaining_time_in_millis(self):
        return 120_000
for step in ("createSecret", "setSecret", "testSecret", "finishSecret"):
    rotation.rotate(json.loads(sys.argv[1]) | {"Step": step}, Context())
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("method", "path", "nth"),
    [
        ("POST", "/iam/v2/api-keys", 1),
        ("GET", "/kafka/*", 3),
        pytest.param("GET", "/iam/v2/api-keys", 1, marks=pytest.mark.deep),
        pytest.param("GET", "/kafka/*", 1, marks=pytest.mark.deep),
    ],
)
def test_a_killed_process_leaves_nothing_behind(deployment, cloud, method, path, nth):
    """Send SIGKILL while the vendor's response, whose effect is done, is held back."""
    name = "kafka"
    token = os.urandom(16).hex()
    deployment.ask(operation="revoke", secret=deployment.arn(name))
    before = deployment.key(name)
    environment = deployment.aws.server.environment(os.environ) | deployment.environment
    start_pending(deployment, name, token)
    cloud.faults.rule({"fault": "hang", "method": method, "path": path, "nth": nth})
    event = json.dumps({"SecretId": deployment.arn(name), "ClientRequestToken": token})
    child = subprocess.Popen(
        [sys.executable, "-c", _CHILD, event], cwd=ROOT, env=environment, stdout=subprocess.DEVNULL
    )
    until(lambda: cloud.faults.state()["held"] or child.poll() is not None, PATIENCE)
    assert child.poll() is None
    child.send_signal(signal.SIGKILL)
    child.wait(120)
    cloud.faults.clear()
    assert deployment.key(name) == before
    assert before in deployment.live(name)
    done = subprocess.run(
        [sys.executable, "-c", _CHILD, event],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    assert deployment.key(name) != before
    assert deployment.live(name) == {before, deployment.key(name)}
    assert deployment.fields(name)["apiSecret"] not in done.stdout + done.stderr


def start_pending(deployment, name, token):
    """Start a rotation as Secrets Manager does: label a version without a value.

    The function that it calls fails at once.
    """
    failing = {"idle.py": "def handler(event, context):\n    raise OSError\n"}
    idle = let_in(deployment.aws, new_function(deployment.aws, failing, "idle.handler"))
    deployment.aws.secrets.rotate_secret(
        SecretId=deployment.arn(name), ClientRequestToken=token, RotationLambdaARN=idle
    )


@pytest.fixture
def alone(aws, cloud):
    """A secret with a function of its own, whose grace ends after a second."""
    made = Deployment(aws, cloud, None, prefix="alone")
    made.environment[contract.ROTATION_GRACE_DAYS] = "0.00001"
    return made


def test_a_failing_rotation_raises_the_alarm_that_ships_and_replaced_keys_are_revoked(alone, cloud):
    """The alarm is the template's. A failing rotation also keeps the replaced key valid."""
    alarm = new_alarm(alone)
    first = alone.key("kafka")
    alone.rotate("kafka", RotationLambdaARN=alone.function)
    current = alone.key("kafka")
    asked = {"operation": contract.REVOKE_EXPIRED, "secrets": [alone.kafka]}
    until(lambda: alone.ask(**asked)["secrets"][0]["revoked"] == [first], PATIENCE)
    assert alone.live("kafka") == {current}
    assert state(alone, alarm) == "OK"
    cloud.faults.rule(
        {"fault": "error", "status": 403, "method": "POST", "path": "/iam/v2/api-keys", "times": 0}
    )
    try:
        alone.aws.secrets.rotate_secret(SecretId=alone.kafka)
        until(lambda: state(alone, alarm) == "ALARM", PATIENCE)
    finally:
        cloud.faults.clear()
    assert state(alone, alarm) == "ALARM"
    assert (alone.key("kafka"), alone.live("kafka")) == (current, {current})


def new_alarm(deployment):
    """Create the Confluent stack's alarm of the rotation, for the tested function."""
    resources = dev_templates()["confluent"]["Resources"].values()
    (shipped,) = [
        body["Properties"]
        for body in resources
        if body["Type"] == "AWS::CloudWatch::Alarm"
        and body["Properties"]["AlarmName"].endswith("-confluent-KeyRotationFunctionErrors")
    ]
    given = {
        name: value for name, value in shipped.items() if not name.endswith("Actions") and name != "Tags"
    }
    (dimension,) = shipped["Dimensions"]
    dimension = {**dimension, "Value": deployment.function.rpartition(":")[2]}
    deployment.aws.client("cloudwatch").put_metric_alarm(**given | {"Dimensions": [dimension]})
    return shipped["AlarmName"]


def state(deployment, alarm):
    control(deployment.aws, "alarms/evaluate", seconds=1)
    described = deployment.aws.client("cloudwatch").describe_alarms(AlarmNames=[alarm])
    return described["MetricAlarms"][0]["StateValue"]


def test_no_list_of_processes_shows_a_secret(deployment):
    deployment.ask(operation="status", secret=deployment.arn("kafka"))  # its process stays warm
    value = deployment.aws.secrets.get_secret_value(SecretId=deployment.admin)["SecretString"]
    secrets = [json.loads(value)["apiSecret"], deployment.fields("kafka")["apiSecret"]]
    secrets += deployment.fields("snowflake")["privateKey"].splitlines()[1:-1]
    shown = subprocess.run(
        ["ps", "axww", "-o", "args"], capture_output=True, text=True, check=True, timeout=60
    ).stdout
    assert "_worker.py" in shown
    assert not [secret[:6] for secret in secrets if secret in shown]
