"""Responses of the resource function: short, without secrets, and for its own account's stacks only."""

from __future__ import annotations

import io
import json
import logging

import pytest
from hypothesis import given
from hypothesis import strategies as st

from config.deployments.model import Aws
from lambdas import contract
from lambdas.custom_resources import registry
from lambdas.custom_resources.request import Identity
from lambdas.handlers import custom_resource, runtime
from lambdas.shared import errors
from lambdas.shared.clock import Deadline
from lambdas.shared.errors import LakeferryError
from lambdas.shared.log import open_log
from lambdas.shared.redaction import SHOWN, Secret
from tests.support.resource_environment import ManualClock

STACK = "arn:aws:cloudformation:eu-west-1:111122223333:stack/lake/11111111-2222-3333-4444-555555555555"
FUNCTION = "arn:aws:lambda:eu-west-1:111122223333:function:on-event"
EVENT = {
    "RequestType": "Create",
    "RequestId": "r1",
    "StackId": STACK,
    "LogicalResourceId": "Trades",
    "ResponseURL": "https://bucket.s3.amazonaws.com/x?X-Amz-Signature=canary-of-the-url",
    "ResourceProperties": {"kind": "topic", "partitions": "none"},
}
ENVIRONMENT = {
    contract.PROJECT: "lakeferry",
    contract.STAGE: "dev",
    contract.STATE_TABLE: "ledger",
}
CONFLUENT = {contract.CLOUD_KEY_SECRET: "cloud-key"}
SNOWFLAKE = {
    contract.SNOWFLAKE_ACCOUNT: "myorg-acct",
    contract.SNOWFLAKE_USER: "lakeferry",
    contract.SNOWFLAKE_ROLE: "lakeferry",
    contract.SNOWFLAKE_WAREHOUSE: "lakeferry",
    contract.SNOWFLAKE_SECRET: "snowflake-key",
}


class Invocation:
    invoked_function_arn = FUNCTION

    def get_remaining_time_in_millis(self):
        return Aws(region="eu-west-1").lambda_timeout_seconds * 1000


@pytest.fixture
def environment(monkeypatch):
    for name, value in {**ENVIRONMENT, "AWS_REGION": "eu-west-1", "AWS_DEFAULT_REGION": "eu-west-1"}.items():
        monkeypatch.setenv(name, value)


def logged(capsys):
    return [json.loads(line) for line in capsys.readouterr().out.splitlines()]


@pytest.mark.usefixtures("environment")
def test_a_mistake_in_the_properties_is_reported_in_one_message(capsys):
    with pytest.raises(runtime.Failed) as failed:
        custom_resource.on_event(EVENT, Invocation())
    message = str(failed.value)
    assert message.startswith("LF-PROPERTIES  creating topic Trades: ")
    assert "partitions: 'none' is not a whole number" in message
    assert "cluster_id: is missing" in message
    assert failed.value.__suppress_context__
    entry = logged(capsys)[-1]
    assert (entry["request"], entry["verb"], entry["resource"], entry["code"]) == (
        "r1",
        "Create",
        "Trades",
        "LF-PROPERTIES",
    )
    assert "canary" not in json.dumps(entry)


@pytest.mark.usefixtures("environment")
@pytest.mark.parametrize(
    "stack",
    [
        STACK.replace("111122223333", "999999999999"),
        STACK.replace("eu-west-1", "us-east-1"),
        "arn:aws:s3:::bucket",
        None,
    ],
)
def test_a_foreign_event_is_refused(stack, capsys):
    with pytest.raises(runtime.Failed, match="LF-FOREIGN-EVENT"):
        custom_resource.is_complete({**EVENT, "StackId": stack}, Invocation())


def test_all_missing_variables_are_reported(monkeypatch, capsys):
    for name in ENVIRONMENT:
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(runtime.Failed) as failed:
        custom_resource.is_complete(EVENT, Invocation())
    assert all(name in str(failed.value) for name in ENVIRONMENT)


