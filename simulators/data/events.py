"""Reads a user's own events, JSON Lines that follow a topic's schema, as records of the topic.

The whole file is checked before anything is written. Mistakes of one kind in one field are reported once,
with the first line and their number; after 20 kinds, the others are counted. Files may be gzipped; a byte
order mark, blank lines and Windows line endings are allowed.
"""

from __future__ import annotations

import decimal
import gzip
import json
import re
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any, Final, NamedTuple, NoReturn

from simulators.tableflow.avro_json import build_decoder
from simulators.tableflow.avro_scalars import show_value
from simulators.tableflow.kafka import Log, Record, Sent
from simulators.tableflow.topic import Topic

_MISTAKES_SHOWN: Final = 20
_GZIP: Final = b"\x1f\x8b"
_BOM: Final = b"\xef\xbb\xbf"
_UTF16: Final = (b"\xff\xfe", b"\xfe\xff")
#: How an index, a key, a number or a quoted value is written in a path or a problem.
_VARIES: Final = re.compile(r"\[\d+\]|\{'.*?'\}|'.*'|-?\d[\d.Ee+-]*|0x[0-9a-f]+")
#: How many bytes at the beginning of a file show whether it is text.
_SNIFFED: Final = 1_000
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECOND: Final = timedelta(milliseconds=1)


class Mistake(NamedTuple):
    """`line` counts from 1; `path` is that of the field, or empty if the problem is with the whole line."""

    line: int
    path: str
    problem: str

    def __str__(self) -> str:
        field = f", field {self.path}" if self.path else ""
        return f"line {self.line}{field}: {self.problem}"

    @property
    def kind(self) -> tuple[str, str]:
        """Return the field, without indexes, and the problem, without the value."""
        return _VARIES.sub("", self.path), _VARIES.sub("", self.problem.partition(", found")[0])


class EventsError(Exception):
    """Mistakes in a file of events: the first one of each kind, and how many there are of this kind."""

    def __init__(self, file: str, mistakes: Mapping[Mistake, int], more: int = 0) -> None:
        self.mistakes = list(mistakes)
        self.more = more
        lines = [f"{file}: some events can't be read, so nothing was written:"]
        for mistake, count in mistakes.items():
            more_like_it = f" (and {count - 1} more like it)" if count > 1 else ""
            lines.append(f"  {mistake}{more_like_it}")
        if more:
            lines.append(f"  and {more} more")
        super().__init__("\n".join(lines))


class _RefusedError(ValueError):
    """JSON that Python's parser accepts and an event can't have."""


class Mistakes:
    """Keeps the first mistake of each of 20 kinds and counts the others."""

    def __init__(self, file: str) -> None:
        self._file = file
        self._first: dict[tuple[str, str], Mistake] = {}
        self._counts: dict[Mistake, int] = {}
        self._more = 0

    def add(self, line: int, path: str, problem: str) -> None:
        mistake = Mistake(line, path, problem)
        if mistake.kind in self._first:
            self._counts[self._first[mistake.kind]] += 1
        elif len(self._first) < _MISTAKES_SHOWN:
            self._first[mistake.kind] = mistake
            self._counts[mistake] = 1
        else:
            self._more += 1

    def settle(self) -> None:
        """Raise EventsError if there are any mistakes."""
        if self._counts:
            raise EventsError(self._file, self._counts, self._more)


def read_json_lines(file: Path, topic: Topic, *, ignore_unknown: bool = False) -> list[dict[str, Any]]:
    """Return the values of all lines, as Avro values of the topic's schema. Raises EventsError, and OSError.

    With `ignore_unknown`, fields that the schema doesn't have are left out.
    """
    mistakes = Mistakes(file.name)
    decode = build_decoder(topic.root, ignore_unknown)
    values = []
    for number, line in read_text_lines(file, mistakes):
        parsed = _parse_line(line, partial(mistakes.add, number, "")) if line.strip() else None
        if parsed is not None:
            values.append(decode(parsed, "", partial(mistakes.add, number)))
    mistakes.settle()
    return values


