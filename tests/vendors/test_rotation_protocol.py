"""Secrets Manager's protocol as AWS documents it: each guard's outcome, steps that come again or in another order, and the
call that only tests."""

from __future__ import annotations

import json

import pytest
from rotation_world import USER, RotationWorld, aws_error, pair_of, pool
from staged_secrets import CURRENT, PENDING, PREVIOUS, STEPS, token

from lambdas.rotation.versions import DAY
from lambdas.shared.errors import LakeferryError, Refused, Transient

NAMES = ("kafka", "snowflake")


@pytest.fixture
def world():
    with RotationWorld() as world:
        yield world


def shape(world):
    """Everything that a step could change: versions with labels, and keys at the vendors."""
    versions = {
        name: {one: sorted(labels) for one, (_, labels, _) in held.versions.items()} for name, held in world.secrets.all.items()
    }
    return versions, sorted(world.confluent.world.api_keys), world.slots()


def refused(world, name, step, version, code):
    before = shape(world)
    with pytest.raises(LakeferryError) as told:
        world.step(name, step, version)
    assert told.value.row.code == code
    assert shape(world) == before


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("step", STEPS)
def test_a_secret_that_is_not_enabled_is_refused(world, name, step):
    version = world.secrets.start(name)
    world.secrets.all[name].enabled = False
    refused(world, name, step, version, "ROT-NOT-ENABLED")


@pytest.mark.parametrize("step", STEPS)
def test_an_unknown_token_is_refused(world, step):
    refused(world, "kafka", step, token(), "ROT-UNKNOWN-TOKEN")


@pytest.mark.parametrize("step", STEPS)
def test_a_version_that_is_current_already_is_left_alone(world, step):
    version = world.secrets.all["kafka"].labelled(CURRENT)
    before = shape(world)
    assert world.step("kafka", step, version) == "already current"
    assert shape(world) == before


@pytest.mark.parametrize("step", STEPS)
def test_a_version_that_is_not_pending_is_refused(world, step):
    world.rotate("kafka")
    refused(world, "kafka", step, world.secrets.all["kafka"].labelled(PREVIOUS), "ROT-NOT-PENDING")


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
def test_an_event_of_another_form_is_refused(world, event):
    with pytest.raises(Refused) as told:
        world.ask(**event)
    assert told.value.row.code == "ROT-EVENT"


@pytest.mark.parametrize("name", NAMES)
def test_the_call_that_only_tests_passes_on_a_value_never_rotated(world, name):
    """The version that Secrets Manager makes for it is empty, or a copy; afterwards it goes away again."""
    version = world.secrets.start(name)
    before = shape(world)
    assert world.step(name, "testSecret", version) == "tested the current key"
    assert shape(world) == before
    world.secrets.all[name].versions[version][0] = world.secrets.all[name].value(CURRENT)
    assert world.step(name, "testSecret", version) == "tested"
    assert shape(world) == before


def test_the_call_that_only_tests_fails_where_the_current_key_does_not_work(world):
    version = world.secrets.start("kafka")
    del world.confluent.world.api_keys[world.fields("kafka")["apiKey"]]
    refused(world, "kafka", "testSecret", version, "ROT-NOT-THERE")


@pytest.mark.parametrize("name", NAMES)
def test_labels_end_as_aws_wants_them(world, name):
    held, first = world.secrets.all[name], world.secrets.all[name].labelled(CURRENT)
    version = world.rotate(name)
    assert {one: labels for one, (_, labels, _) in held.versions.items()} == {first: {PREVIOUS}, version: {CURRENT}}


@pytest.mark.parametrize("name", NAMES)
def test_r2_steps_repeated_or_replayed_change_nothing(world, name):
    version = world.secrets.start(name)
    for step in STEPS:
        world.step(name, step, version)
        before = shape(world)
        for _ in range(5):
            world.step(name, step, version)
            assert shape(world) == before
    for step in STEPS:
        assert world.step(name, step, version) == "already current"
    assert shape(world) == before


@pytest.mark.parametrize("name", NAMES)
def test_r3_steps_out_of_order_are_refused(world, name):
    version = world.secrets.start(name)
    for step in ("setSecret", "finishSecret"):
        refused(world, name, step, version, "ROT-EMPTY")
    world.step(name, "createSecret", version)
    if name == "snowflake":
        refused(world, name, "testSecret", version, "ROT-NOT-THERE")
        refused(world, name, "finishSecret", version, "ROT-NOT-THERE")
    else:
        world.confluent.world.api_keys[world.fields(name, PENDING)["apiKey"]].usable += DAY
        refused(world, name, "finishSecret", version, "ROT-NOT-PROVEN")


@pytest.mark.parametrize("name", NAMES)
def test_r9_a_pending_version_that_is_good_is_used_by_the_next_rotation(world, name):
    """However late that comes: the key that is replaced still has its whole grace from then on."""
    version = world.secrets.start(name)
    for step in STEPS[: 2 if name == "snowflake" else 1]:
        world.step(name, step, version)
    world.clock.sleep(35 * DAY)
    replaced = world.fields(name)
    for step in STEPS:
        world.step(name, step, world.secrets.start(name))
    assert world.secrets.all[name].labelled(CURRENT) == version  # and Secrets Manager never heard of its end
    world.clock.sleep(2 * DAY)
    for _ in range(2):
        world.try_rotating(name, tries=1)
        assert world.accepts(replaced)


