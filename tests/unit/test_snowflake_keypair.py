"""Key pairs: other tools read our keys and tokens, and we accept only valid foreign keys."""

from __future__ import annotations

import base64
import re
import shutil
import subprocess

import pytest
from authlib.jose import jwt as other_jwt
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa

from lambdas.shared.errors import Refused
from lambdas.shared.redaction import SHOWN, Secret
from lambdas.snowflake import keypair
from lambdas.snowflake.keypair import UnusableKey
from tests.support.snowflake_context import pair

NOW = 1_790_000_000.0
OPENSSL = shutil.which("openssl")


def pem(key, passphrase=None, form=serialization.PrivateFormat.PKCS8):
    encryption = (
        serialization.BestAvailableEncryption(passphrase) if passphrase else serialization.NoEncryption()
    )
    return key.private_bytes(serialization.Encoding.PEM, form, encryption).decode()


@pytest.fixture(scope="module")
def key():
    return rsa.generate_private_key(public_exponent=65537, key_size=2048)


def openssl(*arguments, given):
    return subprocess.run(
        [OPENSSL, *arguments], input=given, capture_output=True, check=True, timeout=60
    ).stdout


@pytest.mark.skipif(OPENSSL is None, reason="there is no openssl command here")
def test_the_fingerprint_is_what_openssl_makes_of_the_key(key):
    loaded = keypair.load(Secret(pem(key)))
    der = openssl("rsa", "-pubout", "-outform", "DER", given=pem(key).encode())
    digest = openssl("dgst", "-sha256", "-binary", given=der)
    assert loaded.fingerprint == "SHA256:" + base64.b64encode(digest).decode()
    assert base64.b64decode(loaded.public) == der


@pytest.mark.skipif(OPENSSL is None, reason="there is no openssl command here")
def test_openssl_reads_the_keys_that_are_made():
    shown = openssl("rsa", "-noout", "-text", given=pair().private_pem.reveal().encode()).decode()
    assert "3072 bit" in shown
    assert pair().private_pem.reveal().startswith("-----BEGIN PRIVATE KEY-----")


def test_another_library_verifies_the_token():
    token = pair().token("MYORG-ACCT", "SOME.USER", now=NOW + 0.9, seconds=600)
    claims = other_jwt.decode(token.reveal(), pair().public_pem)
    subject = "MYORG-ACCT.SOME.USER"
    assert claims == {
        "iss": f"{subject}.{pair().fingerprint}",
        "sub": subject,
        "iat": int(NOW),
        "exp": int(NOW) + 600,
    }
    assert claims.header["alg"] == "RS256"


def test_another_key_doesn_t_verify_the_token():
    token = pair().token("A", "U", now=NOW, seconds=60)
    with pytest.raises(Exception, match="bad_signature"):
        other_jwt.decode(token.reveal(), pair(2).public_pem)


@pytest.mark.parametrize(
    "written",
    [
        lambda text: text,
        lambda text: f"\n  {text}\n\n",
        lambda text: "".join(text.splitlines()[1:-1]),
        lambda text: "\n".join(text.splitlines()[1:-1]),
        lambda text: base64.b64encode(text.encode()).decode(),
        lambda text: text.replace("\n", " "),
        lambda text: text.replace("\n", "\r\n"),
    ],
    ids=[
        "pem",
        "blanks",
        "one-line-without-marks",
        "without-marks",
        "base64-of-pem",
        "spaces-for-lines",
        "crlf",
    ],
)
def test_a_private_key_is_read_however_it_was_pasted(key, written):
    assert keypair.load(Secret(written(pem(key)))).fingerprint == keypair.load(Secret(pem(key))).fingerprint


