"""The key of links is replaced, and links that earlier keys signed open until they expire or are revoked."""

from __future__ import annotations

import io
import json

import pytest

from lambdas.handlers import rotation
from lambdas.rotation import errors as rotation_errors
from lambdas.rotation.versions import DAY, Policy
from lambdas.shared.clock import Deadline
from lambdas.shared.errors import LakeferryError, Refused
from lambdas.shared.http import Session
from lambdas.shared.link_tokens import BadLink, Link, parse_keys
from lambdas.shared.log import open_log
from tests.support.resource_environment import ManualClock
from tests.support.staged_secrets import CURRENT, STEPS, StagedSecrets

NAME = "lakeferry-dev/links/signing_key"
AUDIENCE = "lakeferry-dev"
DAYS = 14
FIRST = "f" * 64
LINK = Link("weekly_sales", "2026-W46", 1, "a" * 16)


class Vault:
    """The secret as Secrets Manager generates it, and the function that rotates it."""

    def __init__(self):
        self.clock = ManualClock()
        self.secrets = StagedSecrets(self.clock)
        self.secrets.new(NAME, json.dumps({"linkKey": FIRST}))
        self.log = io.StringIO()

    @property
    def function(self):
        deadline = Deadline(self.clock, self.clock.time() + 800)
        settings = rotation.Settings("", "", "", Policy(2, 7 * DAY), link_days=DAYS)
        return rotation.build(
            settings, self.secrets, Session(deadline), deadline, open_log(self.log), tenants=frozenset
        )

    def rotate(self):
        version = self.secrets.start(NAME)
        for step in STEPS:
            self.step(step, version)
        self.secrets.ended(NAME, version)

    def step(self, step, version):
        return self.function.run({"Step": step, "SecretId": NAME, "ClientRequestToken": version})

    @property
    def keys(self):
        return parse_keys(json.loads(self.secrets.all[NAME].value(CURRENT)), AUDIENCE)

    def sign(self):
        return self.keys.sign(LINK, now=self.clock.time(), days=DAYS)

    def opens(self, token):
        try:
            return self.keys.verify(token, now=self.clock.time()).link == LINK
        except BadLink:
            return False


def test_a_link_opens_over_rotations_until_it_expires():
    vault = Vault()
    tokens = []
    for _ in range(4):
        tokens.append(vault.sign())
        vault.rotate()
        assert [vault.opens(token) for token in tokens] == [True] * len(tokens)
        vault.clock.sleep(3 * DAY)
    assert len({key.key for key in vault.keys.replaced} | {vault.keys.current}) == 5
    vault.clock.sleep(2 * DAY)
    assert [vault.opens(token) for token in tokens] == [False, True, True, True]


def test_a_key_whose_links_have_expired_is_removed_by_the_schedule():
    vault = Vault()
    vault.rotate()
    assert vault.function.revoke_expired([NAME])["secrets"][0]["revoked"] == []
    vault.clock.sleep((DAYS + 2) * DAY)
    assert len(vault.function.revoke_expired([NAME])["secrets"][0]["revoked"]) == 1
    assert vault.keys.replaced == ()


def test_revoke_ends_every_link_that_an_earlier_key_signed():
    vault = Vault()
    earlier = vault.sign()
    vault.rotate()
    own = vault.sign()
    answer = vault.function.revoke(NAME)
    assert len(answer["revoked"]) == 1
    assert (vault.opens(earlier), vault.opens(own)) == (False, True)
    assert vault.function.revoke(NAME)["revoked"] == []


@pytest.mark.parametrize("repeated", STEPS)
def test_every_step_may_be_repeated(repeated):
    vault = Vault()
    token = vault.sign()
    version = vault.secrets.start(NAME)
    for step in STEPS:
        vault.step(step, version)
        if step == repeated:
            vault.step(step, version)
    assert vault.opens(token)
    assert vault.keys.current.reveal() != FIRST


def test_a_rotation_that_began_before_a_revocation_brings_no_key_back():
    vault = Vault()
    vault.rotate()
    version = vault.secrets.start(NAME)
    vault.step("createSecret", version)
    vault.function.revoke(NAME)
    with pytest.raises(LakeferryError) as raised:
        vault.step("finishSecret", version)
    assert raised.value.kind is rotation_errors.DISCARDED
    assert vault.keys.replaced == ()


def test_a_revocation_does_not_undo_a_rotation_that_ends_at_the_same_time():
    """Another version becomes current between the read and the write of a revocation."""
    vault = Vault()
    vault.rotate()
    newer = json.dumps({"linkKey": "n" * 64})

    def rotate_before_write(operation, call):
        if operation == "PutSecretValue":
            vault.secrets._on_call = lambda _, plain: plain()
            vault.secrets.put_secret_value(SecretId=NAME, ClientRequestToken="newer", SecretString=newer)
        return call()

    vault.secrets._on_call = rotate_before_write
    with pytest.raises(Refused) as refused:
        vault.function.revoke(NAME)
    assert refused.value.kind is rotation_errors.NOT_MOVED
    assert vault.keys.current.reveal() == "n" * 64
    assert not [
        label for label in vault.secrets.all[NAME].labels() if label.startswith("LAKEFERRY-REPLACING")
    ]


def test_nothing_that_is_logged_has_a_key():
    vault = Vault()
    vault.rotate()
    vault.function.revoke(NAME)
    secrets = [key for value in vault.secrets.ever for key in (json.loads(value)["linkKey"],)]
    assert len(secrets) == 3
    assert not any(secret in vault.log.getvalue() for secret in secrets)


def test_status_lists_the_keys_by_ids_that_are_not_secret():
    vault = Vault()
    vault.rotate()
    answer = rotation.answer(vault.function, {"operation": "status", "secret": NAME})
    assert [key["label"] for key in answer["keys"]] == [CURRENT, ""]
    assert FIRST not in json.dumps(answer)
