"""Errors of notifications: codes and remedies."""

from __future__ import annotations

from typing import Final

from lambdas.shared.errors import ErrorRow

EVENT: Final = ErrorRow("MAIL-EVENT", "Find out who invoked it; nothing was sent.")
NO_RECORD: Final = ErrorRow(
    "MAIL-NO-RECORD",
    "Compare the job's arguments --bucket and --prefix with the function's environment; deploy again.",
)
BUSY: Final = ErrorRow(
    "MAIL-BUSY",
    "Nothing at first: Lambda tries again. If it persists, delete the marker and invoke the function with "
    "the event of the dead-letter queue.",
)
NOT_SENT: Final = ErrorRow(
    "MAIL-NOT-SENT",
    "Look at AWS's own code above. Lambda tries twice more; after that, invoke the function with the event "
    "of the dead-letter queue.",
)
UNCERTAIN: Final = ErrorRow(
    "MAIL-UNCERTAIN", "Nothing: Lambda tries again, so a second copy of the mail may arrive."
)
