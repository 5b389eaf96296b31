"""Changes single values of a TOML text and leaves the rest, comments too, as somebody wrote it.

Only for text that tomllib has accepted. Tables are named as in messages about files: `confluent`, `topics[0].tableflow`.
"""

from __future__ import annotations

import json
import re
import tomllib
from typing import Final

from exports.toml_lines import key_lines

Value = str | bool | int | list[str]
_HEADER: Final = re.compile(r"\s*\[\[?\s*([^\]]+?)\s*\]\]?\s*(#.*)?$")


def to_toml(value: Value) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, list):
        return "[" + ", ".join(to_toml(one) for one in value) + "]"
    return json.dumps(value, ensure_ascii=False)


def set_value(text: str, table: str, key: str, value: Value) -> str:
    """Replaces the value and keeps the comment beside it; where the key is not there it comes first in its table."""
    lines, places = text.splitlines(), key_lines(text)
    if (line := places.get(f"{table}.{key}")) is not None:
        start, end = _span(lines, line - 1)
        lines[start:end] = [f"{key} = {to_toml(value)}{_comment(lines[start]) if end == start + 1 else ''}"]
    elif (header := places.get(table)) is not None and _HEADER.match(lines[header - 1]):
        lines.insert(header, f"{key} = {to_toml(value)}")
    else:
        lines += ["", f"[{table}]", f"{key} = {to_toml(value)}"]
    return _text(lines)


def has_table(text: str, table: str) -> bool:
    """Whether the table has a header of its own, below which a key can be put."""
    line = key_lines(text).get(table)
    return line is not None and _HEADER.match(text.splitlines()[line - 1]) is not None


def without(text: str, table: str, key: str) -> str:
    lines, line = text.splitlines(), key_lines(text).get(f"{table}.{key}")
    if line is not None:
        start, end = _span(lines, line - 1)
        del lines[start:end]
    return _text(lines)


def without_tables(text: str, name: str) -> str:
    """Without every `[[name]]` and what stands below it. Comments between two tables stay."""
    kept: list[str] = []
    lines, inside = text.splitlines(), False
    for number, line in enumerate(lines):
        if header := _HEADER.match(line):
            inside = header[1] == name or header[1].startswith(f"{name}.")
        if not inside or not _has_more(lines, number):
            kept.append(line)
    return re.sub(r"\n{3,}", "\n\n", _text(kept))


def _has_more(lines: list[str], number: int) -> bool:
    """Whether a line of its table is at this line or after it: what follows the last one are comments about something else."""
    for line in lines[number:]:
        if _HEADER.match(line) and line is not lines[number]:
            return False
        if line.strip() and not line.lstrip().startswith("#"):
            return True
    return False


def _span(lines: list[str], start: int) -> tuple[int, int]:
    """From the key's line to the end of its value, which may be a list over several lines."""
    for end in range(start + 1, len(lines) + 1):
        try:
            tomllib.loads("\n".join(lines[start:end]))
        except tomllib.TOMLDecodeError:
            continue
        return start, end
    raise ValueError(f"no value begins at line {start + 1}")


def _comment(line: str) -> str:
    """What stands behind the value, with the blanks before it."""
    for at in (at for at, sign in enumerate(line) if sign == "#"):
        try:
            tomllib.loads(line[:at])
        except tomllib.TOMLDecodeError:
            continue
        return line[len(line[:at].rstrip()) :]
    return ""


def _text(lines: list[str]) -> str:
    return "\n".join(lines).strip("\n") + "\n"
