"""Confluent's API keys: created and stored in one step, reclaimed if that fails, and kept while a reader may
use them.
"""

from __future__ import annotations

import json
from contextlib import suppress

import attrs
import pytest

from lambdas.rotation.versions import DAY, PENDING_LIFE
from lambdas.shared.errors import LakeferryError, Refused, Transient
from simulators.confluent.iam import bind_role, issue_key
from simulators.confluent.model import KeyKind
from simulators.confluent.organization import Quotas
from tests.support.resource_environment import START
from tests.support.rotation_environment import NAME, SERVICES, RotationEnvironment, aws_error
from tests.support.staged_secrets import CURRENT, PENDING, PREVIOUS, STEPS
from tests.support.wire import Killed


@pytest.fixture
def env():
    with RotationEnvironment(snowflake=False) as env:
        yield env


def die():
    raise Killed


@pytest.mark.parametrize("service", SERVICES)
def test_a_key_of_each_service_is_replaced_and_both_live(service):
    with RotationEnvironment(services=SERVICES, snowflake=False) as env:
        before = env.fields(service)
        env.rotate(service)
        after = env.fields(service)
        assert after["apiKey"] != before["apiKey"]
        assert env.fields(service, PREVIOUS) == before
        assert env.accepts(before)
        assert env.accepts(after)
        key = env.confluent.organization.api_keys[after["apiKey"]]
        assert key.name == f"{NAME}-{service}/{env.secrets.all[service].labelled(CURRENT)}"
        assert (key.owner, key.kind) == (
            env.owner,
            env.confluent.organization.api_keys[before["apiKey"]].kind,
        )


def test_all_of_a_clients_fields_change_with_the_key_and_the_others_stay():
    with RotationEnvironment(services=SERVICES, snowflake=False) as env:
        for service in SERVICES:
            held = env.secrets.all[service]
            value = {**env.fields(service), "added by hand": "stays"}
            held.versions[held.labelled(CURRENT)][0] = json.dumps(value)
            before = env.fields(service)
            env.rotate(service)
            after = env.fields(service)
            assert before.keys() == after.keys()
            spent = {before["apiKey"], before["apiSecret"]}
            changed = {name for name in before if before[name] != after[name]}
            assert changed == {
                name for name, value in before.items() if any(secret_value in value for secret_value in spent)
            }
            assert not any(secret_value in value for value in after.values() for secret_value in spent)


@pytest.mark.parametrize("before_step", ["createSecret", "setSecret", "testSecret", "finishSecret"])
def test_a_deployment_that_changes_the_fields_during_a_rotation_is_not_undone_by_it(env, before_step):
    version = env.secrets.start("kafka")
    held = env.secrets.all["kafka"]
    env.step("kafka", "createSecret", version)
    for step in STEPS[1 : STEPS.index(before_step)]:
        env.step("kafka", step, version)
    value = {**env.fields("kafka"), "bootstrap.servers": "SASL_SSL://moved:9092"}
    held.versions[held.labelled(CURRENT)][0] = json.dumps(value)
    with pytest.raises(Refused, match="ROT-DISCARDED"):
        [env.step("kafka", step, version) for step in STEPS[STEPS.index(before_step) :]]
    assert env.fields("kafka") == value
    assert env.ours("kafka") == {value["apiKey"]}
    env.rotate("kafka")
    assert env.fields("kafka")["bootstrap.servers"] == "SASL_SSL://moved:9092"


def test_r4_a_key_whose_secret_got_lost_is_deleted_and_created_again(env):
    version = env.secrets.start("kafka")
    put = next(number for number, item in enumerate(walk(env), 1) if item == "PutSecretValue")
    env.steps.plan[env.steps.count + put] = ("before", die)
    with pytest.raises(Killed):
        env.step("kafka", "createSecret", version)
    (lost,) = env.ours("kafka") - env.held("kafka")
    env.step("kafka", "createSecret", version)
    assert lost not in env.confluent.organization.api_keys
    assert env.ours("kafka") == env.held("kafka")


