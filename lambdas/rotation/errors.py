"""Errors of rotation: codes and remedies."""

from __future__ import annotations

from typing import Final

from lambdas.shared.errors import ErrorRow

_REVOKE: Final = "docs/how-to/rotate.md"

EVENT: Final = ErrorRow("ROT-EVENT", f"See {_REVOKE} for the operations that exist; nothing was done.")
NOT_ENABLED: Final = ErrorRow("ROT-NOT-ENABLED", "Deploy again, which configures it; nothing was done.")
UNKNOWN_TOKEN: Final = ErrorRow("ROT-UNKNOWN-TOKEN", "Nothing; start a new rotation if one is due.")
NOT_PENDING: Final = ErrorRow("ROT-NOT-PENDING", "Nothing; the other rotation goes on.")
DELETED: Final = ErrorRow(
    "ROT-DELETED", "Restore the secret if it is still needed, and rotate again; no key was created."
)
EMPTY: Final = ErrorRow("ROT-EMPTY", "Fill the secret by deploying, or rotate again from the first step.")
FIELDS: Final = ErrorRow("ROT-FIELDS", "Compare its fields with docs/reference/secrets.md.")
IN_GRACE: Final = ErrorRow(
    "ROT-IN-GRACE",
    f"Rotate again when the grace is over; if a key has leaked, revoke the replaced one first: {_REVOKE}.",
)
FOREIGN_KEY: Final = ErrorRow(
    "ROT-FOREIGN-KEY",
    "Find out who set the key; UNSET the slot above if nobody needs it, and rotate again. Nothing was "
    "overwritten.",
)
LOCKED_OUT: Final = ErrorRow(
    "ROT-LOCKED-OUT",
    "As an administrator, set the public key that the secret holds (field publicKey) on the user, and "
    "rotate again.",
)
LIMIT: Final = ErrorRow(
    "ROT-LIMIT",
    f"Rotate again when the grace is over, or revoke what isn't used any more: {_REVOKE}. No key was "
    "created.",
)
NOT_PROVEN: Final = ErrorRow(
    "ROT-NOT-PROVEN",
    "Nothing: Secrets Manager tries again, and the current key stays as it is. If it lasts for hours, see "
    "the vendor's status.",
)
NOT_THERE: Final = ErrorRow(
    "ROT-NOT-THERE", "Nothing: the next try sets it or starts again. The current key stays as it is."
)
DISCARDED: Final = ErrorRow(
    "ROT-DISCARDED", "Rotate again, or wait for the schedule; the current key stays as it is."
)
NOT_STORED: Final = ErrorRow(
    "ROT-NOT-STORED", "Look at AWS's own code above. A key that was created for it is deleted again."
)
NOT_MOVED: Final = ErrorRow("ROT-NOT-MOVED", "Nothing: Secrets Manager tries again.")
BAD_KEY: Final = ErrorRow(
    "ROT-BAD-KEY",
    "Store an RSA key of at least 2048 bits as PKCS#8; with a passphrase, in the field passphrase.",
)
NOTHING_LEFT: Final = ErrorRow(
    "ROT-NOTHING-LEFT", "Rotate first; when the new key is current, revoke the others. Nothing was revoked."
)
CHANGED: Final = ErrorRow(
    "ROT-CHANGED", "Wait until the rotation has ended, and revoke again. Nothing was revoked."
)
