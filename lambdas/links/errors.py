"""Errors of links."""

from __future__ import annotations

from typing import Final

from lambdas.shared.errors import ErrorKind

BUSY: Final = ErrorKind("LINK-BUSY")
