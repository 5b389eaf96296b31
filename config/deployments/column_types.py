"""The types of the columns of a table that a Flink statement creates, read from the statement's SQL.

They are the types that Flink writes into Schema Registry, in the terms of the topics' schemas. A copied field
keeps its type, as Flink maps it (Confluent Cloud, "Data Type Mappings"). For an expression, only types that
are the same in every release of Flink are known; others are unknown, and a CAST in the statement states them.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable
from typing import Final

import attrs
from sqlglot import exp
from sqlglot.errors import SqlglotError
from sqlglot.optimizer.scope import Scope

from config.deployments import lineage
from config.deployments.lineage import Unknown
from config.exports.avro_schema import Field, Type

_TEXT: Final = Type("string", nullable=True)
_WHOLE: Final = Type("int", nullable=True)
_LONG: Final = Type("long", nullable=True)
_FLAG: Final = Type("boolean", nullable=True)
_ROWTIME: Final = Type("timestamp-millis")
_WINDOW_TIMES: Final = {
    "window_start": Type("local-timestamp-millis"),
    "window_end": Type("local-timestamp-millis"),
    "window_time": Type("timestamp-millis"),
}
#: How Flink writes a field that it copies, where its type in Schema Registry is another one afterwards.
_COPIED_AS: Final = {"enum": "string", "uuid": "string", "time-micros": "long", "fixed": "bytes"}
_CAST_TO: Final = {
    exp.DType.BOOLEAN: "boolean",
    exp.DType.TINYINT: "int",
    exp.DType.SMALLINT: "int",
    exp.DType.INT: "int",
    exp.DType.BIGINT: "long",
    exp.DType.FLOAT: "float",
    exp.DType.DOUBLE: "double",
    exp.DType.CHAR: "string",
    exp.DType.VARCHAR: "string",
    exp.DType.TEXT: "string",
    exp.DType.BINARY: "bytes",
    exp.DType.VARBINARY: "bytes",
    exp.DType.DATE: "date",
}
#: By the name that sqlglot's dialect of Spark gives to Flink's types TIMESTAMP and TIMESTAMP_LTZ.
_CAST_TO_TIME: Final = {
    exp.DType.TIMESTAMPTZ: "local-timestamp",
    exp.DType.TIMESTAMPNTZ: "local-timestamp",
    exp.DType.TIMESTAMPLTZ: "timestamp",
}
_MOST_DIGITS: Final = 38
#: Flink's precision of a time or a decimal that names none.
_DEFAULT_TIME_PRECISION: Final = 6
_DEFAULT_DECIMAL_PRECISION: Final = 10
_TEXT_EXPRESSIONS: Final = (
    exp.Concat,
    exp.ConcatWs,
    exp.DPipe,
    exp.Lower,
    exp.Upper,
    exp.Trim,
    exp.Substring,
    exp.RegexpReplace,
    exp.RegexpExtract,
    exp.MD5,
    exp.SHA2,
    exp.TimeToStr,
    exp.Initcap,
    exp.Pad,
    exp.Replace,
    exp.Reverse,
    exp.Repeat,
)
_TEXT_FUNCTIONS: Final = frozenset({"sha1", "sha224", "sha256", "sha384", "sha512", "lpad", "rpad", "btrim"})
_LONG_EXPRESSIONS: Final = (exp.Count, exp.RowNumber, exp.Rank, exp.DenseRank, exp.Extract)
_FLAG_EXPRESSIONS: Final = (exp.Predicate, exp.Connector, exp.Not, exp.Boolean)
_TYPED_BY_ARGUMENT: Final = (exp.Sum, exp.Min, exp.Max, exp.Abs, exp.Paren, exp.Neg, exp.Window)
_WHOLE_KINDS: Final = frozenset({"int", "long"})

FindType = Callable[[str], Type | None]


def find_types(create: str, find_topic_type: FindType) -> dict[str, Type]:
    """Return the type of each column that a statement's query makes, in the order of the table's columns.

    `find_topic_type` returns the type of a source topic's values, None if it isn't known. Raises Unknown,
    with the first column whose type can't be derived.
    """
    query, names = lineage.cut_query(create)

    def list_columns(name: str) -> list[str] | None:
        topic_type = None
        with contextlib.suppress(Unknown):  # the name may be that of a part of the query
            topic_type = find_topic_type(name)
        return None if topic_type is None else [field.name for field in topic_type.fields]

    try:
        scope = lineage.build_query_scope(query, list_columns)
        types = _Query(find_topic_type).find_outputs(scope)
    except SqlglotError as error:
        raise Unknown(f"its query can't be read ({type(error).__name__})") from None
    if names is None:
        return types
    if lineage.is_create_table(create):
        if set(names) != set(types):
            raise Unknown("its list of columns doesn't match its query")
        return {name: types[name] for name in names}
    if len(names) != len(types):
        raise Unknown("its list of columns doesn't match its query")
    return dict(zip(names, types.values(), strict=True))


@attrs.frozen
class _Query:
    find_topic_type: FindType

    def find_outputs(self, scope: Scope) -> dict[str, Type]:
        """Return the types of a query's columns. Raises Unknown."""
        if branches := scope.set_operation_scopes:
            first_branch, *other_branches = (self.find_outputs(branch) for branch in branches)
            for branch in other_branches:
                if [_drop_null(kind) for kind in branch.values()] != [
                    _drop_null(kind) for kind in first_branch.values()
                ]:
                    raise Unknown("the branches of its UNION have different types")
            return {name: attrs.evolve(kind, nullable=True) for name, kind in first_branch.items()}
        if not isinstance(scope.expression, exp.Select) or scope.expression.is_star:
            raise Unknown("the columns of a * in its query can't be known")
        types = {}
        for selected in scope.expression.selects:
            name = selected.alias_or_name
            try:
                types[name] = self._find_type(selected.unalias(), scope)
            except Unknown as unknown:
                raise Unknown(f"the type of {name} isn't known: {unknown}") from None
        return types

    def _find_type(self, expression: exp.Expr, scope: Scope) -> Type:
        column, path = lineage.read_path(expression)
        if column is not None:
            return _copy(_find_nested(self._find_column(column, scope), path))
        match expression:
            case exp.Dot(expression=exp.Identifier() as field):
                found = _find_nested(self._find_type(expression.this, scope), [field.name])
            case exp.Bracket():
                found = self._find_item(expression, scope)
            case exp.Case() | exp.Coalesce() | exp.If():
                found = self._find_common_type(_list_results(expression), scope)
            case exp.Add() | exp.Sub() | exp.Mul():
                found = self._find_type_of_calculation(expression, scope)
            case _ if isinstance(expression, _TYPED_BY_ARGUMENT):
                found = self._find_type_of_argument(expression, scope)
            case _:
                found = _find_fixed_type(expression)
        return found

    def _find_column(self, column: exp.Column, scope: Scope) -> Type:
        if column.name == "$rowtime":
            return _ROWTIME
        source = scope.sources.get(column.table)
        is_optional = any(
            join.side or join.kind == "OUTER" for join in scope.expression.args.get("joins", ())
        )
        if isinstance(source, exp.Table):
            found = _find_nested(self._require_topic_type(source.name), [column.name])
        elif isinstance(source, Scope) and isinstance(source.expression, exp.Select | exp.SetOperation):
            found = self._find_output(source, column.name)
        elif isinstance(source, Scope):
            found = self._find_unnested(source.expression, column.name, scope)
        else:
            for possible_source in scope.sources.values():
                if isinstance(possible_source, exp.Table):
                    self._require_topic_type(possible_source.name)
            raise Unknown(f"{column.name} can't be found in its sources")
        return attrs.evolve(found, nullable=True) if is_optional else found

    def _require_topic_type(self, topic: str) -> Type:
        topic_type = self.find_topic_type(topic)
        if topic_type is None:
            raise Unknown(f"the schema of {topic} isn't known")
        return topic_type

    def _find_output(self, source: Scope, name: str) -> Type:
        """Return the type of one column of a query inside the query. The others may be unknown."""
        if source.set_operation_scopes:
            outputs = self.find_outputs(source)
            if name not in outputs:
                raise Unknown(f"{name} can't be found in its sources")
            return outputs[name]
        for selected in source.expression.args["expressions"]:
            if selected.alias_or_name == name:
                expression = selected.unalias()
                is_of_window = lineage.is_window_column(name, expression)
                return _WINDOW_TIMES[name] if is_of_window else self._find_type(expression, source)
        raise Unknown(f"{name} can't be found in its sources")

    def _find_unnested(self, expression: exp.Expr, name: str, scope: Scope) -> Type:
        """Return the type of a column that UNNEST makes of the items of an array."""
        unnest = expression.this if isinstance(expression, exp.Lateral) else expression
        alias = expression.args.get("alias")
        names = [column.name for column in alias.columns] if alias else []
        if not isinstance(unnest, exp.Unnest) or len(unnest.expressions) != 1 or name not in names:
            raise Unknown("a table function computes it")
        array = self._find_type(unnest.expressions[0], scope)
        if array.kind != "array" or array.items is None:
            raise Unknown("UNNEST of what isn't an array computes it")
        if array.items.kind != "record":
            return array.items
        if len(names) != len(array.items.fields):
            raise Unknown("the names after UNNEST don't match the fields of the array's items")
        return array.items.fields[names.index(name)].type

    def _find_item(self, expression: exp.Bracket, scope: Scope) -> Type:
        container = self._find_type(expression.this, scope)
        if container.kind not in ("array", "map") or container.items is None:
            raise Unknown("an item of what isn't an array or a map")
        return attrs.evolve(container.items, nullable=True)

    def _find_common_type(self, results: Iterable[exp.Expr], scope: Scope) -> Type:
        types = [self._find_type(result, scope) for result in results if not isinstance(result, exp.Null)]
        kinds = {_drop_null(kind) for kind in types}
        if len(kinds) != 1:
            raise Unknown("its branches have different types")
        return attrs.evolve(types[0], nullable=True)

    def _find_type_of_argument(self, expression: exp.Expr, scope: Scope) -> Type:
        argument = self._find_type(expression.this, scope)
        if isinstance(expression, exp.Sum) and argument.size:
            return attrs.evolve(argument, size=(_MOST_DIGITS, argument.size[1]), nullable=True)
        return attrs.evolve(argument, nullable=True)

    def _find_type_of_calculation(self, expression: exp.Binary, scope: Scope) -> Type:
        operands = [self._find_type(operand, scope) for operand in (expression.this, expression.expression)]
        kinds = {operand.kind for operand in operands}
        if "double" in kinds and kinds <= {"double", "float", *_WHOLE_KINDS}:
            return Type("double", nullable=True)
        if not kinds <= _WHOLE_KINDS:
            raise Unknown("Flink's type of the result depends on its release")
        return _LONG if "long" in kinds else _WHOLE


