"""Every error that anything of ours can raise, in one form: for the pages and for `lakeferry explain`."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Final

import attrs

from lakeferry.bootstrap import ROOT
from lakeferry.console import FAILED
from lakeferry.reference import causes, command_causes, deploy_causes, error_sources, setup_causes
from lambdas.confluent import errors as confluent
from lambdas.monitoring import errors as watch
from lambdas.notifications import errors as notification
from lambdas.rotation import errors as rotation
from lambdas.shared import errors as shared
from lambdas.shared.errors import ErrorRow
from lambdas.snowflake import errors as snowflake

EXPORTS: Final = "Exports"
COMMANDS: Final = "Commands"
RESOURCES: Final = "Resources of a deployment"
ROTATION: Final = "Rotation"
MAILS: Final = "Notices about exports"
WATCH: Final = "The watch"
#: Commands that have to do with a room's errors, beside those that an error's own words name.
_COMMANDS: Final = {
    EXPORTS: ("export run", "logs"),
    COMMANDS: (),
    RESOURCES: ("deploy", "doctor"),
    ROTATION: ("rotate", "status"),
    MAILS: ("logs", "status"),
    WATCH: ("status", "logs"),
}
#: What stands behind codes that no row of lambdas holds. A code is in one of them.
_TABLES: Final = (
    (EXPORTS, causes.EXPORT),
    (COMMANDS, command_causes.COMMANDS),
    (COMMANDS, setup_causes.SETUP),
    (COMMANDS, deploy_causes.DEPLOY),
)
_NAMED: Final = re.compile(r"lakeferry((?: [a-z]+)+)")


@attrs.frozen
class Known:
    """`why` and `fix` are Markdown, with links as seen from docs/reference; `places` are files of ours that raise it."""

    code: str
    room: str
    what: str
    why: str
    fix: str
    exits: tuple[int, ...]
    places: tuple[str, ...]

    @property
    def page(self) -> str:
        """Below docs/reference/errors."""
        return f"{self.code.lower()}.md"

    @property
    def ends_commands(self) -> bool:
        """The others are met in functions' logs, mails and alarms only."""
        return self.room in (EXPORTS, COMMANDS, RESOURCES)

    def commands(self, there: Iterable[str]) -> list[str]:
        """Those of the commands that are `there` which have to do with it."""
        named = [words.strip() for words in _NAMED.findall(f"{self.why} {self.fix}")]
        wanted = [*(name for words in named for name in _beginnings(words)), *_COMMANDS[self.room]]
        known = set(there)
        return [name for name in dict.fromkeys(wanted) if name in known]


@functools.cache
def by_code() -> Mapping[str, Known]:
    """What is explained, in the order of codes."""
    return {known.code: known for known in sorted(_explained(error_sources.found(ROOT)), key=lambda known: known.code)}


def unexplained(root: Path = ROOT) -> list[str]:
    """Codes that the sources raise and nobody explains."""
    return sorted(error_sources.found(root).keys() - by_code().keys())


def never_raised() -> list[str]:
    """Codes that are explained and that nothing raises."""
    return [known.code for known in by_code().values() if not known.places]


def _explained(found: Mapping[str, error_sources.Source]) -> Iterator[Known]:
    for room, table in _TABLES:
        for code, (what, why, fix) in table.items():
            source = found.get(code, error_sources.NOWHERE)
            yield Known(code, room, what, why, fix, tuple(sorted(source.exits)) or (FAILED,), tuple(sorted(source.places)))
    rooms: dict[str, Iterable[ErrorRow]] = {
        RESOURCES: sorted((*shared.ERRORS, *confluent.ERRORS, *snowflake.ERRORS)),
        ROTATION: rotation.ERRORS,
        MAILS: notification.ERRORS,
        WATCH: watch.ERRORS,
    }
    for room, rows in rooms.items():
        for row in rows:
            source = found.get(row.code, error_sources.NOWHERE)
            yield Known(row.code, room, row.title, row.cause, row.remedy, (FAILED,), tuple(sorted(source.places)))


def _beginnings(words: str) -> Iterator[str]:
    """`secrets set` of "secrets set and deploy": a name's words come first."""
    parts = words.split()
    yield from (" ".join(parts[:count]) for count in range(len(parts), 0, -1))