def walk(env):
    """Return the calls of the first step, in order."""
    with RotationEnvironment(snowflake=False) as other:
        other.step("kafka", "createSecret", other.secrets.start("kafka"))
        return list(other.steps.log)


def test_r4_a_key_of_another_rotation_that_broke_off_is_deleted_too(env):
    put = walk(env).index("PutSecretValue") + 1
    env.steps.plan[env.steps.count + put] = ("before", die)
    with pytest.raises(Killed):
        env.step("kafka", "createSecret", env.secrets.start("kafka"))
    env.secrets.detach("kafka")
    env.rotate("kafka")
    assert env.ours("kafka") == env.held("kafka")


def test_a_key_that_could_not_be_stored_for_the_moment_is_reclaimed_by_the_next_try(env):
    version = env.secrets.start("kafka")

    def broken(operation, call):
        if operation == "PutSecretValue":
            raise aws_error()
        return call()

    on_call = env.secrets._on_call
    env.secrets._on_call = broken
    with pytest.raises(Transient):
        env.step("kafka", "createSecret", version)
    env.secrets._on_call = on_call
    assert env.rotate("kafka") == version
    assert env.ours("kafka") == env.held("kafka")


@pytest.mark.parametrize("keep", [2, 3, 5])
def test_no_more_keys_live_than_configured_plus_one_during_a_rotation(keep):
    with RotationEnvironment(keep=keep, snowflake=False) as env:
        most = 0

        def count():
            nonlocal most
            most = max(most, len(env.ours("kafka")))

        env.steps.look = count
        for number in range(keep + 3):
            env.clock.sleep(30 * DAY)
            env.rotate("kafka")
            assert len(env.ours("kafka")) == min(keep, number + 2)
        assert most == keep


def test_r14_the_replaced_key_works_until_the_grace_is_over_and_until_the_next_rotation(env):
    replaced = env.fields("kafka")
    env.rotate("kafka")
    env.clock.sleep(300 * DAY)
    assert env.accepts(replaced)
    env.rotate("kafka")
    assert not env.exists(replaced)


def test_r14_a_rotation_within_the_grace_lets_the_replaced_key_live(env):
    """One more key than usual may live. A third rotation within the grace has no room and is refused."""
    first = env.fields("kafka")
    env.rotate("kafka")
    env.clock.sleep(DAY)
    second = env.fields("kafka")
    env.rotate("kafka")
    assert env.accepts(first)
    assert env.accepts(second)
    with pytest.raises(Refused) as raised:
        env.rotate("kafka")
    assert raised.value.kind.code == "ROT-LIMIT"
    assert env.accepts(first)
    env.clock.sleep(8 * DAY)
    env.rotate("kafka")
    assert not env.exists(first)


def test_r15_a_value_kept_for_as_long_as_the_grace_works_to_its_last_second(env):
    """The value is read just before a rotation replaces it, and the next rotation follows as soon as
    possible.
    """
    env.clock.sleep(30 * DAY)
    kept = env.fields("kafka")
    read_at = env.clock.now
    env.rotate("kafka")
    env.clock.sleep(read_at + 7 * DAY - env.clock.now - 1)
    env.try_rotating("kafka", tries=1)
    assert env.accepts(kept)


def test_r11_one_success_is_not_enough(env):
    """Every other login reaches a server that doesn't know the key yet."""
    version = env.secrets.start("kafka")
    env.step("kafka", "createSecret", version)
    env.clock.sleep(600)
    env.disturb(fault="error", status=401, path="/kafka/*", nth=2, every=2, times=0)
    with pytest.raises(LakeferryError) as raised:
        env.step("kafka", "testSecret", version)
    assert raised.value.kind.code == "ROT-NOT-PROVEN"
    with pytest.raises(LakeferryError):
        env.step("kafka", "finishSecret", version)
    env.disturb()
    assert env.rotate("kafka") == version


