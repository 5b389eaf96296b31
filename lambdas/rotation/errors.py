"""Errors of rotation."""

from __future__ import annotations

from typing import Final

from lambdas.shared.errors import ErrorKind

EVENT: Final = ErrorKind("ROT-EVENT")
NOT_ENABLED: Final = ErrorKind("ROT-NOT-ENABLED")
UNKNOWN_TOKEN: Final = ErrorKind("ROT-UNKNOWN-TOKEN")
NOT_PENDING: Final = ErrorKind("ROT-NOT-PENDING")
DELETED: Final = ErrorKind("ROT-DELETED")
EMPTY: Final = ErrorKind("ROT-EMPTY")
FIELDS: Final = ErrorKind("ROT-FIELDS")
IN_GRACE: Final = ErrorKind("ROT-IN-GRACE")
FOREIGN_KEY: Final = ErrorKind("ROT-FOREIGN-KEY")
LOCKED_OUT: Final = ErrorKind("ROT-LOCKED-OUT")
LIMIT: Final = ErrorKind("ROT-LIMIT")
NOT_PROVEN: Final = ErrorKind("ROT-NOT-PROVEN")
NOT_THERE: Final = ErrorKind("ROT-NOT-THERE")
DISCARDED: Final = ErrorKind("ROT-DISCARDED")
NOT_STORED: Final = ErrorKind("ROT-NOT-STORED")
NOT_MOVED: Final = ErrorKind("ROT-NOT-MOVED")
BAD_KEY: Final = ErrorKind("ROT-BAD-KEY")
NOTHING_LEFT: Final = ErrorKind("ROT-NOTHING-LEFT")
CHANGED: Final = ErrorKind("ROT-CHANGED")
