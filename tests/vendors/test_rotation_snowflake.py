"""Snowflake's key pairs: the free slot comes from the service, foreign keys are never overwritten, clocks may
differ.
"""

from __future__ import annotations

import base64
import json

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

from lambdas.rotation.versions import DAY
from lambdas.shared.errors import LakeferryError, Refused
from lambdas.shared.redaction import Secret
from lambdas.snowflake import keypair
from lambdas.snowflake.keypair import KeyPair
from tests.support.rotation_environment import ROTATION_ROLE, USER, RotationEnvironment, pair_of, pool
from tests.support.staged_secrets import CURRENT, PENDING, PREVIOUS, STEPS, token

FIRST = "RSA_PUBLIC_KEY"
SECOND = "RSA_PUBLIC_KEY_2"


@pytest.fixture
def env():
    with RotationEnvironment(services=()) as env:
        yield env


def set_by_hand(env, slot, pair=None):
    """Set a key that the secret doesn't contain."""
    pair = pair or pair_of(pool()[-1])
    env.run_sql(f"ALTER USER {USER} SET {slot}='{pair.public}'")
    return pair.fingerprint


def refused(env, code):
    before = env.slots(), env.fields("snowflake")
    with pytest.raises(LakeferryError) as raised:
        env.rotate("snowflake")
    assert raised.value.kind.code == code
    assert (env.slots(), env.fields("snowflake")) == before
    return str(raised.value)


def test_the_slots_take_turns_and_the_replaced_key_keeps_working(env):
    for _ in range(4):
        before = env.fields("snowflake")
        slots = env.slots()
        env.rotate("snowflake")
        changed = [slot for slot, slot_value in env.slots().items() if slots.get(slot) != slot_value]
        assert len(changed) == 1
        assert env.fields("snowflake", PREVIOUS) == before
        assert env.accepts(before)
        assert env.accepts(env.fields("snowflake"))
        env.clock.sleep(31 * DAY)


def test_r5_within_the_grace_the_replaced_key_is_not_overwritten(env):
    env.rotate("snowflake")
    env.clock.sleep(6 * DAY)
    assert f"{FIRST} of user {USER}. " in refused(env, "ROT-IN-GRACE")
    env.clock.sleep(DAY + 3600)
    env.rotate("snowflake")


def test_r6_foreign_keys_in_both_slots_are_left_alone(env):
    for slot in (FIRST, SECOND):
        set_by_hand(env, slot, pair_of(pool()[-1 if slot == FIRST else -2]))
    assert f"user {USER}: " in refused(env, "ROT-LOCKED-OUT")


def test_r6_a_foreign_key_beside_the_current_one_is_left_alone(env):
    foreign = set_by_hand(env, SECOND)
    result = refused(env, "ROT-FOREIGN-KEY")
    assert SECOND in result
    assert foreign in result
    env.run_sql(f"ALTER USER {USER} UNSET {SECOND}")
    env.rotate("snowflake")


def test_r6_a_foreign_key_in_place_of_the_current_one_is_left_alone(env):
    env.rotate("snowflake")
    env.clock.sleep(31 * DAY)
    current = env.id_of(env.fields("snowflake"))
    slot = {1: FIRST, 2: SECOND}[
        next(number for number, slot_value in env.slots().items() if slot_value == current)
    ]
    set_by_hand(env, slot)
    assert f"neither slot of user {USER} holds the current key. " in refused(env, "ROT-FOREIGN-KEY")


def test_a_slot_that_was_emptied_manually_is_filled(env):
    env.rotate("snowflake")
    current = env.id_of(env.fields("snowflake"))
    env.run_sql(f"ALTER USER {USER} UNSET {SECOND}")
    assert current not in env.slots().values()
    env.clock.sleep(DAY)
    env.rotate("snowflake")
    assert env.accepts(env.fields("snowflake"))


@pytest.mark.parametrize("number", ["0", "1", "2", "nonsense"])
def test_r7_a_counter_in_the_secret_is_ignored(env, number):
    held = env.secrets.all["snowflake"]
    value = json.dumps({**env.fields("snowflake"), "active_key_number": number})
    held.versions[held.labelled(CURRENT)][0] = value
    for _ in range(3):
        env.rotate("snowflake")
        assert env.accepts(env.fields("snowflake"))
        assert env.accepts(env.fields("snowflake", PREVIOUS))
        env.clock.sleep(31 * DAY)


@pytest.mark.parametrize("skew", [-7200, -3600, -600, -61, -1, 0, 1, 59, 61, 600, 3600, 7200])
def test_r12_clocks_that_differ_are_measured_and_corrected(env, skew):
    env.snowflake.account.clock.advance(skew + 7200)
    env.clock.now += 7200
    env.rotate("snowflake")
    assert env.accepts(env.fields("snowflake"))


def test_r12_the_error_has_the_difference_of_the_clocks(env):
    set_by_hand(env, FIRST)
    env.snowflake.account.clock.advance(5000)
    assert "Snowflake's clock is +5000 s from the function's" in refused(env, "ROT-LOCKED-OUT")


