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
    der = _decode_der(text)
    read_public_key(der)
    return KeySlot("".join(text.split()), compute_fingerprint(der), now)


def compute_fingerprint(der: bytes) -> str:
    return "SHA256:" + base64.b64encode(hashlib.sha256(der).digest()).decode()


def read_key_of_slot(slot: KeySlot) -> RSAPublicKey | EllipticCurvePublicKey:
    return read_public_key(_decode_der(slot.text))


def read_public_key(der: bytes) -> RSAPublicKey | EllipticCurvePublicKey:
    try:
        key = load_der_public_key(der)
    except (ValueError, UnsupportedAlgorithm):
        raise _build_rejection() from None
    if isinstance(key, RSAPublicKey) and key.key_size >= _MIN_RSA_BITS:
        return key
    if isinstance(key, EllipticCurvePublicKey):
        return key
    raise _build_rejection()


def _decode_der(text: str) -> bytes:
    try:
        return base64.b64decode("".join(text.split()), validate=True)
    except (binascii.Error, ValueError):
        raise _build_rejection() from None


def _build_rejection() -> SqlError:
    return SqlError(
        "003544", "42601", "New public key rejected by current policy. Reason: 'Invalid public key'"
    )
