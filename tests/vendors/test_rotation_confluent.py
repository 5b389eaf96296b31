"""API keys of Confluent: made and stored in one step, reclaimed where that broke off, kept while a reader may use them."""

from __future__ import annotations

import json
from contextlib import suppress

import attrs
import pytest
from resource_world import START
from rotation_world import NAME, SERVICES, RotationWorld, aws_error
from staged_secrets import CURRENT, PENDING, PREVIOUS, STEPS
from wire import Killed

from lambdas.rotation.versions import DAY, PENDING_LIFE
from lambdas.shared.errors import LakeferryError, Refused, Transient
from simulators.confluent_cloud.world import Quotas


@pytest.fixture
def world():
    with RotationWorld(snowflake=False) as world:
        yield world


def die():
    raise Killed


@pytest.mark.parametrize("service", SERVICES)
def test_a_key_of_each_service_is_replaced_and_both_live(service):
    with RotationWorld(services=SERVICES, snowflake=False) as world:
        before = world.fields(service)
        world.rotate(service)
        after = world.fields(service)
        assert after["apiKey"] != before["apiKey"]
        assert world.fields(service, PREVIOUS) == before
        assert world.accepts(before)
        assert world.accepts(after)
        key = world.confluent.world.api_keys[after["apiKey"]]
        assert key.name == f"{NAME}-{service}/{world.secrets.all[service].labelled(CURRENT)}"
        assert (key.owner, key.kind) == (world.owner, world.confluent.world.api_keys[before["apiKey"]].kind)


def test_all_of_a_clients_fields_change_with_the_key_and_the_others_stay():
    with RotationWorld(services=SERVICES, snowflake=False) as world:
        for service in SERVICES:
            held = world.secrets.all[service]
            value = {**world.fields(service), "added by hand": "stays"}
            held.versions[held.labelled(CURRENT)][0] = json.dumps(value)
            before = world.fields(service)
            world.rotate(service)
            after = world.fields(service)
            assert before.keys() == after.keys()
            spent = {before["apiKey"], before["apiSecret"]}
            changed = {name for name in before if before[name] != after[name]}
            assert changed == {name for name, value in before.items() if any(each in value for each in spent)}
            assert not any(each in value for value in after.values() for each in spent)


@pytest.mark.parametrize("before_step", ["createSecret", "setSecret", "testSecret", "finishSecret"])
def test_a_deployment_that_changes_the_fields_during_a_rotation_is_not_undone_by_it(world, before_step):
    version = world.secrets.start("kafka")
    held = world.secrets.all["kafka"]
    world.step("kafka", "createSecret", version)
    for step in STEPS[1 : STEPS.index(before_step)]:
        world.step("kafka", step, version)
    value = {**world.fields("kafka"), "bootstrap.servers": "SASL_SSL://moved:9092"}
    held.versions[held.labelled(CURRENT)][0] = json.dumps(value)
    with pytest.raises(Refused, match="ROT-DISCARDED"):
        [world.step("kafka", step, version) for step in STEPS[STEPS.index(before_step) :]]
    assert world.fields("kafka") == value
    assert world.ours("kafka") == {value["apiKey"]}
    world.rotate("kafka")
    assert world.fields("kafka")["bootstrap.servers"] == "SASL_SSL://moved:9092"


def test_r4_a_key_whose_secret_got_lost_is_deleted_and_made_anew(world):
    version = world.secrets.start("kafka")
    put = next(number for number, what in enumerate(walk(world), 1) if what == "PutSecretValue")
    world.steps.plan[world.steps.count + put] = ("before", die)
    with pytest.raises(Killed):
        world.step("kafka", "createSecret", version)
    (lost,) = world.ours("kafka") - world.held("kafka")
    world.step("kafka", "createSecret", version)
    assert lost not in world.confluent.world.api_keys
    assert world.ours("kafka") == world.held("kafka")


def walk(world):
    """What the first step calls, one after the other."""
    with RotationWorld(snowflake=False) as other:
        other.step("kafka", "createSecret", other.secrets.start("kafka"))
        return list(other.steps.log)


def test_r4_a_key_of_another_rotation_that_broke_off_is_deleted_too(world):
    put = walk(world).index("PutSecretValue") + 1
    world.steps.plan[world.steps.count + put] = ("before", die)
    with pytest.raises(Killed):
        world.step("kafka", "createSecret", world.secrets.start("kafka"))
    world.secrets.detach("kafka")
    world.rotate("kafka")
    assert world.ours("kafka") == world.held("kafka")


def test_a_key_that_could_not_be_stored_for_the_moment_is_reclaimed_by_the_next_try(world):
    version = world.secrets.start("kafka")

    def broken(operation, call):
        if operation == "PutSecretValue":
            raise aws_error()
        return call()

    meet, world.secrets._meet = world.secrets._meet, broken
    with pytest.raises(Transient):
        world.step("kafka", "createSecret", version)
    world.secrets._meet = meet
    assert world.rotate("kafka") == version
    assert world.ours("kafka") == world.held("kafka")


