"""Whether a new key pair is what its PEM says, before anything depends on it."""

from __future__ import annotations

import jwt
from cryptography.hazmat.primitives import serialization

from lambdas.snowflake import keypair
from lambdas.snowflake.keypair import KeyPair, UnusableKey


def require_sound(pair: KeyPair) -> KeyPair:
    """`pair` itself. Raises UnusableKey where what is stored couldn't sign for what the user's slot gets."""
    stored = keypair.load(pair.private_pem)
    token = stored.token("ACCOUNT", "USER", now=0, seconds=60).reveal()
    public = serialization.load_pem_public_key(pair.public_pem.encode())
    try:
        jwt.decode(token, public, algorithms=["RS256"], options={"verify_exp": False})  # type: ignore[arg-type]
    except jwt.InvalidTokenError:
        raise UnusableKey("its private and its public part don't fit each other") from None
    if stored.fingerprint != pair.fingerprint:
        raise UnusableKey("it reads back as another key")
    return pair
