"""Checks requests and responses of the SQL API against Snowflake's documentation.

The JSON schemas have the fields, types and statuses of two documents:
<https://github.com/snowflakedb/snowflake-rest-api-specs> (`specifications/sqlapi.yaml`, version 2.0.0, at
commit 4d5b8abef4957fcbba7bccb7b6af79930d7b059d) and
<https://docs.snowflake.com/en/developer-guide/sql-api/reference>. Other fields are refused, which finds
typing mistakes.
"""

from __future__ import annotations

import json
import re
from urllib.parse import parse_qsl

from openapi_schema_validator import OAS31Validator

TEXT = {"type": "string"}
FLAG = {"type": "boolean"}
COUNT = {"type": "integer", "minimum": 0}
UUID = {"type": "string", "pattern": r"^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$"}


def _object(required="", **properties):
    return {
        "type": "object",
        "properties": properties,
        "required": required.split(),
        "additionalProperties": False,
    }


def _list(items, **more):
    return {"type": "array", "items": items, **more}


#: Snowflake sends null for attributes that a column's type doesn't have, and the table's names; the
#: specification has neither.
_OPTIONAL = {"type": ["integer", "null"], "minimum": 0}
_COLUMN = _object(
    "name type",
    name=TEXT,
    type={
        "enum": (
            "fixed real text binary boolean date time timestamp_ltz timestamp_ntz timestamp_tz variant "
            "object array"
        ).split()
    },
    length=_OPTIONAL,
    byteLength=_OPTIONAL,
    precision=_OPTIONAL,
    scale=_OPTIONAL,
    nullable=FLAG,
    database=TEXT,
    schema=TEXT,
    table=TEXT,
    collation={"type": ["string", "null"]},
)
_METADATA = _object(
    "numRows format rowType",
    numRows=COUNT,
    format={"const": "jsonv2"},
    rowType=_list(_COLUMN, minItems=1),
    partitionInfo=_list(_object(rowCount=COUNT, compressedSize=COUNT, uncompressedSize=COUNT)),
    nullable=FLAG,
    parameters={"type": "object"},
)
_DATA = _list(_list({"type": ["string", "null"]}))
_HEAD = {
    "code": {"type": "string", "pattern": r"^\d{6}$"},
    "sqlState": {"type": "string", "pattern": "^[0-9A-Z]{5}$"},
    "message": TEXT,
    "statementHandle": UUID,
    "statementStatusUrl": {"type": "string", "pattern": "^/api/v2/statements/"},
    "createdOn": COUNT,
}
_STATUS = _object("statementHandle", **_HEAD)
_FAILURE = _object("message statementHandle", **_HEAD)
_RESULT = _object(
    "code statementHandle resultSetMetaData data", **_HEAD, resultSetMetaData=_METADATA, data=_DATA
)
_PARTITION = _object("data", data=_DATA)
#: The specification has no schema for refused calls; the reference shows code and message.
_REFUSAL = _object("code message", code=_HEAD["code"], message=TEXT)
_REFUSALS = dict.fromkeys((400, 401, 403, 404, 405, 415, 429, 500, 503, 504), _REFUSAL)

_SUBMIT = _object(
    "statement",
    statement=TEXT,
    timeout=COUNT,
    database=TEXT,
    schema=TEXT,
    warehouse=TEXT,
    role=TEXT,
    bindings={
        "type": "object",
        "additionalProperties": _object("type value", type=TEXT, value={"type": ["string", "null"]}),
    },
    parameters={
        "type": "object",
        "propertyNames": {
            "pattern": "(?i)^(timezone|query_tag|(binary|date|time|timestamp(_[ln]?tz)?)_output_format|multi_statement_count)$"
        },
    },
)
_SUBMIT_QUERY = _object(requestId=UUID, retry=FLAG, **{"async": FLAG}, nullable=FLAG)
#: By method and path: the query, the body, and the body of each status.
_OPERATIONS = (
    (
        "POST",
        "/api/v2/statements",
        _SUBMIT_QUERY,
        _SUBMIT,
        {200: _RESULT, 202: _STATUS, 408: _STATUS, 422: _FAILURE},
    ),
    (
        "GET",
        "/api/v2/statements/[^/]+",
        _object(requestId=UUID, partition=COUNT),
        None,
        {200: {"anyOf": [_RESULT, _PARTITION]}, 202: _STATUS, 408: _STATUS, 422: _FAILURE},
    ),
    # A statement that has ended can't be canceled; the reference shows neither handle nor state for it.
    (
        "POST",
        "/api/v2/statements/[^/]+/cancel",
        _object(requestId=UUID, retry=FLAG),
        None,
        {200: _STATUS, 422: _REFUSAL},
    ),
)


class ContractBroken(AssertionError):
    """A request or response that the documents don't allow."""


def check(method, path, query, status, content_type, document):
    """Raise ContractBroken for a response."""
    schemas = {**_REFUSALS, **_operation(method, path)[4]}
    if status not in schemas or not content_type.startswith("application/json"):
        raise ContractBroken(
            f"{method} {path} answered {status} with {content_type!r}, which isn't documented"
        )
    _require_valid(f"{method} {path} answered {status}", schemas[status], document)


def check_request(method, path, query, content_type, document):
    """Raise ContractBroken for a request."""
    _, _, parameters, body, _ = _operation(method, path)
    where = f"{method} {path}"
    _require_valid(f"{where}?{query}", parameters, {name: _typed(value) for name, value in parse_qsl(query)})
    if (body is None) != (document is None):
        raise ContractBroken(f"{where}: a body is {'not ' if body is None else ''}wanted")
    if body is not None:
        _require_valid(where, body, document)


def _operation(method, path):
    for operation in _OPERATIONS:
        if operation[0] == method and re.fullmatch(operation[1], path):
            return operation
    raise ContractBroken(f"{method} {path} isn't documented")


def _typed(value):
    return json.loads(value) if value in ("true", "false") or value.isdecimal() else value


def _require_valid(where, schema, document):
    problems = sorted(OAS31Validator(schema).iter_errors(document), key=lambda each: list(each.path))
    if problems:
        reasons = "; ".join(
            f"{'/'.join(map(str, problem.path))}: {problem.message[:300]}" for problem in problems[:3]
        )
        raise ContractBroken(f"{where}: {reasons}")
