"""Read a TOML file as a model, and report all of its mistakes at once, by key and line.

Export contracts and deployment files use it. A model is a set of attrs classes whose fields are declared with
`setting`. `read` returns an instance, or raises BadFile with all problems. If a part can't be read, the
instance lacks that attribute, so that rules about the rest still run and their problems are reported too.
`toml_schema` makes a JSON Schema of a model for editors.
"""

from __future__ import annotations

import difflib
import json
import math
import re
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from datetime import date, time
from pathlib import Path
from typing import Any, Generic, Literal, TypeVar, get_args, get_origin, get_type_hints

import attrs
from cattrs import Converter

from config.toml_lines import find_key_lines

T = TypeVar("T")
#: A rule looks at a model and yields (path of the key, what is wrong and what to do).
Rule = Callable[[T], Iterable[tuple[str, str]]]


@attrs.frozen(order=True)
class Problem:
    """A mistake in a file. `line` counts from 1; 0 stands for the file as a whole."""

    line: int
    key: str
    message: str

    def __str__(self) -> str:
        where = f"line {self.line}" if self.line else "file"
        return f"{where}, {self.key}: {self.message}" if self.key else f"{where}: {self.message}"


@attrs.frozen
class Form:
    """The form of a text.

    `description` completes "must be …" in messages and is shown in the reference documentation. A text that
    somebody may confuse with a secret, or that may contain one, is not `quoted` in messages.
    """

    pattern: str
    description: str
    quoted: bool = True

    def problem(self, text: str) -> str | None:
        if re.fullmatch(self.pattern, text):
            return None
        value = _shorten_value(text) if self.quoted else "the value, which is not shown here,"
        return f"{value} must be {self.description}"


class BadFile(Exception):
    """A file with mistakes, all of them in `problems`."""

    def __init__(self, name: str, problems: list[Problem]) -> None:
        self.name = name
        self.problems = problems
        count = "1 mistake" if len(problems) == 1 else f"{len(problems)} mistakes"
        super().__init__(f"{name}: {count}\n" + "\n".join(f"  {problem}" for problem in problems))


def setting(
    doc: str,
    *,
    name: str | None = None,
    default: Any = attrs.NOTHING,
    form: Form | None = None,
    minimum: int | None = None,
    maximum: int | None = None,
    check: Callable[[Any], str | None] | None = None,
) -> Any:
    """Declare a field of a model. `name` is the key in the file if it can't be an attribute's name, such as
    `from`.

    `check` returns what is wrong with a value, or None.
    """
    metadata = {
        "doc": doc,
        "name": name,
        "form": form,
        "minimum": minimum,
        "maximum": maximum,
        "check": check,
    }
    factory_or_default = attrs.Factory(default) if default in (list, dict) else default
    return attrs.field(default=factory_or_default, metadata=metadata, kw_only=True)


def read_text(file: Path, name: str) -> str:
    """Return the text of a file. `name` identifies it in messages. Raises BadFile."""
    try:
        return file.read_text(encoding="utf-8")
    except OSError as error:
        why = error.strerror
    except UnicodeDecodeError:
        why = "it is not UTF-8"
    raise BadFile(name, [Problem(0, "", f"cannot be read: {why}")])


def read(model: type[T], text: str, rules: Iterable[Rule[T]] = (), *, name: str) -> T:
    """Read `text` (TOML) as `model`.

    Raises BadFile with a syntax error, or with all wrong keys and values and broken rules.
    """
    try:
        data = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise BadFile(name, [_describe_syntax_error(error, text)]) from None
    reader: _Reader[T] = _Reader(model)
    instance = reader.read(data)
    whole = not reader.problems
    for rule in rules:
        reader.problems.extend(_list_findings(rule, instance, whole))
    if reader.problems:
        lines = find_key_lines(text)
        problems = {Problem(_find_line(lines, path), path, message) for path, message in reader.problems}
        raise BadFile(name, sorted(problems))
    return instance


