"""Signals that end a command: each is treated as Ctrl-C."""

from __future__ import annotations

import signal
import sys
from types import FrameType
from typing import Final

#: How a CI service, `timeout` and the end of a terminal stop a command.
_ENDING: Final = (signal.SIGTERM, signal.SIGHUP)
#: Seconds.
_PAUSE: Final = 0.05


def handle_signals() -> None:
    """Raise KeyboardInterrupt in the main thread, once, when a signal that ends a command arrives."""
    for ending in _ENDING:
        # nohup ignores the end of the terminal, and so do commands below it.
        if signal.getsignal(ending) is signal.SIG_DFL:
            signal.signal(ending, _interrupt)
    sys.unraisablehook = _interrupt_again


def _interrupt(number: int, frame: FrameType | None) -> None:
    for ending in _ENDING:
        # What comes later would interrupt the clean-up. SIG_IGN would be inherited by processes.
        signal.signal(ending, lambda *_: None)
    raise KeyboardInterrupt


def _interrupt_again(unraisable: sys.UnraisableHookArgs) -> None:
    """Repeat an interrupt that arrived while Python ran a finalizer, where exceptions have no effect."""
    if not issubclass(unraisable.exc_type, KeyboardInterrupt):
        sys.__unraisablehook__(unraisable)
        return
    # By the time the timer ends, so has this function, in which exceptions have no effect either. If another
    # finalizer runs by then, this is repeated.
    signal.signal(signal.SIGALRM, _interrupt)
    signal.setitimer(signal.ITIMER_REAL, _PAUSE)
