"""Functions of MiniStack that we stand in front of, each checked before the first is replaced.

A function of ours gets the one it replaces as its first argument, so that it can ask it, refuse before it, or change
what it answers.
"""

from __future__ import annotations

import functools
import importlib
import inspect
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

#: What MiniStack's request handlers return: status, headers, body.
Answer = tuple[int, dict[str, str], Any]
#: The function that a replacement stands in front of.
Stock = Callable[..., Answer]
Replacement = Callable[..., Any]


class HookMissing(Exception):
    """MiniStack is not built as the amendments expect; the sentence names the hook."""


class Hook(NamedTuple):
    """A module-level function by name, and the names of the parameters that it must have."""

    module: str
    name: str
    parameters: tuple[str, ...]

    def find(self) -> Callable[..., Any]:
        try:
            found = getattr(importlib.import_module(self.module), self.name)
        except (ImportError, AttributeError) as missing:
            raise HookMissing(f"{self} is gone ({missing}). {_ADVICE}") from missing
        has = tuple(inspect.signature(found).parameters)
        if has != self.parameters:
            raise HookMissing(f"{self} now takes ({', '.join(has)}), not ({', '.join(self.parameters)}). {_ADVICE}")
        return found  # type: ignore[no-any-return]

    def __str__(self) -> str:
        return f"{self.module}.{self.name}"


_ADVICE = "Pin the MiniStack that the amendments were written for, or write the amendment anew"


class Amendment:
    """One way in which MiniStack is brought nearer to AWS: its name, and the functions that do it."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._replacements: dict[Hook, Replacement] = {}

    def replaces(self, module: str, name: str, parameters: str) -> Callable[[Replacement], Replacement]:
        """Decorate the function that stands in front of `module.name`."""

        def register(replacement: Replacement) -> Replacement:
            self._replacements[Hook(module, name, tuple(parameters.split()))] = replacement
            return replacement

        return register

    def __iter__(self) -> Iterator[tuple[Hook, Replacement]]:
        return iter(self._replacements.items())


def apply(amendments: Iterable[Amendment]) -> None:
    """Put every amendment in place, or none. Of two on one hook, the later one stands in front."""
    wanted = [pair for amendment in amendments for pair in amendment]
    for hook, _ in wanted:
        hook.find()
    for hook, replacement in wanted:
        module = importlib.import_module(hook.module)
        original = getattr(module, hook.name)
        setattr(module, hook.name, functools.wraps(original)(functools.partial(replacement, original)))


def ministack(name: str) -> Any:
    """One of its modules, by the name within the package; they exist only in the server's own process."""
    return importlib.import_module(f"ministack.{name}")
