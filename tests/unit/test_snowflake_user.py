"""Users: the key pair is stored before the user is created, and a user is ready once the key logs in."""

from __future__ import annotations

import base64
import json

import attrs
import pytest

from lambdas.shared.errors import BadProperties, InProgress, NotFound, Refused, ResourceMissing, Transient
from lambdas.shared.redaction import Secret
from lambdas.shared.secrets import SecretStore
from lambdas.snowflake import keypair, secret_fields
from lambdas.snowflake.resources import user
from tests.support.resource_environment import ManualClock, MemorySecrets
from tests.support.snowflake_context import (
    DONE,
    MARK,
    OWN,
    context,
    failure,
    pair,
    result,
    row,
    script,
    sent,
    spec,
    value,
    written,
)
from tests.support.snowflake_users import GIVEN, SETTINGS, described, held, kept, there
from tests.support.staged_secrets import CURRENT, PREVIOUS, StagedSecrets, token


def about(value):
    """Return whose key a secret's value has, and which."""
    fields = json.loads(value)
    return fields["user"], keypair.load(Secret(fields["privateKey"])).fingerprint


def test_a_pair_is_generated_stored_and_registered(server):
    held_context = context(script(server))
    assert user.create(held_context, spec(user, **GIVEN)) == OWN
    fields = kept(held_context)
    made = keypair.load(Secret(fields["privateKey"]))
    assert written(server) == [
        f"CREATE USER \"{OWN}\" {SETTINGS} RSA_PUBLIC_KEY='{made.public}' COMMENT='{MARK}'"
    ]
    assert {
        name: fields[name]
        for name in ("account", "user", "role", "warehouse", "namespace", "host", "fingerprint")
    } == {
        "account": "myorg-acct",
        "user": OWN,
        "role": "reader",
        "warehouse": "W",
        "namespace": "SALES.PUBLIC",
        "host": "127.0.0.1",
        "fingerprint": made.fingerprint,
    }
    assert fields["publicKey"] == made.public_pem
    assert base64.b64decode(fields["snowflake_rsa_private_key_1_pem"]).decode() == fields["privateKey"]


def test_settings_that_aren_t_given_are_left_to_snowflake(server):
    user.create(context(script(server)), spec(user, secret="reader"))
    assert written(server)[0].startswith(
        f'CREATE USER "{OWN}" TYPE=SERVICE DEFAULT_SECONDARY_ROLES=() RSA_PUBLIC_KEY='
    )


def test_the_private_key_is_in_no_statement(server):
    held_context = context(script(server))
    user.create(held_context, spec(user, **GIVEN))
    private = "".join(kept(held_context)["privateKey"].splitlines()[1:-1])
    assert private[:64] not in json.dumps([request.body for request in server.sent])


def test_a_repeated_create_finds_its_pair(server):
    script(server, CREATE=[failure("000604", "cancelled"), DONE])
    held_context = context(server)
    with pytest.raises(Transient):
        user.create(held_context, spec(user, **GIVEN))
    stored = kept(held_context)
    user.create(held_context, spec(user, **GIVEN))
    assert kept(held_context) == stored
    assert len(set(written(server))) == 1


@pytest.mark.parametrize("other", ["ANNA", "OTHER"])
def test_a_pair_of_another_user_is_not_taken_over(server, other):
    held_context = context(script(server), reader=held(name=other))
    user.create(held_context, spec(user, **GIVEN))
    assert kept(held_context)["user"] == OWN
    assert kept(held_context)["fingerprint"] != pair().fingerprint


def test_without_a_secret_no_user_is_created(server):
    with pytest.raises(NotFound, match="secret nowhere does not exist"):
        user.create(context(script(server)), spec(user, secret="nowhere"))
    assert sent(server) == []


def test_a_key_that_can_t_be_used_is_reported_without_it(server):
    held_context = context(script(server), reader=held(privateKey="canary-of-a-broken-key"))
    with pytest.raises(NotFound) as broken:
        user.create(held_context, spec(user, **GIVEN))
    assert "canary" not in str(broken.value)
    assert broken.value.kind.code == "AWS-SECRET-SHAPE"


def test_it_is_ready_once_it_has_logged_in_with_its_own_key(server):
    there(server, SELECT=value(OWN))
    held_context = context(server, reader=held())
    assert user.is_ready(held_context, spec(user, **GIVEN), OWN) == {"name": OWN, "secret": "reader"}
    (probe,) = server.sent
    assert (probe.body["role"], probe.body["statement"]) == ("PUBLIC", "SELECT CURRENT_USER() AS RESULT")
    assert "warehouse" not in probe.body


