"""A deployment renames a Snowflake user in the days after a rotation, and is rolled back."""

from __future__ import annotations

import json

import pytest

from lambdas.shared.redaction import Secret
from lambdas.shared.secrets import SecretStore, reveal_fields
from lambdas.snowflake import keypair, secret_fields, sql
from simulators.snowflake.model import Domain
from tests.support.snowflake_environment import Account
from tests.support.staged_secrets import CURRENT, StagedSecrets, token


@pytest.fixture
def account():
    account = Account()
    account.secrets = account.invocations.secrets = StagedSecrets(account.clock)
    yield account
    account.close()


def about(secret):
    """Return whose key the secret has, and which."""
    fields = json.loads(secret.value(CURRENT))
    return fields["user"], keypair.load(Secret(fields["privateKey"])).fingerprint


def slots(account, name):
    return [key.fingerprint for key in account.account.find(Domain.USER, (name,)).keys.values()]


def rotate(account, secret, name):
    """Do what a rotation does: set a new key in the other slot, and make it the secret's."""
    lifecycle = account.invocations.lifecycle()
    pair = keypair.make()
    client = account.connect(lifecycle.deadline, account.clock, SecretStore(account.secrets))
    statement = keypair.SET_SLOT["RSA_PUBLIC_KEY_2"]
    client.run(sql.statement(statement, name=sql.identifier(name), key=sql.literal(pair.public)))
    fields = json.loads(secret.value(CURRENT))
    to = secret_fields.Connection(fields["account"], fields["user"], fields["host"])
    value = json.dumps(reveal_fields(secret_fields.build_fields(pair, to)))
    account.secrets.put_secret_value(SecretId="reader", ClientRequestToken=token(), SecretString=value)


def test_a_rollback_returns_to_the_key_that_the_former_user_has(account):
    """Both of the former user's slots are taken: by its key and by the one that the rotation replaced."""
    secret = account.secrets.new("reader")
    user = account.resource("snowflake_user", "User", secret="reader", name="FORMER")
    user.create()
    rotate(account, secret, "FORMER")
    before = about(secret)
    taken = slots(account, "FORMER")
    assert before[1] in taken
    assert len(taken) == 2
    given = user.properties
    user.properties = {**given, "name": "LATER"}
    former = user.physical_id
    user.physical_id = user.run(user.event("Update", given))
    assert about(secret)[0] == "LATER"

    account.invocations.stacks.status = "UPDATE_ROLLBACK_IN_PROGRESS"
    renamed = user.properties
    user.properties = given
    later = user.physical_id
    user.physical_id = user.run(user.event("Update", renamed))
    assert user.physical_id == former
    user.run(
        {
            **user.event("Delete", PhysicalResourceId=later),
            "ResourceProperties": {"kind": "snowflake_user", **renamed},
        }
    )

    assert about(secret) == before
    assert slots(account, "FORMER") == taken
    assert account.account.find(Domain.USER, ("LATER",)) is None
    assert not account.leaks()
