"""What a run says on its standard error, which is Glue's log: phases and causes, never a value of the data."""

from __future__ import annotations

import logging
import re
import sys
import traceback

_LOG = logging.getLogger("lakeferry.export")
_JAVA_CLASS = re.compile(r"\b(?:[a-z]\w*\.)+[A-Z]\w*(?:Exception|Error)\b")


def to_stderr() -> None:
    """For the script; whoever calls `run` decides for himself."""
    logging.basicConfig(stream=sys.stderr, level=logging.INFO, format="%(asctime)s %(message)s")


def phase(window: str, name: str) -> None:
    _LOG.info("%s: %s", window, name)


def cause(error: BaseException) -> None:
    """Where an error came from: classes and frames. Its text may quote the rows that it failed on, so it stays out."""
    frames = "".join(traceback.format_tb(error.__traceback__))
    java = list(dict.fromkeys(_JAVA_CLASS.findall(str(error))))
    _LOG.error("%s from %s\n%s", type(error).__name__, ", ".join(java) or "Python", frames)