@pytest.mark.parametrize("name", NAMES)
def test_r9_a_pending_version_that_was_detached_by_hand_stands_in_nobody_s_way(world, name):
    world.rotate(name)
    world.clock.sleep(31 * DAY)
    version = world.secrets.start(name)
    for step in STEPS[:2]:
        world.step(name, step, version)
    world.secrets.detach(name)
    assert world.try_rotating(name) is None
    world.clock.sleep(31 * DAY)
    assert world.try_rotating(name) is None
    assert world.ours(name) == world.held(name)


def test_r10_a_pending_key_that_was_deleted_by_hand_is_given_up(world):
    version = world.secrets.start("kafka")
    world.step("kafka", "createSecret", version)
    del world.confluent.world.api_keys[world.fields("kafka", PENDING)["apiKey"]]
    for step in ("setSecret", "testSecret", "finishSecret"):
        refused(world, "kafka", step, version, "ROT-NOT-THERE")
    with pytest.raises(Refused) as told:
        world.step("kafka", "createSecret", version)
    assert told.value.row.code == "ROT-DISCARDED"
    assert world.secrets.all["kafka"].labelled(PENDING) is None
    assert world.rotate("kafka") != version
    assert world.ours("kafka") == world.held("kafka")


def test_r10_a_pending_key_that_was_taken_out_of_its_slot_is_set_again(world):
    version = world.secrets.start("snowflake")
    for step in STEPS[:2]:
        world.step("snowflake", step, version)
    world.run_sql("ALTER USER READER UNSET RSA_PUBLIC_KEY_2")
    refused(world, "snowflake", "testSecret", version, "ROT-NOT-THERE")
    assert world.rotate("snowflake") == version
    assert world.accepts(world.fields("snowflake"))


@pytest.mark.parametrize("name", NAMES)
def test_r17_no_key_is_made_for_a_secret_that_is_about_to_go(world, name):
    version = world.secrets.start(name)
    world.secrets.all[name].deleted = True
    refused(world, name, "createSecret", version, "ROT-DELETED")


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("operation", ["GetSecretValue", "PutSecretValue"])
def test_r17_no_key_is_left_where_kms_says_no(world, name, operation):
    version, before = world.secrets.start(name), sorted(world.confluent.world.api_keys)

    def denied(asked, call):
        if asked == operation:
            raise aws_error("AccessDeniedException")
        return call()

    world.secrets._meet = denied
    with pytest.raises(LakeferryError) as told:
        world.step(name, "createSecret", version)
    assert "AccessDeniedException" in str(told.value)
    assert "canary" not in str(told.value)
    assert sorted(world.confluent.world.api_keys) == before


@pytest.mark.parametrize("happened", [True, False])
def test_r18_the_move_of_the_label_is_the_commit_and_is_read_again(world, happened):
    version = world.secrets.start("kafka")
    for step in STEPS[:3]:
        world.step("kafka", step, version)

    def broken(asked, call):
        if asked == "UpdateSecretVersionStage":
            if happened:
                call()
            raise aws_error("ThrottlingException")
        return call()

    meet, world.secrets._meet = world.secrets._meet, broken
    if happened:
        assert world.step("kafka", "finishSecret", version) == "current"
    else:
        with pytest.raises(Transient):
            world.step("kafka", "finishSecret", version)
        world.secrets._meet = meet
        assert world.step("kafka", "finishSecret", version) == "current"
    assert world.secrets.all["kafka"].labelled(CURRENT) == version


def test_r18_a_current_version_that_changed_meanwhile_is_not_replaced(world):
    version = world.secrets.start("kafka")
    for step in STEPS[:3]:
        world.step("kafka", step, version)
    held, other = world.secrets.all["kafka"], json.dumps({**world.fields("kafka"), "by hand": "yes"})
    world.steps.plan[world.steps.count + 5] = ("before", lambda: world.secrets._put(held, token(), other, [CURRENT]))
    with pytest.raises(Refused) as told:
        world.step("kafka", "finishSecret", version)
    assert told.value.row.code == "ROT-NOT-MOVED"
    assert held.value(CURRENT) == other
    assert world.try_rotating("kafka") is None


def test_a_cross_account_token_is_handed_on_and_told_nobody(world):
    version = world.secrets.start("snowflake")
    asked = {}
    put = world.secrets.put_secret_value
    world.secrets.put_secret_value = lambda **given: asked.update(given) or put(**given)
    world.ask(Step="createSecret", SecretId="snowflake", ClientRequestToken=version, RotationToken="canary-of-aws")
    assert asked["RotationToken"] == "canary-of-aws"
    assert "canary" not in world.said.getvalue()


