"""The rotation function's settings and errors: one message, without secrets."""

from __future__ import annotations

import json

import pytest

from lambdas import contract
from lambdas.handlers import rotation
from lambdas.handlers.runtime import Failed, get_client
from lambdas.rotation.versions import DAY, Policy
from lambdas.shared.clock import Deadline
from lambdas.shared.errors import LakeferryError
from lambdas.shared.redaction import Secret
from tests.support.resource_environment import ManualClock


class Invocation:
    def get_remaining_time_in_millis(self):
        return contract.ROTATION_TIMEOUT_SECONDS * 1000


@pytest.fixture(autouse=True)
def environment(monkeypatch):
    for name in (contract.ROTATION_KEEP, contract.ROTATION_GRACE_DAYS):
        monkeypatch.delenv(name, raising=False)
    for name, value in {"AWS_REGION": "eu-west-1", "AWS_DEFAULT_REGION": "eu-west-1"}.items():
        monkeypatch.setenv(name, value)
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "test")


def logged(capsys):
    return [json.loads(line) for line in capsys.readouterr().out.splitlines()]


def test_settings_have_defaults():
    read = rotation.read_settings({})
    assert (read.policy, read.confluent_url) == (Policy(2, 7 * DAY), "https://api.confluent.cloud")
    given = {
        contract.ROTATION_KEEP: "3",
        contract.ROTATION_GRACE_DAYS: "0.5",
        contract.CONFLUENT_URL: "http://127.0.0.1:1",
    }
    assert (rotation.read_settings(given).policy, rotation.read_settings(given).confluent_url) == (
        Policy(3, DAY / 2),
        "http://127.0.0.1:1",
    )


@pytest.mark.parametrize(
    "given",
    [
        {contract.ROTATION_KEEP: "1"},
        {contract.ROTATION_KEEP: "two"},
        {contract.ROTATION_GRACE_DAYS: "0"},
        {contract.ROTATION_GRACE_DAYS: "-1"},
        {contract.ROTATION_GRACE_DAYS: "inf"},
        {contract.ROTATION_GRACE_DAYS: "nan"},
    ],
)
def test_contradictory_settings_are_refused(given, monkeypatch, capsys):
    with pytest.raises(LakeferryError):
        rotation.read_settings(given)
    for name, value in given.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(Failed, match="LF-SETTINGS"):
        rotation.rotate({"Step": "createSecret", "SecretId": "s", "ClientRequestToken": "t"}, Invocation())
    (entry,) = logged(capsys)
    assert (entry["code"], entry["secret"], entry["step"]) == ("LF-SETTINGS", "s", "createSecret")


def test_an_event_of_another_form_is_reported_in_one_message(capsys):
    with pytest.raises(Failed) as failed:
        rotation.rotate({"Step": "createSecret"}, Invocation())
    assert str(failed.value).startswith("ROT-EVENT  the event lacks SecretId, ClientRequestToken")
    assert failed.value.__suppress_context__
    assert logged(capsys)[-1]["code"] == "ROT-EVENT"


def test_an_unexpected_error_of_rotation_is_reported_by_its_class_only(capsys):
    secret = Secret("canary-of-the-handler")

    class Dying(Invocation):
        def get_remaining_time_in_millis(self):
            raise RuntimeError(f"with {secret.reveal()} in it")

    with pytest.raises(Failed) as failed:
        rotation.rotate({}, Dying())
    assert str(failed.value).startswith("LF-INTERNAL  RuntimeError. ")
    assert "canary" not in str(failed.value)
    text = json.dumps(logged(capsys)[-1])
    assert "RuntimeError" in text
    assert "canary" not in text


def test_a_refusal_of_secrets_manager_is_reported_by_its_code(server, monkeypatch, capsys):
    server.answers["POST /"] = (400, {"__type": "InvalidParameterException", "message": "canary"})
    monkeypatch.setenv("AWS_ENDPOINT_URL", server.url)
    get_client.cache_clear()
    with pytest.raises(Failed, match="AWS-REFUSED  describing secret s: InvalidParameterException") as failed:
        rotation.rotate({"Step": "createSecret", "SecretId": "s", "ClientRequestToken": "t"}, Invocation())
    get_client.cache_clear()
    assert "canary" not in str(failed.value)


def test_a_function_that_does_not_know_where_the_objects_are_rotates_nothing(monkeypatch):
    monkeypatch.delenv(contract.STATE_TABLE, raising=False)
    settings = rotation.read_settings({contract.CLOUD_KEY_SECRET: "s"})
    clock = ManualClock()
    with pytest.raises(LakeferryError, match="LAKEFERRY_STATE_TABLE not set"):
        rotation._tenants(settings, Deadline(clock, clock.time() + 60))
