"""Errors of notifications."""

from __future__ import annotations

from typing import Final

from lambdas.shared.errors import ErrorKind

ATTACHMENT: Final = ErrorKind("MAIL-ATTACHMENT")
EVENT: Final = ErrorKind("MAIL-EVENT")
NO_RECORD: Final = ErrorKind("MAIL-NO-RECORD")
BUSY: Final = ErrorKind("MAIL-BUSY")
NOT_SENT: Final = ErrorKind("MAIL-NOT-SENT")
UNCERTAIN: Final = ErrorKind("MAIL-UNCERTAIN")
EVENT_NOT_SENT: Final = ErrorKind("MAIL-EVENT-NOT-SENT")
