"""What rotation asks of a credential's vendor, and which strategy a secret's fields call for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, Protocol

import attrs

from lambdas.rotation import errors as rotation_errors
from lambdas.rotation.holdings import Holdings
from lambdas.rotation.versions import Version
from lambdas.shared.errors import Refused
from lambdas.shared.secrets import KEY_ID, KEY_SECRET

CONFLUENT: Final = "confluent"
SNOWFLAKE: Final = "snowflake"
#: The fields by which a secret is known.
KNOWN_BY: Final[Mapping[str, tuple[str, ...]]] = {
    CONFLUENT: (KEY_ID, KEY_SECRET),
    SNOWFLAKE: ("account", "user", "privateKey"),
}


@attrs.frozen
class LiveKey:
    """A key of ours at the vendor. `place` is where it stands there, `since` as the vendor writes it."""

    id: str
    place: str
    since: str


@attrs.frozen
class Replaced:
    """Ids of keys at the vendor that are neither current nor pending."""

    ours: list[str]
    foreign: list[str]


class Strategy(Protocol):
    """Every verb may be called twice, and each call may be the one whose answer got lost."""

    def id_of(self, version: Version) -> str:
        """The credential as the vendor calls it: what may be shown of it."""

    def fresh(self, held: Holdings) -> dict[str, str]:
        """The fields of a new credential. Raises Refused, with nothing changed, where there is no room for one."""

    def abandon(self, held: Holdings, fields: Mapping[str, str]) -> None:
        """Undoes `fresh`: its fields could not be stored, or will never be current."""

    def install(self, held: Holdings, pending: Version) -> None:
        """Makes the vendor accept what is pending."""

    def works(self, version: Version) -> bool:
        """Whether the vendor accepts the credential now."""

    def is_there(self, held: Holdings, pending: Version) -> bool:
        """Whether the vendor has what is pending, accepted or not yet."""

    def is_spoiled(self, pending: Version) -> bool:
        """Whether nothing can come of what is pending."""

    def is_outdated(self, held: Holdings, pending: Version) -> bool:
        """Whether the current version has got other fields since `fresh` copied them, its key aside."""

    def replaced(self, held: Holdings, *, in_grace: bool) -> Replaced:
        """The keys that may be revoked: all that were replaced, or only those whose grace is over."""

    def revoke(self, held: Holdings, keys: Sequence[str]) -> None:
        """Removes these keys. One that is gone already is no error."""

    def live(self, held: Holdings) -> list[LiveKey]: ...


def kind_of(version: Version) -> str:
    """Raises Refused where the fields are of no credential that rotation knows."""
    for kind, names in KNOWN_BY.items():
        if all(version.text(name) for name in names):
            return kind
    known = " or ".join(", ".join(names) for names in KNOWN_BY.values())
    raise Refused(rotation_errors.FIELDS, f"version {version.id} has neither {known}")
