"""Find the line of each key in a TOML text, for messages. tomllib doesn't report it.

tomllib must have accepted the text before: the scanner relies on it being well formed.
"""

from __future__ import annotations

import re

_BARE_OR_QUOTED = re.compile(r"""\s*(?:"((?:[^"\\]|\\.)*)"|'([^']*)'|([A-Za-z0-9_-]+))\s*""")
_SCALAR = re.compile(r"[^,\]}\s#][^,\]}\n#]*")


def find_key_lines(text: str) -> dict[str, int]:
    """Map paths like `column[2].type` to line numbers, which start at 1.

    Tables and list items are included.
    """
    return _Scanner(text).run()


class _Scanner:
    def __init__(self, text: str) -> None:
        self._text = text.replace("\r\n", "\n")
        self._at = 0
        self._lines: dict[str, int] = {}
        self._counts: dict[str, int] = {}

    def run(self) -> dict[str, int]:
        table = ""
        while self._skip_blank():
            if self._text.startswith("[[", self._at):
                table = self._read_header(2)
                self._counts[table] = self._counts.get(table, -1) + 1
                table = f"{table}[{self._counts[table]}]"
                self._note(table)
            elif self._text[self._at] == "[":
                table = self._read_header(1)
                self._note(table)
            else:
                self._read_pair(table)
        return self._lines

    def _read_header(self, brackets: int) -> str:
        self._at += brackets
        parts = self._read_dotted()
        self._at += brackets
        return self._resolve(parts)

    def _resolve(self, parts: list[str]) -> str:
        """Return the path of a header. Below an array of tables, a header belongs to the latest item."""
        path = ""
        for number, part in enumerate(parts):
            path = f"{path}.{part}" if path else part
            if number < len(parts) - 1 and path in self._counts:
                path = f"{path}[{self._counts[path]}]"
        return path

    def _read_pair(self, table: str) -> None:
        start = self._at
        path = ".".join([*([table] if table else []), *self._read_dotted()])
        self._note(path, start)
        self._at += 1  # the equals sign
        self._read_value(path)

    def _read_dotted(self) -> list[str]:
        parts = []
        while match := _BARE_OR_QUOTED.match(self._text, self._at):
            parts.append(next(group for group in match.groups() if group is not None))
            self._at = match.end()
            if self._text[self._at] != ".":
                break
            self._at += 1
        return parts

    def _read_value(self, path: str) -> None:
        self._skip_blank()
        first = self._text[self._at]
        if first == "[":
            self._read_array(path)
        elif first == "{":
            self._read_inline_table(path)
        elif first in "\"'":
            self._skip_string(first)
        else:
            match = _SCALAR.match(self._text, self._at)
            self._at = match.end() if match else self._at + 1

    def _read_array(self, path: str) -> None:
        self._at += 1
        index = 0
        while self._skip_blank() and self._text[self._at] != "]":
            self._note(f"{path}[{index}]")
            self._read_value(f"{path}[{index}]")
            index += 1
            self._skip_comma()
        self._at += 1

    def _read_inline_table(self, path: str) -> None:
        self._at += 1
        while self._skip_blank() and self._text[self._at] != "}":
            self._read_pair(path)
            self._skip_comma()
        self._at += 1

    def _skip_string(self, quote: str) -> None:
        fence = quote * 3 if self._text.startswith(quote * 3, self._at) else quote
        self._at += len(fence)
        while not self._text.startswith(fence, self._at):
            self._at += 2 if quote == '"' and self._text[self._at] == "\\" else 1
        self._at += len(fence)
        while len(fence) == 3 and self._text.startswith(quote, self._at):
            self._at += 1  # a multi-line string may end in up to two quotes of its own

    def _skip_comma(self) -> None:
        if self._skip_blank() and self._text[self._at] == ",":
            self._at += 1

    def _skip_blank(self) -> bool:
        """Go past white space and comments; return False at the end of the text."""
        while self._at < len(self._text):
            if self._text[self._at] == "#":
                end = self._text.find("\n", self._at)
                self._at = len(self._text) if end < 0 else end
            elif self._text[self._at].isspace():
                self._at += 1
            else:
                return True
        return False

    def _note(self, path: str, at: int | None = None) -> None:
        offset = self._at if at is None else at
        self._lines.setdefault(path, self._text.count("\n", 0, offset) + 1)
