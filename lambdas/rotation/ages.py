"""How old a secret's keys are, when the next rotation comes and what lives at the vendor: for operators."""

from __future__ import annotations

from typing import Any

import attrs

from lambdas.rotation.holdings import DAY, Holdings
from lambdas.rotation.strategy import LiveKey, Strategy


@attrs.frozen
class Age:
    """`live_place` is where the current key stands: a slot, or its version's label; "" where the vendor doesn't have it."""

    secret: str
    enabled: bool
    age_days: float
    #: Seconds since 1970.
    next_rotation: float | None
    overdue_days: float
    pending_days: float
    live_place: str
    keys: tuple[LiveKey, ...]


def of(held: Holdings, acting: Strategy) -> Age:
    """Raises LakeferryError where the vendor can't be asked."""
    now, described = held.now(), held.described
    keys, current = tuple(acting.live(held)), acting.id_of(held.current)
    return Age(
        secret=described.name,
        enabled=described.enabled,
        age_days=_days(now - held.current.created),
        next_rotation=described.next_rotation,
        overdue_days=_days(now - _due(held)) if described.enabled else 0.0,
        pending_days=_days(now - held.pending.created) if held.pending else 0.0,
        live_place=next((key.place for key in keys if key.id == current), ""),
        keys=keys,
    )


def told(age: Age) -> dict[str, Any]:
    """As plain data, without a secret."""
    return attrs.asdict(age)


def _due(held: Holdings) -> float:
    """Secrets Manager leaves the date in the past where rotation keeps failing."""
    if held.described.next_rotation is not None:
        return held.described.next_rotation
    return held.current.created + held.described.every if held.described.every else held.now()


def _days(seconds: float) -> float:
    return round(max(0.0, seconds) / DAY, 3)