@pytest.mark.parametrize("keep", [2, 3, 5])
def test_as_many_keys_live_as_shall_and_one_more_while_one_is_made(keep):
    with RotationWorld(keep=keep, snowflake=False) as world:
        most = 0

        def count():
            nonlocal most
            most = max(most, len(world.ours("kafka")))

        world.steps.look = count
        for number in range(keep + 3):
            world.clock.sleep(30 * DAY)
            world.rotate("kafka")
            assert len(world.ours("kafka")) == min(keep, number + 2)
        assert most == keep


def test_r14_the_replaced_key_works_until_the_grace_is_over_and_until_the_next_rotation(world):
    replaced = world.fields("kafka")
    world.rotate("kafka")
    world.clock.sleep(300 * DAY)
    assert world.accepts(replaced)
    world.rotate("kafka")
    assert not world.exists(replaced)


def test_r14_a_rotation_within_the_grace_lets_the_replaced_key_live(world):
    """One key more than usual may live; a third rotation within the grace has no room and is refused."""
    first = world.fields("kafka")
    world.rotate("kafka")
    world.clock.sleep(DAY)
    second = world.fields("kafka")
    world.rotate("kafka")
    assert world.accepts(first)
    assert world.accepts(second)
    with pytest.raises(Refused) as told:
        world.rotate("kafka")
    assert told.value.row.code == "ROT-LIMIT"
    assert world.accepts(first)
    world.clock.sleep(8 * DAY)
    world.rotate("kafka")
    assert not world.exists(first)


def test_r15_a_value_kept_for_as_long_as_the_grace_works_to_its_last_second(world):
    """Read a moment before it was replaced, by a rotation that another one follows as soon as it may."""
    world.clock.sleep(30 * DAY)
    kept, read_at = world.fields("kafka"), world.clock.now
    world.rotate("kafka")
    world.clock.sleep(read_at + 7 * DAY - world.clock.now - 1)
    world.try_rotating("kafka", tries=1)
    assert world.accepts(kept)


def test_r11_one_success_is_not_enough(world):
    """Every other login meets a server that doesn't know the key yet."""
    version = world.secrets.start("kafka")
    world.step("kafka", "createSecret", version)
    world.clock.sleep(600)
    world.disturb(fault="error", status=401, path="/kafka/*", nth=2, every=2, times=0)
    with pytest.raises(LakeferryError) as told:
        world.step("kafka", "testSecret", version)
    assert told.value.row.code == "ROT-NOT-PROVEN"
    with pytest.raises(LakeferryError):
        world.step("kafka", "finishSecret", version)
    world.disturb()
    assert world.rotate("kafka") == version


def test_a_service_that_asks_to_be_left_alone_is(world):
    version = world.secrets.start("kafka")
    world.step("kafka", "createSecret", version)
    world.clock.sleep(600)
    world.disturb(fault="error", status=429, path="/kafka/*", times=6, reply_headers={"Retry-After": "40"})
    before = world.clock.now
    assert world.step("kafka", "testSecret", version) == "tested"
    assert world.clock.now - before > 120


def test_a_key_that_takes_longer_than_an_invocation_is_proven_by_a_later_try():
    with RotationWorld(snowflake=False, delay=3000.0) as world:
        assert world.try_rotating("kafka", tries=1).row.code == "ROT-NOT-PROVEN"
        assert world.try_rotating("kafka", tries=6, wait=60) is None
        assert world.accepts(world.fields("kafka"))


def test_r16_at_the_quota_the_oldest_that_nobody_can_be_using_makes_room():
    with RotationWorld(keep=5, snowflake=False) as world:
        for _ in range(3):
            world.rotate("kafka")
            world.clock.sleep(30 * DAY)
        live = world.confluent.world.api_keys
        world.confluent.world.quotas = attrs.evolve(Quotas(), api_keys=len(live))
        oldest = min((key for key in live.values() if key.id in world.ours("kafka")), key=lambda key: key.created)
        previous = world.fields("kafka", PREVIOUS)
        world.rotate("kafka")
        assert oldest.id not in world.ours("kafka")
        assert world.accepts(previous)


def test_r16_at_the_quota_with_nothing_to_spare_nothing_changes(world):
    world.rotate("kafka")
    world.confluent.world.quotas = attrs.evolve(Quotas(), api_keys=len(world.confluent.world.api_keys))
    before = world.ours("kafka")
    with pytest.raises(Refused) as told:
        world.rotate("kafka")
    assert told.value.row.code == "CFL-QUOTA"
    assert world.ours("kafka") == before


