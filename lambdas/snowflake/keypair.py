"""Key pairs: how they are generated, loaded, identified and used to sign logins, and the two slots that a
user has for keys.

A key in a slot may be in use, so a deployment sets only empty slots. Rotation knows which keys it has
replaced, and may overwrite those.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Mapping
from functools import cached_property
from typing import Final

import attrs
import jwt
from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import padding, rsa

from lambdas.shared.errors import Refused
from lambdas.shared.redaction import Secret
from lambdas.snowflake import errors as snowflake_errors

BITS: Final = 3072
_FEWEST_BITS: Final = 2048
_PEM: Final = serialization.Encoding.PEM
_DER: Final = serialization.Encoding.DER
_PEM_START: Final = "-----BEGIN "


class UnusableKey(ValueError):
    """A private key can't be used. The message contains no part of the key."""


@attrs.define(slots=False, eq=False, repr=False)  # for `cached_property`
class KeyPair:
    """An RSA key pair. `private_pem` is PKCS#8, without a passphrase."""

    private_pem: Secret
    _key: rsa.RSAPrivateKey

    @cached_property
    def public(self) -> str:
        """Return the public key as Snowflake expects it: Base64, without the first and last line of PEM."""
        return base64.b64encode(self._public_der).decode()

    @cached_property
    def fingerprint(self) -> str:
        """Return the fingerprint as DESC USER shows it: `SHA256:` and the Base64 hash of the public key in
        DER.
        """
        return "SHA256:" + base64.b64encode(hashlib.sha256(self._public_der).digest()).decode()

    @property
    def public_pem(self) -> str:
        return (
            self._key.public_key()
            .public_bytes(_PEM, serialization.PublicFormat.SubjectPublicKeyInfo)
            .decode()
        )

    def token(self, account: str, user: str, *, now: float, seconds: int) -> Secret:
        """Return a JWT that is valid for `seconds`. `account` and `user` are written as in its claims."""
        subject = f"{account}.{user}"
        claims = {
            "iss": f"{subject}.{self.fingerprint}",
            "sub": subject,
            "iat": int(now),
            "exp": int(now) + seconds,
        }
        return Secret(jwt.encode(claims, self._key, algorithm="RS256"))

    @cached_property
    def _public_der(self) -> bytes:
        return self._key.public_key().public_bytes(_DER, serialization.PublicFormat.SubjectPublicKeyInfo)


def make() -> KeyPair:
    return _pair(rsa.generate_private_key(public_exponent=65537, key_size=BITS))


def load(text: Secret, passphrase: Secret | None = None) -> KeyPair:
    """Load a PKCS#8 key: PEM, PEM without its first and last line, or Base64 of PEM. Raises UnusableKey."""
    password = passphrase.reveal().encode() if passphrase else None
    try:
        content = _decode_content(text.reveal())
        read = (
            serialization.load_pem_private_key
            if content.startswith(_PEM_START.encode())
            else serialization.load_der_private_key
        )
        # The library's validation tests the primes, which takes 150 ms of CPU time, or seconds in a small
        # Lambda function.
        key = read(content, password, unsafe_skip_rsa_key_validation=True)
    except (ValueError, TypeError, UnsupportedAlgorithm):
        raise UnusableKey("it is not a PKCS#8 private key, or its passphrase is wrong") from None
    if not isinstance(key, rsa.RSAPrivateKey):
        raise UnusableKey("it is not an RSA key")
    if key.key_size < _FEWEST_BITS:
        raise UnusableKey(f"it has {key.key_size} bits, and Snowflake wants {_FEWEST_BITS} at least")
    _check_signature(key)
    return _pair(key)


def _check_signature(key: rsa.RSAPrivateKey) -> None:
    """Raise UnusableKey for a damaged key, whose public key doesn't verify a signature of its private key."""
    try:
        signature = key.sign(b"", padding.PKCS1v15(), hashes.SHA256())
        key.public_key().verify(signature, b"", padding.PKCS1v15(), hashes.SHA256())
    except (ValueError, InvalidSignature):
        raise UnusableKey("it is damaged: its private and public parts don't match") from None


def _decode_content(text: str) -> bytes:
    """Return the key as PEM or DER. The line breaks of PEM may be missing, as after pasting."""
    bare = text.strip()
    if not bare.startswith(_PEM_START):
        decoded = base64.b64decode("".join(bare.split()), validate=True)
        return decoded.strip() if decoded.lstrip().startswith(_PEM_START.encode()) else decoded
    head, _, after = bare.removeprefix(_PEM_START).partition("-----")
    body, _, _ = after.partition("-----END ")
    lines = [f"{_PEM_START}{head}-----", *body.split(), f"-----END {head}-----", ""]
    return "\n".join(lines).encode()


def _pair(key: rsa.RSAPrivateKey) -> KeyPair:
    pem = key.private_bytes(_PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    return KeyPair(Secret(pem.decode()), key)


SLOTS: Final = ("RSA_PUBLIC_KEY", "RSA_PUBLIC_KEY_2")
SET_SLOT: Final = {
    "RSA_PUBLIC_KEY": "ALTER USER {name} SET RSA_PUBLIC_KEY={key}",
    "RSA_PUBLIC_KEY_2": "ALTER USER {name} SET RSA_PUBLIC_KEY_2={key}",
}
UNSET_SLOT: Final = {
    "RSA_PUBLIC_KEY": "ALTER USER {name} UNSET RSA_PUBLIC_KEY",
    "RSA_PUBLIC_KEY_2": "ALTER USER {name} UNSET RSA_PUBLIC_KEY_2",
}
_EMPTY: Final = ("", "null")


def read_slot_fingerprints(described: Mapping[str, str]) -> dict[str, str]:
    """Return the fingerprints by slot, from DESC USER; "" for an empty slot.

    Raises Refused if Snowflake doesn't show a slot: if it were taken for empty, a key in use could be
    overwritten.
    """
    if hidden := [slot for slot in SLOTS if f"{slot}_FP" not in described]:
        raise Refused(
            snowflake_errors.UNEXPECTED, f"Snowflake does not show {' and '.join(hidden)} of the user"
        )
    fingerprints = {}
    for slot in SLOTS:
        text = described[f"{slot}_FP"]
        fingerprints[slot] = "" if text in _EMPTY else text
    return fingerprints


def find_empty_slot(slots: Mapping[str, str]) -> str | None:
    return next((slot for slot, fingerprint in slots.items() if not fingerprint), None)


def verify_key_pair(pair: KeyPair) -> KeyPair:
    """Return `pair`. Raises UnusableKey if its text can't be loaded, or loads as another key."""
    if load(pair.private_pem).fingerprint != pair.fingerprint:
        raise UnusableKey("it reads back as another key")
    return pair