def test_a_key_with_a_passphrase_is_read_with_it_only(key):
    text = Secret(pem(key, b"canary-of-the-passphrase"))
    loaded = keypair.load(text, Secret("canary-of-the-passphrase"))
    assert loaded.fingerprint == keypair.load(Secret(pem(key))).fingerprint
    assert "ENCRYPTED" not in loaded.private_pem.reveal()
    for wrong in (None, Secret(""), Secret("canary-of-another")):
        with pytest.raises(UnusableKey) as unusable:
            keypair.load(text, wrong)
        assert "canary" not in str(unusable.value)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "no key",
        "-----BEGIN PRIVATE KEY-----",
        "-----BEGIN ",
        "AAAA",
        "ü",
        "{}",
        "-----BEGIN X-----\nAAAA",
    ],
)
def test_an_invalid_private_key_is_reported_and_not_shown(text):
    with pytest.raises(UnusableKey) as unusable:
        keypair.load(Secret(text))
    assert not text or text not in str(unusable.value)
    assert unusable.value.__suppress_context__


def test_keys_that_snowflake_would_refuse_are_refused():
    with pytest.raises(UnusableKey, match="not an RSA key"):
        keypair.load(Secret(pem(ec.generate_private_key(ec.SECP256R1()))))
    with pytest.raises(UnusableKey, match="1024 bits"):
        keypair.load(Secret(pem(rsa.generate_private_key(public_exponent=65537, key_size=1024))))


@pytest.mark.parametrize("damaged", ["e", "d dmp1", "d dmq1", "d iqmp"])
def test_a_damaged_key_with_invalid_signatures_is_refused(key, damaged):
    """OpenSSL repairs damage to a private number with the others."""
    numbers = key.private_numbers()
    parts = {name: getattr(numbers, name) for name in ("p", "q", "d", "dmp1", "dmq1", "iqmp")}
    parts["e"] = numbers.public_numbers.e
    parts |= {name: parts[name] ^ 4 for name in damaged.split()}
    public = rsa.RSAPublicNumbers(parts.pop("e"), numbers.public_numbers.n)
    written = rsa.RSAPrivateNumbers(**parts, public_numbers=public).private_key(
        unsafe_skip_rsa_key_validation=True
    )
    with pytest.raises(UnusableKey, match="damaged"):
        keypair.load(Secret(pem(written)))


def test_a_pair_whose_text_is_of_another_key_is_refused():
    assert keypair.verify_key_pair(pair()) is pair()
    for number, other_number in ((1, 2), (2, 1)):
        with pytest.raises(UnusableKey, match="reads back as another key"):
            keypair.verify_key_pair(keypair.KeyPair(pair(number).private_pem, pair(other_number)._key))


@pytest.mark.parametrize("shown", [{}, {"RSA_PUBLIC_KEY_FP": "null"}, {"RSA_PUBLIC_KEY_2_FP": "SHA256:a"}])
def test_a_slot_that_snowflake_does_not_show_is_not_taken_for_empty(shown):
    with pytest.raises(Refused, match="Snowflake does not show RSA_PUBLIC_KEY"):
        keypair.read_slot_fingerprints(shown)


def test_a_pair_shows_nothing_of_its_private_half():
    token = pair().token("A", "U", now=NOW, seconds=60)
    shown = f"{pair()!r} {pair().private_pem} {token} {[pair()]}"
    assert SHOWN in shown
    assert not re.search(r"PRIVATE KEY|eyJ", shown)


def test_a_pair_is_itself_and_not_its_value():
    text = pair().private_pem
    first, second = keypair.load(text), keypair.load(text)
    assert len({first, second, first}) == 2
    assert repr(first).startswith("<lambdas.snowflake.keypair.KeyPair object at")


def test_an_empty_passphrase_is_none_at_all(key):
    assert keypair.load(Secret(pem(key)), Secret("")).public == keypair.load(Secret(pem(key))).public


def test_what_is_wrong_with_a_key_is_said():
    """2047 bits are one too few, and 2048 are enough: the other tests have such a key."""
    short = rsa.generate_private_key(public_exponent=65537, key_size=2047)
    with pytest.raises(UnusableKey, match="it has 2047 bits, and Snowflake wants 2048 at least"):
        keypair.load(Secret(pem(short)))
    with pytest.raises(UnusableKey, match="it is not a PKCS#8 private key, or its passphrase is wrong"):
        keypair.load(Secret("no key"))


