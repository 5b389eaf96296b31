"""The key of pseudonyms, the spellings that share one, and its exact value."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json

import boto3
import pyarrow as pa
import pytest

from glue_jobs.errors import BadInput, StorageProblem
from glue_jobs.pseudonyms import (
    PseudonymKey,
    create_hasher,
    fetch_key,
    normalize,
    pseudonym,
    spelling_of_person,
)
from glue_jobs.store import connect

KEY = bytes(range(32))
KINDS = ("email", "phone", "name", "text", "id")


def hashed(kind: str, *texts: str | None, key: bytes = KEY) -> list[str | None]:
    return create_hasher(key, kind)(pa.array(texts, pa.string())).to_pylist()


def expected(kind: str, text: str, key: bytes = KEY) -> str:
    return hmac.new(key, f"v1|{kind}|{text}".encode(), hashlib.sha256).hexdigest()


@pytest.mark.parametrize("length", [32, 33, 63, 64])
def test_a_pseudonym_is_the_hmac_of_version_kind_and_spelling(length):
    key = bytes(range(200, 200 - length, -1))
    for kind in KINDS:
        assert hashed(kind, "7", key=key) == [expected(kind, "7", key)]


@pytest.mark.parametrize("length", [0, 31, 65])
def test_a_key_has_32_to_64_bytes(length):
    message = f"the key has {length} bytes; it must have 32 to 64"
    with pytest.raises(ValueError, match=message):
        create_hasher(bytes(length), "id")
    with pytest.raises(ValueError, match=message):
        pseudonym(None, "id", bytes(length))


#: What is hashed of a text by kind: email, phone, name, text, id. None is nobody.
SPELLED = {
    "Ada": ["ada", None, "ada", "ada", "Ada"],
    " \t\r\nA  b\t\nC \n": ["a  b\t\nc", None, "a b c", "a b c", "A  b\t\nC"],
    "a\rb": ["a\rb", None, "a b", "a b", "a\rb"],
    "a\nb": ["a\nb", None, "a b", "a b", "a\nb"],
    "a\tb": ["a\tb", None, "a b", "a b", "a\tb"],
    "a  b": ["a  b", None, "a b", "a b", "a  b"],
    "+49 (30) 0-7": ["+49 (30) 0-7", "+493007", *["+49 (30) 0-7"] * 3],
    "9": ["9"] * 5,
    "0": ["0"] * 5,
    "+": ["+", None, "+", "+", "+"],
    "": [None] * 5,
    " \t\r\n": [None] * 5,
    "\x0b": ["\x0b", None, "\x0b", "\x0b", "\x0b"],
}
#: The same beyond ASCII.
FOREIGN = {
    "ÄZ": ["äz", None, "äz", "äz", "ÄZ"],
    "\uff21\u3000\ufb01": ["a fi", None, "a fi", "a fi", "A fi"],
    "\u00a0x\u00a0\u00a0y": ["x  y", None, "x y", "x y", "x  y"],
    "\u0664\u0669 \u00b2": ["\u0664\u0669 2", "492", "\u0664\u0669 2", "\u0664\u0669 2", "\u0664\u0669 2"],
    "\u3000": [None] * 5,
}


@pytest.mark.parametrize("place", range(len(KINDS)), ids=KINDS)
def test_each_spelling_has_its_pseudonym_alone_and_in_a_batch(place):
    kind = KINDS[place]
    for spelled in (SPELLED, SPELLED | FOREIGN):
        texts = list(spelled)
        wanted = [text[place] and expected(kind, text[place]) for text in spelled.values()]
        assert hashed(kind, *texts) == wanted
        assert hashed(kind, *texts, None, *texts) == [*wanted, None, *wanted]
        assert [hashed(kind, text)[0] for text in texts] == wanted


@pytest.mark.parametrize("place", range(len(KINDS)), ids=KINDS)
def test_python_normalises_as_arrow_does(place):
    for text, spelled in (SPELLED | FOREIGN).items():
        found = normalize(text, KINDS[place])
        assert (found if found.strip("+") or KINDS[place] != "phone" else "") == (spelled[place] or "")


@pytest.mark.parametrize("kind", KINDS)
def test_a_batch_without_values_has_no_pseudonyms(kind):
    assert hashed(kind) == []
    assert hashed(kind, None, None) == [None, None]


def test_bytes_that_are_no_text_are_hashed_as_what_the_file_would_show():
    raw = pa.array([b"a\xff", b"a"])
    values = pa.Array.from_buffers(pa.string(), 2, raw.buffers())
    assert create_hasher(KEY, "name")(values).to_pylist() == [
        expected("name", "a\ufffd"),
        expected("name", "a"),
    ]


def test_the_spelling_of_a_person_has_no_invisible_sign_and_no_case():
    spaces = " \u00a0\u2028\u2029\x00\u200b"
    fillers = "\u034f\u115f\u1160\u17b4\u17b5\u180b\u180f\u2800\u3164\ufe00\ufe0f\uffa0"
    for sign in (*spaces, *fillers, "\U000e0100", "\U000e01ef"):
        assert spelling_of_person(f"{sign}a{sign}B{sign}", "id") == "ab"
    assert spelling_of_person("Straße", "name") == "strasse"
    assert spelling_of_person("\u2801", "id") == "\u2801"
    assert spelling_of_person("\u0345", "id") == "\u03b9"


@pytest.fixture(scope="module")
def secret(lake_aws):
    """Return a function that stores a value in a secret, and returns the secret's name and its version."""
    client = boto3.client("secretsmanager")
    client.create_secret(Name="pseudonyms-of-values", SecretString="{}")

    def store(**value) -> str:
        return client.put_secret_value(SecretId="pseudonyms-of-values", **value)["VersionId"]

    return store


