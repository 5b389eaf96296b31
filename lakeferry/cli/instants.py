"""Moments that users give as options."""

from __future__ import annotations

from datetime import UTC, datetime

from lakeferry.cli.output import CommandFailed


def parse(option: str, text: str) -> datetime:
    """Raises CommandFailed for what is no instant."""
    try:
        instant = datetime.fromisoformat(text)
    except ValueError:
        instant = None
    if instant is None or instant.tzinfo is None:
        raise CommandFailed("AS-OF", f"{option} {text!r} is not a time with an offset")
    return instant.astimezone(UTC)