def test_a_key_that_isn_t_known_yet_is_waited_for(server):
    there(server, SELECT=failure("390144", "JWT token is invalid.", 401))
    with pytest.raises(InProgress) as waiting:
        user.is_ready(context(server, reader=held()), spec(user, **GIVEN), OWN)
    assert waiting.value.kind.code == "SNF-KEY-NOT-READY"
    script(server, SELECT=failure("390144", "JWT token is invalid.", 401))
    with pytest.raises(ResourceMissing):
        user.is_ready(context(server, reader=held()), spec(user, **GIVEN), OWN)


@pytest.mark.parametrize("other", ["ANNA", "OTHER", ""])
def test_a_login_with_a_foreign_key_does_not_count(server, other):
    there(server, SELECT=value(other))
    with pytest.raises(InProgress, match=f"logs in as '{other}'"):
        user.is_ready(context(server, reader=held()), spec(user, **GIVEN), OWN)


@pytest.mark.parametrize(
    ("differs", "setting"),
    [
        ({"TYPE": "PERSON"}, "TYPE=SERVICE"),
        ({"DEFAULT_SECONDARY_ROLES": '["ALL"]'}, "DEFAULT_SECONDARY_ROLES=()"),
        ({"DEFAULT_ROLE": "null"}, 'DEFAULT_ROLE="READER"'),
        ({"DEFAULT_WAREHOUSE": "OTHER"}, 'DEFAULT_WAREHOUSE="W"'),
        ({"DEFAULT_NAMESPACE": "SALES"}, 'DEFAULT_NAMESPACE="SALES"."PUBLIC"'),
    ],
)
def test_only_what_differs_is_set(server, differs, setting):
    there(server, **{"DESC USER": described(**differs)})
    user.update(context(server, reader=held()), spec(user, **GIVEN), OWN)
    assert written(server) == [f'ALTER USER "{OWN}" SET {setting}']


@pytest.mark.parametrize("slot", ["RSA_PUBLIC_KEY_FP", "RSA_PUBLIC_KEY_2_FP"])
def test_the_secret_s_key_may_be_in_either_slot(server, slot):
    keys = {
        "RSA_PUBLIC_KEY_FP": "SHA256:other",
        "RSA_PUBLIC_KEY_2_FP": "SHA256:other",
        slot: pair().fingerprint,
    }
    there(server, **{"DESC USER": described(**keys)})
    user.update(context(server, reader=held()), spec(user, **GIVEN), OWN)
    assert written(server) == []


@pytest.mark.parametrize(
    ("keys", "slot"),
    [
        ({"RSA_PUBLIC_KEY_FP": "null"}, "RSA_PUBLIC_KEY"),
        ({"RSA_PUBLIC_KEY_FP": "SHA256:a"}, "RSA_PUBLIC_KEY_2"),
    ],
)
def test_a_removed_key_is_set_again_in_an_empty_slot(server, keys, slot):
    there(server, **{"DESC USER": described(**keys)})
    user.update(context(server, reader=held()), spec(user, **GIVEN), OWN)
    assert written(server) == [f"ALTER USER \"{OWN}\" SET {slot}='{pair().public}'"]


def test_a_key_in_a_slot_is_never_overwritten(server):
    there(server, **{"DESC USER": described(RSA_PUBLIC_KEY_FP="SHA256:a", RSA_PUBLIC_KEY_2_FP="SHA256:b")})
    with pytest.raises(Refused, match=r"SNF-KEY-SLOTS .*SHA256:a and SHA256:b"):
        user.update(context(server, reader=held()), spec(user, **GIVEN), OWN)
    assert written(server) == []


def test_without_a_slot_for_a_new_key_the_secret_is_left_as_it_is(server):
    there(server, **{"DESC USER": described(RSA_PUBLIC_KEY_FP="SHA256:a", RSA_PUBLIC_KEY_2_FP="SHA256:b")})
    held_context = context(server, reader=held(name="OTHER"))
    with pytest.raises(Refused, match="SNF-KEY-SLOTS"):
        user.update(held_context, spec(user, **GIVEN), OWN)
    assert about(held_context.secrets.client.values["reader"]) == ("OTHER", pair().fingerprint)


def replaced(server, *values):
    """Return a context whose secret has had these values, and its secret."""
    secrets = StagedSecrets(ManualClock())
    secret = secrets.new("reader")
    for secret_text in values:
        secrets.put_secret_value(SecretId="reader", ClientRequestToken=token(), SecretString=secret_text)
    return attrs.evolve(context(server), secrets=SecretStore(secrets)), secret


@pytest.mark.parametrize(
    ("owner", "other_slot"), [("OTHER", "SHA256:a"), ("OTHER", "null"), (OWN, "SHA256:a")]
)
def test_the_key_before_is_used_again_where_it_is_in_a_slot_and_the_secret_s_can_t_be(
    server, owner, other_slot
):
    there(
        server,
        **{"DESC USER": described(RSA_PUBLIC_KEY_FP=other_slot, RSA_PUBLIC_KEY_2_FP=pair().fingerprint)},
    )
    changed, secret = replaced(server, held(), held(pair(2), name=owner))
    for _ in range(2):
        user.update(changed, spec(user, **GIVEN), OWN)
    assert written(server) == []
    assert about(secret.value(CURRENT)) == (OWN, pair().fingerprint)
    assert about(secret.value(PREVIOUS)) == (owner, pair(2).fingerprint)


