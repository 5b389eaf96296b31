"""Generated types of Avro, valid and invalid ones: every shape, and every logical type on every base."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

BASES = ("boolean", "int", "long", "float", "double", "bytes", "string")
LOGICAL = (
    "date time-millis time-micros timestamp-millis timestamp-micros timestamp-nanos local-timestamp-millis "
    "local-timestamp-micros local-timestamp-nanos decimal uuid duration unknown Date"
).split()
NAMESPACES = ("", "shop", "shop.v1", "shop.v2")


class AvroTypes:
    """Makes types with `random`.

    Names of types are unique, but for those that a union gives to several branches.
    """

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        self._number = 0
        self._known: list[str] = []

    def fields(self, count: int) -> Iterator[dict[str, Any]]:
        for number in range(count):
            self._known = []
            yield {"name": f"f{number}", "type": self._type(3)}

    def _type(self, depth: int) -> Any:
        shapes = [
            self._plain,
            self._plain,
            self._logical,
            self._logical,
            self._decimal,
            self._fixed,
            self._enum,
            self._known_type,
        ]
        if depth:
            shapes += [
                self._array,
                self._map,
                self._record,
                self._record,
                self._nullable,
                self._nullable,
                self._union,
                self._twins,
            ]
            shapes += [self._wrapped, self._entries]
        shape = self._random.choice(shapes)
        return shape(depth - 1)

    def _plain(self, _depth: int) -> Any:
        return self._random.choice(
            (*BASES, "string", "long", "null") if self._random.random() < 0.1 else BASES
        )

    def _logical(self, _depth: int) -> Any:
        return {"type": self._random.choice(BASES), "logicalType": self._random.choice(LOGICAL)}

    def _decimal(self, _depth: int) -> Any:
        base = self._random.choice([{"type": "bytes"}, self._fixed(0), {"type": "string"}])
        digits = {"precision": self._random.choice((1, 9, 18, 38, 39, 64, 0, -1, "9", None))}
        digits |= {"scale": self._random.choice((0, 2, 2, 18, 40, None))}
        return (
            base
            | {"logicalType": "decimal"}
            | {key: value for key, value in digits.items() if value is not None}
        )

    def _fixed(self, _depth: int) -> Any:
        size = self._random.choice((1, 2, 16, 16))
        return self._named({"type": "fixed", "size": size}) | self._random.choice(
            ({}, {"logicalType": "uuid"})
        )

    def _enum(self, _depth: int) -> Any:
        return self._named({"type": "enum", "symbols": ["A", "B"]})

    def _known_type(self, depth: int) -> Any:
        return self._random.choice(self._known) if self._known else self._plain(depth)

    def _array(self, depth: int) -> Any:
        return {"type": "array", "items": self._type(depth)}

    def _map(self, depth: int) -> Any:
        return {"type": "map", "values": self._type(depth)}

    def _record(self, depth: int) -> Any:
        names = self._random.choice((("a",), ("a", "b"), ("if", "order", "A"), ("a", "a"), ("x-y",), ()))
        record = self._named({"type": self._random.choice(("record", "record", "record", "error"))})
        return record | {"fields": [{"name": name, "type": self._type(depth)} for name in names]}

    def _nullable(self, depth: int) -> Any:
        branches = ["null", self._type(depth)]
        self._random.shuffle(branches)
        return branches

    def _union(self, depth: int) -> Any:
        return [self._type(depth) for _ in range(self._random.choice((1, 2, 3, 4)))]

    def _twins(self, depth: int) -> Any:
        """Return a union of records that have one name in several namespaces."""
        self._number += 1
        spaces = self._random.sample(NAMESPACES[1:], 2)
        field = {"name": "a", "type": self._plain(depth)}
        return [
            "null",
            *(
                {"type": "record", "name": f"T{self._number}", "namespace": space, "fields": [field]}
                for space in spaces
            ),
        ]

    def _wrapped(self, depth: int) -> Any:
        return {"type": self._type(depth)}

    def _entries(self, depth: int) -> Any:
        names = self._random.choice((("key", "value"), ("key", "value"), ("value", "key"), ("key",)))
        fields = [
            {"name": name, "type": self._type(0) if name == "key" else self._type(depth)} for name in names
        ]
        entry = self._named({"type": "record"}) | {"connect.internal.type": "MapEntry", "fields": fields}
        return {"type": "array", "items": entry}

    def _named(self, schema: dict[str, Any]) -> dict[str, Any]:
        self._number += 1
        name = f"T{self._number}"
        space = self._random.choice(NAMESPACES)
        if schema["type"] not in ("record", "error"):
            self._known.append(f"{space}.{name}" if space else name)
        return schema | {"name": name} | ({"namespace": space} if space else {"namespace": ""})
