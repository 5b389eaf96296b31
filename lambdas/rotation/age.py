"""The ages of a secret's keys, and whether its rotation is overdue."""

from __future__ import annotations

import attrs

from lambdas.rotation.strategy import LiveKey, Strategy
from lambdas.rotation.versions import DAY, RotationContext


@attrs.frozen
class Age:
    """The ages of a secret and its keys.

    `current_label` is the current key's slot or its version's staging label; "" if the vendor doesn't have
    the key.
    """

    secret: str
    enabled: bool
    age_days: float
    #: Seconds since 1970.
    next_rotation: float | None
    overdue_days: float
    pending_days: float
    current_label: str
    keys: tuple[LiveKey, ...]


def measure_age(context: RotationContext, strategy: Strategy) -> Age:
    """Return the ages. Raises LakeferryError if the vendor can't be called."""
    now = context.now()
    described = context.described
    keys = tuple(strategy.list_live_keys(context))
    current_id = strategy.get_id(context.current)
    labels = [key.label for key in keys if key.id == current_id]
    current_label = labels[0] if labels else ""
    overdue_days = _to_days(now - _find_due_time(context)) if described.enabled else 0.0
    pending_days = _to_days(now - context.pending.created) if context.pending else 0.0
    return Age(
        secret=described.name,
        enabled=described.enabled,
        age_days=_to_days(now - context.current.created),
        next_rotation=described.next_rotation,
        overdue_days=overdue_days,
        pending_days=pending_days,
        current_label=current_label,
        keys=keys,
    )


def _find_due_time(context: RotationContext) -> float:
    """Return the time when the next rotation is due.

    While rotation fails, Secrets Manager's date remains in the past.
    """
    described = context.described
    if described.next_rotation is not None:
        return described.next_rotation
    if described.rotation_interval:
        return context.current.created + described.rotation_interval
    return context.now()


def _to_days(seconds: float) -> float:
    return round(max(0.0, seconds) / DAY, 3)
