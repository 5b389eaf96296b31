"""The steps of a rotation with any vendor: what they ask of it, what they write, and what they say."""

from __future__ import annotations

import io
import json

import attrs
import pytest

from lambdas.rotation import errors as rotation_errors
from lambdas.rotation.age import Age, measure_age
from lambdas.rotation.steps import Rotation
from lambdas.rotation.strategy import LiveKey, Replaced
from lambdas.rotation.versions import DAY, Policy
from lambdas.shared.clock import Deadline
from lambdas.shared.errors import (
    LakeferryError,
    Refused,
)
from lambdas.shared.log import open_log
from tests.support.resource_environment import ManualClock
from tests.support.staged_secrets import CURRENT, PENDING, PREVIOUS, STEPS, StagedSecrets, refused, token


class Keys:
    """A vendor with keys that work at once. `calls` has what was asked of it.

    A test sets what its methods return.
    """

    def __init__(self):
        self.calls = []
        self.works = self.exists = True
        self.unusable = self.outdated = False
        self.replaced = Replaced([], [])
        self.live = []

    def get_id(self, version):
        return version.get_text("apiKey")

    def create_credential(self, context):
        self.calls.append("create")
        return {"apiKey": "new", "apiSecret": "canary-new"}

    def discard(self, context, fields):
        self.calls.append(("discard", fields["apiKey"]))

    def register(self, context, pending):
        self.calls.append(("register", pending.id))

    def authenticates(self, version):
        self.calls.append(("authenticates", version.id))
        return self.works

    def is_there(self, context, pending):
        return self.exists

    def is_unusable(self, pending):
        return self.unusable

    def is_outdated(self, context, pending):
        return self.outdated

    def list_replaced(self, context, *, include_in_grace):
        self.calls.append(("list", include_in_grace))
        return self.replaced

    def revoke(self, context, keys):
        self.calls.append(("revoke", keys))

    def list_live_keys(self, context):
        return self.live


class Function:
    """The function that rotates the secret `it`, and Secrets Manager."""

    def __init__(self):
        self.clock = ManualClock()
        self.secrets = StagedSecrets(self.clock)
        self.vendor = Keys()
        self.kinds = []
        self.log = io.StringIO()
        self.held = self.secrets.new("it", json.dumps({"apiKey": "old", "apiSecret": "canary-old"}))

    @property
    def rotation(self):
        deadline = Deadline(self.clock, self.clock.time() + 100)
        return Rotation(
            self.secrets,
            lambda kind: self.kinds.append(kind) or self.vendor,
            Policy(),
            deadline,
            open_log(self.log),
        )

    def step(self, step, version):
        return self.rotation.run({"Step": step, "SecretId": "it", "ClientRequestToken": version})

    def refuse(self, step, version):
        with pytest.raises(LakeferryError) as raised:
            self.step(step, version)
        return raised.value.kind, raised.value.what

    def list_log(self):
        return [json.loads(line) for line in self.log.getvalue().splitlines()]


def test_the_calls_of_a_whole_rotation():
    function = Function()
    first = function.held.labelled(CURRENT)
    version = function.secrets.start("it")
    assert [function.step(step, version) for step in STEPS] == ["created", "set", "tested", "current"]
    tested = ("authenticates", version)
    assert function.vendor.calls == ["create", ("register", version), *[tested] * 4]
    assert function.kinds == ["confluent"] * 4
    assert json.loads(function.held.value(CURRENT)) == {"apiKey": "new", "apiSecret": "canary-new"}
    assert function.held.labelled(PREVIOUS) == first
    entry = {"level": "INFO", "secret": "it", "version": version}
    assert function.list_log() == [
        {**entry, "step": step, "message": outcome}
        for step, outcome in zip(STEPS, ["created", "set", "tested", "current"], strict=True)
    ]
    assert function.held.versions[version][1] == {CURRENT, PENDING}, "AWS takes the label away"


@pytest.mark.parametrize("sent", [{}, {"RotationToken": ""}, {"RotationToken": "t-1"}])
def test_a_value_is_put_with_the_rotation_token_of_the_event_if_it_has_one(sent):
    """Secrets Manager sends one if another account owns the function."""
    function = Function()
    version = function.secrets.start("it")
    event = {"Step": "createSecret", "SecretId": "it", "ClientRequestToken": version}
    assert function.rotation.run(event | sent) == "created"
    assert function.secrets.rotation_tokens == [sent.get("RotationToken") or None]


def test_the_test_of_a_version_without_a_value_is_that_of_the_current_key():
    function = Function()
    version = function.secrets.start("it")
    assert function.step("testSecret", version) == "tested the current key"
    assert function.vendor.calls == [("authenticates", function.held.labelled(CURRENT))] * 2


