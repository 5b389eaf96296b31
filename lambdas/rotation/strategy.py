"""What rotation does with the credentials of one vendor."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, Protocol

import attrs

from lambdas.rotation import errors as rotation_errors
from lambdas.rotation.versions import RotationContext, Version
from lambdas.shared.errors import Refused
from lambdas.shared.link_tokens import SIGNING_KEY
from lambdas.shared.secrets import KEY_ID, KEY_SECRET, Fields

CONFLUENT: Final = "confluent"
SNOWFLAKE: Final = "snowflake"
LINKS: Final = "links"
#: The fields that identify the type of a credential.
IDENTIFYING_FIELDS: Final[Mapping[str, tuple[str, ...]]] = {
    CONFLUENT: (KEY_ID, KEY_SECRET),
    SNOWFLAKE: ("account", "user", "privateKey"),
    LINKS: (SIGNING_KEY,),
}


@attrs.frozen
class LiveKey:
    """A managed key at the vendor.

    `label` is its slot or its version's label; `since` is a time as the vendor writes it.
    """

    id: str
    label: str
    since: str


@attrs.frozen
class Replaced:
    """Ids of keys at the vendor that are neither current nor pending."""

    managed: list[str]
    unmanaged: list[str]


class Strategy(Protocol):
    """The credentials of one vendor.

    Every method may be called twice, and the answer of any call may be lost.
    """

    def get_id(self, version: Version) -> str:
        """Return the id that the credential has at the vendor. It isn't secret."""

    def create_credential(self, context: RotationContext) -> Fields:
        """Return the fields of a new credential. Raises Refused, and changes nothing, if no slot is free."""

    def discard(self, context: RotationContext, fields: Fields) -> None:
        """Undo `create_credential`, because its fields could not be stored or will never become current."""

    def register(self, context: RotationContext, pending: Version) -> None:
        """Make the vendor accept the pending credential."""

    def authenticates(self, version: Version) -> bool:
        """Return whether the vendor accepts the credential now."""

    def is_there(self, context: RotationContext, pending: Version) -> bool:
        """Return whether the vendor has the pending credential, even if it doesn't accept it yet."""

    def is_unusable(self, pending: Version) -> bool:
        """Return whether the pending credential can never become valid."""

    def is_outdated(self, context: RotationContext, pending: Version) -> bool:
        """Return whether fields of the current version other than its key changed after `create_credential`
        copied them.
        """

    def list_replaced(self, context: RotationContext, *, include_in_grace: bool) -> Replaced:
        """Return the keys that may be revoked: all replaced keys if `include_in_grace`, else only those whose
        grace period is over.
        """

    def revoke(self, context: RotationContext, keys: Sequence[str]) -> None:
        """Remove these keys. It is no error if a key is gone."""

    def list_live_keys(self, context: RotationContext) -> list[LiveKey]: ...


def detect_credential_type(version: Version) -> str:
    """Return the type of the credential. Raises Refused if the fields don't identify one."""
    for kind, names in IDENTIFYING_FIELDS.items():
        if all(version.fields.get(name) for name in names):
            return kind
    expected_fields = " or ".join(", ".join(names) for names in IDENTIFYING_FIELDS.values())
    raise Refused(rotation_errors.FIELDS, f"version {version.id} has neither {expected_fields}")