def test_a_retry_after_header_is_respected(env):
    version = env.secrets.start("kafka")
    env.step("kafka", "createSecret", version)
    env.clock.sleep(600)
    env.disturb(fault="error", status=429, path="/kafka/*", times=6, reply_headers={"Retry-After": "40"})
    before = env.clock.now
    assert env.step("kafka", "testSecret", version) == "tested"
    assert env.clock.now - before > 120


def test_a_key_that_takes_longer_than_an_invocation_is_tested_by_a_later_try():
    with RotationEnvironment(snowflake=False, delay=3000.0) as env:
        assert env.try_rotating("kafka", tries=1).kind.code == "ROT-NOT-PROVEN"
        assert env.try_rotating("kafka", tries=6, wait=60) is None
        assert env.accepts(env.fields("kafka"))


def test_r16_at_the_quota_the_oldest_unused_key_is_deleted():
    with RotationEnvironment(keep=5, snowflake=False) as env:
        for _ in range(3):
            env.rotate("kafka")
            env.clock.sleep(30 * DAY)
        live = env.confluent.organization.api_keys
        env.confluent.organization.quotas = attrs.evolve(Quotas(), api_keys=len(live))
        oldest = min(
            (key for key in live.values() if key.id in env.ours("kafka")), key=lambda key: key.created
        )
        previous = env.fields("kafka", PREVIOUS)
        env.rotate("kafka")
        assert oldest.id not in env.ours("kafka")
        assert env.accepts(previous)


@pytest.mark.parametrize("days", [0, 30])
def test_r16_at_the_quota_without_an_unused_key_nothing_changes(days):
    """The previous key stays in the secret, so it counts as used, however old it is."""
    with RotationEnvironment(keep=5, snowflake=False) as env:
        env.rotate("kafka")
        env.clock.sleep(days * DAY)
        env.confluent.organization.quotas = attrs.evolve(
            Quotas(), api_keys=len(env.confluent.organization.api_keys)
        )
        before = env.ours("kafka")
        with pytest.raises(Refused) as raised:
            env.rotate("kafka")
        assert raised.value.kind.code == "CFL-QUOTA"
        assert env.ours("kafka") == before


@pytest.mark.parametrize("undated", ["oldest", "current", "both"])
def test_r16_a_key_counts_as_used_where_confluent_does_not_say_that_it_is_older_than_the_current_one(undated):
    with RotationEnvironment(keep=5, snowflake=False) as env:
        for _ in range(2):
            env.rotate("kafka")
            env.clock.sleep(30 * DAY)
        live = env.confluent.organization.api_keys
        env.confluent.organization.quotas = attrs.evolve(Quotas(), api_keys=len(live))
        before = env.ours("kafka")
        oldest = min(before, key=lambda key: live[key].created)
        current = env.fields("kafka")["apiKey"]
        env.wire.app = without_dates(
            env.wire.app, {"oldest": [oldest], "current": [current]}.get(undated, [oldest, current])
        )
        with pytest.raises(Refused) as raised:
            env.rotate("kafka")
        assert raised.value.kind.code == "CFL-QUOTA"
        assert env.ours("kafka") == before


def without_dates(app, keys):
    """Return the application, which no longer says when these keys were created."""

    async def changed(scope, receive, send):
        body = b""

        async def edited(message):
            nonlocal body
            if message["type"] == "http.response.body":
                body += message.get("body", b"")
                if message.get("more_body"):
                    return
                document = json.loads(body)
                for item in document["data"]:
                    if item["id"] in keys:
                        item["metadata"]["created_at"] = ""
                message = {"type": message["type"], "body": json.dumps(document).encode()}
            await send(message)

        lists = scope["method"] == "GET" and scope["path"].endswith("/api-keys")
        await app(scope, receive, edited if lists else send)

    return changed