@pytest.mark.parametrize("form", ["lower", "dotted", "regioned"])
def test_r13_accounts_and_users_have_the_form_that_tokens_need(env, form):
    identifier = env.snowflake.account.identifier
    name = env.snowflake.account.name
    account = {
        "lower": identifier.lower(),
        "dotted": identifier.replace("-", "."),
        "regioned": f"{name}.eu-west-1.aws",
    }[form]
    held = env.secrets.all["snowflake"]
    held.versions[held.labelled(CURRENT)][0] = json.dumps({**env.fields("snowflake"), "account": account})
    env.rotate("snowflake")
    assert env.fields("snowflake")["account"] == account


def test_r19_a_key_with_a_passphrase_is_read_and_replaced_by_one_without(env):
    """As somebody pasted it: in one line, as base64. test_snowflake_keypair has all forms."""
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    passphrase = "canary-of-a-passphrase"
    hidden = serialization.BestAvailableEncryption(passphrase.encode())
    text = base64.b64encode(
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, hidden)
    ).decode()
    env.run_sql(f"ALTER USER {USER} SET {FIRST}='{keypair.load(Secret(text), Secret(passphrase)).public}'")
    held = env.secrets.all["snowflake"]
    held.versions[held.labelled(CURRENT)][0] = json.dumps(
        {**env.fields("snowflake"), "privateKey": text, "passphrase": passphrase}
    )
    env.rotate("snowflake")
    assert "passphrase" not in env.fields("snowflake")
    assert env.fields("snowflake")["privateKey"].startswith("-----BEGIN PRIVATE KEY-----\n")


@pytest.mark.parametrize(
    "bad", ["", "nonsense", "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----"]
)
def test_r19_a_key_that_can_not_be_read_is_reported_without_it(env, bad):
    held = env.secrets.all["snowflake"]
    held.versions[held.labelled(CURRENT)][0] = json.dumps(
        {**env.fields("snowflake"), "privateKey": bad or "canary" * 9}
    )
    result = refused(env, "ROT-BAD-KEY")
    assert "canary" not in result


def test_r19_a_rotation_with_an_inconsistent_pair_changes_nothing(env):
    good, other = map(pair_of, pool()[:2])
    env._pairs = iter([KeyPair(good.private_pem, other._key)])
    refused(env, "ROT-BAD-KEY")
    assert env.fields("snowflake", PENDING) is None


def test_r20_new_keys_are_strong_and_what_is_sent_to_snowflake_is_public():
    pair = keypair.verify_key_pair(keypair.make())
    key = serialization.load_pem_private_key(pair.private_pem.reveal().encode(), None)
    assert (key.key_size, key.public_key().public_numbers().e) == (3072, 65537)
    assert pair.private_pem.reveal().startswith("-----BEGIN PRIVATE KEY-----")
    assert "PRIVATE" not in repr(pair)


def test_r20_the_private_key_goes_to_secrets_manager_and_nowhere_else(env):
    sent = []
    send = env.wire.send

    def noted(request, **options):
        sent.append(f"{request.url} {request.headers} {request.body}")
        return send(request, **options)

    env.wire.send = noted
    env.rotate("snowflake")
    lines = env.fields("snowflake")["privateKey"].splitlines()[1:-1]
    assert any(env.fields("snowflake")["publicKey"].splitlines()[1] in each for each in sent)
    assert not [each for each in sent if any(line in each for line in lines)]


def test_the_secret_names_the_new_key_in_all_of_its_fields(env):
    before = env.fields("snowflake")
    env.rotate("snowflake")
    after = env.fields("snowflake")
    assert before.keys() == after.keys()
    of_the_kickstarter = {"snowflake_rsa_public_key_1_pem", "snowflake_rsa_private_key_1_pem"}
    changed = {name for name in before if before[name] != after[name]}
    assert changed == {"privateKey", "publicKey", "fingerprint", *of_the_kickstarter}
    assert base64.b64decode(after["snowflake_rsa_private_key_1_pem"]).decode() == after["privateKey"]


def test_a_role_without_the_privilege_is_reported_and_nothing_changes(env):
    env.run_sql(f"REVOKE MODIFY PROGRAMMATIC AUTHENTICATION METHODS ON USER {USER} FROM ROLE {ROTATION_ROLE}")
    version = env.secrets.start("snowflake")
    env.step("snowflake", "createSecret", version)
    before = env.slots()
    with pytest.raises(LakeferryError) as raised:
        env.step("snowflake", "setSecret", version)
    assert raised.value.kind.code in ("SNF-PRIVILEGE", "SNF-MISSING")
    assert env.slots() == before


def test_the_role_that_rotates_may_set_keys_and_nothing_else(env):
    env.rotate("snowflake")
    granted = [
        (grant.privilege, grant.on.name)
        for grant in env.snowflake.account.grants
        if grant.to == ROTATION_ROLE
    ]
    assert granted == [("MODIFY PROGRAMMATIC AUTHENTICATION METHODS", (USER,))]


