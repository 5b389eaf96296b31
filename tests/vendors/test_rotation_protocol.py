"""Secrets Manager's protocol as AWS documents it: preconditions of each step, repeated and reordered steps,
and the test call.
"""

from __future__ import annotations

import json

import pytest

from lambdas.rotation.versions import DAY, PENDING_LIFE
from lambdas.shared.errors import LakeferryError, Refused, Transient
from tests.support.rotation_environment import USER, RotationEnvironment, aws_error, pair_of, pool
from tests.support.staged_secrets import CURRENT, PENDING, PREVIOUS, STEPS, token

NAMES = ("kafka", "snowflake")


@pytest.fixture
def env():
    with RotationEnvironment() as env:
        yield env


def shape(env):
    """Return everything that a step could change: versions with labels, and keys at the vendors."""
    versions = {
        name: {version_id: sorted(labels) for version_id, (_, labels, _) in value.versions.items()}
        for name, value in env.secrets.all.items()
    }
    return versions, sorted(env.confluent.organization.api_keys), env.slots()


def refused(env, name, step, version, code):
    before = shape(env)
    with pytest.raises(LakeferryError) as raised:
        env.step(name, step, version)
    assert raised.value.kind.code == code
    assert shape(env) == before


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("step", STEPS)
def test_a_secret_that_is_not_enabled_is_refused(env, name, step):
    version = env.secrets.start(name)
    env.secrets.all[name].enabled = False
    refused(env, name, step, version, "ROT-NOT-ENABLED")


OTHER = {"kafka": "CFL-OTHER-ORGANIZATION", "snowflake": "SNF-OTHER-ACCOUNT"}


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("step", STEPS)
def test_each_step_refuses_a_login_of_another_organization_or_account(env, name, step):
    version = env.secrets.start(name)
    for earlier in STEPS[: STEPS.index(step)]:
        env.step(name, earlier, version)
    env.tenants = lambda: frozenset(["elsewhere"])
    refused(env, name, step, version, OTHER[name])


def test_a_login_of_the_organization_and_the_account_rotates(env):
    account = env.snowflake.account
    organization = env.confluent.organization.organization_id
    region = f"AWS_{account.region.upper().replace('-', '_')}"
    env.tenants = lambda: frozenset([organization, f"{account.locator}.{region}"])
    for name in NAMES:
        env.rotate(name)


@pytest.mark.parametrize("step", STEPS)
def test_an_unknown_token_is_refused(env, step):
    refused(env, "kafka", step, token(), "ROT-UNKNOWN-TOKEN")


@pytest.mark.parametrize("step", STEPS)
def test_a_version_that_is_current_already_is_left_alone(env, step):
    version = env.secrets.all["kafka"].labelled(CURRENT)
    before = shape(env)
    assert env.step("kafka", step, version) == "already current"
    assert shape(env) == before


def test_each_step_is_logged_with_its_secret_and_version(env):
    version = env.secrets.all["kafka"].labelled(CURRENT)
    env.step("kafka", "createSecret", version)
    (line,) = map(json.loads, env.log.getvalue().splitlines())
    assert line == {
        "level": "INFO",
        "message": "already current",
        "secret": "kafka",
        "step": "createSecret",
        "version": version,
    }


@pytest.mark.parametrize("step", STEPS)
def test_a_version_that_is_not_pending_is_refused(env, step):
    env.rotate("kafka")
    refused(env, "kafka", step, env.secrets.all["kafka"].labelled(PREVIOUS), "ROT-NOT-PENDING")


@pytest.mark.parametrize(
    "event",
    [
        {},
        {"Step": "createSecret"},
        {"Step": "createSecret", "SecretId": "kafka"},
        {"Step": "dropSecret", "SecretId": "kafka", "ClientRequestToken": "t"},
        {"Step": "createSecret", "SecretId": ["kafka"], "ClientRequestToken": "t"},
        {"operation": "delete", "secret": "kafka"},
        {"operation": "revoke"},
        {"operation": "revoke_expired"},
        {"operation": "revoke_expired", "secrets": "kafka"},
    ],
)
def test_an_event_of_another_form_is_refused(env, event):
    with pytest.raises(Refused) as raised:
        env.ask(**event)
    assert raised.value.kind.code == "ROT-EVENT"


@pytest.mark.parametrize("name", NAMES)
def test_each_step_returns_what_it_did(env, name):
    version = env.secrets.start(name)
    assert [env.step(name, step, version) for step in STEPS] == ["created", "set", "tested", "current"]