def test_r8_of_two_rotations_one_wins_and_the_other_ends_with_an_error(env):
    """The label moves to another version during each call of the first rotation."""
    outcomes = set()
    for number in range(1, 75, 3):
        env.clock.sleep(31 * DAY)
        first = env.secrets.start("kafka")

        def intrude(first=first):
            env.secrets.detach("kafka")
            env.try_rotating("kafka", tries=1)

        env.steps.plan = {env.steps.count + number: ("before", intrude)}
        env.steps.look = lambda: safe(env)
        try:
            for step in STEPS:
                env.step("kafka", step, first)
            outcomes.add("first")
        except LakeferryError as error:
            outcomes.add(error.kind.code)
        env.steps.look = lambda: None
        if env.steps.plan:
            break
        env.steps.plan = {}
        env.clock.sleep(31 * DAY)
        assert env.try_rotating("kafka") is None
        assert env.accepts(env.fields("kafka"))
    assert number > 25
    assert outcomes >= {"first", "ROT-UNKNOWN-TOKEN", "ROT-NOT-MOVED"}


def safe(env):
    fields = env.fields("kafka")
    assert env.exists(fields)
    assert len(env.ours("kafka")) <= env.policy.keep + 1


def test_r8_the_same_step_twice_at_once_makes_one_key(env):
    create = walk(env)
    for number in range(1, len(create) + 1):
        env.clock.sleep(31 * DAY)
        version = env.secrets.start("kafka")

        def twin(version=version):
            env.step("kafka", "createSecret", version)

        env.steps.plan = {env.steps.count + number: ("after", twin)}
        with suppress(Refused):
            env.step("kafka", "createSecret", version)
        assert env.exists(env.fields("kafka", PENDING))
        assert env.try_rotating("kafka") is None
        assert env.accepts(env.fields("kafka"))
        assert env.ours("kafka") == env.held("kafka")


def test_r21_the_administrators_own_key_is_replaced_while_it_is_in_use(env):
    first = env.fields("admin")
    env.steps.look = lambda: check_admin(env)
    for _ in range(3):
        env.clock.sleep(31 * DAY)
        env.rotate("admin")
    assert not env.exists(first)
    keys = {
        key.id
        for key in env.confluent.organization.api_keys.values()
        if key.owner == env.confluent.organization.owner
    }
    assert keys == {env.fields("admin")["apiKey"], env.fields("admin", PREVIOUS)["apiKey"]}


def check_admin(env):
    assert env.accepts(env.fields("admin"))


def test_keys_of_others_are_never_touched(env):
    owner = {"id": env.owner, "kind": "ServiceAccount"}
    env.wire.blind = True
    foreign = [
        env.client().cloud.post("/iam/v2/api-keys", {"spec": {"display_name": name, "owner": owner}})["id"]
        for name in ("by hand", f"{NAME}-kafka-2", f"{NAME}", "")
    ]
    env.wire.blind = False
    for _ in range(4):
        env.clock.sleep(31 * DAY)
        env.rotate("kafka")
    assert set(foreign) <= set(env.confluent.organization.api_keys)
    env.ask(operation="revoke", secret="kafka")
    assert set(foreign) <= set(env.confluent.organization.api_keys)


def test_a_current_key_that_was_deleted_manually_is_replaced_by_a_rotation(env):
    env.rotate("kafka")
    del env.confluent.organization.api_keys[env.fields("kafka")["apiKey"]]
    env.clock.sleep(31 * DAY)
    env.rotate("kafka")
    assert env.accepts(env.fields("kafka"))


def test_revoking_leaves_the_current_key_and_no_other(env):
    first = env.fields("kafka")
    env.rotate("kafka")
    result = env.ask(operation="revoke", secret="kafka")
    assert result == {
        "secret": "kafka",
        "revoked": [first["apiKey"]],
        "unmanaged": [],
        "kept": env.fields("kafka")["apiKey"],
    }
    assert env.ours("kafka") == {env.fields("kafka")["apiKey"]}
    assert env.ask(operation="revoke", secret="kafka")["revoked"] == []


