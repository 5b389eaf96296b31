"""A log with one JSON object per line, without secrets."""

from __future__ import annotations

import json
import logging
import sys
from typing import Any, TextIO

import attrs

from lambdas.shared.redaction import redact


class _JsonLines(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        fields = getattr(record, "fields", {})
        entry = {"level": record.levelname, "message": record.getMessage(), **fields}
        if record.exc_info:
            entry["trace"] = self.formatException(record.exc_info)
        return redact(json.dumps(entry, default=str, ensure_ascii=False))


@attrs.frozen
class Log:
    """Adds `fields` to every line. Lines have no timestamp: CloudWatch adds it."""

    logger: logging.Logger
    fields: dict[str, Any] = attrs.field(factory=dict)

    def bind(self, **fields: Any) -> Log:
        return Log(self.logger, {**self.fields, **fields})

    def info(self, message: str, **fields: Any) -> None:
        self.logger.info(message, extra={"fields": {**self.fields, **fields}})

    def error(self, message: str, *, trace: bool = False, **fields: Any) -> None:
        self.logger.error(message, exc_info=trace, extra={"fields": {**self.fields, **fields}})


def open_log(stream: TextIO | None = None) -> Log:
    """Return a log that writes to `stream`, or else to standard output.

    Each call replaces the stream, because a warm Lambda function opens its log in each invocation.
    """
    logger = logging.getLogger("lakeferry.lambdas")
    handler = logging.StreamHandler(stream or sys.stdout)
    handler.setFormatter(_JsonLines())
    logger.handlers = [handler]
    logger.propagate = False
    logger.setLevel(logging.INFO)
    return Log(logger)
