"""Key-pair authentication: verifies a JWT with the user's two public keys."""

from __future__ import annotations

import random
import uuid
from typing import Any, Final

import jwt

from simulators.snowflake import keys
from simulators.snowflake.account import Account
from simulators.snowflake.errors import CallRefused
from simulators.snowflake.model import User
from simulators.snowflake.results import format_time

#: The most seconds for which a token is valid after it was issued, even if it expires later.
_LIFE: Final = 3600
#: The most seconds by which a client's clock may be ahead.
_AHEAD: Final = 60
#: Times in claims are in seconds, but larger values than this one are in milliseconds.
_MILLISECONDS: Final = 1e11
_ALGORITHMS: Final = ("RS256", "RS384", "RS512", "ES256", "ES384", "ES512")
#: The message in public reports: snowflakedb/terraform-provider-snowflake #4076.
_NOT_ALLOWED: Final = (
    "Incoming request with IP/Token 203.0.113.7 is not allowed to access Snowflake. Contact your account "
    "administrator. For more information about this error, go to "
    "https://community.snowflake.com/s/ip-xxxxxxxxxxxx-is-not-allowed-to-access."
)
_UNVERIFIED: Final[Any] = {
    name: False for name in ("verify_signature", "verify_exp", "verify_iat", "verify_nbf", "verify_aud")
}


class _Invalid(Exception):
    """The token is invalid. The message is Snowflake's code for the reason."""


def authenticate(account: Account, authorization: str, token_type: str) -> User:
    """Return the user of a call. Raises CallRefused.

    For an invalid token, the client only gets an id, with which an administrator can look up the reason.
    """
    if token_type not in ("", "KEYPAIR_JWT"):
        raise CallRefused(401, "390101", f"not simulated: tokens of type {token_type}")
    scheme, _, token = authorization.partition(" ")
    if scheme != "Bearer" or not token:
        raise CallRefused(401, "390103", "Authorization header is missing, or has no bearer token.")
    claims: dict[str, Any] = {}
    try:
        claims = _read_claims(token)
        return _find_user(account, token, claims)
    except _Invalid as invalid:
        raise _record_refusal(account, str(invalid), str(claims.get("sub", ""))) from None


def _read_claims(token: str) -> dict[str, Any]:
    try:
        return dict(jwt.decode(token, options=_UNVERIFIED))
    except jwt.PyJWTError:
        raise _Invalid("JWT_TOKEN_INVALID") from None


def _find_user(account: Account, token: str, claims: dict[str, Any]) -> User:
    subject = str(claims.get("sub", ""))
    issuer = str(claims.get("iss", ""))
    account_name, _, login = subject.partition(".")
    if account_name not in (account.identifier, account.name, account.locator):
        raise _Invalid("JWT_TOKEN_INVALID_ACCOUNT_IN_ISSUER")
    if not issuer.startswith(f"{subject}.SHA256:"):
        raise _Invalid("JWT_TOKEN_INVALID_SUBJECT_ISSUER_MISMATCH")
    user = next((user for user in account.all(User) if user.login_name == login), None)
    if user is None:
        raise _Invalid("JWT_TOKEN_INVALID_USER_IN_ISSUER")
    fingerprint = issuer.removeprefix(f"{subject}.")
    slot = next((slot for slot in user.keys.values() if slot.fingerprint == fingerprint), None)
    if slot is None:
        raise _Invalid("JWT_TOKEN_INVALID_PUBLIC_KEY_FINGERPRINT_MISMATCH")
    try:
        jwt.decode(
            token,
            keys.read_key_of_slot(slot),
            algorithms=_ALGORITHMS,
            options=_UNVERIFIED | {"verify_signature": True},
        )
    except (jwt.PyJWTError, TypeError, ValueError):
        raise _Invalid("JWT_TOKEN_INVALID_SIGNATURE") from None
    _require_fresh(claims, account.clock.now())
    if account.behavior.account_policy and not user.network_policy:
        raise CallRefused(403, "390422", _NOT_ALLOWED)
    if user.disabled:
        raise CallRefused(401, "390101", "User access disabled. Contact your local system administrator.")
    return user


def _require_fresh(claims: dict[str, Any], now: float) -> None:
    issued = _read_time(claims, "iat")
    expires = _read_time(claims, "exp")
    if issued > now + _AHEAD:
        raise _Invalid("JWT_TOKEN_INVALID_ISSUE_TIME")
    if now >= min(expires, issued + _LIFE):
        raise _Invalid("JWT_TOKEN_EXPIRED")


def _read_time(claims: dict[str, Any], name: str) -> float:
    value = claims.get(name)
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise _Invalid("JWT_TOKEN_INVALID")
    return value / 1000 if value > _MILLISECONDS else float(value)


def _record_refusal(account: Account, reason: str, subject: str) -> CallRefused:
    failure_id = str(uuid.UUID(int=random.getrandbits(128), version=4))
    account.failed_logins[failure_id] = {
        "clientType": "SQL_API",
        "username": subject.partition(".")[2] or None,
        "errorCode": reason,
        "timestamp": format_time(account.clock.now()),
    }
    return CallRefused(401, "390144", f"JWT token is invalid. [{failure_id}]")
