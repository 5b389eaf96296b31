"""Find references to other resources in the values of a template, and show such values as text."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

#: A stack's name and a logical id.
ResourceId = tuple[str, str]
#: Resources by the name of the CloudFormation export that has a value of the resource.
Exports = Mapping[str, ResourceId]

_SUB_VARIABLE: Final = re.compile(r"\$\{(?!!)([^}]+)\}")
_MAX_LENGTH: Final = 70
#: How many characters are shown before and after a difference.
_CONTEXT: Final = 15
#: The hash of a CDK asset.
_HASH: Final = re.compile(r"\b[0-9a-f]{64}\b")


def list_exports(templates: Mapping[str, Mapping[str, Any]]) -> dict[str, ResourceId]:
    """Return the resources with exported values, by the name of the export.

    `templates` has the template of each stack.
    """
    exported: dict[str, ResourceId] = {}
    for stack, template in templates.items():
        for output in template.get("Outputs", {}).values():
            name = output.get("Export", {}).get("Name")
            resource = next(find_references(stack, output.get("Value"), {}), None)
            if isinstance(name, str) and resource:
                exported[name] = resource
    return exported


def find_references(stack: str, value: Any, given: Exports) -> Iterator[ResourceId]:
    """Yield the resources that `value` refers to, in its own stack or in another one."""
    if isinstance(value, list):
        for item in value:
            yield from find_references(stack, item, given)
    elif isinstance(value, Mapping):
        for name, inner in value.items():
            yield from _resolve_function(stack, name, inner, given)


def _resolve_function(stack: str, name: str, value: Any, given: Exports) -> Iterator[ResourceId]:
    if name == "Ref" and isinstance(value, str):
        yield stack, value
    elif name == "Fn::GetAtt":
        yield stack, str(value[0] if isinstance(value, list) else value).partition(".")[0]
    elif name == "Fn::ImportValue":
        if isinstance(value, str) and value in given:
            yield given[value]
    elif name == "Fn::Sub":
        text, own = (value[0], value[1]) if isinstance(value, list) else (value, {})
        yield from find_references(stack, list(own.values()), given)
        yield from (
            (stack, variable.partition(".")[0])
            for variable in _SUB_VARIABLE.findall(str(text))
            if variable not in own
        )
    else:
        yield from find_references(stack, value, given)


def format_whole(value: Any, given: Exports) -> str:
    """Return a value as one line of text, with hashes of assets shortened."""
    return _HASH.sub(lambda match: f"{match[0][:8]}…", " ".join(_format_text(value, given).split()))


def format_without_assets(value: Any, given: Exports) -> str:
    """Return a value as one line of text in which all assets have the same name: it changes with their
    content.
    """
    return _HASH.sub("‹hash›", " ".join(_format_text(value, given).split()))


def format_short(value: Any, given: Exports) -> str:
    """Return a value as one line of text, without its middle if it is long."""
    return _shorten(format_whole(value, given))


def format_both(before: Any, after: Any, given: Exports) -> tuple[str, str]:
    """Return two different values as text. Of long values, only the part around the difference is shown."""
    old = format_whole(before, given)
    new = format_whole(after, given)
    if len(old) <= _MAX_LENGTH and len(new) <= _MAX_LENGTH:
        return old, new
    begin = _measure_common_prefix(old, new)
    end = _measure_common_prefix(old[begin:][::-1], new[begin:][::-1])
    start = max(0, begin - _CONTEXT)
    cut_at_end = max(0, end - _CONTEXT)
    before_cut = "…" if start else ""
    after_cut = "…" if cut_at_end else ""

    def around(text: str) -> str:
        return f"{before_cut}{_shorten(text[start : len(text) - cut_at_end])}{after_cut}"

    return around(old), around(new)


def _measure_common_prefix(first: str, other: str) -> int:
    """Return the length of the longest common prefix."""
    pairs = enumerate(zip(first, other, strict=False))
    return next(
        (number for number, (sign, other_sign) in pairs if sign != other_sign), min(len(first), len(other))
    )


def is_function(value: Any) -> bool:
    """Return whether the value is an intrinsic function of CloudFormation."""
    return isinstance(value, Mapping) and len(value) == 1 and next(iter(value)).startswith(("Ref", "Fn::"))


def _shorten(text: str) -> str:
    return text if len(text) <= _MAX_LENGTH else f"{text[: _MAX_LENGTH - 25]} … {text[-20:]}"


def _format_text(value: Any, given: Exports) -> str:
    if isinstance(value, Mapping) and len(value) == 1:
        ((name, inner),) = value.items()
        if name in _FUNCTION_TEXTS:
            return _FUNCTION_TEXTS[name](inner, given)
    if isinstance(value, str):
        return value
    return "nothing" if value is None else json.dumps(value, ensure_ascii=False, sort_keys=True)


def _format_ref(inner: Any, given: Exports) -> str:
    return str(inner)


def _format_attribute(inner: Any, given: Exports) -> str:
    return ".".join(inner) if isinstance(inner, list) else str(inner)


def _format_import(inner: Any, given: Exports) -> str:
    return given[inner][1] if isinstance(inner, str) and inner in given else str(inner)


def _format_join(inner: Any, given: Exports) -> str:
    separator, parts = inner
    return str(separator).join(_format_text(part, given) for part in parts)


def _format_substitution(inner: Any, given: Exports) -> str:
    return str(inner[0] if isinstance(inner, list) else inner)


_FUNCTION_TEXTS: Final[Mapping[str, Callable[[Any, Exports], str]]] = {
    "Ref": _format_ref,
    "Fn::GetAtt": _format_attribute,
    "Fn::ImportValue": _format_import,
    "Fn::Join": _format_join,
    "Fn::Sub": _format_substitution,
}
