"""The SQL API: calls that submit a statement, the statements with their results, and the answers about
them.
"""

from __future__ import annotations

import gzip
import json
import uuid
from enum import Enum, auto
from typing import Any, Final

import attrs
from starlette.responses import Response

from simulators.snowflake import engine
from simulators.snowflake.account import Account
from simulators.snowflake.behavior import Behavior
from simulators.snowflake.errors import CallRefused, SqlError
from simulators.snowflake.model import Domain, User
from simulators.snowflake.results import Result, Row
from simulators.snowflake.session import Session, list_granted_roles, list_inherited_roles

PATH: Final = "/api/v2/statements"
CANCELED: Final = SqlError("000604", "57014", "SQL execution canceled")
_MAX_SECONDS: Final = 604_800
_DONE: Final = "Statement executed successfully."
_RUNNING: Final = (
    "Asynchronous execution in progress. Use provided query id to perform query monitoring and management."
)
_TIMED_OUT: Final = "000630"


# --- what a call submits


@attrs.frozen
class Sent:
    """The body and the query parameters of a call that submits a statement. `timeout` is in seconds."""

    text: str
    timeout: float
    role: str
    warehouse: str
    database: str
    schema: str
    bindings: dict[str, Any]
    count: int
    request_id: str
    retry: bool
    asynchronous: bool
    nullable: bool

    @classmethod
    def read(cls, body: Any, query: dict[str, str]) -> Sent:
        """Read the body and the query parameters of a call. Raises CallRefused for an invalid body."""
        if not isinstance(body, dict) or not isinstance(body.get("statement"), str):
            raise CallRefused(400, "391910", "The body must be a JSON object with a statement.")
        bindings = body.get("bindings") or {}
        parameters = body.get("parameters") or {}
        if not isinstance(parameters, dict) or not _are_bindings(bindings):
            raise CallRefused(
                400, "391910", "parameters must be an object, and bindings one of type and value."
            )
        names = {name: body.get(name) or "" for name in ("role", "warehouse", "database", "schema")}
        parameters = {str(key).upper(): value for key, value in parameters.items()}
        try:
            timeout = float(body.get("timeout") or _MAX_SECONDS)
            count = int(parameters.get("MULTI_STATEMENT_COUNT", 1))
        except (TypeError, ValueError):
            raise CallRefused(400, "391910", "timeout and MULTI_STATEMENT_COUNT must be numbers.") from None
        if not all(isinstance(name, str) for name in names.values()):
            raise CallRefused(400, "391910", "role, warehouse, database and schema must be text.")
        return cls(
            text=body["statement"],
            timeout=timeout,
            **names,
            bindings=bindings,
            count=count,
            request_id=query.get("requestId", ""),
            retry=query.get("retry", "false") == "true",
            asynchronous=query.get("async", "false") == "true",
            nullable=query.get("nullable", "true") == "true",
        )


def _are_bindings(bindings: Any) -> bool:
    if not isinstance(bindings, dict):
        return False
    return all(
        isinstance(binding, dict) and {"type", "value"} <= binding.keys() for binding in bindings.values()
    )


# --- statements


class State(Enum):
    RUNNING = auto()
    DONE = auto()
    FAILED = auto()


@attrs.define(eq=False)
class Statement:
    """A submitted statement. `result` is set if it succeeded, `error` if it failed or was canceled."""

    handle: str
    user: User
    request_id: str
    created: float
    nullable: bool
    state: State = State.RUNNING
    result: Result | None = None
    error: SqlError | None = None

    def run(self, session: Session, sent: Sent) -> None:
        """Run the statement, unless it was canceled in the meantime."""
        if self.state is not State.RUNNING:
            return
        try:
            self.result = engine.execute(session, sent.text, sent.bindings, sent.count)
            self.state = State.DONE
        except SqlError as error:
            self.fail(error)

    def fail(self, error: SqlError) -> None:
        if self.state is State.RUNNING:
            self.state = State.FAILED
            self.error = error


class Statements:
    def __init__(self, account: Account) -> None:
        self._account = account
        self._by_handle: dict[str, Statement] = {}
        self._by_request: dict[tuple[str, str], Statement] = {}

    def send(self, user: User, sent: Sent) -> Statement:
        """Submit a statement.

        A retry with the same request id returns the earlier statement. Raises CallRefused.
        """
        earlier = self._by_request.get((user.label, sent.request_id))
        if sent.retry and earlier is not None:
            return earlier
        session = self._open_session(user, sent)
        handle = str(uuid.UUID(int=self._account.random.getrandbits(128), version=4))
        statement = Statement(handle, user, sent.request_id, self._account.clock.now(), sent.nullable)
        self._by_handle[handle] = statement
        if sent.request_id:
            self._by_request[user.label, sent.request_id] = statement
        self._start(session, sent, statement)
        return statement

    def find(self, user: User, handle: str) -> Statement:
        """Return the statement.

        Raises CallRefused if there is none with this handle, or another user submitted it.
        """
        statement = self._by_handle.get(handle)
        if statement is None or statement.user is not user:
            raise CallRefused(404, "000709", f"Statement {handle} not found")
        return statement

    def cancel(self, user: User, handle: str) -> Statement:
        """Cancel the statement and return it. Raises CallRefused if it isn't running."""
        statement = self.find(user, handle)
        if statement.state is not State.RUNNING:
            raise CallRefused(422, "000605", "Identified SQL statement is not currently executing.")
        statement.fail(CANCELED)
        return statement

    def _start(self, session: Session, sent: Sent, statement: Statement) -> None:
        clock = self._account.clock
        seconds = self._account.behavior.count_seconds(sent.text)
        if seconds > sent.timeout:
            message = (
                f"Statement reached its statement or warehouse timeout of {sent.timeout:.0f} second(s) and "
                "was canceled."
            )
            clock.call_later(sent.timeout, lambda: statement.fail(SqlError(_TIMED_OUT, "57014", message)))
        elif seconds > 0:
            clock.call_later(seconds, lambda: statement.run(session, sent))
        else:
            statement.run(session, sent)

    def _open_session(self, user: User, sent: Sent) -> Session:
        role = sent.role or user.default_role or "PUBLIC"
        if self._account.find(Domain.ROLE, (role,)) is None:
            raise CallRefused(403, "390189", _describe_missing_role(role, "does not exist or not authorized"))
        if role not in list_inherited_roles(self._account, list_granted_roles(self._account, user)):
            raise CallRefused(403, "390186", _describe_missing_role(role, "is not granted to this user"))
        database, _, schema = user.default_namespace.partition(".")
        return Session(
            self._account,
            user,
            role,
            warehouse=sent.warehouse or user.default_warehouse,
            database=sent.database or database,
            schema=sent.schema or schema,
        )