def test_r8_of_two_rotations_one_wins_and_the_other_ends_with_an_error(world):
    """The label moves to another version in the middle of each of the first one's calls."""
    outcomes = set()
    for number in range(1, 75, 3):
        world.clock.sleep(31 * DAY)
        first = world.secrets.start("kafka")

        def intrude(first=first):
            world.secrets.detach("kafka")
            world.try_rotating("kafka", tries=1)

        world.steps.plan = {world.steps.count + number: ("before", intrude)}
        world.steps.look = lambda: safe(world)
        try:
            for step in STEPS:
                world.step("kafka", step, first)
            outcomes.add("first")
        except LakeferryError as error:
            outcomes.add(error.row.code)
        world.steps.look = lambda: None
        if world.steps.plan:
            break
        world.steps.plan = {}
        world.clock.sleep(31 * DAY)
        assert world.try_rotating("kafka") is None
        assert world.accepts(world.fields("kafka"))
    assert number > 25
    assert outcomes >= {"first", "ROT-UNKNOWN-TOKEN", "ROT-NOT-MOVED"}


def safe(world):
    fields = world.fields("kafka")
    assert world.exists(fields)
    assert len(world.ours("kafka")) <= world.policy.keep + 1


def test_r8_the_same_step_twice_at_once_makes_one_key(world):
    create = walk(world)
    for number in range(1, len(create) + 1):
        world.clock.sleep(31 * DAY)
        version = world.secrets.start("kafka")

        def twin(version=version):
            world.step("kafka", "createSecret", version)

        world.steps.plan = {world.steps.count + number: ("after", twin)}
        with suppress(Refused):
            world.step("kafka", "createSecret", version)
        assert world.exists(world.fields("kafka", PENDING))
        assert world.try_rotating("kafka") is None
        assert world.accepts(world.fields("kafka"))
        assert world.ours("kafka") == world.held("kafka")


def test_r21_the_administrators_own_key_is_replaced_while_it_is_in_use(world):
    first = world.fields("admin")
    world.steps.look = lambda: check_admin(world)
    for _ in range(3):
        world.clock.sleep(31 * DAY)
        world.rotate("admin")
    assert not world.exists(first)
    keys = {key.id for key in world.confluent.world.api_keys.values() if key.owner == world.confluent.world.owner}
    assert keys == {world.fields("admin")["apiKey"], world.fields("admin", PREVIOUS)["apiKey"]}


def check_admin(world):
    assert world.accepts(world.fields("admin"))


def test_keys_of_others_are_never_touched(world):
    owner = {"id": world.owner, "kind": "ServiceAccount"}
    world.wire.blind = True
    foreign = [
        world.client().cloud.post("/iam/v2/api-keys", {"spec": {"display_name": name, "owner": owner}})["id"]
        for name in ("by hand", f"{NAME}-kafka-2", f"{NAME}", "")
    ]
    world.wire.blind = False
    for _ in range(4):
        world.clock.sleep(31 * DAY)
        world.rotate("kafka")
    assert set(foreign) <= set(world.confluent.world.api_keys)
    world.ask(operation="revoke", secret="kafka")
    assert set(foreign) <= set(world.confluent.world.api_keys)


def test_a_current_key_that_was_deleted_by_hand_is_cured_by_rotating(world):
    world.rotate("kafka")
    del world.confluent.world.api_keys[world.fields("kafka")["apiKey"]]
    world.clock.sleep(31 * DAY)
    world.rotate("kafka")
    assert world.accepts(world.fields("kafka"))


def test_revoking_leaves_the_current_key_and_no_other(world):
    first = world.fields("kafka")
    world.rotate("kafka")
    told = world.ask(operation="revoke", secret="kafka")
    assert told == {"secret": "kafka", "revoked": [first["apiKey"]], "unmanaged": [], "kept": world.fields("kafka")["apiKey"]}
    assert world.ours("kafka") == {world.fields("kafka")["apiKey"]}
    assert world.ask(operation="revoke", secret="kafka")["revoked"] == []


def test_revoking_lets_what_is_being_rotated_to_live(world):
    version = world.secrets.start("kafka")
    world.step("kafka", "createSecret", version)
    assert world.ask(operation="revoke", secret="kafka")["revoked"] == []
    assert world.rotate("kafka") == version


def test_revoking_is_refused_where_the_current_key_does_not_work(world):
    world.rotate("kafka")
    previous = world.fields("kafka", PREVIOUS)
    world.confluent.world.api_keys[world.fields("kafka")["apiKey"]].usable += DAY
    with pytest.raises(Refused) as told:
        world.ask(operation="revoke", secret="kafka")
    assert told.value.row.code == "ROT-NOTHING-LEFT"
    assert world.exists(previous)


def test_when_nobody_noted_when_a_version_became_current_its_age_bounds_it(world):
    """The end of a rotation never reached Secrets Manager, which only knows of the one before."""
    world.rotate("kafka")
    world.clock.sleep(31 * DAY)
    version, replaced = world.secrets.start("kafka"), world.fields("kafka")
    for step in STEPS:
        world.step("kafka", step, version)
    grace = world.policy.grace
    world.clock.sleep(grace + PENDING_LIFE - 600)
    world.rotate("kafka")
    assert world.exists(replaced)
    assert world.clock.now > START
