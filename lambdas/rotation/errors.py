"""What rotation can refuse, as rows of the reference of errors."""

from __future__ import annotations

from typing import Final

from lambdas.shared.errors import ErrorRow

_REVOKE: Final = "docs/how-to/rotate.md"

EVENT: Final = ErrorRow(
    "ROT-EVENT",
    "An event that rotation doesn't know",
    "The function was invoked by hand, with other fields or another step than Secrets Manager sends.",
    f"See {_REVOKE} for what an operator may ask of it; nothing was done.",
)
NOT_ENABLED: Final = ErrorRow(
    "ROT-NOT-ENABLED",
    "Rotation is turned off for the secret",
    "It was cancelled, or never configured.",
    "Deploy again, which configures it; nothing was done.",
)
UNKNOWN_TOKEN: Final = ErrorRow(
    "ROT-UNKNOWN-TOKEN",
    "The secret has no version for this rotation",
    "The rotation was given up, and its version's label removed, before this step came.",
    "Nothing; start a new rotation if one is due.",
)
NOT_PENDING: Final = ErrorRow(
    "ROT-NOT-PENDING",
    "The version is not the one that is being rotated to",
    "Another rotation has taken its place.",
    "Nothing; the other rotation goes on.",
)
DELETED: Final = ErrorRow(
    "ROT-DELETED",
    "The secret is about to be deleted",
    "Somebody scheduled its deletion.",
    "Restore the secret if it is still needed, and rotate again; no key was made.",
)
EMPTY: Final = ErrorRow(
    "ROT-EMPTY",
    "A version of the secret has no value",
    "The secret was not filled yet, or the step that makes the new value has not run.",
    "Fill the secret by deploying, or rotate again from the first step.",
)
FIELDS: Final = ErrorRow(
    "ROT-FIELDS",
    "The secret lacks fields that rotation needs",
    "It was filled by hand in another form.",
    "Compare its fields with docs/reference/secrets.md.",
)
IN_GRACE: Final = ErrorRow(
    "ROT-IN-GRACE",
    "The replaced key may still be in use",
    "A rotation ended a short while ago, and readers may keep a value for as long as the grace lasts.",
    f"Rotate again when the grace is over; if a key has leaked, revoke the replaced one first: {_REVOKE}.",
)
FOREIGN_KEY: Final = ErrorRow(
    "ROT-FOREIGN-KEY",
    "A slot holds a key that isn't ours",
    "Somebody set the user's key by hand, or another secret rotates the same user.",
    "Find out whose key it is; UNSET the slot named above if nobody needs it, and rotate again. Nothing was overwritten.",
)
LOCKED_OUT: Final = ErrorRow(
    "ROT-LOCKED-OUT",
    "None of the secret's keys logs in",
    "The user's keys were changed by hand, the user is disabled, or a network policy keeps the function out.",
    "As an administrator, set the public key that the secret holds (field publicKey) on the user, and rotate again.",
)
LIMIT: Final = ErrorRow(
    "ROT-LIMIT",
    "As many keys live as may",
    "Rotations followed each other within the grace, or a quota is used up, and no key may go yet.",
    f"Rotate again when the grace is over, or revoke what isn't used any more: {_REVOKE}. No key was made.",
)
NOT_PROVEN: Final = ErrorRow(
    "ROT-NOT-PROVEN",
    "The new key is not accepted yet",
    "The vendor takes its time to make a key known to all of its servers.",
    "Nothing: Secrets Manager tries again, and the current key stays as it is. If it lasts for hours, see the vendor's status.",
)
NOT_THERE: Final = ErrorRow(
    "ROT-NOT-THERE",
    "The vendor doesn't have the new key",
    "The step that sets it has not run, or somebody removed it by hand.",
    "Nothing: the next try sets it or begins anew. The current key stays as it is.",
)
DISCARDED: Final = ErrorRow(
    "ROT-DISCARDED",
    "An unfinished rotation was given up",
    "Its key was removed by hand, or can't be used, or a deployment changed the secret's other fields meanwhile.",
    "Rotate again, or wait for the schedule; the current key stays as it is.",
)
NOT_STORED: Final = ErrorRow(
    "ROT-NOT-STORED",
    "Secrets Manager doesn't take the new value",
    "The function's role or the KMS key's policy lacks a permission, or another try of the same rotation was faster.",
    "Look at AWS's own code above. A key that was made for it is removed again.",
)
NOT_MOVED: Final = ErrorRow(
    "ROT-NOT-MOVED",
    "The new version was not made current",
    "The secret's current version changed in the same moment.",
    "Nothing: Secrets Manager tries again.",
)
BAD_KEY: Final = ErrorRow(
    "ROT-BAD-KEY",
    "A private key can't be used",
    "The secret was filled by hand with a key in another form.",
    "Store an RSA key of at least 2048 bits as PKCS#8; with a passphrase, in the field passphrase.",
)
NOTHING_LEFT: Final = ErrorRow(
    "ROT-NOTHING-LEFT",
    "Revoking would leave no key that works",
    "The current key is not accepted at this moment.",
    "Rotate first; when the new key is current, revoke the others. Nothing was revoked.",
)
CHANGED: Final = ErrorRow(
    "ROT-CHANGED",
    "The secret's versions changed while keys were being revoked",
    "A rotation began or ended in the same moment.",
    "Wait until the rotation has ended, and revoke again. Nothing was revoked.",
)

ERRORS: Final = (
    EVENT, NOT_ENABLED, UNKNOWN_TOKEN, NOT_PENDING, DELETED, EMPTY, FIELDS, IN_GRACE, FOREIGN_KEY, LOCKED_OUT, LIMIT,
    NOT_PROVEN, NOT_THERE, DISCARDED, NOT_STORED, NOT_MOVED, BAD_KEY, NOTHING_LEFT, CHANGED,
)  # fmt: skip
