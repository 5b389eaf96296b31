"""What one step of a rotation has before it: the secret's labelled versions, and which of their keys may go by now.

A key may be revoked once the grace is over since it was replaced. When that was nobody writes down, so it is bounded: the
current version became current when Secrets Manager ended its rotation, and no later than PENDING_LIFE after it was made. An
older version, of a rotation that failed for a while, gets a label with the time before it is made current, and what is said here
counts from there. What was current before the previous version was replaced before that one was.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import attrs

from lambdas import contract
from lambdas.rotation import errors as rotation_errors
from lambdas.rotation.versions import CURRENT, PENDING, PREVIOUS, Described, SecretVersions, Version, marks
from lambdas.shared.errors import Refused

DAY: Final = 86400.0
#: Seconds after which a version is marked before it is made current.
PENDING_LIFE: Final = DAY


@attrs.frozen
class Policy:
    """`keep` keys live between two rotations, one more during one; `grace` is in seconds."""

    keep: int = contract.KEYS_KEPT
    grace: float = contract.GRACE_DAYS * DAY


@attrs.frozen
class Holdings:
    """`token` names the version that is being rotated to; `pending` is None while that has no value."""

    versions: SecretVersions
    described: Described
    token: str
    current: Version
    previous: Version | None
    pending: Version | None
    policy: Policy
    now: Callable[[], float]

    @property
    def labelled(self) -> list[Version]:
        return [version for version in (self.current, self.pending, self.previous) if version]

    @property
    def is_rotating(self) -> bool:
        """Secrets Manager labels the version that it rotates to before it calls the first step."""
        return self.described.labelled(PENDING) not in ("", self.current.id)

    def require_same_labels(self) -> None:
        """Raises Refused where a rotation has begun or ended since this was read."""
        if self.versions.describe().stages != self.described.stages:
            raise Refused(rotation_errors.CHANGED, f"secret {self.described.name}")

    def needs_mark(self, pending: Version) -> bool:
        """It would become current so late that its age no longer tells when."""
        return self.now() > self._known_since(pending) + PENDING_LIFE

    @property
    def previous_may_go(self) -> bool:
        return self.now() >= self._replaced_by(self.current, self.described.last_rotated) + self.policy.grace

    @property
    def older_may_go(self) -> bool:
        """Keys that no label leads to. Before the first rotation nothing was ever replaced."""
        return self.previous is None or self.now() >= self._replaced_by(self.previous, None) + self.policy.grace

    def _replaced_by(self, successor: Version, rotated: float | None) -> float:
        """The latest instant at which `successor` can have become current."""
        return rotated if rotated is not None and rotated >= successor.created else self._known_since(successor) + PENDING_LIFE

    def _known_since(self, version: Version) -> float:
        return max([version.created, *marks(self.described.stages.get(version.id, ()))])


def read(versions: SecretVersions, described: Described, token: str, policy: Policy, now: Callable[[], float]) -> Holdings:
    """`token` is "" where no rotation is meant: then what is pending is whatever has the label. Raises Refused."""
    current = versions.read(described.labelled(CURRENT))
    if current is None:
        raise Refused(rotation_errors.EMPTY, f"secret {described.name} has no current value")
    previous = versions.read(described.labelled(PREVIOUS))
    pending = versions.read(token or described.labelled(PENDING))
    if pending is not None and pending.id == current.id:
        pending = None
    return Holdings(versions, described, token, current, previous, pending, policy, now)
