"""The two slots for public keys that a Snowflake user has. A key in a slot may be in use, so only an empty slot is written here;
rotation knows which keys it has replaced, and may write over those.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

SLOTS: Final = ("RSA_PUBLIC_KEY", "RSA_PUBLIC_KEY_2")
SET: Final = {
    "RSA_PUBLIC_KEY": "ALTER USER {name} SET RSA_PUBLIC_KEY={key}",
    "RSA_PUBLIC_KEY_2": "ALTER USER {name} SET RSA_PUBLIC_KEY_2={key}",
}
UNSET: Final = {
    "RSA_PUBLIC_KEY": "ALTER USER {name} UNSET RSA_PUBLIC_KEY",
    "RSA_PUBLIC_KEY_2": "ALTER USER {name} UNSET RSA_PUBLIC_KEY_2",
}
_EMPTY: Final = ("", "null")


def fingerprints(described: Mapping[str, str]) -> dict[str, str]:
    """By slot, from what DESC USER says; "" where the slot is empty."""
    found = {slot: described.get(f"{slot}_FP", "") for slot in SLOTS}
    return {slot: "" if text in _EMPTY else text for slot, text in found.items()}


def empty(slots: Mapping[str, str]) -> str | None:
    return next((slot for slot, fingerprint in slots.items() if not fingerprint), None)