@pytest.mark.parametrize("name", NAMES)
def test_the_test_call_accepts_a_value_that_was_never_rotated(env, name):
    """Secrets Manager creates an empty version or a copy for this call, and removes it afterwards."""
    version = env.secrets.start(name)
    before = shape(env)
    assert env.step(name, "testSecret", version) == "tested the current key"
    assert shape(env) == before
    env.secrets.all[name].versions[version][0] = env.secrets.all[name].value(CURRENT)
    assert env.step(name, "testSecret", version) == "tested"
    assert shape(env) == before


def test_the_test_call_fails_if_the_current_key_does_not_work(env):
    version = env.secrets.start("kafka")
    del env.confluent.organization.api_keys[env.fields("kafka")["apiKey"]]
    refused(env, "kafka", "testSecret", version, "ROT-NOT-THERE")


@pytest.mark.parametrize("name", NAMES)
def test_labels_end_as_aws_requires(env, name):
    held = env.secrets.all[name]
    first = env.secrets.all[name].labelled(CURRENT)
    version = env.rotate(name)
    assert {version_id: labels for version_id, (_, labels, _) in held.versions.items()} == {
        first: {PREVIOUS},
        version: {CURRENT},
    }


@pytest.mark.parametrize("name", NAMES)
def test_r2_steps_repeated_or_replayed_change_nothing(env, name):
    version = env.secrets.start(name)
    for step in STEPS:
        env.step(name, step, version)
        before = shape(env)
        for _ in range(5):
            env.step(name, step, version)
            assert shape(env) == before
    for step in STEPS:
        assert env.step(name, step, version) == "already current"
    assert shape(env) == before


@pytest.mark.parametrize("name", NAMES)
def test_r3_steps_out_of_order_are_refused(env, name):
    version = env.secrets.start(name)
    for step in ("setSecret", "finishSecret"):
        refused(env, name, step, version, "ROT-EMPTY")
    env.step(name, "createSecret", version)
    if name == "snowflake":
        refused(env, name, "testSecret", version, "ROT-NOT-THERE")
        refused(env, name, "finishSecret", version, "ROT-NOT-THERE")
    else:
        env.confluent.organization.api_keys[env.fields(name, PENDING)["apiKey"]].usable += DAY
        refused(env, name, "finishSecret", version, "ROT-NOT-PROVEN")


@pytest.mark.parametrize("name", NAMES)
def test_r9_a_pending_version_that_is_good_is_used_by_the_next_rotation(env, name):
    """However late that is, the replaced key has its whole grace from then on."""
    version = env.secrets.start(name)
    for step in STEPS[: 2 if name == "snowflake" else 1]:
        env.step(name, step, version)
    env.clock.sleep(35 * DAY)
    replaced = env.fields(name)
    for step in STEPS:
        env.step(name, step, env.secrets.start(name))
    assert env.secrets.all[name].labelled(CURRENT) == version  # and Secrets Manager never received its end
    env.clock.sleep(2 * DAY)
    for _ in range(2):
        env.try_rotating(name, tries=1)
        assert env.accepts(replaced)


@pytest.mark.parametrize("name", NAMES)
def test_r9_a_pending_version_that_was_detached_manually_blocks_no_rotation(env, name):
    env.rotate(name)
    env.clock.sleep(31 * DAY)
    version = env.secrets.start(name)
    for step in STEPS[:2]:
        env.step(name, step, version)
    env.secrets.detach(name)
    assert env.try_rotating(name) is None
    env.clock.sleep(31 * DAY)
    assert env.try_rotating(name) is None
    assert env.ours(name) == env.held(name)


def test_r10_a_pending_key_that_was_deleted_manually_is_given_up(env):
    version = env.secrets.start("kafka")
    env.step("kafka", "createSecret", version)
    del env.confluent.organization.api_keys[env.fields("kafka", PENDING)["apiKey"]]
    for step in ("setSecret", "testSecret", "finishSecret"):
        refused(env, "kafka", step, version, "ROT-NOT-THERE")
    with pytest.raises(Refused) as raised:
        env.step("kafka", "createSecret", version)
    assert raised.value.kind.code == "ROT-DISCARDED"
    assert env.secrets.all["kafka"].labelled(PENDING) is None
    assert env.rotate("kafka") != version
    assert env.ours("kafka") == env.held("kafka")


def test_r10_a_pending_key_that_was_taken_out_of_its_slot_is_set_again(env):
    version = env.secrets.start("snowflake")
    for step in STEPS[:2]:
        env.step("snowflake", step, version)
    env.run_sql("ALTER USER READER UNSET RSA_PUBLIC_KEY_2")
    refused(env, "snowflake", "testSecret", version, "ROT-NOT-THERE")
    assert env.rotate("snowflake") == version
    assert env.accepts(env.fields("snowflake"))


