"""How old a secret's keys are, when the next rotation comes and what lives at the vendor: for the daily watch and operators."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import attrs

from lambdas.rotation.holdings import DAY, Holdings
from lambdas.rotation.strategy import LiveKey, Strategy

#: Metric names and what each counts; all in days but the first.
METRICS: Final[Mapping[str, str]] = {
    "LiveKeys": "keys of ours at the vendor",
    "KeyAgeDays": "age of the value that readers get",
    "RotationOverdueDays": "days since a rotation was due, 0 where none is",
    "RotationPendingDays": "days for which a rotation has been under way, 0 where none is",
}


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


def metrics(age: Age) -> dict[str, float]:
    """By the names of METRICS; the secret's name is their dimension."""
    return {
        "LiveKeys": float(len(age.keys)),
        "KeyAgeDays": age.age_days,
        "RotationOverdueDays": age.overdue_days,
        "RotationPendingDays": age.pending_days,
    }


def told(age: Age) -> dict[str, Any]:
    """As plain data, without a secret."""
    return attrs.asdict(age) | {"metrics": metrics(age)}


def _due(held: Holdings) -> float:
    """Secrets Manager leaves the date in the past where rotation keeps failing."""
    if held.described.next_rotation is not None:
        return held.described.next_rotation
    return held.current.created + held.described.every if held.described.every else held.now()


def _days(seconds: float) -> float:
    return round(max(0.0, seconds) / DAY, 3)
