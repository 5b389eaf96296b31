"""Errors of measurements.

They don't make the function fail: a metric with an alarm counts them.
"""

from __future__ import annotations

from typing import Final

from lambdas.shared.errors import ErrorKind

NOT_SET: Final = ErrorKind("WATCH-NOT-SET")
NO_TABLE: Final = ErrorKind("WATCH-NO-TABLE")
#: The catalog shows no table to the key: there is none yet, or the key's owner may not read it.
NOT_SHOWN: Final = ErrorKind("WATCH-NOT-SHOWN")
NO_TABLEFLOW: Final = ErrorKind("WATCH-NO-TABLEFLOW")
NO_COMMIT: Final = ErrorKind("WATCH-NO-COMMIT")
NOT_REFRESHING: Final = ErrorKind("WATCH-NOT-REFRESHING")
NO_VALUE: Final = ErrorKind("WATCH-NO-VALUE")
CONTRACT: Final = ErrorKind("WATCH-CONTRACT")
