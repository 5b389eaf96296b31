"""Errors of notifications."""

from __future__ import annotations

from typing import Final

from lambdas.shared.errors import ErrorRow

EVENT: Final = ErrorRow("MAIL-EVENT")
NO_RECORD: Final = ErrorRow("MAIL-NO-RECORD")
BUSY: Final = ErrorRow("MAIL-BUSY")
NOT_SENT: Final = ErrorRow("MAIL-NOT-SENT")
UNCERTAIN: Final = ErrorRow("MAIL-UNCERTAIN")
