"""Errors of rotation."""

from __future__ import annotations

from typing import Final

from lambdas.shared.errors import ErrorRow

EVENT: Final = ErrorRow("ROT-EVENT")
NOT_ENABLED: Final = ErrorRow("ROT-NOT-ENABLED")
UNKNOWN_TOKEN: Final = ErrorRow("ROT-UNKNOWN-TOKEN")
NOT_PENDING: Final = ErrorRow("ROT-NOT-PENDING")
DELETED: Final = ErrorRow("ROT-DELETED")
EMPTY: Final = ErrorRow("ROT-EMPTY")
FIELDS: Final = ErrorRow("ROT-FIELDS")
IN_GRACE: Final = ErrorRow("ROT-IN-GRACE")
FOREIGN_KEY: Final = ErrorRow("ROT-FOREIGN-KEY")
LOCKED_OUT: Final = ErrorRow("ROT-LOCKED-OUT")
LIMIT: Final = ErrorRow("ROT-LIMIT")
NOT_PROVEN: Final = ErrorRow("ROT-NOT-PROVEN")
NOT_THERE: Final = ErrorRow("ROT-NOT-THERE")
DISCARDED: Final = ErrorRow("ROT-DISCARDED")
NOT_STORED: Final = ErrorRow("ROT-NOT-STORED")
NOT_MOVED: Final = ErrorRow("ROT-NOT-MOVED")
BAD_KEY: Final = ErrorRow("ROT-BAD-KEY")
NOTHING_LEFT: Final = ErrorRow("ROT-NOTHING-LEFT")
CHANGED: Final = ErrorRow("ROT-CHANGED")
