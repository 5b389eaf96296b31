"""A token opens what it was signed for, with the deployment's keys, until it expires; nothing else is one."""

from __future__ import annotations

import base64
import json

import attrs
import jwt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lambdas.shared import link_tokens
from lambdas.shared.errors import LakeferryError
from lambdas.shared.link_tokens import BadLink, KeyRing, Link, ReplacedKey
from lambdas.shared.redaction import Secret
from tests.support.link_environment import AUDIENCE, DAYS, KEY, LINK, NOW, OLD_KEY

KEYS = KeyRing(AUDIENCE, KEY)
TOKEN = KEYS.sign(LINK, now=NOW, days=DAYS)
CLAIMS = jwt.decode(TOKEN, options={"verify_signature": False})
HEADERS = {"kid": link_tokens.identify_key(KEY)}


def reason(token, keys=KEYS, now=NOW):
    with pytest.raises(BadLink) as raised:
        keys.verify(token, now=now)
    return raised.value.reason


def forge(claims=CLAIMS, *, key=KEY, headers=HEADERS, algorithm="HS256"):
    return jwt.encode(claims, key.reveal(), algorithm=algorithm, headers=headers)


def test_a_token_opens_what_it_was_signed_for():
    signed = KEYS.verify(TOKEN, now=NOW + DAYS * 86400 - 1)
    assert (signed.link, signed.signed, signed.expires) == (LINK, NOW, NOW + DAYS * 86400)


def test_a_token_has_no_secret_and_no_address():
    assert {
        "aud": AUDIENCE, "iat": NOW, "exp": NOW + DAYS * 86400, "sub": LINK.recipient,
        "export": LINK.export, "window": LINK.window, "generation": 1,
    } == CLAIMS  # fmt: skip


def test_no_character_of_a_token_can_be_changed():
    for number, character in enumerate(TOKEN):
        changed = "A" if character != "A" else "B"
        assert reason(TOKEN[:number] + changed + TOKEN[number + 1 :]) in link_tokens.REASONS, number


def test_another_spelling_of_the_same_bytes_is_no_token():
    """The last character of a signature has bits that Base64 ignores."""
    alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
    other = alphabet[alphabet.index(TOKEN[-1]) ^ 1]
    assert base64.urlsafe_b64decode(TOKEN.rpartition(".")[2] + "=") == base64.urlsafe_b64decode(
        TOKEN.rpartition(".")[2][:-1] + other + "="
    )
    assert reason(TOKEN[:-1] + other) == link_tokens.MALFORMED


@pytest.mark.parametrize(
    ("claim", "value"),
    [("sub", "b" * 16), ("export", "other"), ("window", "2026-W47"), ("generation", 2), ("exp", NOW * 2)],
)
def test_no_claim_can_be_changed_without_the_key(claim, value):
    head, _, signature = TOKEN.split(".")
    body = base64.urlsafe_b64encode(json.dumps(CLAIMS | {claim: value}).encode()).rstrip(b"=").decode()
    assert reason(f"{head}.{body}.{signature}") == link_tokens.FORGED


@pytest.mark.parametrize("claim", CLAIMS)
def test_every_claim_is_required(claim):
    assert reason(forge({name: value for name, value in CLAIMS.items() if name != claim})) == "malformed"


@pytest.mark.parametrize(
    ("claim", "value"),
    [("aud", "lakeferry-prod"), ("generation", "1"), ("generation", True), ("exp", "soon"), ("sub", 5)],
)
def test_a_claim_of_another_kind_is_refused(claim, value):
    assert reason(forge(CLAIMS | {claim: value})) == link_tokens.MALFORMED


@pytest.mark.parametrize("algorithm", ["none", "HS384", "HS512"])
def test_no_other_algorithm_is_accepted(algorithm):
    key = "" if algorithm == "none" else KEY.reveal()
    token = jwt.encode(CLAIMS, key, algorithm=algorithm, headers=HEADERS)
    assert reason(token) == link_tokens.MALFORMED


def test_another_key_is_refused_also_under_the_id_of_the_right_one():
    other = Secret("x" * 64)
    assert reason(KeyRing(AUDIENCE, other).sign(LINK, now=NOW, days=DAYS)) == link_tokens.UNKNOWN_KEY
    assert reason(forge(key=other)) == link_tokens.FORGED


def test_an_expired_token_is_refused():
    assert reason(TOKEN, now=NOW + DAYS * 86400) == link_tokens.EXPIRED


def test_a_replaced_key_verifies_until_its_time_is_over():
    keys = KeyRing(AUDIENCE, KEY, (ReplacedKey(OLD_KEY, NOW + 10),))
    token = KeyRing(AUDIENCE, OLD_KEY).sign(LINK, now=NOW - 1, days=DAYS)
    assert keys.verify(token, now=NOW + 9).link == LINK
    assert reason(token, keys, now=NOW + 10) == link_tokens.UNKNOWN_KEY


@given(st.text(max_size=300) | st.text(alphabet="eyJ.-_Aa0", max_size=300))
def test_no_text_fails_otherwise_than_as_a_bad_link(text):
    assert reason(text) in link_tokens.REASONS


def test_a_token_that_is_too_long_is_not_read():
    assert reason(TOKEN + "A" * 5000) == link_tokens.MALFORMED


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"linkKey": "short"},
        {"linkKey": "k" * 64, "replacedKeys": "no list"},
        {"linkKey": "k" * 64, "replacedKeys": "[1]"},
    ],
)  # fmt: skip
def test_a_secret_without_keys_is_named_and_not_shown(fields):
    with pytest.raises(LakeferryError) as raised:
        link_tokens.parse_keys(fields, AUDIENCE)
    assert "kkk" not in str(raised.value)


def test_keys_survive_the_secret():
    replaced = (ReplacedKey(OLD_KEY, NOW),)
    fields = {"linkKey": KEY, "replacedKeys": link_tokens.write_replaced(replaced)}
    assert link_tokens.parse_keys(fields, AUDIENCE) == KeyRing(AUDIENCE, KEY, replaced)


def test_the_name_of_a_link_is_the_same_in_each_mail_about_it():
    assert attrs.evolve(LINK).name == LINK.name
    assert len({LINK.name, Link("e", "w", 1, "a").name, Link("e", "w", 2, "a").name}) == 3
