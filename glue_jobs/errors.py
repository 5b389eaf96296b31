"""What can go wrong in an export, told once.

ExportError            code, what happened and why, what to do
├── BadInput           arguments or contract                        exit code 2
├── SourceProblem      the table is missing, not ready or changed   exit code 1
├── DataProblem        a value that no rule of the contract allows  exit code 1
├── Blocked            a check or the scan for personal data        exit code 7
├── StorageProblem     S3, Glue or Secrets Manager refused          exit code 1
└── Inconsistent       numbers that must agree don't; our fault     exit code 1
"""

from __future__ import annotations

from typing import ClassVar


class ExportError(Exception):
    """`code` is stable and documented; `what` and `remedy` are sentences without secrets or personal data."""

    exit_code: ClassVar[int] = 1

    def __init__(self, code: str, what: str, remedy: str) -> None:
        super().__init__(f"{code}  {what}. {remedy}")
        self.code = code
        self.what = what
        self.remedy = remedy


class BadInput(ExportError):
    exit_code = 2


class SourceProblem(ExportError):
    """The source can't be read as the contract says."""


class DataProblem(ExportError):
    """A value stops the export."""


class Blocked(ExportError):
    """The file was made, found wanting and kept back."""

    exit_code = 7


class StorageProblem(ExportError):
    """A service of AWS refused or failed for good."""


class Inconsistent(ExportError):
    """Counts or checksums that must agree don't, so nothing is published."""