@pytest.mark.parametrize("name", NAMES)
def test_r17_no_key_is_created_for_a_secret_that_is_scheduled_for_deletion(env, name):
    version = env.secrets.start(name)
    env.secrets.all[name].deleted = True
    refused(env, name, "createSecret", version, "ROT-DELETED")


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("operation", ["GetSecretValue", "PutSecretValue"])
def test_r17_no_key_is_left_when_kms_refuses(env, name, operation):
    version = env.secrets.start(name)
    before = sorted(env.confluent.organization.api_keys)

    def denied(asked, call):
        if asked == operation:
            raise aws_error("AccessDeniedException")
        return call()

    env.secrets._on_call = denied
    with pytest.raises(LakeferryError) as raised:
        env.step(name, "createSecret", version)
    assert "AccessDeniedException: canary" in str(raised.value)  # what AWS says about a denial survives
    assert sorted(env.confluent.organization.api_keys) == before


@pytest.mark.parametrize("happened", [True, False])
def test_r18_moving_the_label_is_the_commit_and_is_read_back(env, happened):
    version = env.secrets.start("kafka")
    for step in STEPS[:3]:
        env.step("kafka", step, version)

    def broken(asked, call):
        if asked == "UpdateSecretVersionStage":
            if happened:
                call()
            raise aws_error("ThrottlingException")
        return call()

    on_call = env.secrets._on_call
    env.secrets._on_call = broken
    if happened:
        assert env.step("kafka", "finishSecret", version) == "current"
    else:
        with pytest.raises(Transient):
            env.step("kafka", "finishSecret", version)
        env.secrets._on_call = on_call
        assert env.step("kafka", "finishSecret", version) == "current"
    assert env.secrets.all["kafka"].labelled(CURRENT) == version


def test_r18_a_current_version_that_changed_meanwhile_is_not_replaced(env):
    version = env.secrets.start("kafka")
    for step in STEPS[:3]:
        env.step("kafka", step, version)
    held = env.secrets.all["kafka"]
    other = json.dumps({**env.fields("kafka"), "by hand": "yes"})
    env.steps.plan[env.steps.count + 5] = (
        "before",
        lambda: env.secrets._put(held, token(), other, [CURRENT]),
    )
    with pytest.raises(Refused) as raised:
        env.step("kafka", "finishSecret", version)
    assert raised.value.kind.code == "ROT-NOT-MOVED"
    assert held.value(CURRENT) == other
    assert env.try_rotating("kafka") is None


def test_a_cross_account_token_is_passed_on_and_never_shown(env):
    version = env.secrets.start("snowflake")
    asked = {}
    put = env.secrets.put_secret_value
    env.secrets.put_secret_value = lambda **given: asked.update(given) or put(**given)
    env.ask(
        Step="createSecret", SecretId="snowflake", ClientRequestToken=version, RotationToken="canary-of-aws"
    )
    assert asked["RotationToken"] == "canary-of-aws"
    assert "canary" not in env.log.getvalue()


def test_a_secret_in_another_form_is_reported_by_its_fields(env):
    env.secrets.new("other", '{"password": "canary-of-a-password"}')
    refused(env, "other", "createSecret", env.secrets.start("other"), "ROT-FIELDS")
    env.secrets.new("broken", "canary-of-a-password")
    refused(env, "broken", "createSecret", env.secrets.start("broken"), "ROT-FIELDS")
    assert "canary" not in "".join(env.result)


def test_a_secret_without_a_value_is_reported(env):
    env.secrets.new("empty")
    refused(env, "empty", "createSecret", env.secrets.start("empty"), "ROT-EMPTY")


def expired(env, *names):
    """Return what the scheduled call revokes, by secret."""
    result = env.ask(operation="revoke_expired", secrets=list(names))
    return [secret["revoked"] for secret in result["secrets"]]


@pytest.mark.parametrize("name", NAMES)
def test_a_replaced_key_is_revoked_when_its_grace_is_over_and_not_before(env, name):
    replaced = env.fields(name)
    env.rotate(name)
    env.clock.sleep(7 * DAY - 60)
    assert expired(env, name) == [[]]
    assert env.accepts(replaced)
    env.clock.sleep(120)
    assert expired(env, name) == [[env.id_of(replaced)]]
    assert not env.exists(replaced)
    assert env.accepts(env.fields(name))
    assert expired(env, name) == [[]]
    assert env.rotate(name)


def test_a_secret_whose_keys_cannot_be_revoked_is_logged_and_stops_no_other(env):
    env.secrets.new("empty")
    replaced = env.fields("kafka")
    env.rotate("kafka")
    env.clock.sleep(31 * DAY)
    before = len(env.log.getvalue())
    with pytest.raises(LakeferryError):
        expired(env, "empty", "kafka")
    failures = [
        line for line in map(json.loads, env.log.getvalue()[before:].splitlines()) if line["level"] == "ERROR"
    ]
    assert [(line["message"], line["secret"], line["code"]) for line in failures] == [
        ("not revoked", "empty", "ROT-EMPTY")
    ]
    assert not env.exists(replaced)