def test_r21_with_the_current_key_gone_the_replaced_one_logs_in(env):
    env.rotate("snowflake")
    current = env.id_of(env.fields("snowflake"))
    slot = {1: FIRST, 2: SECOND}[
        next(number for number, slot_value in env.slots().items() if slot_value == current)
    ]
    env.run_sql(f"ALTER USER {USER} UNSET {slot}")
    env.rotate("snowflake")
    assert env.accepts(env.fields("snowflake"))


def test_a_key_that_can_not_be_read_stops_no_other_from_logging_in(env):
    env.rotate("snowflake")
    current = env.id_of(env.fields("snowflake"))
    (number,) = [number for number, fingerprint in env.slots().items() if fingerprint == current]
    env.run_sql(f"ALTER USER {USER} UNSET {FIRST if number == 1 else SECOND}")
    version = env.secrets.start("snowflake")
    unreadable = {**env.fields("snowflake"), "privateKey": "unreadable"}
    env.secrets.all["snowflake"].versions[version][0] = json.dumps(unreadable)
    with pytest.raises(Refused) as raised:
        env.step("snowflake", "setSecret", version)
    assert raised.value.kind.code == "ROT-BAD-KEY"
    assert raised.value.what.startswith(f"the private key of version {version}: ")


def test_revoking_empties_the_other_slot_and_keeps_a_foreign_key(env):
    first = env.id_of(env.fields("snowflake"))
    env.rotate("snowflake")
    current = env.id_of(env.fields("snowflake"))
    result = env.ask(operation="revoke", secret="snowflake")
    assert result == {"secret": "snowflake", "revoked": [first], "unmanaged": [], "kept": current}
    foreign = set_by_hand(env, FIRST)
    assert env.ask(operation="revoke", secret="snowflake") == {
        **result,
        "revoked": [],
        "unmanaged": [foreign],
    }
    assert set(env.slots().values()) == {current, foreign}


def test_after_revoking_the_next_rotation_needs_no_grace(env):
    env.rotate("snowflake")
    leaked = env.fields("snowflake")
    env.ask(operation="revoke", secret="snowflake")
    env.rotate("snowflake")
    env.ask(operation="revoke", secret="snowflake")
    assert not env.accepts(leaked)
    assert env.accepts(env.fields("snowflake"))


def test_a_deployment_that_renames_the_warehouse_during_a_rotation_is_not_undone_by_it(env):
    version = env.secrets.start("snowflake")
    for step in STEPS[:3]:
        env.step("snowflake", step, version)
    held = env.secrets.all["snowflake"]
    value = {**env.fields("snowflake"), "warehouse": "RENAMED"}
    held.versions[held.labelled(CURRENT)][0] = json.dumps(value)
    with pytest.raises(Refused, match="ROT-DISCARDED"):
        env.step("snowflake", "finishSecret", version)
    assert env.fields("snowflake") == value
    assert env.accepts(value)
    env.rotate("snowflake")
    assert env.fields("snowflake")["warehouse"] == "RENAMED"


def rotate_slowly(env):
    """Rotate in more than a day: Snowflake refused the new key for that long."""
    version = env.secrets.start("snowflake")
    for step in STEPS[:2]:
        env.step("snowflake", step, version)
    env.clock.sleep(26 * 3600)
    env.rotate("snowflake", version)
    return version


def test_a_key_whose_version_has_nothing_but_a_time_label_is_revoked_after_its_grace(env):
    """A deployment that changes other fields makes the version of the replaced key the one before the
    previous one.
    """
    held = env.secrets.all["snowflake"]
    version = rotate_slowly(env)
    replaced = env.id_of(env.fields("snowflake"))
    env.clock.sleep(31 * DAY)
    env.rotate("snowflake")
    changed = {**env.fields("snowflake"), "warehouse": "RENAMED"}
    env.secrets.put_secret_value(
        SecretId="snowflake", ClientRequestToken=token(), SecretString=json.dumps(changed)
    )
    assert len(held.versions[version][1]) == 1
    env.clock.sleep(8 * DAY - 3600)
    asked = {"operation": "revoke_expired", "secrets": ["snowflake"]}
    (result,) = env.ask(**asked)["secrets"]
    assert (result["revoked"], result["unmanaged"]) == ([], [])
    env.clock.sleep(3600)
    (result,) = env.ask(**asked)["secrets"]
    assert (result["revoked"], result["unmanaged"]) == ([replaced], [])
    env.rotate("snowflake")
    assert env.accepts(changed)
    assert not held.versions[version][1]


def test_a_secret_keeps_few_labels_however_many_rotations_take_long(env):
    for _ in range(25):
        rotate_slowly(env)
        env.clock.sleep(31 * DAY)
    assert len(env.secrets.all["snowflake"].labels()) <= 5


def test_a_pending_key_that_can_not_be_read_is_given_up(env):
    version = env.secrets.start("snowflake")
    for step in STEPS[:2]:
        env.step("snowflake", step, version)
    held = env.secrets.all["snowflake"]
    held.versions[version][0] = json.dumps(
        {**env.fields("snowflake", PENDING), "privateKey": "unreadable-by-now"}
    )
    with pytest.raises(Refused) as raised:
        env.step("snowflake", "createSecret", version)
    assert raised.value.kind.code == "ROT-DISCARDED"
    assert held.labelled(PENDING) is None
