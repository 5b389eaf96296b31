"""What a call over HTTP ends in."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import attrs

from lambdas.shared.errors import Transient


@attrs.frozen
class Answer:
    """`body` is parsed JSON, text where it isn't JSON, None where it is empty. Header names are found in any case."""

    status: int
    headers: Mapping[str, str]
    body: Any

    @property
    def request_id(self) -> str:
        """The vendor's own name for this call: what its support asks for."""
        return self.headers.get("X-Request-Id", "") or self.headers.get("X-Amzn-RequestId", "")


class NotSent(Transient):
    """The request never left, so it had no effect."""


class Broken(Transient):
    """The request was sent, and no whole answer came: it may have had its effect."""
