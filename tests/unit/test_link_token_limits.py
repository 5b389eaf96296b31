"""Tokens of links at their limits, the keys in the secret, and what an error says."""

from __future__ import annotations

import json

import jwt
import pytest

from lambdas.shared import link_tokens
from lambdas.shared.errors import LakeferryError
from lambdas.shared.link_tokens import BadLink, KeyRing, Link, ReplacedKey
from lambdas.shared.redaction import Secret
from tests.support.link_environment import AUDIENCE, DAYS, KEY, LINK, NOW, OLD_KEY

KEYS = KeyRing(AUDIENCE, KEY)
DAY = 86400


def refuse(token, keys=KEYS, now=NOW):
    with pytest.raises(BadLink) as raised:
        keys.verify(token, now=now)
    return raised.value


def test_a_token_has_two_thousand_characters_at_most():
    tokens = {}
    for length in range(1000, 1400):
        link = Link("e" * length, "w", 1, "a")
        tokens[len(KEYS.sign(link, now=NOW, days=1))] = link
    longest = max(length for length in tokens if length <= 2000)
    too_long = min(length for length in tokens if length > 2000)
    assert KEYS.verify(KEYS.sign(tokens[longest], now=NOW, days=1), now=NOW).link == tokens[longest]
    assert refuse(KEYS.sign(tokens[too_long], now=NOW, days=1)).reason == link_tokens.MALFORMED
    assert too_long - longest <= 2, "a token has no length that Base64 doesn't have"


@pytest.mark.parametrize("now", [1_000_000_000.9, 4_000_000_000.9])
def test_only_the_caller_s_clock_counts(now):
    signed = KEYS.verify(KEYS.sign(LINK, now=now, days=1), now=now)
    assert (signed.link, signed.signed, signed.expires) == (LINK, int(now), int(now) + DAY)


@pytest.mark.parametrize("days", [1, 14])
def test_a_token_expires_at_its_time_and_an_error_says_what_it_opened(days):
    token = KEYS.sign(LINK, now=NOW, days=days)
    end = NOW + days * DAY
    assert KEYS.verify(token, now=end - 0.1).expires == end
    for now in (end, end + 0.1):
        error = refuse(token, now=now)
        assert (error.reason, error.link, str(error)) == ("expired", LINK, "expired")


def test_an_error_of_a_token_that_proves_nothing_names_no_link():
    for letter in "abcdef":
        other = KeyRing(AUDIENCE, Secret(letter * 64))
        error = refuse(other.sign(LINK, now=NOW, days=DAYS))
        assert (error.reason, error.link, str(error)) == ("unknown key", None, "unknown key")


@pytest.mark.parametrize("headers", [{}, {"kid": None}, {"kid": 7}, {"kid": [1]}])
def test_a_header_without_the_id_of_a_key_is_malformed(headers):
    body = KEYS.sign(LINK, now=NOW, days=1).split(".")[1]
    head = jwt.utils.base64url_encode(json.dumps({"alg": "HS256", "typ": "JWT", **headers}).encode()).decode()
    assert refuse(f"{head}.{body}.AAAA").reason == link_tokens.MALFORMED


def test_the_header_names_algorithm_and_key():
    assert jwt.get_unverified_header(KEYS.sign(LINK, now=NOW, days=1)) == {
        "alg": "HS256",
        "typ": "JWT",
        "kid": link_tokens.identify_key(KEY),
    }


def test_the_id_of_a_key_is_the_beginning_of_a_hash():
    """It stays the same in later releases: links in mails that were sent have it."""
    assert link_tokens.identify_key(KEY) == "4e58e4e6099f0951"
    assert link_tokens.identify_key(OLD_KEY) != link_tokens.identify_key(KEY)


def test_each_replaced_key_verifies_until_its_own_time():
    old, older = OLD_KEY, Secret("p" * 64)
    keys = KeyRing(AUDIENCE, KEY, (ReplacedKey(old, NOW + 20), ReplacedKey(older, NOW + 10)))
    for key, until in ((old, NOW + 20), (older, NOW + 10)):
        token = KeyRing(AUDIENCE, key).sign(LINK, now=NOW, days=1)
        assert keys.verify(token, now=until - 1).link == LINK
        for now in (until, until + 1):
            assert refuse(token, keys, now=now).reason == link_tokens.UNKNOWN_KEY


@pytest.mark.parametrize("text", ["e\u00e9", "", "a.b", "a.b.c", "e" * 2001])
def test_a_text_that_is_no_token_is_malformed(text):
    assert refuse(text).reason == link_tokens.MALFORMED


@pytest.mark.parametrize(("length", "is_enough"), [(31, False), (32, True)])
def test_a_key_has_thirty_two_characters_at_least(length, is_enough):
    fields = {"linkKey": "k" * length}
    if is_enough:
        assert link_tokens.parse_keys(fields, AUDIENCE) == KeyRing(AUDIENCE, Secret("k" * length))
        return
    with pytest.raises(LakeferryError, match="AWS-SECRET-SHAPE  the secret of links has no linkKey"):
        link_tokens.parse_keys(fields, AUDIENCE)


@pytest.mark.parametrize("text", ["", "[]"])
def test_no_key_may_have_been_replaced(text):
    assert link_tokens.parse_replaced(text) == ()
    assert link_tokens.write_replaced(()) == "[]"


@pytest.mark.parametrize(
    "text", ["x", "7", "[1]", '[{"key": "k"}]', '[{"until": 1}]', '[{"key": "k", "until": "soon"}]',
             '[{"key": "k", "until": null}]']
)  # fmt: skip
def test_replaced_keys_that_are_no_list_of_keys_are_reported(text):
    message = "AWS-SECRET-SHAPE  replacedKeys of the secret of links is not a list of keys"
    with pytest.raises(LakeferryError, match=message):
        link_tokens.parse_replaced(text)


def test_replaced_keys_are_written_in_their_order():
    keys = (ReplacedKey(Secret("a"), 2), ReplacedKey(Secret("b"), 1))
    text = '[{"key": "a", "until": 2}, {"key": "b", "until": 1}]'
    assert link_tokens.write_replaced(keys) == text
    assert link_tokens.parse_replaced(text) == keys
    assert link_tokens.parse_replaced('[{"key": "a", "until": "2"}]') == keys[:1]


def test_the_name_of_a_link_names_all_of_it():
    assert Link("export", "2026-W46", 3, "b" * 16).name == f"export/2026-W46/3-{'b' * 16}"


def test_every_reason_is_listed():
    assert link_tokens.REASONS == (
        "malformed", "unknown key", "forged", "expired", "not a recipient", "revoked", "used up", "gone",
    )  # fmt: skip