def _drop_null(type_: Type) -> Type:
    return attrs.evolve(type_, nullable=False)


def _find_nested(type_: Type, path: list[str]) -> Type:
    """Return the type of the field at a path inside a record. It is nullable if what contains it is."""
    nullable = type_.nullable
    for name in path:
        fields = {field.name: field.type for field in type_.fields} if type_.kind == "record" else {}
        if name not in fields:
            raise Unknown(f"there is no field {name}")
        type_ = fields[name]
        nullable = nullable or type_.nullable
    return attrs.evolve(type_, nullable=nullable or type_.nullable)


def _copy(type_: Type) -> Type:
    """Return the type that Flink writes for a field that it has read. Tags are lost."""
    if type_.kind == "union":
        raise Unknown("Flink has no type for a union of several types")
    if type_.key is not None:
        raise Unknown("a map whose keys aren't text")
    return attrs.evolve(
        type_,
        kind=_COPIED_AS.get(type_.kind, type_.kind),
        tagged=False,
        fields=tuple(Field(field.name, _copy(field.type)) for field in type_.fields),
        items=_copy(type_.items) if type_.items else None,
        record="",
    )


def _read_cast(target: exp.DataType) -> Type:
    """Return the type that a CAST names. Raises Unknown."""
    sizes = [int(size.name) for size in target.expressions if size.name.isdigit()]
    if target.this == exp.DType.DECIMAL:
        precision = sizes[0] if sizes else _DEFAULT_DECIMAL_PRECISION
        return Type("decimal", nullable=True, size=(precision, sizes[1] if len(sizes) > 1 else 0))
    if target.this in _CAST_TO_TIME:
        precision = sizes[0] if sizes else _DEFAULT_TIME_PRECISION
        unit = "millis" if precision <= 3 else "micros"
        return Type(f"{_CAST_TO_TIME[target.this]}-{unit}", nullable=True)
    if target.this not in _CAST_TO:
        raise Unknown(f"CAST to {target.sql()}")
    return Type(_CAST_TO[target.this], nullable=True)


