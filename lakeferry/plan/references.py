"""References to other resources in the values of a template, and values as text."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

#: A stack's name and a logical id.
ResourceId = tuple[str, str]
#: Resources by the name of the export that returns them.
Exports = Mapping[str, ResourceId]

_NAMED: Final = re.compile(r"\$\{(?!!)([^}]+)\}")
_LONGEST: Final = 70
#: Characters on either side of a difference.
_AROUND: Final = 15
#: The hash of an asset.
_HASH: Final = re.compile(r"\b[0-9a-f]{64}\b")


def exports(templates: Mapping[str, Mapping[str, Any]]) -> dict[str, ResourceId]:
    """Return the exported resources by the name of the export. `templates` are by stack."""
    exported: dict[str, ResourceId] = {}
    for stack, template in templates.items():
        for output in template.get("Outputs", {}).values():
            name = output.get("Export", {}).get("Name")
            resource = next(of(stack, output.get("Value"), {}), None)
            if isinstance(name, str) and resource:
                exported[name] = resource
    return exported


def of(stack: str, value: Any, given: Exports) -> Iterator[ResourceId]:
    """Return the resources that `value` refers to, in its own stack or another one."""
    if isinstance(value, list):
        for each in value:
            yield from of(stack, each, given)
    elif isinstance(value, Mapping):
        for name, each in value.items():
            yield from _of_function(stack, name, each, given)


def _of_function(stack: str, name: str, value: Any, given: Exports) -> Iterator[ResourceId]:
    if name == "Ref" and isinstance(value, str):
        yield stack, value
    elif name == "Fn::GetAtt":
        yield stack, str(value[0] if isinstance(value, list) else value).partition(".")[0]
    elif name == "Fn::ImportValue":
        if isinstance(value, str) and value in given:
            yield given[value]
    elif name == "Fn::Sub":
        text, own = (value[0], value[1]) if isinstance(value, list) else (value, {})
        yield from of(stack, list(own.values()), given)
        yield from ((stack, each.partition(".")[0]) for each in _NAMED.findall(str(text)) if each not in own)
    else:
        yield from of(stack, value, given)


def whole(value: Any, given: Exports) -> str:
    """Return a value as one line of text."""
    return _HASH.sub(lambda match: f"{match[0][:8]}…", " ".join(_text(value, given).split()))


def shown(value: Any, given: Exports) -> str:
    """Return a value as text, without the middle if it is long."""
    return _short(whole(value, given))


def both(before: Any, after: Any, given: Exports) -> tuple[str, str]:
    """Return two differing values as text. Of long ones, only what is around the difference."""
    old, new = whole(before, given), whole(after, given)
    if len(old) <= _LONGEST and len(new) <= _LONGEST:
        return old, new
    begin = _same(old, new)
    end = _same(old[begin:][::-1], new[begin:][::-1])
    start = max(0, begin - _AROUND)
    return tuple(  # type: ignore[return-value]
        f"{'…' if start else ''}{_short(text[start : len(text) - max(0, end - _AROUND)])}{'…' if end > _AROUND else ''}"
        for text in (old, new)
    )


def _same(one: str, other: str) -> int:
    """Return the length of the common beginning."""
    pairs = enumerate(zip(one, other, strict=False))
    return next((number for number, (left, right) in pairs if left != right), min(len(one), len(other)))


def is_function(value: Any) -> bool:
    """Return whether CloudFormation computes the value."""
    return isinstance(value, Mapping) and len(value) == 1 and next(iter(value)).startswith(("Ref", "Fn::"))


def _short(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 25]} … {text[-20:]}"


def _text(value: Any, given: Exports) -> str:
    if isinstance(value, Mapping) and len(value) == 1:
        ((name, inner),) = value.items()
        if name in _WRITTEN:
            return _WRITTEN[name](inner, given)
    if isinstance(value, str):
        return value
    return "nothing" if value is None else json.dumps(value, ensure_ascii=False, sort_keys=True)


_WRITTEN: Final[Mapping[str, Callable[[Any, Exports], str]]] = {
    "Ref": lambda inner, _: str(inner),
    "Fn::GetAtt": lambda inner, _: ".".join(inner) if isinstance(inner, list) else str(inner),
    "Fn::ImportValue": lambda inner, given: given[inner][1] if isinstance(inner, str) and inner in given else str(inner),
    "Fn::Join": lambda inner, given: inner[0].join(_text(each, given) for each in inner[1]),
    "Fn::Sub": lambda inner, _: str(inner[0] if isinstance(inner, list) else inner),
}
