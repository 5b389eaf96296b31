"""What can go wrong between a run's record and a mail."""

from __future__ import annotations

from typing import Final

from lambdas.shared.errors import ErrorRow

EVENT: Final = ErrorRow(
    "MAIL-EVENT",
    "An event that nobody is told about",
    "The function was invoked by something else than the rules of its own deployment.",
    "Find out who invoked it; nothing was sent.",
)
NO_RECORD: Final = ErrorRow(
    "MAIL-NO-RECORD",
    "A run without a record",
    "The job says that it succeeded, and its bucket and prefix hold no record of it: it wrote to another place.",
    "Compare the job's arguments --bucket and --prefix with the function's environment; deploy again.",
)
BUSY: Final = ErrorRow(
    "MAIL-BUSY",
    "A notice is being sent by another invocation",
    "The same event was delivered twice.",
    "Nothing: what is left over is sent by the next try.",
)
NOT_SENT: Final = ErrorRow(
    "MAIL-NOT-SENT",
    "SNS did not take a message",
    "The function's role or the key of the topic lacks a permission, the topic is gone, or SNS is throttled.",
    "Look at AWS's own code above. The message is kept and sent by a later try.",
)
UNCERTAIN: Final = ErrorRow(
    "MAIL-UNCERTAIN",
    "Nobody knows whether a message went out",
    "SNS gave no answer two times, or the function was stopped while it sent. A third try could make a third copy.",
    "Look into the mailbox; the notice named above holds what stood in it.",
)

ERRORS: Final = (EVENT, NO_RECORD, BUSY, NOT_SENT, UNCERTAIN)