def _list_results(expression: exp.Expr) -> list[exp.Expr]:
    """Return the expressions one of which is the value of a CASE, an IF or a COALESCE."""
    if isinstance(expression, exp.Coalesce):
        return [expression.this, *expression.expressions]
    if isinstance(expression, exp.If):
        results = [expression.args["true"], expression.args.get("false")]
    else:
        results = [
            *(branch.args["true"] for branch in expression.args["ifs"]),
            expression.args.get("default"),
        ]
    return [result for result in results if result is not None]


def _find_fixed_type(expression: exp.Expr) -> Type:
    """Return the type of an expression whose type doesn't depend on its arguments. Raises Unknown."""
    if isinstance(expression, exp.Cast):
        return _read_cast(expression.to)
    if isinstance(expression, exp.Literal):
        if not expression.is_string and not expression.is_int:
            raise Unknown("a number with a point")
        return Type("string" if expression.is_string else "int")
    if isinstance(expression, _TEXT_EXPRESSIONS):
        return _TEXT
    if isinstance(expression, exp.Anonymous) and expression.name.lower() in _TEXT_FUNCTIONS:
        return _TEXT
    if isinstance(expression, _LONG_EXPRESSIONS):
        return _LONG
    if isinstance(expression, _FLAG_EXPRESSIONS):
        return _FLAG
    name = expression.name if isinstance(expression, exp.Anonymous) else expression.key.upper()
    raise Unknown(f"{name} computes it. Write it as CAST(… AS its type)")
