"""Errors of measurements.

They don't make the function fail: a metric with an alarm counts them.
"""

from __future__ import annotations

from typing import Final

from lambdas.shared.errors import ErrorRow

NOT_SET: Final = ErrorRow("WATCH-NOT-SET")
NO_TABLE: Final = ErrorRow("WATCH-NO-TABLE")
NO_TABLEFLOW: Final = ErrorRow("WATCH-NO-TABLEFLOW")
NO_COMMIT: Final = ErrorRow("WATCH-NO-COMMIT")
NOT_REFRESHING: Final = ErrorRow("WATCH-NOT-REFRESHING")
NO_VALUE: Final = ErrorRow("WATCH-NO-VALUE")
CONTRACT: Final = ErrorRow("WATCH-CONTRACT")