def test_revoking_keeps_the_pending_key(env):
    version = env.secrets.start("kafka")
    env.step("kafka", "createSecret", version)
    assert env.ask(operation="revoke", secret="kafka")["revoked"] == []
    assert env.rotate("kafka") == version


def test_a_cloud_key_that_sees_no_keys_revokes_none_and_says_so(env):
    replaced = env.fields("kafka")
    env.rotate("kafka")
    org = env.confluent.organization
    set_admin(env, issue_key(org, "sa-weak", KeyKind.CLOUD, "cloud", org.crn, delay=0))
    with pytest.raises(LakeferryError, match="CFL-UNSEEN"):
        env.ask(operation="revoke", secret="kafka")
    assert env.accepts(replaced)


def test_a_cloud_key_of_another_organization_revokes_none_and_says_so(env):
    replaced = env.fields("kafka")
    env.rotate("kafka")
    _, other = env.confluent.add_organization()
    env.clock.sleep(900)
    set_admin(env, other)
    with pytest.raises(LakeferryError, match="has no account"):
        env.ask(operation="revoke", secret="kafka")
    assert env.accepts(replaced)


def become_owner_of_the_account(env):
    """Use a Cloud key whose owner has a role on the account only, and return it."""
    org = env.confluent.organization
    weak = issue_key(org, "sa-weak", KeyKind.CLOUD, "cloud", org.crn, delay=0)
    bind_role(org, "User:sa-weak", "ResourceOwner", f"{org.crn}/service-account={env.owner}")
    env.clock.sleep(900)
    set_admin(env, weak)
    return weak


def test_the_owner_of_an_account_alone_sees_that_the_account_is_gone(env):
    """It is no administrator of the organization, and needs none for this."""
    env.rotate("kafka")
    weak = become_owner_of_the_account(env)
    org = env.confluent.organization
    del org.service_accounts[env.owner]
    del org.api_keys[env.fields("kafka")["apiKey"]]
    with pytest.raises(LakeferryError, match=f"Cloud key {weak.id} has no account {env.owner}"):
        env.ask(operation="revoke", secret="kafka")


def test_the_owner_of_an_account_alone_sees_that_a_new_key_is_gone(env):
    become_owner_of_the_account(env)
    version = env.secrets.start("kafka")
    env.step("kafka", "createSecret", version)
    key_id = env.fields("kafka", PENDING)["apiKey"]
    del env.confluent.organization.api_keys[key_id]
    with pytest.raises(Refused) as raised:
        env.step("kafka", "setSecret", version)
    assert raised.value.what == f"API key {key_id}"


def set_admin(env, key):
    admin = env.secrets.all["admin"]
    fields = {**env.fields("admin"), "apiKey": key.id, "apiSecret": key.secret}
    admin.versions[admin.labelled(CURRENT)][0] = json.dumps(fields)


def test_revoking_is_refused_where_the_current_key_does_not_work(env):
    env.rotate("kafka")
    previous = env.fields("kafka", PREVIOUS)
    env.confluent.organization.api_keys[env.fields("kafka")["apiKey"]].usable += DAY
    with pytest.raises(Refused) as raised:
        env.ask(operation="revoke", secret="kafka")
    assert raised.value.kind.code == "ROT-NOTHING-LEFT"
    assert env.exists(previous)


def test_without_a_date_of_becoming_current_a_versions_age_is_used(env):
    """The end of a rotation never reached Secrets Manager, which knows only the one before."""
    env.rotate("kafka")
    env.clock.sleep(31 * DAY)
    version = env.secrets.start("kafka")
    replaced = env.fields("kafka")
    for step in STEPS:
        env.step("kafka", step, version)
    grace = env.policy.grace
    env.clock.sleep(grace + PENDING_LIFE - 600)
    env.rotate("kafka")
    assert env.exists(replaced)
    assert env.clock.now > START