def test_the_key_before_is_not_used_again_where_the_secret_s_can_be_set(server):
    there(
        server, **{"DESC USER": described(RSA_PUBLIC_KEY_FP=pair().fingerprint, RSA_PUBLIC_KEY_2_FP="null")}
    )
    changed, secret = replaced(server, held(), held(pair(2)))
    user.update(changed, spec(user, **GIVEN), OWN)
    assert written(server) == [f"ALTER USER \"{OWN}\" SET RSA_PUBLIC_KEY_2='{pair(2).public}'"]
    assert about(secret.value(CURRENT)) == (OWN, pair(2).fingerprint)


@pytest.mark.parametrize("other_slot", ["null", "SHA256:b"])
def test_a_key_before_that_is_in_no_slot_is_never_used_again(server, other_slot):
    there(server, **{"DESC USER": described(RSA_PUBLIC_KEY_FP="SHA256:a", RSA_PUBLIC_KEY_2_FP=other_slot)})
    changed, secret = replaced(server, held(), held(pair(2), name="OTHER"))
    if other_slot == "null":
        user.update(changed, spec(user, **GIVEN), OWN)
        assert about(secret.value(CURRENT))[1] not in (pair().fingerprint, pair(2).fingerprint)
        return
    with pytest.raises(Refused, match="SNF-KEY-SLOTS"):
        user.update(changed, spec(user, **GIVEN), OWN)
    assert about(secret.value(CURRENT)) == ("OTHER", pair(2).fingerprint)


@pytest.mark.parametrize("before", ["[1]", "canary", "{}", '{"privateKey": "canary"}'])
def test_a_value_before_without_a_key_counts_as_none(server, before):
    there(server, **{"DESC USER": described(RSA_PUBLIC_KEY_2_FP="null")})
    changed, secret = replaced(server, before, held(pair(2), name="OTHER"))
    user.update(changed, spec(user, **GIVEN), OWN)
    assert about(secret.value(CURRENT))[1] not in (pair().fingerprint, pair(2).fingerprint)
    assert len(written(server)) == 1


def test_fields_that_somebody_added_to_the_secret_stay(server):
    there(server, **{"DESC USER": described(RSA_PUBLIC_KEY_2_FP="null")})
    for now in (held(warehouse="OLD", added="stays"), held(name="OTHER", added="stays")):
        held_context = context(server, reader=now)
        user.update(held_context, spec(user, **GIVEN), OWN)
        assert kept(held_context)["added"] == "stays"
        assert (kept(held_context)["user"], kept(held_context)["warehouse"]) == (OWN, "W")
    held_context = context(script(server), reader=held(name="OTHER", added="stays", passphrase="canary"))
    user.create(held_context, spec(user, secret="reader"))
    assert kept(held_context)["added"] == "stays"
    assert not kept(held_context).keys() & {"role", "warehouse", "namespace", "passphrase"}


def test_other_fields_of_the_secret_follow_the_properties(server):
    held_context = context(there(server), reader=held(warehouse="OLD"))
    user.update(held_context, spec(user, **GIVEN), OWN)
    assert kept(held_context)["warehouse"] == "W"
    assert kept(held_context)["fingerprint"] == pair().fingerprint


def test_a_new_secret_gets_a_new_pair_and_the_user_keeps_living(server):
    held_context = context(there(server), reader=held(), moved=None)
    user.update(held_context, spec(user, **{**GIVEN, "secret": "moved"}), OWN)
    made = held_context.secrets.client.fields("moved")
    assert made["fingerprint"] != pair().fingerprint
    assert written(server)[0].startswith(f'ALTER USER "{OWN}" SET RSA_PUBLIC_KEY_2=\'MII')
    assert user.PROPERTIES.CREATE_ONLY == ("name",)


def test_a_user_whose_comment_snowflake_hides_is_not_ours(server):
    """Snowflake shows only the names of foreign users."""
    script(server, **{"SHOW USERS": result(row(comment=None))})
    assert user.find_existing(context(server, deleting=True), spec(user, **GIVEN), OWN) == []


@pytest.mark.parametrize("namespace", ["a.b.c", "a..b", "."])
def test_a_namespace_is_a_database_or_a_schema(namespace):
    with pytest.raises(BadProperties, match="neither a database nor"):
        spec(user, secret="reader", namespace=namespace)


def test_a_pair_that_is_missing_is_reported(server):
    store = SecretStore(MemorySecrets(empty="{}"))
    for secret in ("empty", "nowhere"):
        with pytest.raises(NotFound) as missing:
            secret_fields.read_pair(store, secret)
        assert missing.value.kind.code == "AWS-SECRET-MISSING"
