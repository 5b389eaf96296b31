"""Statements that were sent: each has a handle, runs once, and keeps its result."""

from __future__ import annotations

import uuid
from enum import Enum, auto
from typing import Any, Final

import attrs

from simulators.snowflake import engine
from simulators.snowflake.account import Account
from simulators.snowflake.errors import CallRefused, SqlError
from simulators.snowflake.model import Domain, User
from simulators.snowflake.results import Result
from simulators.snowflake.session import Session, granted_to, inherited

_MOST_SECONDS: Final = 604_800
CANCELED: Final = SqlError("000604", "57014", "SQL execution canceled")


class State(Enum):
    RUNNING = auto()
    DONE = auto()
    FAILED = auto()


@attrs.define(eq=False)
class Statement:
    handle: str
    user: User
    request_id: str
    created: float
    nullable: bool
    state: State = State.RUNNING
    result: Result | None = None
    error: SqlError | None = None

    def fail(self, error: SqlError) -> None:
        self.state, self.error = State.FAILED, error


@attrs.frozen
class Sent:
    """A call's body and query. Raises CallRefused where it isn't one."""

    text: str
    timeout: float
    role: str
    warehouse: str
    database: str
    schema: str
    bindings: dict[str, Any]
    wanted: int
    request_id: str
    retry: bool
    asynchronous: bool
    nullable: bool

    @classmethod
    def read(cls, body: Any, query: dict[str, str]) -> Sent:
        if not isinstance(body, dict) or not isinstance(body.get("statement"), str):
            raise CallRefused(400, "391910", "The body must be a JSON object with a statement.")
        bindings, parameters = body.get("bindings") or {}, body.get("parameters") or {}
        if not isinstance(parameters, dict) or not _are_bindings(bindings):
            raise CallRefused(400, "391910", "parameters must be an object, and bindings one of type and value.")
        named = {name: body.get(name) or "" for name in ("role", "warehouse", "database", "schema")}
        parameters = {str(key).upper(): value for key, value in parameters.items()}
        try:
            timeout, wanted = float(body.get("timeout") or _MOST_SECONDS), int(parameters.get("MULTI_STATEMENT_COUNT", 1))
        except (TypeError, ValueError):
            raise CallRefused(400, "391910", "timeout and MULTI_STATEMENT_COUNT must be numbers.") from None
        if not all(isinstance(each, str) for each in named.values()):
            raise CallRefused(400, "391910", "role, warehouse, database and schema must be text.")
        return cls(
            text=body["statement"],
            timeout=timeout,
            **named,
            bindings=bindings,
            wanted=wanted,
            request_id=query.get("requestId", ""),
            retry=query.get("retry", "false") == "true",
            asynchronous=query.get("async", "false") == "true",
            nullable=query.get("nullable", "true") == "true",
        )


def _are_bindings(given: Any) -> bool:
    return isinstance(given, dict) and all(isinstance(each, dict) and {"type", "value"} <= each.keys() for each in given.values())


class Statements:
    def __init__(self, account: Account) -> None:
        self._account = account
        self._by_handle: dict[str, Statement] = {}
        self._by_request: dict[tuple[str, str], Statement] = {}

    def send(self, user: User, sent: Sent) -> Statement:
        """A statement that is sent again with its request id is not run again."""
        again = self._by_request.get((user.label, sent.request_id))
        if sent.retry and again is not None:
            return again
        session = self._session(user, sent)
        handle = str(uuid.UUID(int=self._account.random.getrandbits(128), version=4))
        statement = Statement(handle, user, sent.request_id, self._account.clock.now(), sent.nullable)
        self._by_handle[handle] = statement
        if sent.request_id:
            self._by_request[user.label, sent.request_id] = statement
        self._start(session, sent, statement)
        return statement

    def find(self, user: User, handle: str) -> Statement:
        found = self._by_handle.get(handle)
        if found is None or found.user is not user:
            raise CallRefused(404, "000709", f"Statement {handle} not found")
        return found

    def cancel(self, user: User, handle: str) -> Statement:
        found = self.find(user, handle)
        if found.state is not State.RUNNING:
            raise CallRefused(422, "000605", "Identified SQL statement is not currently executing.")
        found.fail(CANCELED)
        return found

    def _start(self, session: Session, sent: Sent, statement: Statement) -> None:
        clock, seconds = self._account.clock, self._account.ways.seconds_of(sent.text)
        if seconds > sent.timeout:
            told = f"Statement reached its statement or warehouse timeout of {sent.timeout:.0f} second(s) and was canceled."
            clock.after(sent.timeout, lambda: _end(statement, SqlError("000630", "57014", told)))
        elif seconds > 0:
            clock.after(seconds, lambda: _run(session, sent, statement))
        else:
            _run(session, sent, statement)

    def _session(self, user: User, sent: Sent) -> Session:
        role = sent.role or user.default_role or "PUBLIC"
        if self._account.find(Domain.ROLE, (role,)) is None:
            raise CallRefused(403, "390189", _no_role(role, "does not exist or not authorized"))
        if role not in inherited(self._account, granted_to(self._account, user)):
            raise CallRefused(403, "390186", _no_role(role, "is not granted to this user"))
        database, _, schema = user.default_namespace.partition(".")
        return Session(
            self._account,
            user,
            role,
            warehouse=sent.warehouse or user.default_warehouse,
            database=sent.database or database,
            schema=sent.schema or schema,
        )


def _no_role(role: str, why: str) -> str:
    return (
        f"Role '{role}' specified in the connect string {why}. Contact your local system administrator, "
        "or attempt to login with another role, e.g. PUBLIC."
    )


def _run(session: Session, sent: Sent, statement: Statement) -> None:
    """Unless it was cancelled meanwhile."""
    if statement.state is not State.RUNNING:
        return
    try:
        statement.result = engine.execute(session, sent.text, sent.bindings, sent.wanted)
        statement.state = State.DONE
    except SqlError as error:
        statement.fail(error)


def _end(statement: Statement, error: SqlError) -> None:
    if statement.state is State.RUNNING:
        statement.fail(error)