@pytest.mark.parametrize("step", ["setSecret", "finishSecret"])
def test_a_version_without_a_value_is_named(step):
    function = Function()
    version = function.secrets.start("it")
    assert function.refuse(step, version) == (rotation_errors.EMPTY, f"version {version} of secret it")


def test_what_stops_every_step_is_named():
    function = Function()
    unknown = token()
    version = function.secrets.start("it")
    first = function.held.labelled(CURRENT)
    assert function.refuse("setSecret", unknown) == (
        rotation_errors.UNKNOWN_TOKEN,
        f"version {unknown} of secret it",
    )
    function.secrets.ended("it", version)
    function.held.versions[version][1].add("x")
    assert function.refuse("setSecret", version) == (
        rotation_errors.NOT_PENDING,
        f"version {version} of secret it",
    )
    assert function.step("setSecret", first) == "already current"
    function.held.enabled = False
    assert function.refuse("setSecret", first) == (rotation_errors.NOT_ENABLED, "secret it")
    function.held.deleted = True
    assert function.refuse("setSecret", first) == (rotation_errors.DELETED, "secret it")
    assert function.vendor.calls == []


@pytest.mark.parametrize(
    ("event", "what"),
    [
        ({}, "the event lacks Step, SecretId, ClientRequestToken"),
        ({"Step": "", "SecretId": 5, "ClientRequestToken": None}, "the event lacks Step, SecretId, Cl"),
        ({"Step": "x", "SecretId": "it"}, "the event lacks ClientRequestToken"),
        ({"Step": "x", "SecretId": "it", "ClientRequestToken": "t"}, "there is no step 'x'"),
    ],
)
def test_an_event_that_is_none_of_secrets_manager_s_is_refused(event, what):
    with pytest.raises(Refused) as raised:
        Function().rotation.run(event)
    assert raised.value.kind is rotation_errors.EVENT
    assert raised.value.what.startswith(what)


@pytest.mark.parametrize("flaw", ["unusable", "outdated"])
@pytest.mark.parametrize("step", ["createSecret", "finishSecret"])
def test_a_pending_value_that_is_of_no_use_is_abandoned(flaw, step):
    function = Function()
    version = function.secrets.start("it")
    function.step("createSecret", version)
    setattr(function.vendor, flaw, True)
    function.vendor.calls.clear()
    if (flaw, step) == ("unusable", "finishSecret"):
        assert function.step(step, version) == "current", "it was tested again, and works"
        return
    assert function.refuse(step, version) == (
        rotation_errors.DISCARDED,
        f"version {version} of secret it",
    )
    assert function.vendor.calls == [("discard", "new")]
    assert function.held.labelled(PENDING) is None


def test_a_pending_value_that_is_good_is_kept():
    function = Function()
    version = function.secrets.start("it")
    function.step("createSecret", version)
    assert function.step("createSecret", version) == "created before"
    assert function.vendor.calls == ["create"]


@pytest.mark.parametrize(
    ("code", "calls"),
    [
        ("AccessDeniedException", ["create", ("discard", "new")]),
        ("InternalServiceError", ["create"]),
    ],
)
def test_a_key_that_was_certainly_not_stored_is_taken_back(code, calls):
    function = Function()
    version = function.secrets.start("it")

    def fail(operation, call):
        if operation == "PutSecretValue":
            raise refused(code)
        return call()

    function.secrets._on_call = fail
    with pytest.raises(LakeferryError):
        function.step("createSecret", version)
    assert function.vendor.calls == calls


@pytest.mark.parametrize(("age", "is_labelled"), [(DAY, False), (DAY + 1, True)])
def test_a_version_that_becomes_current_late_says_when(age, is_labelled):
    function = Function()
    version = function.secrets.start("it")
    function.step("createSecret", version)
    function.clock.sleep(age - 1)  # the second test is a second after the first one
    now = int(function.clock.time()) + 1
    function.step("finishSecret", version)
    labels = function.held.versions[version][1]
    assert (f"LAKEFERRY-SINCE-{now}" in labels) is is_labelled
    assert (len(labels) == 3) is is_labelled


# --- revoking


def make_revoking(managed=("a", "b"), unmanaged=("c",)):
    function = Function()
    function.vendor.replaced = Replaced(list(managed), list(unmanaged))
    return function


ANSWER = {"secret": "it", "revoked": ["a", "b"], "unmanaged": ["c"], "kept": "old"}


def test_an_operator_revokes_keys_in_their_grace():
    function = make_revoking()
    assert function.rotation.revoke("it") == ANSWER
    current = function.held.labelled(CURRENT)
    assert function.vendor.calls == [("list", True), ("authenticates", current), ("revoke", ["a", "b"])]
    assert function.list_log() == [{"level": "INFO", "message": "revoked", **ANSWER}]