def find_wrong_values(model: type[Any], values: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return what is wrong with values that code gives instead of a file, as (name, problem).

    Their names are those of the model's attributes. Other names are not looked at, nor None.
    """
    return _Reader(model).find_wrong_values(values)


def _list_findings(rule: Rule[T], instance: T, is_complete: bool) -> list[tuple[str, str]]:
    try:
        return list(rule(instance))
    except AttributeError:
        # The rule needs a part that could not be read, which is already one of the problems.
        if is_complete:
            raise
        return []


class _Reader(Generic[T]):
    def __init__(self, model: type[T]) -> None:
        self.problems: list[tuple[str, str]] = []
        self._model = model
        self._path: list[str] = []
        self._converter = Converter()
        self._converter.register_structure_hook_factory(attrs.has, lambda cls: self._structure_class)
        self._converter.register_structure_hook_func(_is_list, self._structure_list)
        self._converter.register_structure_hook_func(_is_literal, _structure_literal)
        self._converter.register_structure_hook_func(is_map, self._structure_map)
        for plain in (str, int, bool, date):
            self._converter.register_structure_hook(plain, _structure_plain)
        self._converter.register_structure_hook(float, _structure_number)

    def read(self, data: dict[str, Any]) -> T:
        instance: T = self._structure_class(data, self._model)
        return instance

    def find_wrong_values(self, values: Mapping[str, Any]) -> list[tuple[str, str]]:
        hints = get_type_hints(self._model)
        for field in list_settings(self._model):
            value = values.get(field.name)
            if value is not None:
                with self._collect_problems(field.name):
                    self._structure_field(field.name, field, hints[field.name], {field.name: value})
        return self.problems

    def _structure_class(self, data: Any, cls: type[Any]) -> Any:
        if not isinstance(data, dict):
            raise ValueError(f"must be a table, not {_shorten_value(data)}")
        fields_by_name = {read_setting_name(field): field for field in list_settings(cls)}
        for unknown_key in data.keys() - fields_by_name.keys():
            with self._collect_problems(unknown_key):
                raise ValueError("unknown key" + _suggest_name(unknown_key, fields_by_name))
        instance: Any = object.__new__(cls)
        for field in attrs.fields(cls):
            if "doc" not in field.metadata:
                object.__setattr__(instance, field.name, find_default(field))
        hints = get_type_hints(cls)
        for name, field in fields_by_name.items():
            with self._collect_problems(name):
                value = self._structure_field(name, field, hints[field.name], data)
                object.__setattr__(instance, field.name, value)
        return instance

    def _structure_field(
        self, name: str, field: attrs.Attribute[Any], kind: Any, data: dict[str, Any]
    ) -> Any:
        if name in data:
            value = self._converter.structure(data[name], kind)
            self._require(field, value)
            return value
        if field.default is attrs.NOTHING:
            raise ValueError(f"missing. {field.metadata['doc']}")
        return find_default(field)

    def _require(self, field: attrs.Attribute[Any], value: Any) -> None:
        if value is None:
            return
        limits = field.metadata
        for item in _list_single_values(value):
            if limits["form"] and (wrong := limits["form"].problem(item)):
                raise ValueError(f"{wrong}. {limits['doc']}")
            if limits["minimum"] is not None and item < limits["minimum"]:
                raise ValueError(f"{item} is too small: at least {limits['minimum']}")
            if limits["maximum"] is not None and item > limits["maximum"]:
                raise ValueError(f"{item} is too large: at most {limits['maximum']}")
            if limits["check"] and (wrong := limits["check"](item)):
                raise ValueError(wrong)

    def _structure_list(self, data: Any, kind: Any) -> list[Any]:
        if not isinstance(data, list):
            raise ValueError(f"must be a list, not {_shorten_value(data)}")
        (kind_of_item,) = get_args(kind)
        values = []
        for index, item in enumerate(data):
            with self._collect_problems(f"[{index}]"):
                values.append(self._converter.structure(item, kind_of_item))
        return values

    def _structure_map(self, data: Any, kind: Any) -> dict[str, Any]:
        """Read a table whose keys the author of the file chooses.

        The field's `form` and `check` apply to its values.
        """
        if not isinstance(data, dict):
            raise ValueError(f"must be a table, not {_shorten_value(data)}")
        _, kind_of_item = get_args(kind)
        values = {}
        for key, item in data.items():
            with self._collect_problems(key):
                values[key] = self._converter.structure(item, kind_of_item)
        return values

    @contextmanager
    def _collect_problems(self, part: str) -> Iterator[None]:
        """Record what is wrong with a key or an item, and continue with the next one."""
        self._path.append(part)
        try:
            yield
        except ValueError as error:
            self.problems.append((join_path(self._path), str(error)))
        finally:
            self._path.pop()


def join_path(parts: Iterable[str]) -> str:
    """Join the parts of a path: ["column", "[2]", "type"] becomes column[2].type."""
    path = ""
    for part in parts:
        path += part if part.startswith("[") else f".{part}"
    return path.lstrip(".")


def find_default(field: attrs.Attribute[Any]) -> Any:
    default: Any = field.default
    return default.factory() if isinstance(default, attrs.Factory) else default  # type: ignore[arg-type]


def is_optional(kind: Any) -> bool:
    return type(None) in get_args(kind)


def _is_list(kind: Any) -> bool:
    return get_origin(kind) is list


def is_map(kind: Any) -> bool:
    return get_origin(kind) is dict


def _is_literal(kind: Any) -> bool:
    return get_origin(kind) is Literal


def _list_single_values(value: Any) -> list[Any]:
    if isinstance(value, dict):
        return list(value.values())
    return value if isinstance(value, list) else [value]


def _structure_plain(data: Any, kind: type) -> Any:
    if type(data) is not kind:
        raise ValueError(f"must be {_KIND_WORDS[kind]}, not {_shorten_value(data)}")
    return data


def _structure_number(data: Any, kind: type) -> float:
    if type(data) not in (int, float) or not math.isfinite(data):
        raise ValueError(f"must be a number like 0.5, not {_shorten_value(data)}")
    return float(data)


def _structure_literal(data: Any, kind: Any) -> Any:
    choices = get_args(kind)
    if not any(type(data) is type(choice) and data == choice for choice in choices):
        texts = [str(choice) if re.search(r"\w", str(choice)) else json.dumps(choice) for choice in choices]
        suggestion = _suggest_name(str(data), map(str, choices))
        raise ValueError(f"{_shorten_value(data)} is none of: {', '.join(texts)}{suggestion}")
    return data


_KIND_WORDS: dict[type, str] = {
    str: "text in quotes",
    int: "a whole number",
    bool: "true or false",
    date: "a date like 2026-01-05 without quotes",
}


def _shorten_value(value: Any) -> str:
    if isinstance(value, dict):
        return "a table"
    if isinstance(value, list):
        return "a list"
    if isinstance(value, date | time):  # a datetime is a date too
        return value.isoformat()
    text = str(value).lower() if isinstance(value, bool) else repr(value)
    return text if len(text) <= 60 else text[:57] + "…"


def _suggest_name(word: str, choices: Iterable[str]) -> str:
    close = difflib.get_close_matches(word, list(choices))
    return f". Did you mean {close[0]}?" if close else ""


def list_settings(cls: type) -> list[attrs.Attribute[Any]]:
    return [field for field in attrs.fields(cls) if "doc" in field.metadata]


def read_setting_name(field: attrs.Attribute[Any]) -> str:
    return field.metadata["name"] or field.name


def _find_line(lines: dict[str, int], path: str) -> int:
    """Return the line of the key, or of the nearest enclosing table that is in the file, or 0."""
    while path and path not in lines:
        path = re.sub(r"(\.[^.\[\]]+|\[\d+\]|^[^.\[\]]+)$", "", path)
    return lines.get(path, 0)


def _describe_syntax_error(error: tomllib.TOMLDecodeError, text: str) -> Problem:
    if text.startswith("\ufeff"):
        return Problem(
            1, "", "begins with a byte order mark, which TOML doesn't know. Save the file as UTF-8 without it"
        )
    where = re.search(r"\(at line (\d+), column \d+\)", str(error))
    message = re.sub(r"\s*\(at .*\)$", "", str(error))
    if re.match(r"Cannot (overwrite|declare)|Duplicate", message):
        message = f"a key or table is given twice ({message})"
    # An error without a line is at the end of the text.
    return Problem(int(where[1]) if where else len(text.splitlines()), "", f"not TOML: {message}")