def _describe_missing_role(role: str, reason: str) -> str:
    return (
        f"Role '{role}' specified in the connect string {reason}. Contact your local system administrator, "
        "or attempt to login with another role, e.g. PUBLIC."
    )


# --- answers


def answer_statement(
    statement: Statement, behavior: Behavior, *, wait: bool = False, partition: int = 0
) -> Response:
    """Return the answer about a statement.

    With `wait`, for asynchronous execution, it has no result, even if there is one.
    """
    if wait or statement.state is State.RUNNING:
        return _build_json_response(202, _build_head(statement, "333334", "", _RUNNING))
    if statement.error:
        status = 408 if statement.error.code == _TIMED_OUT else 422
        return _build_json_response(status, _describe_failure(statement, statement.error))
    assert statement.result is not None, "a statement that is done has a result"
    rows = statement.result.rows[: behavior.most_rows]
    size = behavior.partition_rows
    parts = [rows[start : start + size] for start in range(0, len(rows), size)] or [[]]
    if not 0 <= partition < len(parts):
        raise CallRefused(400, "391920", f"There is no partition {partition}: the result has {len(parts)}.")
    if partition:
        return _compress_answer(
            {"data": _write_nulls(parts[partition], statement.nullable)},
            _build_links(statement, partition, len(parts)),
        )
    truncated = len(statement.result.rows) > behavior.most_rows
    code = "391908" if truncated else "090001"
    message = "Result is too large and was truncated." if truncated else _DONE
    body = _build_head(statement, code, "00000", message) | {
        "resultSetMetaData": _build_metadata(statement.result, parts),
        "data": _write_nulls(parts[0], statement.nullable),
    }
    links = _build_links(statement, 0, len(parts)) if len(parts) > 1 else {}
    return _build_json_response(200, body, links)


def answer_cancellation(statement: Statement) -> Response:
    assert statement.error is not None, "a canceled statement has an error"
    return _build_json_response(200, _describe_failure(statement, statement.error))


def answer_refusal(refusal: CallRefused) -> Response:
    return _build_json_response(refusal.status, {"code": refusal.code, "message": refusal.message})


def _describe_failure(statement: Statement, error: SqlError) -> dict[str, Any]:
    return _build_head(statement, error.code, error.state, error.message)


def _build_head(statement: Statement, code: str, state: str, message: str) -> dict[str, Any]:
    head: dict[str, Any] = {
        "code": code,
        "message": message,
        "statementHandle": statement.handle,
        "statementStatusUrl": f"{PATH}/{statement.handle}?requestId={statement.request_id}",
        "createdOn": int(statement.created * 1000),
    }
    if state:
        head["sqlState"] = state
    return head


def _build_metadata(result: Result, parts: list[list[Row]]) -> dict[str, Any]:
    return {
        "numRows": sum(len(part) for part in parts),
        "format": "jsonv2",
        "rowType": [column.build_document() for column in result.columns],
        "partitionInfo": [
            {"rowCount": len(part), "uncompressedSize": len(json.dumps(part))} for part in parts
        ],
    }


def _write_nulls(rows: list[Row], nullable: bool) -> list[Row]:
    if nullable:
        return rows
    texts: list[Row] = []
    for row in rows:
        texts.append(["null" if value is None else value for value in row])
    return texts


def _build_links(statement: Statement, partition: int, count: int) -> dict[str, str]:
    partitions = {"first": 0, "prev": partition - 1, "next": partition + 1, "last": count - 1}
    url = f"{PATH}/{statement.handle}?requestId={statement.request_id}&partition="
    return {
        "Link": ",".join(
            f'<{url}{number}>;rel="{name}"' for name, number in partitions.items() if 0 <= number < count
        )
    }


def _build_json_response(
    status: int, body: dict[str, Any], headers: dict[str, str] | None = None
) -> Response:
    return Response(json.dumps(body, separators=(",", ":")), status, headers, "application/json")


def _compress_answer(body: dict[str, Any], headers: dict[str, str]) -> Response:
    """Return a gzip-compressed answer.

    Partitions after the first are always compressed, whatever the client accepts.
    """
    content = gzip.compress(json.dumps(body, separators=(",", ":")).encode(), mtime=0)
    return Response(content, 200, headers | {"Content-Encoding": "gzip"}, "application/json")
