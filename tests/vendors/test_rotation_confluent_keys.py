"""The requests for Confluent's keys, and what operators read about them."""

from __future__ import annotations

import hashlib
import json

import pytest

from lambdas.rotation.versions import DAY
from lambdas.shared.errors import Refused
from tests.support.rotation_environment import NAME, RotationEnvironment
from tests.support.staged_secrets import CURRENT, PENDING, PREVIOUS


@pytest.fixture
def env():
    with RotationEnvironment(snowflake=False) as env:
        yield env


def note_posts(env):
    """Return a list that gets the body of each POST."""
    bodies = []
    send = env.wire.send

    def noted(request, **options):
        if request.method == "POST":
            bodies.append(json.loads(request.body))
        return send(request, **options)

    env.wire.send = noted
    return bodies


@pytest.mark.parametrize(("name", "kind"), [("kafka", "ServiceAccount"), ("admin", "User")])
def test_the_request_for_a_new_key(env, name, kind):
    before = env.confluent.organization.api_keys[env.fields(name)["apiKey"]]
    bodies = note_posts(env)
    version = env.rotate(name)
    (body,) = bodies
    prefix = f"{NAME}-kafka" if name == "kafka" else derive_prefix(env, name)
    spec = {
        "display_name": f"{prefix}/{version}",
        "description": "Made by Lakeferry's rotation",
        "owner": {"id": before.owner, "kind": kind},
    }
    if name == "kafka":
        spec["resource"] = body["spec"]["resource"]
        assert spec["resource"]["id"] == env.fields("kafka")["resourceId"]
    assert body == {"spec": spec}


def derive_prefix(env, name):
    return f"lakeferry-rotation-{hashlib.sha256(env.secrets.all[name].arn.encode()).hexdigest()[:16]}"


def change_fields(env, change):
    held = env.secrets.all["kafka"]
    fields = env.fields("kafka")
    change(fields)
    held.versions[held.labelled(CURRENT)][0] = json.dumps(fields)


def strip(fields):
    del fields["serviceAccountId"], fields["displayName"]


def test_a_secret_that_names_neither_owner_nor_key_gets_both(env):
    change_fields(env, strip)
    first = env.fields("kafka")
    assert [key["id"] for key in env.ask(operation="status", secret="kafka")["keys"]] == [first["apiKey"]]
    assert env.ask(operation="revoke", secret="kafka")["revoked"] == []
    env.rotate("kafka")
    fields = env.fields("kafka")
    assert (fields["serviceAccountId"], fields["displayName"]) == (env.owner, derive_prefix(env, "kafka"))
    assert fields.keys() == {*first, "serviceAccountId", "displayName"}
    env.clock.sleep(31 * DAY)
    env.rotate("kafka")
    assert not env.exists(first)
    assert env.accepts(fields)


def test_a_secret_that_names_no_owner_and_whose_key_is_gone_is_reported(env):
    change_fields(env, strip)
    del env.confluent.organization.api_keys[env.fields("kafka")["apiKey"]]
    for operation in ("status", "revoke"):
        with pytest.raises(Refused) as raised:
            env.ask(operation=operation, secret="kafka")
        assert raised.value.kind.code == "ROT-FIELDS"
        assert raised.value.what == "secret kafka has no serviceAccountId, and its key is gone"


def test_operators_see_all_keys_the_oldest_first_with_their_labels():
    with RotationEnvironment(keep=5, snowflake=False) as env:
        ids = [env.fields("kafka")["apiKey"]]
        for _ in range(2):
            env.rotate("kafka")
            ids.append(env.fields("kafka")["apiKey"])
            env.clock.sleep(31 * DAY)
        env.step("kafka", "createSecret", env.secrets.start("kafka"))
        ids.append(env.fields("kafka", PENDING)["apiKey"])
        keys = env.ask(operation="status", secret="kafka")["keys"]
        assert [key["id"] for key in keys] == ids
        assert [key["label"] for key in keys] == ["", PREVIOUS, CURRENT, PENDING]
        assert all(key["since"].endswith("Z") and key["since"].startswith("20") for key in keys)
        assert [key["since"] for key in keys] == sorted(key["since"] for key in keys)


def test_a_third_rotation_within_the_grace_says_how_many_keys_live(env):
    for _ in range(2):
        env.rotate("kafka")
    with pytest.raises(Refused) as raised:
        env.rotate("kafka")
    assert raised.value.kind.code == "ROT-LIMIT"
    assert raised.value.what == "secret kafka has 3 live keys"


def test_a_new_key_that_is_gone_is_named(env):
    version = env.secrets.start("kafka")
    env.step("kafka", "createSecret", version)
    key_id = env.fields("kafka", PENDING)["apiKey"]
    del env.confluent.organization.api_keys[key_id]
    with pytest.raises(Refused) as raised:
        env.step("kafka", "setSecret", version)
    assert raised.value.what == f"API key {key_id}"