def test_a_key_is_read_from_base64_of_a_text_with_blanks(key):
    for text in (f"\n {pem(key)}\n", pem(key, form=serialization.PrivateFormat.TraditionalOpenSSL)):
        written = base64.b64encode(text.encode()).decode()
        lines = "\n".join(re.findall(".{1,64}", written))
        assert keypair.load(Secret(f"\n{lines}\n")).public == keypair.load(Secret(pem(key))).public


def test_the_public_half_is_the_same_in_each_form():
    body = "".join(pair().public_pem.splitlines()[1:-1])
    assert pair().public == body
    assert serialization.load_pem_public_key(pair().public_pem.encode()).key_size == 3072
    assert pair().public_pem.startswith("-----BEGIN PUBLIC KEY-----\n")


def test_the_slots_of_a_user():
    first, second = keypair.SLOTS
    for slot in keypair.SLOTS:
        assert keypair.SET_SLOT[slot] == f"ALTER USER {{name}} SET {slot}={{key}}"
        assert keypair.UNSET_SLOT[slot] == f"ALTER USER {{name}} UNSET {slot}"
    assert (first, second) == ("RSA_PUBLIC_KEY", "RSA_PUBLIC_KEY_2")


@pytest.mark.parametrize(
    ("shown", "fingerprints", "empty"),
    [
        (("null", ""), ("", ""), 0),
        (("SHA256:a", "null"), ("SHA256:a", ""), 1),
        (("", "SHA256:b"), ("", "SHA256:b"), 0),
        (("SHA256:a", "SHA256:b"), ("SHA256:a", "SHA256:b"), None),
    ],
)
def test_which_slot_is_empty(shown, fingerprints, empty):
    described = {f"{slot}_FP": text for slot, text in zip(keypair.SLOTS, shown, strict=True)}
    slots = keypair.read_slot_fingerprints({**described, "OTHER": "x"})
    assert slots == dict(zip(keypair.SLOTS, fingerprints, strict=True))
    assert keypair.find_empty_slot(slots) == (None if empty is None else keypair.SLOTS[empty])


def test_the_slots_that_are_hidden_are_named():
    with pytest.raises(Refused, match="SNF-UNEXPECTED  Snowflake does not show RSA_PUBLIC_KEY_2 of the user"):
        keypair.read_slot_fingerprints({"RSA_PUBLIC_KEY_FP": "null"})
    with pytest.raises(Refused, match="does not show RSA_PUBLIC_KEY and RSA_PUBLIC_KEY_2 of the user"):
        keypair.read_slot_fingerprints({})


def test_a_sign_that_base64_does_not_have_is_no_part_of_a_key(key):
    body = "".join(pem(key).splitlines()[1:-1])
    for written in ("#" + body, body[:40] + "," + body[40:]):
        with pytest.raises(UnusableKey, match="it is not a PKCS#8 private key"):
            keypair.load(Secret(written))


def test_a_key_may_end_with_a_byte_that_is_a_blank_in_text():
    """It is a key for another algorithm, because those are made faster."""
    form = (serialization.Encoding.DER, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    content = b""
    while not content or content.rstrip() == content:
        content = ec.generate_private_key(ec.SECP256R1()).private_bytes(*form)
    with pytest.raises(UnusableKey, match="it is not an RSA key"):
        keypair.load(Secret(base64.b64encode(content).decode()))


def test_a_key_for_an_algorithm_that_nobody_knows_is_refused():
    form = (serialization.Encoding.DER, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    content = ec.generate_private_key(ec.SECP256R1()).private_bytes(*form)
    known, unknown = bytes.fromhex("2a8648ce3d0201"), bytes.fromhex("2a8648ce3d027f")
    assert known in content
    written = base64.b64encode(content.replace(known, unknown)).decode()
    with pytest.raises(UnusableKey, match="it is not a PKCS#8 private key"):
        keypair.load(Secret(written))