@pytest.mark.usefixtures("environment")
def test_an_unexpected_error_is_reported_by_its_class_only(capsys):
    class Dying(Invocation):
        def get_remaining_time_in_millis(self):
            raise RuntimeError("canary in the text")

    with pytest.raises(runtime.Failed) as failed:
        custom_resource.is_complete(EVENT, Dying())
    assert str(failed.value).startswith("LF-INTERNAL  RuntimeError. ")
    assert "canary" not in str(failed.value)
    assert "RuntimeError" in logged(capsys)[-1]["trace"]


@pytest.mark.usefixtures("environment")
def test_creating_the_clients_needs_no_network():
    clock = ManualClock()
    lifecycle = custom_resource.build(ENVIRONMENT, Deadline(clock, clock.now + 90), open_log(io.StringIO()))
    assert set(lifecycle.vendors) == {registry.CONFLUENT, registry.SNOWFLAKE}
    assert {registered.vendor for registered in registry.RESOURCE_TYPES.values()} <= set(lifecycle.vendors)


@given(st.text(max_size=3000), st.integers(10, 2500))
def test_a_reason_is_truncated_between_characters(text, length):
    shown = runtime.truncate(text, length)
    assert len(shown.encode()) <= length
    assert text.startswith(shown.removesuffix("…"))


def test_a_reason_is_redacted_before_it_is_truncated():
    secret = Secret("canary-at-the-border")
    shown = runtime.truncate("x" * 1990 + secret.reveal(), 2000)
    assert "canary" not in shown
    assert SHOWN[0] in shown


@pytest.mark.parametrize(
    "text", ["ü" * 1240, "x" * 2480, "\0" * 414]
)  # the last takes six bytes each in JSON
def test_the_longest_outputs_that_pass_fit_into_cloudformation_s_answer(text):
    answer = {"IsComplete": True, "Data": {"arn": text}}
    assert custom_resource.require_deliverable(answer) == answer
    names = {
        "StackId": STACK.replace("lake", "s" * 128),
        "RequestId": "r" * 36,
        "LogicalResourceId": "L" * 255,
    }
    identity = str(Identity("snowflake_catalog_integration", "L" * 255, "0123abcd"))
    whole = {
        "Status": "SUCCESS",
        "Reason": "",
        **names,
        "PhysicalResourceId": identity,
        "NoEcho": False,
        **answer,
    }
    assert len(json.dumps(whole, ensure_ascii=False).encode()) <= 4096


def test_outputs_that_are_too_long_are_refused_and_never_truncated():
    with pytest.raises(LakeferryError, match=r"LF-OUTPUTS .*the longest is arn"):
        custom_resource.require_deliverable(
            {"IsComplete": True, "Data": {"arn": "x" * custom_resource.DATA_BYTES, "b": "y"}}
        )


def test_outputs_with_a_secret_are_refused():
    secret = Secret("canary-in-the-outputs")
    with pytest.raises(LakeferryError, match=r"LF-OUTPUTS .*a would show a secret") as refused:
        custom_resource.require_deliverable(
            {"IsComplete": True, "Data": {"a": f"x{secret.reveal()}", "b": "y"}}
        )
    assert "canary" not in str(refused.value)


def test_an_answer_without_outputs_stays_as_it_is():
    assert custom_resource.require_deliverable({"IsComplete": False}) == {"IsComplete": False}
    assert custom_resource.require_deliverable({"PhysicalResourceId": "x"}) == {"PhysicalResourceId": "x"}


def test_an_errors_message_has_a_maximum_length():
    error = LakeferryError(errors.UNREACHABLE, "ü" * 5000)
    assert len(runtime.truncate(str(error), runtime.REASON_BYTES).encode()) <= 2000


def test_the_log_is_opened_for_each_invocation():
    first = io.StringIO()
    second = io.StringIO()
    open_log(first).info("one")
    open_log(second).info("two")
    assert (first.getvalue().count("\n"), second.getvalue().count("\n")) == (1, 1)
    assert len(logging.getLogger("lakeferry.lambdas").handlers) == 1
