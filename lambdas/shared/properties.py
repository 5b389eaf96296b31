"""Properties of a resource: a frozen attrs class for each resource type, read from what CloudFormation sends.

CloudFormation sends booleans and numbers as strings, at any depth. Updates and deletes also contain the
properties of the last deployment, which an older release may have declared. Those are parsed leniently:
unknown properties are ignored, and missing ones get their default. So a property that is added to a type
after a release needs a default. New properties are parsed strictly, and all mistakes in them are reported
together.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from typing import (
    Any,
    ClassVar,
    Final,
    Generic,
    TypeVar,
    dataclass_transform,
    get_args,
    get_origin,
    get_type_hints,
)

import attrs
from cattrs import Converter

from lambdas import contract
from lambdas.shared.errors import BadProperties

T = TypeVar("T", bound="Properties[Any]")
C = TypeVar("C")
O_co = TypeVar("O_co", bound=tuple[str, ...], covariant=True)

#: Names that CloudFormation and the lifecycle add to the properties.
RESERVED: Final = frozenset({"ServiceToken", "ServiceTimeout", "kind", contract.REPAIR})


@attrs.frozen
class Properties(Generic[O_co]):
    """The schema of a resource type and of its outputs for `Fn::GetAtt`: `class
    TopicProps(Properties[TopicOutputs])`.

    TYPE is its name in stacks. A change of a CREATE_ONLY property replaces the object.
    """

    TYPE: ClassVar[str] = ""
    OUTPUTS: ClassVar[type[Any]] = tuple
    CREATE_ONLY: ClassVar[tuple[str, ...]] = ()

    def __init_subclass__(cls) -> None:
        for base in cls.__dict__.get("__orig_bases__", ()):
            if get_origin(base) is Properties:
                cls.OUTPUTS = get_args(base)[0]

    def problems(self) -> Iterable[tuple[str, str]]:
        """Return mistakes in combinations of properties: pairs of a name and what is wrong."""
        return ()


def prop(doc: str, *, default: Any = attrs.NOTHING, one_of: tuple[Any, ...] = ()) -> Any:
    """Declare a property; `doc` is its text in the reference.

    The defaults `list` and `dict` mean an empty list or dict.
    """
    initial = attrs.Factory(default) if default in (list, dict) else default
    return attrs.field(default=initial, kw_only=True, metadata={"doc": doc, "one_of": one_of})


@dataclass_transform(field_specifiers=(prop,), kw_only_default=True, frozen_default=True)
def properties(cls: type[C]) -> type[C]:
    """Turn a class with `prop(…)` fields into a frozen attrs class. mypy knows which of them are required."""
    return attrs.frozen(cls)


def declared(given: Properties[Any]) -> dict[str, Any]:
    """Return the values that a template contains: those that differ from the defaults."""
    defaults = {field.name: _find_default(field) for field in attrs.fields(type(given))}
    return {
        name: value for name, value in attrs.asdict(given, recurse=False).items() if value != defaults[name]
    }


def _find_default(field: attrs.Attribute[Any]) -> Any:
    default: Any = field.default
    return default.factory() if isinstance(default, attrs.Factory) else default  # type: ignore[arg-type]


def parse(cls: type[T], given: Mapping[str, Any], *, strict: bool) -> T:
    """Parse properties.

    Raises BadProperties with all mistakes; unknown names are mistakes only if `strict`.
    """
    fields = {field.name: field for field in attrs.fields(cls)}
    hints = get_type_hints(cls)
    problems: list[tuple[str, str]] = []
    values: dict[str, Any] = {}
    for name in given.keys() - fields.keys() - RESERVED if strict else ():
        close = difflib.get_close_matches(name, list(fields))
        problems.append((name, "no such property" + (f"; did you mean {close[0]}?" if close else "")))
    for name, field in fields.items():
        if name in given:
            try:
                values[name] = _CONVERTER.structure(given[name], hints[name])
            except (ValueError, TypeError) as error:
                problems.append((name, str(error)))
                continue
            if (choices := field.metadata["one_of"]) and values[name] not in choices:
                why = f"{given[name]!r} is none of {', '.join(map(str, choices))}. {field.metadata['doc']}"
                problems.append((name, why))
        elif field.default is attrs.NOTHING:
            problems.append((name, f"is missing. {field.metadata['doc']}"))
    if not problems:
        parsed = cls(**values)
        problems.extend(parsed.problems())
        if not problems:
            return parsed
    raise BadProperties(sorted(problems))


def _read_boolean(given: Any, _: type) -> bool:
    if isinstance(given, bool):
        return given
    if str(given).lower() in ("true", "false"):
        return str(given).lower() == "true"
    raise ValueError(f"{given!r} is neither true nor false")


def _read_integer(given: Any, _: type) -> int:
    try:
        return int(str(given))
    except ValueError:
        raise ValueError(f"{given!r} is not a whole number") from None


def _read_text(given: Any, _: type) -> str:
    if isinstance(given, dict | list) or given is None:
        raise ValueError("must be text")
    return str(given).lower() if isinstance(given, bool) else str(given)


def _list(given: Any, kind: Any) -> list[Any]:
    if not isinstance(given, list):
        raise ValueError("must be a list")
    return [_CONVERTER.structure(item, get_args(kind)[0]) for item in given]


def _read_mapping(given: Any, kind: Any) -> dict[str, Any]:
    if not isinstance(given, dict):
        raise ValueError("must be a map")
    return {str(name): _CONVERTER.structure(value, get_args(kind)[1]) for name, value in given.items()}


def _is_a(container: type, kind: Any) -> bool:
    return get_origin(kind) is container


#: cattrs' own hooks turn text into a list of characters, and don't parse booleans that are given as text.
_CONVERTER: Final = Converter(detailed_validation=False)
_CONVERTER.register_structure_hook(bool, _read_boolean)
_CONVERTER.register_structure_hook(int, _read_integer)
_CONVERTER.register_structure_hook(str, _read_text)
_CONVERTER.register_structure_hook_func(lambda kind: _is_a(list, kind), _list)
_CONVERTER.register_structure_hook_func(lambda kind: _is_a(dict, kind), _read_mapping)