def encoded(key: bytes) -> dict[str, str]:
    return {"SecretString": json.dumps({"key": base64.b64encode(key).decode()})}


@pytest.mark.parametrize("length", [32, 64])
def test_the_key_is_that_of_the_current_version(secret, length):
    key = KEY + bytes(length - 32)
    secret(**encoded(bytes(40)))
    version = secret(**encoded(key))
    assert fetch_key(connect(), "pseudonyms-of-values") == PseudonymKey(key, version)


@pytest.mark.parametrize(
    "value",
    [
        {"SecretString": "swordfish"},
        {"SecretString": '["swordfish"]'},
        {"SecretString": '{"password": "swordfish"}'},
        {"SecretString": '{"key": 7}'},
        {"SecretString": json.dumps({"key": base64.b64encode(KEY).decode() + "!"})},
        encoded(KEY[:31]),
        encoded(bytes(65)),
        {"SecretBinary": KEY},
    ],
    ids=["text", "list", "another object", "number", "no base64", "short", "long", "bytes"],
)
def test_a_secret_without_a_key_is_refused_without_its_value(secret, value):
    secret(**value)
    with pytest.raises(BadInput) as refused:
        fetch_key(connect(), "pseudonyms-of-values")
    assert refused.value.code == "EXP-KEY-FORM"
    assert refused.value.what == "the secret pseudonyms-of-values does not hold a key in the form expected"
    assert refused.value.__suppress_context__


def test_a_secret_that_is_not_named_or_not_there_is_refused(lake_aws):
    with pytest.raises(BadInput) as unnamed:
        fetch_key(connect(), "")
    assert unnamed.value.code == "EXP-KEY-MISSING"
    assert unnamed.value.what == "the contract hashes columns, but no key was named"
    with pytest.raises(StorageProblem) as missing:
        fetch_key(connect(), "nobody-made-it")
    assert missing.value.code == "EXP-KEY-UNREADABLE"
    assert missing.value.what.startswith(
        "the pseudonymisation key can't be read: reading the secret nobody-made-it"
    )
