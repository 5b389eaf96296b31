"""Changes to a module's source: cosmic-ray's operators, and a few more.

The additional ones drop a statement, a clause of `and` or `or`, a keyword argument, a branch of a conditional
expression or what is returned, or change a text.
"""

from __future__ import annotations

import ast
import difflib
import re
from collections import defaultdict
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, Final

import attrs
from cosmic_ray.ast import ast_nodes, get_ast
from cosmic_ray.mutating import mutate_code
from cosmic_ray.operators.provider import OperatorProvider

#: Operators of cosmic-ray that are not used. Two need names as arguments. Without a decorator, or with `~`
#: for a minus, nothing works. Comparing by identity instead of by value changes nothing, or is plainly wrong.
_LEFT_OUT: Final = re.compile(
    r"Variable.*|RemoveDecorator|ReplaceUnaryOperator_(?!Delete).*|.*(?<!_Is)_IsNot|.*(?<!_IsNot)_Is|.*_Is_(?!IsNot).*"
    r"|.*_IsNot_(?!Is$).*"
)
#: Returns the changed source.
Option = Callable[[], str]


@attrs.frozen
class Change:
    """A change of whole lines, from line number `line` on. `before` and `after` have no line ends."""

    kind: str
    line: int
    before: tuple[str, ...]
    after: tuple[str, ...]

    def apply(self, source: str) -> str | None:
        """Return the changed source; None if it no longer has the lines.

        Of several places, the nearest to `line` is taken.
        """
        lines = source.splitlines()
        size = len(self.before)
        starts = [
            start
            for start in range(len(lines) - size + 1)
            if tuple(lines[start : start + size]) == self.before
        ]
        if not starts:
            return None
        start = min(starts, key=lambda index: abs(index + 1 - self.line))
        return "\n".join([*lines[:start], *self.after, *lines[start + size :], ""])


def list_options(source: str) -> dict[str, list[Option]]:
    """Return the possible changes by kind. None of them is in an annotation, a docstring or the `strict=True`
    of a zip, which changes nothing as long as the program is right.
    """
    tree = ast.parse(source)
    by_kind: dict[str, list[Option]] = defaultdict(list)
    for kind, option in (
        *_list_cosmic_ray_options(source, _find_unused_parts(tree)),
        *_list_own_options(source, tree),
    ):
        by_kind[kind].append(option)
    return dict(by_kind)


def build_change(kind: str, source: str, option: Option) -> Change | None:
    """Return the change; None if the text it makes isn't Python, or has the same syntax tree.

    cosmic-ray 8.7 raises AttributeError where it would replace an exception with a dotted name.
    """
    try:
        text = option()
        if ast.dump(ast.parse(text)) == ast.dump(ast.parse(source)):
            return None
    except (AttributeError, SyntaxError):
        return None
    return _compare_lines(kind, source.splitlines(), text.splitlines())


def _compare_lines(kind: str, before: list[str], after: list[str]) -> Change:
    blocks = [
        block
        for block in difflib.SequenceMatcher(None, before, after, autojunk=False).get_opcodes()
        if block[0] != "equal"
    ]
    first = blocks[0]
    last = blocks[-1]
    return Change(kind, first[1] + 1, tuple(before[first[1] : last[2]]), tuple(after[first[3] : last[4]]))


def _find_unused_parts(tree: ast.Module) -> set[tuple[int, int]]:
    """Return the lines and columns of code that is for the type checker only, and of `strict=True`."""
    parts = [getattr(node, name, None) for node in ast.walk(tree) for name in ("annotation", "returns")]
    parts += [
        node.test
        for node in ast.walk(tree)
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"
    ]
    parts += [
        keyword.value
        for node in ast.walk(tree)
        for keyword in getattr(node, "keywords", ())
        if _is_strict(keyword)
    ]
    return {
        (part.lineno, column)
        for unused in filter(None, parts)
        for part in ast.walk(unused)
        if isinstance(part, ast.expr)
        for column in range(part.col_offset, (part.end_col_offset or 0) + 1)
    }


def _is_strict(keyword: ast.keyword) -> bool:
    return ast.unparse(keyword) == "strict=True"


def _list_cosmic_ray_options(source: str, unused: set[tuple[int, int]]) -> Iterator[tuple[str, Option]]:
    provider = OperatorProvider()
    nodes = list(ast_nodes(get_ast(source)))
    for name in provider:
        if _LEFT_OUT.fullmatch(name):
            continue
        operator = provider[name]()
        positions = [position for node in nodes for position in operator.mutation_positions(node)]
        for number, (start, _) in enumerate(positions):
            if start not in unused:
                yield name.partition("_")[0], partial(mutate_code, source, operator, number)


def _list_own_options(source: str, tree: ast.Module) -> Iterator[tuple[str, Option]]:
    lines = [len(line) for line in source.encode().splitlines(keepends=True)]
    raw = source.encode()

    def offset(line: int, column: int) -> int:
        return sum(lines[: line - 1]) + column

    def span(node: Any) -> slice:
        return slice(offset(node.lineno, node.col_offset), offset(node.end_lineno, node.end_col_offset))

    for node in _walk(tree):
        for kind, by in _list_replacements(node, lambda part: raw[span(part)].decode()):
            start = span(node).start
            end = span(node).stop
            yield kind, partial(bytes.decode, raw[:start] + by.encode() + raw[end:])


def _walk(node: ast.AST) -> Iterator[Any]:
    """Walk without annotations, docstrings, and f-strings, whose parts have no positions of their own in
    Python 3.11.
    """
    if isinstance(node, ast.JoinedStr) or (
        isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"
    ):
        return
    yield node
    for name, value in ast.iter_fields(node):
        for child in value if isinstance(value, list) else [value]:
            if (
                isinstance(child, ast.AST)
                and name not in ("annotation", "returns", "decorator_list")
                and not _is_docstring(child)
            ):
                yield from _walk(child)


def _is_docstring(node: ast.AST) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def _list_replacements(node: Any, text: Callable[[ast.AST], str]) -> Iterator[tuple[str, str]]:
    """Yield the kinds of change to a node, each with the node's new text."""
    match node:
        case (
            ast.Expr()
            | ast.AugAssign()
            | ast.Raise()
            | ast.Assign(targets=[ast.Attribute() | ast.Subscript()])
        ):
            yield "drop statement", "pass"
        case ast.Return(value=ast.AST()):
            yield "return None", "return None"
        case ast.BoolOp():
            word = " and " if isinstance(node.op, ast.And) else " or "
            for omitted in node.values:
                yield (
                    "drop clause",
                    "("
                    + word.join(f"({text(clause)})" for clause in node.values if clause is not omitted)
                    + ")",
                )
        case ast.IfExp():
            yield "one branch", f"({text(node.body)})"
            yield "one branch", f"({text(node.orelse)})"
        case ast.Constant(value=str() as value) if value and " " not in value:
            yield "text", repr(value + "x")
        case ast.Call():
            for dropped in [keyword for keyword in node.keywords if keyword.arg and not _is_strict(keyword)]:
                kept = [*node.args, *(keyword for keyword in node.keywords if keyword is not dropped)]
                yield "drop keyword", f"{text(node.func)}({', '.join(map(text, kept))})"
