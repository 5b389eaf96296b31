"""Who calls: HTTP Basic with an API key, of the kind that the service takes."""

from __future__ import annotations

import base64
import binascii
import hmac
from typing import TYPE_CHECKING

from simulators.confluent.calls import Api
from simulators.confluent.refusals import Refusal

if TYPE_CHECKING:
    from simulators.confluent.kinds.api_keys import ApiKey
    from simulators.confluent.world import World


def authenticate(world: World, api: Api, header: str) -> ApiKey:
    """Raises Refusal, with the same words for every reason."""
    key = find_key(world, *_basic(header))
    if key is None or key.kind is not api.key:
        raise Refusal(401, "invalid API key: make sure you're using the correct API key and secret", code="unauthorized")
    return key


def find_key(world: World, name: str, secret: str) -> ApiKey | None:
    """The key, where name and secret fit and it works by now."""
    key = world.api_keys.get(name)
    if key is None or not hmac.compare_digest(key.secret.encode(), secret.encode()) or key.usable > world.clock.now():
        return None
    return key


def _basic(header: str) -> tuple[str, str]:
    scheme, _, encoded = header.partition(" ")
    try:
        decoded = base64.b64decode(encoded, validate=True).decode() if scheme.lower() == "basic" else ""
    except (binascii.Error, UnicodeDecodeError):
        decoded = ""
    name, _, secret = decoded.partition(":")
    return name, secret