def test_a_secret_in_another_form_is_told_by_its_fields(world):
    world.secrets.new("other", '{"password": "canary-of-a-password"}')
    refused(world, "other", "createSecret", world.secrets.start("other"), "ROT-FIELDS")
    world.secrets.new("broken", "canary-of-a-password")
    refused(world, "broken", "createSecret", world.secrets.start("broken"), "ROT-FIELDS")
    assert "canary" not in "".join(world.told)


def test_a_secret_without_a_value_is_told(world):
    world.secrets.new("empty")
    refused(world, "empty", "createSecret", world.secrets.start("empty"), "ROT-EMPTY")


def expired(world, *names):
    """What the call by the clock revokes, of each secret."""
    told = world.ask(operation="revoke_expired", secrets=list(names))
    return [one["revoked"] for one in told["secrets"]]


@pytest.mark.parametrize("name", NAMES)
def test_a_replaced_key_is_revoked_when_its_grace_is_over_and_not_before(world, name):
    replaced = world.fields(name)
    world.rotate(name)
    world.clock.sleep(7 * DAY - 60)
    assert expired(world, name) == [[]]
    assert world.accepts(replaced)
    world.clock.sleep(120)
    assert expired(world, name) == [[world.id_of(replaced)]]
    assert not world.exists(replaced)
    assert world.accepts(world.fields(name))
    assert expired(world, name) == [[]]
    assert world.rotate(name)


@pytest.mark.parametrize("name", NAMES)
def test_a_key_that_was_never_replaced_is_not_revoked(world, name):
    world.clock.sleep(100 * DAY)
    assert expired(world, name) == [[]]
    assert world.accepts(world.fields(name))


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("steps", [0, 1, 2, 3])
def test_no_key_is_revoked_while_a_rotation_is_under_way(world, name, steps):
    world.rotate(name)
    world.clock.sleep(31 * DAY)
    version = world.secrets.start(name)
    for step in STEPS[:steps]:
        world.step(name, step, version)
    before = shape(world)
    told = world.ask(operation="revoke_expired", secrets=[name])
    assert [(one["revoked"], one["rotating"]) for one in told["secrets"]] == [([], True)]
    assert shape(world) == before
    assert world.rotate(name, version) == version


@pytest.mark.parametrize("name", NAMES)
def test_a_rotation_that_runs_between_any_two_calls_keeps_its_key(world, name):
    """In a Snowflake user's slot, the new key takes the place of the expired one."""
    world.rotate(name)
    world.clock.sleep(31 * DAY)
    begun = world.steps.count
    expired(world, name)
    calls = world.steps.count - begun
    # The last call of all removes the key. Snowflake has no statement that removes a key only while it is the expected one.
    for number in range(1, calls + (name == "kafka")):
        world.rotate(name)
        world.clock.sleep(31 * DAY)
        world.steps.plan[world.steps.count + number] = ("before", lambda: world.rotate(name))
        expired(world, name)
        assert not world.steps.plan
        assert world.accepts(world.fields(name))
        assert world.accepts(world.fields(name, PREVIOUS))
        world.clock.sleep(31 * DAY)


def test_an_operator_is_refused_where_a_rotation_ends_in_the_same_moment(world):
    world.rotate("kafka")
    world.steps.plan[world.steps.count + 3] = ("before", lambda: world.rotate("kafka"))
    with pytest.raises(Refused) as told:
        world.ask(operation="revoke", secret="kafka")
    assert told.value.row.code == "ROT-CHANGED"
    assert world.accepts(world.fields("kafka"))
    assert world.accepts(world.fields("kafka", PREVIOUS))


@pytest.mark.parametrize("name", NAMES)
def test_expired_keys_stay_where_the_current_key_does_not_work(world, name):
    world.rotate(name)
    world.clock.sleep(31 * DAY)
    current = world.fields(name)
    if name == "kafka":
        world.confluent.world.api_keys[current["apiKey"]].usable += 100 * DAY
    else:
        world.run_sql(f"ALTER USER {USER} UNSET RSA_PUBLIC_KEY_2")
    with pytest.raises(Refused) as told:
        expired(world, name)
    assert told.value.row.code == "ROT-NOTHING-LEFT"
    assert world.exists(world.fields(name, PREVIOUS))


def test_one_secret_that_fails_does_not_keep_the_others_from_being_looked_at(world):
    replaced = world.fields("snowflake")
    world.rotate("snowflake")
    world.clock.sleep(8 * DAY)
    with pytest.raises(LakeferryError) as told:
        expired(world, "nothing", "snowflake")
    assert told.value.row.code == "AWS-REFUSED"
    assert not world.exists(replaced)


def test_a_key_in_a_slot_that_the_secret_knows_nothing_of_does_not_expire(world):
    foreign = pair_of(pool()[-1])
    world.run_sql(f"ALTER USER {USER} SET RSA_PUBLIC_KEY_2='{foreign.public}'")
    world.clock.sleep(100 * DAY)
    assert expired(world, "snowflake") == [[]]
    assert foreign.fingerprint in world.slots().values()