@pytest.mark.parametrize("name", NAMES)
def test_a_key_that_was_never_replaced_is_not_revoked(env, name):
    env.clock.sleep(100 * DAY)
    assert expired(env, name) == [[]]
    assert env.accepts(env.fields(name))


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("steps", [0, 1, 2, 3])
def test_no_key_is_revoked_while_a_rotation_is_under_way(env, name, steps):
    env.rotate(name)
    env.clock.sleep(31 * DAY)
    version = env.secrets.start(name)
    for step in STEPS[:steps]:
        env.step(name, step, version)
    before = shape(env)
    result = env.ask(operation="revoke_expired", secrets=[name])
    assert [(secret["revoked"], secret["rotating"]) for secret in result["secrets"]] == [([], True)]
    assert shape(env) == before
    assert env.rotate(name, version) == version


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("steps", [0, 1, 2, 3])
def test_replaced_keys_are_revoked_although_a_rotation_failed_and_left_its_label(env, name, steps):
    """The label of the failed rotation stays for as long as rotation fails; the replaced key's grace ends
    before.
    """
    replaced = env.fields(name)
    env.rotate(name)
    env.clock.sleep(31 * DAY)
    version = env.secrets.start(name)
    for step in STEPS[:steps]:
        env.step(name, step, version)
    current = env.fields(name)
    env.clock.sleep(PENDING_LIFE - 60)
    assert env.ask(operation="revoke_expired", secrets=[name])["secrets"][0]["rotating"]
    env.clock.sleep(120)
    answer = env.ask(operation="revoke_expired", secrets=[name])["secrets"][0]
    assert not answer["rotating"]
    assert not env.exists(replaced)
    assert env.accepts(current)
    assert env.rotate(name, version) == version
    assert env.accepts(env.fields(name))


@pytest.mark.parametrize("name", NAMES)
def test_a_rotation_that_runs_between_any_two_calls_keeps_its_key(env, name):
    """In a Snowflake user's slot, the new key replaces the expired one."""
    env.rotate(name)
    env.clock.sleep(31 * DAY)
    start = env.steps.count
    expired(env, name)
    calls = env.steps.count - start
    # The last call of all removes the key. Snowflake has no statement that removes a key only while it is the
    # expected one.
    for number in range(1, calls + (name == "kafka")):
        env.rotate(name)
        env.clock.sleep(31 * DAY)
        env.steps.plan[env.steps.count + number] = ("before", lambda: env.rotate(name))
        expired(env, name)
        assert not env.steps.plan
        assert env.accepts(env.fields(name))
        assert env.accepts(env.fields(name, PREVIOUS))
        env.clock.sleep(31 * DAY)


def test_an_operator_is_refused_where_a_rotation_ends_in_the_same_moment(env):
    env.rotate("kafka")
    env.steps.plan[env.steps.count + 3] = ("before", lambda: env.rotate("kafka"))
    with pytest.raises(Refused) as raised:
        env.ask(operation="revoke", secret="kafka")
    assert raised.value.kind.code == "ROT-CHANGED"
    assert env.accepts(env.fields("kafka"))
    assert env.accepts(env.fields("kafka", PREVIOUS))


@pytest.mark.parametrize("name", NAMES)
def test_expired_keys_stay_where_the_current_key_does_not_work(env, name):
    env.rotate(name)
    env.clock.sleep(31 * DAY)
    current = env.fields(name)
    if name == "kafka":
        env.confluent.organization.api_keys[current["apiKey"]].usable += 100 * DAY
    else:
        env.run_sql(f"ALTER USER {USER} UNSET RSA_PUBLIC_KEY_2")
    with pytest.raises(Refused) as raised:
        expired(env, name)
    assert raised.value.kind.code == "ROT-NOTHING-LEFT"
    assert env.exists(env.fields(name, PREVIOUS))


def test_one_failing_secret_does_not_stop_the_check_of_others(env):
    replaced = env.fields("snowflake")
    env.rotate("snowflake")
    env.clock.sleep(8 * DAY)
    with pytest.raises(LakeferryError) as raised:
        expired(env, "nothing", "snowflake")
    assert raised.value.kind.code == "AWS-REFUSED"
    assert not env.exists(replaced)


def test_a_key_in_a_slot_that_the_secret_knows_nothing_of_does_not_expire(env):
    foreign = pair_of(pool()[-1])
    env.run_sql(f"ALTER USER {USER} SET RSA_PUBLIC_KEY_2='{foreign.public}'")
    env.clock.sleep(100 * DAY)
    assert expired(env, "snowflake") == [[]]
    assert foreign.fingerprint in env.slots().values()
