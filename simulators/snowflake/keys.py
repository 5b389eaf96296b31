"""Users' public keys, as SQL statements set them, and their fingerprints."""

from __future__ import annotations

import base64
import binascii
import hashlib

from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePublicKey
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey
from cryptography.hazmat.primitives.serialization import load_der_public_key

from simulators.snowflake.errors import SqlError
from simulators.snowflake.model import KeySlot

_MIN_RSA_BITS = 2048


def read(text: str, now: float) -> KeySlot:
    """Return the key slot for a public key in PEM without its header and footer lines. Raises SqlError."""
    der = _der(text)
    public_key(der)
    return KeySlot("".join(text.split()), fingerprint(der), now)


def fingerprint(der: bytes) -> str:
    return "SHA256:" + base64.b64encode(hashlib.sha256(der).digest()).decode()


def of_slot(slot: KeySlot) -> RSAPublicKey | EllipticCurvePublicKey:
    return public_key(_der(slot.text))


def public_key(der: bytes) -> RSAPublicKey | EllipticCurvePublicKey:
    try:
        key = load_der_public_key(der)
    except (ValueError, UnsupportedAlgorithm):
        raise _rejected() from None
    if isinstance(key, RSAPublicKey) and key.key_size >= _MIN_RSA_BITS:
        return key
    if isinstance(key, EllipticCurvePublicKey):
        return key
    raise _rejected()


def _der(text: str) -> bytes:
    try:
        return base64.b64decode("".join(text.split()), validate=True)
    except (binascii.Error, ValueError):
        raise _rejected() from None


def _rejected() -> SqlError:
    return SqlError(
        "003544", "42601", "New public key rejected by current policy. Reason: 'Invalid public key'"
    )