def test_without_replaced_keys_nothing_is_tested_and_nothing_revoked():
    function = make_revoking(managed=())
    function.vendor.works = False
    assert function.rotation.revoke("it") == {**ANSWER, "revoked": []}
    assert function.vendor.calls == [("list", True)]


def test_no_key_is_revoked_if_the_current_one_does_not_work():
    function = make_revoking()
    function.vendor.works = False
    with pytest.raises(Refused) as raised:
        function.rotation.revoke("it")
    assert (raised.value.kind, raised.value.what) == (rotation_errors.NOTHING_LEFT, "secret it")
    assert ("revoke", ["a", "b"]) not in function.vendor.calls


def test_the_schedule_revokes_keys_whose_grace_is_over():
    function = make_revoking()
    assert function.rotation.revoke_expired(["it", "it"]) == {"secrets": [{**ANSWER, "rotating": False}] * 2}
    assert ("list", False) in function.vendor.calls
    assert function.rotation.revoke_expired([]) == {"secrets": []}


def test_the_schedule_leaves_a_secret_that_is_being_rotated():
    function = make_revoking()
    function.secrets.start("it")
    left = {"secret": "it", "revoked": [], "rotating": True}
    assert function.rotation.revoke_expired(["it"]) == {"secrets": [left]}
    assert function.vendor.calls == []
    function.clock.sleep(DAY)
    assert function.rotation.revoke_expired(["it"]) == {"secrets": [{**ANSWER, "rotating": False}]}


def test_the_schedule_leaves_a_secret_whose_versions_have_just_changed():
    function = make_revoking()
    function.vendor.authenticates = lambda version: function.secrets.start("it")
    left = {"secret": "it", "revoked": [], "rotating": True}
    assert function.rotation.revoke_expired(["it"]) == {"secrets": [left]}
    assert ("revoke", ["a", "b"]) not in function.vendor.calls


def test_the_first_of_several_errors_is_raised_after_all_secrets_were_tried():
    function = make_revoking()
    function.secrets.new("empty")
    with pytest.raises(LakeferryError) as raised:
        function.rotation.revoke_expired(["empty", "none", "it"])
    assert raised.value.kind is rotation_errors.EMPTY
    assert [(entry["message"], entry.get("secret")) for entry in function.list_log()] == [
        ("not revoked", "empty"),
        ("not revoked", "none"),
        ("revoked", "it"),
    ]
    assert function.list_log()[0] == {
        "level": "ERROR",
        "message": "not revoked",
        "secret": "empty",
        "code": "ROT-EMPTY",
        "what": "secret empty has no current value",
    }


# --- ages


def measure(function):
    return measure_age(*function.rotation.open("it"))


def test_the_ages_of_a_secret():
    function = Function()
    function.vendor.live = [LiveKey("older", "AWSPREVIOUS", "then"), LiveKey("old", "AWSCURRENT", "now")]
    created = function.clock.time()
    function.clock.sleep(31.5 * DAY)
    pending = function.secrets.start("it")
    function.step("createSecret", pending)
    function.clock.sleep(0.25 * DAY)
    assert measure(function) == Age(
        secret="it",
        enabled=True,
        age_days=31.75,
        next_rotation=created + 30 * DAY,
        overdue_days=1.75,
        pending_days=0.25,
        current_label="AWSCURRENT",
        keys=tuple(function.vendor.live),
    )


def test_a_secret_that_is_not_due_and_has_no_key_at_the_vendor():
    function = Function()
    function.vendor.live = [LiveKey("other", "AWSPREVIOUS", "")]
    function.clock.sleep(29 * DAY)
    age = measure(function)
    assert (age.age_days, age.overdue_days, age.pending_days, age.current_label) == (29.0, 0.0, 0.0, "")


@pytest.mark.parametrize(
    ("enabled", "next_rotation", "interval", "overdue"),
    [
        (True, 5.0, None, 4.0),
        (False, 5.0, None, 0.0),
        (True, None, 7.0, 3.0),
        (True, None, 11.0, 0.0),
        (True, None, None, 0.0),
    ],
)
def test_when_a_rotation_is_overdue(enabled, next_rotation, interval, overdue):
    """In days: the secret is ten days old, and the date is counted from the day before it was created."""
    function = Function()
    created = function.clock.time()
    function.clock.sleep(10 * DAY)
    context, strategy = function.rotation.open("it")
    described = attrs.evolve(
        context.described,
        enabled=enabled,
        next_rotation=None if next_rotation is None else created + (next_rotation + 1) * DAY,
        rotation_interval=interval and interval * DAY,
    )
    assert measure_age(attrs.evolve(context, described=described), strategy).overdue_days == overdue