def to_records(topic: Topic, values: Iterable[dict[str, Any]], received_at: datetime) -> list[Record]:
    """Return records in the given order.

    Their timestamps are the event times, or `received_at` (aware) where there is none.
    """
    received = (received_at - _EPOCH) // _MILLISECOND
    return Log(topic.name).append(_build_sent(topic, value, received) for value in values)


def read_text_lines(file: Path, mistakes: Mistakes) -> Iterator[tuple[int, str]]:
    """Yield the lines with their numbers and line endings.

    Lines that aren't UTF-8 are added to `mistakes` instead.
    """
    number = 0
    with _open_file(file) as stream:
        try:
            for number, raw in enumerate(stream, start=1):
                if number == 1 and (problem := _explain_no_text(raw)):
                    mistakes.add(number, "", problem)
                    return
                encoded = raw.removeprefix(_BOM) if number == 1 else raw
                line = _decode_line(encoded, partial(mistakes.add, number, ""))
                if line is not None:
                    yield number, line
        except (EOFError, gzip.BadGzipFile, zlib.error) as error:
            mistakes.add(number + 1, "", f"the gzipped file is damaged here ({error}). Make it again")


@contextmanager
def _open_file(file: Path) -> Iterator[Iterable[bytes]]:
    with file.open("rb") as plain:
        zipped = plain.read(2) == _GZIP
        plain.seek(0)
        if not zipped:
            yield plain
            return
        with gzip.open(plain) as stream:
            yield stream


def _decode_line(raw: bytes, report: Callable[[str], None]) -> str | None:
    try:
        return raw.decode()
    except UnicodeDecodeError as error:
        report(f"byte {error.start + 1} (0x{raw[error.start]:02x}) is not UTF-8. Save the file as UTF-8")
    return None


def _explain_no_text(first_line: bytes) -> str | None:
    """Return why the file can't be read as text at all, or None."""
    if first_line.startswith(_UTF16):
        return "the file is text in UTF-16. Save it as UTF-8"
    if b"\0" in first_line:
        return "the file is not text: it has zero bytes. Give JSON Lines, plain or gzipped"
    control = sum(byte < 32 and byte not in b"\t\r\n" for byte in first_line[:_SNIFFED])
    if control > len(first_line[:_SNIFFED]) / 10:
        return "the file is not text. Give JSON Lines, plain or gzipped"
    return None


def _parse_line(line: str, report: Callable[[str], None]) -> Any:
    """Return the JSON object of a line, with fractional numbers as exact Decimals; None if a mistake was
    reported.
    """
    try:
        value = json.loads(
            line.rstrip(),
            parse_float=decimal.Decimal,
            parse_constant=_refuse_number,
            object_pairs_hook=_build_object,
        )
    except json.JSONDecodeError as error:
        problem = error.msg.removesuffix(" starting at")
        report(
            f"is not JSON: {problem} at character {error.colno}. A line holds one event, as one JSON object"
        )
    except RecursionError:
        report("is nested too deep to be an event")
    except _RefusedError as refusal:
        report(str(refusal))
    except (ValueError, decimal.InvalidOperation):
        report("has a number of more digits than any field takes")
    else:
        if isinstance(value, dict):
            return value
        problem = f"expected one event as a JSON object, found {show_value(value)}"
        if isinstance(value, list):
            problem += ". To give each item of an array a line of its own, use jq -c '.[]'"
        report(problem)
    return None


def _build_object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    fields = dict(pairs)
    if len(fields) < len(pairs):
        names = [name for name, _ in pairs]
        repeated_name = next(name for name in names if names.count(name) > 1)
        raise _RefusedError(f"names the field {show_value(repeated_name)} twice. Keep one of them")
    return fields


def _refuse_number(name: str) -> NoReturn:
    raise _RefusedError(f"has {name}, which JSON does not know and no field takes. Leave it out, or use null")


def _build_sent(topic: Topic, value: dict[str, Any], received: int) -> Sent:
    time = value[topic.time_field] if topic.time_field else None
    key = value[topic.key_field] if topic.key_field else None
    if key is not None and not isinstance(key, bytes):
        key = str(key).encode()
    timestamp = received if time is None else (time - _EPOCH) // _MILLISECOND
    return Sent(timestamp, key, value)
