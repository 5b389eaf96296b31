"""What can go wrong between a run's record and a mail."""

from __future__ import annotations

from typing import Final

from lambdas.shared.errors import ErrorRow

EVENT: Final = ErrorRow("MAIL-EVENT", "Find out who invoked it; nothing was sent.")
NO_RECORD: Final = ErrorRow(
    "MAIL-NO-RECORD", "Compare the job's arguments --bucket and --prefix with the function's environment; deploy again."
)
BUSY: Final = ErrorRow("MAIL-BUSY", "Nothing: what is left over is sent by the next try.")
NOT_SENT: Final = ErrorRow("MAIL-NOT-SENT", "Look at AWS's own code above. The message is kept and sent by a later try.")
UNCERTAIN: Final = ErrorRow("MAIL-UNCERTAIN", "Look into the mailbox; the notice named above holds what stood in it.")
