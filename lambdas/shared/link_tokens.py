"""Tokens of links that open files: JSON Web Tokens with HS256.

A token says what it opens, and carries no secret: whoever has it can read that, and open the files. The keys
are in one secret: the one that signs, and those it replaced, which verify until their last token expires.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any, Final

import attrs
import jwt

from lambdas import contract
from lambdas.shared import errors
from lambdas.shared.errors import LakeferryError
from lambdas.shared.redaction import Secret
from lambdas.shared.secrets import Fields, reveal_fields

DAY: Final = 86400
#: The second is a JSON list of keys with the time until which they verify.
SIGNING_KEY: Final = contract.LINK_KEY_FIELD
REPLACED_KEYS: Final = contract.REPLACED_KEYS_FIELD
_ALGORITHM: Final = "HS256"
#: 32 bytes are the least that RFC 7518, section 3.2, allows for HS256.
_SHORTEST_KEY: Final = 32
#: A token of this module has about 400 characters.
_LONGEST_TOKEN: Final = 2000
_CLAIMS: Final = ("aud", "exp", "iat", "sub", "export", "window", "generation")

#: Why a link is refused. The page says none of it.
MALFORMED: Final = "malformed"
UNKNOWN_KEY: Final = "unknown key"
FORGED: Final = "forged"
EXPIRED: Final = "expired"
NOT_RECIPIENT: Final = "not a recipient"
REVOKED: Final = "revoked"
USED_UP: Final = "used up"
GONE: Final = "gone"
REASONS: Final = (MALFORMED, UNKNOWN_KEY, FORGED, EXPIRED, NOT_RECIPIENT, REVOKED, USED_UP, GONE)


class BadLink(Exception):
    """The link opens nothing. `reason` is one of REASONS; `link` is what it opened, if that is proven."""

    def __init__(self, reason: str, link: Link | None = None) -> None:
        super().__init__(reason)
        self.reason = reason
        self.link = link


@attrs.frozen
class Link:
    """One generation of one window, for one recipient."""

    export: str
    window: str
    generation: int
    recipient: str

    @property
    def name(self) -> str:
        """Return what no other link has. Each mail about this generation to this recipient has the same."""
        return f"{self.export}/{self.window}/{self.generation}-{self.recipient}"


@attrs.frozen
class SignedLink:
    """`signed` and `expires` are in seconds since 1970."""

    link: Link
    signed: int
    expires: int


@attrs.frozen
class ReplacedKey:
    """`until` is in seconds since 1970."""

    key: Secret
    until: int


@attrs.frozen
class KeyRing:
    """The keys of one deployment, whose tokens have this audience."""

    audience: str
    current: Secret
    replaced: tuple[ReplacedKey, ...] = ()

    def sign(self, link: Link, *, now: float, days: int) -> str:
        claims = {
            "aud": self.audience,
            "iat": int(now),
            "exp": int(now) + days * DAY,
            "sub": link.recipient,
            "export": link.export,
            "window": link.window,
            "generation": link.generation,
        }
        return jwt.encode(
            claims, self.current.reveal(), algorithm=_ALGORITHM, headers={"kid": identify_key(self.current)}
        )

    def verify(self, token: str, *, now: float) -> SignedLink:
        """Return what the token says. Raises BadLink."""
        key = self._find_key(_read_key_id(token), now)
        try:
            # The clock is the caller's, so PyJWT doesn't compare times.
            claims = jwt.decode(
                token,
                key.reveal(),
                algorithms=[_ALGORITHM],
                audience=self.audience,
                options={"require": list(_CLAIMS), "verify_exp": False, "verify_iat": False},
            )
        except jwt.InvalidSignatureError:
            raise BadLink(FORGED) from None
        except jwt.InvalidTokenError:
            raise BadLink(MALFORMED) from None
        signed = _read_claims(claims)
        if now >= signed.expires:
            raise BadLink(EXPIRED, signed.link)
        return signed

    def _find_key(self, key_id: str, now: float) -> Secret:
        valid = [self.current, *(replaced.key for replaced in self.replaced if now < replaced.until)]
        for key in valid:
            if identify_key(key) == key_id:
                return key
        raise BadLink(UNKNOWN_KEY)


def parse_keys(fields: Fields, audience: str) -> KeyRing:
    """Return the keys of a secret's value. Raises LakeferryError if it has none."""
    texts = reveal_fields(fields)
    key = texts.get(SIGNING_KEY, "")
    if len(key) < _SHORTEST_KEY:
        raise LakeferryError(errors.SECRET_SHAPE, f"the secret of links has no {SIGNING_KEY}")
    return KeyRing(audience, Secret(key), parse_replaced(texts.get(REPLACED_KEYS, "")))


def parse_replaced(text: str) -> tuple[ReplacedKey, ...]:
    """Return the replaced keys of a secret's field. Raises LakeferryError."""
    try:
        return tuple(
            ReplacedKey(Secret(entry["key"]), int(entry["until"])) for entry in json.loads(text or "[]")
        )
    except (ValueError, KeyError, TypeError):
        message = f"{REPLACED_KEYS} of the secret of links is not a list of keys"
        raise LakeferryError(errors.SECRET_SHAPE, message) from None


def write_replaced(keys: tuple[ReplacedKey, ...]) -> str:
    return json.dumps([{"key": replaced.key.reveal(), "until": replaced.until} for replaced in keys])


def identify_key(key: Secret) -> str:
    """Return the id of a key, which isn't secret: the key has more bits than anybody can try."""
    return hashlib.sha256(f"lakeferry link key {key.reveal()}".encode()).hexdigest()[:16]


def _read_key_id(token: str) -> str:
    """Return the key's id in the header, which nothing proves yet. Raises BadLink."""
    if len(token) > _LONGEST_TOKEN or not token.isascii():
        raise BadLink(MALFORMED)
    try:
        header = jwt.get_unverified_header(token)
    except (ValueError, jwt.InvalidTokenError):
        raise BadLink(MALFORMED) from None
    key_id = header.get("kid")
    if not isinstance(key_id, str):
        raise BadLink(MALFORMED)
    return key_id


def _read_claims(claims: Mapping[str, Any]) -> SignedLink:
    """Raises BadLink unless the claims are those that `sign` writes."""
    texts = [claims["export"], claims["window"], claims["sub"]]
    numbers = [claims["generation"], claims["iat"], claims["exp"]]
    if not all(type(text) is str for text in texts) or not all(type(number) is int for number in numbers):
        raise BadLink(MALFORMED)
    link = Link(claims["export"], claims["window"], claims["generation"], claims["sub"])
    return SignedLink(link, claims["iat"], claims["exp"])
