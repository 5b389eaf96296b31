"""Errors of measurements: codes and remedies.

They don't make the function fail: a metric with an alarm counts them.
"""

from __future__ import annotations

from typing import Final

from lambdas.shared.errors import ErrorRow

NOT_SET: Final = ErrorRow("WATCH-NOT-SET", "Deploy again; don't edit the function manually.")
NO_TABLE: Final = ErrorRow(
    "WATCH-NO-TABLE",
    "Look at the topic's Tableflow page in Confluent's console. A new topic takes up to half an hour.",
)
NO_TABLEFLOW: Final = ErrorRow("WATCH-NO-TABLEFLOW", "Run `lakeferry status`, then `lakeferry deploy`.")
NO_COMMIT: Final = ErrorRow("WATCH-NO-COMMIT", "Look whether anything writes to the topic.")
NOT_REFRESHING: Final = ErrorRow(
    "WATCH-NOT-REFRESHING",
    "Read the reason above; once it is fixed, a STALLED table recovers by itself and a STOPPED one is "
    "created again.",
)
NO_VALUE: Final = ErrorRow("WATCH-NO-VALUE", "Deploy again; a key is created where the secret is empty.")
CONTRACT: Final = ErrorRow(
    "WATCH-CONTRACT", "Check the contract with `lakeferry export check` and deploy again."
)
