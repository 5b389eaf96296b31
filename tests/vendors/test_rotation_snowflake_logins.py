"""With which role and key rotation logs in to Snowflake, and what operators read about the slots."""

from __future__ import annotations

import json

import pytest

from lambdas.rotation.versions import DAY
from lambdas.shared.errors import Refused
from tests.support.rotation_environment import ROTATION_ROLE, USER, RotationEnvironment
from tests.support.staged_secrets import CURRENT

FIRST = "RSA_PUBLIC_KEY"
SECOND = "RSA_PUBLIC_KEY_2"


@pytest.fixture
def env():
    with RotationEnvironment(services=()) as env:
        yield env


def change_fields(env, **changed):
    held = env.secrets.all["snowflake"]
    fields = {**env.fields("snowflake"), **changed}
    fields = {name: value for name, value in fields.items() if value is not None}
    held.versions[held.labelled(CURRENT)][0] = json.dumps(fields)


def note_logins(env):
    """Return a list that gets the role of each statement."""
    roles = []
    send = env.wire.send

    def noted(request, **options):
        if request.method == "POST" and "/statements" in request.path_url:
            roles.append(json.loads(request.body)["role"])
        return send(request, **options)

    env.wire.send = noted
    return roles


@pytest.mark.parametrize(
    ("tag", "role", "used"),
    [(ROTATION_ROLE, "READS", ROTATION_ROLE), ("", "READS", "READS"), ("", None, "PUBLIC")],
)
def test_the_role_that_rotates_is_that_of_the_tag_or_the_secret_and_else_the_one_of_everybody(
    env, tag, role, used
):
    env.secrets.all["snowflake"].tags["lakeferry:rotation-role"] = tag
    change_fields(env, role=role)
    roles = note_logins(env)
    env.ask(operation="status", secret="snowflake")
    assert {name.strip('"') for name in roles} == {used}
    roles.clear()
    env.step("snowflake", "testSecret", env.secrets.start("snowflake"))
    assert {name.strip('"') for name in roles} == {"PUBLIC"}, "a test of the key needs no privilege"


def test_operators_see_each_slot_with_its_key_and_since_when(env):
    first = env.id_of(env.fields("snowflake"))
    env.clock.sleep(DAY)
    env.rotate("snowflake")
    keys = env.ask(operation="status", secret="snowflake")["keys"]
    assert [(key["label"], key["id"]) for key in keys] == [
        (FIRST, first),
        (SECOND, env.id_of(env.fields("snowflake"))),
    ]
    assert all(key["since"] for key in keys)
    env.run_sql(f"ALTER USER {USER} UNSET {FIRST}")
    (key,) = env.ask(operation="status", secret="snowflake")["keys"]
    assert key["label"] == SECOND


def test_a_secret_without_a_private_key_is_no_secret_of_snowflake(env):
    change_fields(env, privateKey=None)
    with pytest.raises(Refused) as raised:
        env.ask(operation="status", secret="snowflake")
    assert raised.value.kind.code == "ROT-FIELDS"


def test_a_pending_version_without_a_private_key_is_named(env):
    version = env.secrets.start("snowflake")
    fields = {name: value for name, value in env.fields("snowflake").items() if name != "privateKey"}
    env.secrets.all["snowflake"].versions[version][0] = json.dumps(fields)
    with pytest.raises(Refused) as raised:
        env.step("snowflake", "setSecret", version)
    assert raised.value.kind.code == "ROT-BAD-KEY"
    assert raised.value.what == f"the private key of version {version}: there is no privateKey"
