"""Flink statements (sql/v1) and their runs.

The name of a statement can be reused after the statement is deleted.
"""

from __future__ import annotations

import re
from typing import Any, Final

from simulators.confluent import kafka
from simulators.confluent.authorization import is_allowed
from simulators.confluent.errors import (
    ApiError,
    bad_request,
    conflict,
    forbidden,
    immutable,
    invalid,
    not_found,
)
from simulators.confluent.fields import Fields
from simulators.confluent.flink import carry_over, tables
from simulators.confluent.flink.sql import SqlError, parse
from simulators.confluent.http import FLINK, Answer, Call, Route
from simulators.confluent.model import Database, Form, ParsedStatement, Plane, Statement
from simulators.confluent.organization import Organization
from simulators.confluent.pages import build_page

_NAME: Final = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
_LONGEST_NAME: Final = 100
_PATH: Final = "/sql/v1/organizations/{organization}/environments/{environment}/statements"
_ONE: Final = _PATH + "/{name}"
#: Seconds between two reads of the source topics.
_TICK: Final = 30.0
_KINDS: Final = {
    Form.CREATE: "CREATE_TABLE_AS",
    Form.DEFINE: "CREATE_TABLE",
    Form.INSERT: "INSERT_INTO",
    Form.DROP: "DROP_TABLE",
    Form.SELECT: "SELECT",
}

#: Phases in which a statement is deleted after a while.
_ENDED: Final = ("STOPPED", "COMPLETED", "FAILED")


def build_document(org: Organization, statement: Statement) -> dict[str, Any]:
    path = _PATH.format(organization=org.organization_id, environment=statement.environment)
    metadata = {
        "self": f"{org.addresses[Plane.FLINK]}{path}/{statement.name}",
        "resource_name": statement.crn,
        "created_at": org.clock.format_time(statement.created),
        "updated_at": org.clock.format_time(statement.updated),
        "resource_version": str(statement.version),
        "uid": statement.id,
    }
    spec = {
        "statement": statement.sql,
        "properties": statement.properties,
        "compute_pool_id": statement.pool,
        "principal": statement.principal,
        "stopped": statement.phase in ("STOPPING", "STOPPED"),
    }
    return {
        "api_version": "sql/v1",
        "kind": "Statement",
        "metadata": metadata,
        "name": statement.name,
        "organization_id": org.organization_id,
        "environment_id": statement.environment,
        "spec": spec,
        "status": {"phase": statement.phase, "detail": statement.detail}
        | _build_traits(statement)
        | _build_offsets(org, statement),
    }


def _build_traits(statement: Statement) -> dict[str, Any]:
    """Return the traits of a statement. A statement that isn't planned yet has none."""
    if not statement.kind:
        return {}
    traits: dict[str, Any] = {
        "sql_kind": statement.kind,
        "is_bounded": statement.bounded,
        "is_append_only": True,
    }
    if statement.run:
        traits["schema"] = {"columns": statement.run.columns}
    return {"traits": traits}


def _build_offsets(org: Organization, statement: Statement) -> dict[str, Any]:
    """Return the offsets of a statement that has begun to read."""
    if statement.run is None:
        return {}
    return {
        "latest_offsets": carry_over.format_offsets(statement.run.offsets()),
        "latest_offsets_timestamp": org.clock.format_time(statement.updated),
    }


def create(call: Call) -> Answer:
    org = call.org
    environment = _find_environment(call)
    body = Fields(call.body)
    name = body.read_text("name", required=True)
    spec = body.read_object("spec")
    if len(name) > _LONGEST_NAME or not _NAME.fullmatch(name):
        rule = f"must be at most {_LONGEST_NAME} lower-case letters, digits, '-' and '.'"
        raise invalid("/name", f"Statement name {name!r} {rule}")
    if (environment, name) in org.statements:
        raise conflict(f"Statement {name} already exists")
    if spec.read_flag("stopped"):
        raise invalid("/spec/stopped", "A statement can't be created stopped")
    sql = spec.read_text("statement", required=True, pattern=r"[\s\S]{1,131072}")
    principal = spec.read_text("principal", call.principal)
    _require_assignable(call, principal)
    pool = spec.read_text("compute_pool_id", required=True)
    properties = dict(call.body["spec"].get("properties") or {})
    now = org.clock.now()
    region = call.key.resource.partition(".")[2]
    crn = f"{org.environments[environment].crn}/flink-region={region}/statement={name}"
    statement = Statement(
        str(org.create_uuid()), crn, now, now, environment, name, sql, properties, pool, principal
    )
    org.statements[environment, name] = statement
    org.clock.call_later(org.delays.statement, lambda: _begin(org, statement))
    return Answer(201, build_document(org, statement))


def _require_assignable(call: Call, principal: str) -> None:
    if principal == call.principal:
        return
    if principal not in call.org.service_accounts:
        raise invalid("/spec/principal", f"principal {principal} does not exist")
    if not is_allowed(call.org, call.principal, "assign", f"{call.org.crn}/service-account={principal}"):
        raise forbidden(f"Assigner on {principal} is needed to run statements as it")


def list_statements(call: Call) -> Answer:
    environment = _find_environment(call)
    pool = call.query.get("spec.compute_pool_id")
    statements = [
        statement
        for statement in call.org.statements.values()
        if statement.environment == environment and pool in (None, statement.pool)
    ]
    answer = build_page(call, "sql/v1", "Statement", statements, build_document)
    metadata = {"self": f"{call.address}{call.path}"} | answer.body["metadata"]
    del metadata["total_size"]
    return Answer(200, answer.body | {"metadata": metadata})


def read(call: Call) -> Answer:
    return Answer(200, build_document(call.org, _find_statement(call)))


def replace(call: Call) -> Answer:
    """Stop or resume the statement, or move it to another compute pool or principal.

    The SQL text can't change.
    """
    org = call.org
    statement = _find_statement(call)
    spec = Fields(call.body).read_object("spec")
    version = Fields(call.body).read_object("metadata", required=False).read_text("resource_version")
    if version and version != str(statement.version):
        raise conflict(f"resource_version is {statement.version}, not {version}")
    spec.require_same("statement", statement.sql)
    if call.body["spec"].get("properties", statement.properties) != statement.properties:
        raise immutable("/spec/properties")
    principal = spec.read_text("principal", statement.principal)
    _require_assignable(call, principal)
    statement.principal = principal
    statement.pool = spec.read_text("compute_pool_id", statement.pool)
    is_stopped = spec.read_flag("stopped")
    if is_stopped and statement.phase in ("PENDING", "RUNNING"):
        statement.phase = "STOPPED"
    elif not is_stopped and statement.phase == "STOPPED":
        _resume(org, statement)
    statement.touch(org.clock.now())
    return Answer(202)


def delete(call: Call) -> Answer:
    """Stop and delete the statement. The tables that it created remain."""
    org = call.org
    statement = _find_statement(call)
    statement.phase = "DELETING"
    key = (statement.environment, statement.name)
    org.clock.call_later(org.delays.statement_deletion, lambda: org.statements.pop(key, None))
    return Answer(202)


def read_results(call: Call) -> Answer:
    statement = _find_statement(call)
    if statement.kind != "SELECT" or statement.run is None:
        raise bad_request("The statement has no results")
    token = call.query.get("page_token", "0")
    start = int(token) if token.isdecimal() else 0
    rows = statement.run.rows[start:]
    address = f"{call.address}{call.path}"
    is_over = statement.phase not in ("PENDING", "RUNNING") and not rows
    next_page = "" if is_over else f"{address}?page_token={start + len(rows)}"
    metadata = {"self": address, "created_at": call.org.clock.format_time(), "next": next_page}
    data = [{"op": 0, "row": row} for row in rows]
    return Answer(
        200,
        {"api_version": "sql/v1", "kind": "StatementResult", "metadata": metadata, "results": {"data": data}},
    )


def list_exceptions(call: Call) -> Answer:
    statement = _find_statement(call)
    problem = {
        "name": "SqlException",
        "message": statement.detail,
        "timestamp": call.org.clock.format_time(statement.updated),
    }
    data = [{"kind": "StatementException"} | problem] if statement.phase == "FAILED" else []
    metadata = {"self": f"{call.address}{call.path}"}
    return Answer(
        200, {"api_version": "sql/v1", "kind": "StatementExceptionList", "metadata": metadata, "data": data}
    )


def _find_environment(call: Call) -> str:
    """Return the id of the environment in the path. Raises ApiError if the API key is for another one."""
    environment = call.org.environments.get(call.parameters["environment"])
    if call.parameters["organization"] != call.org.organization_id or environment is None:
        raise not_found("Environment", call.parameters["environment"])
    environment_of_key, _, region = call.key.resource.partition(".")
    if environment_of_key != environment.id:
        raise ApiError(401, "invalid API key for this environment and region", code="unauthorized")
    if not is_allowed(call.org, call.principal, "flink", f"{environment.crn}/flink-region={region}"):
        raise forbidden()
    _remove_ended(call.org)
    return environment.id


def _remove_ended(org: Organization) -> None:
    """Delete the statements that ended, or were stopped, too long ago. Their tables stay."""
    oldest = org.clock.now() - org.delays.statement_retention
    for key, statement in list(org.statements.items()):
        if statement.phase in _ENDED and statement.updated < oldest:
            del org.statements[key]


def _find_statement(call: Call) -> Statement:
    statement = call.org.statements.get((_find_environment(call), call.parameters["name"]))
    if statement is None:
        raise not_found("Statement", call.parameters["name"])
    return statement


def _begin(org: Organization, statement: Statement) -> None:
    """Start a PENDING statement.

    If it takes over the offsets of another one, it waits until that one stops.
    """
    if (
        org.statements.get((statement.environment, statement.name)) is not statement
        or statement.phase != "PENDING"
    ):
        return
    try:
        if carry_over.is_waiting(org, statement):
            org.clock.call_later(_TICK, lambda: _begin(org, statement))
            return
        _start(org, statement)
    except (SqlError, ApiError) as error:
        statement.phase = "FAILED"
        statement.detail = str(error)
    statement.touch(org.clock.now())


def _start(org: Organization, statement: Statement) -> None:
    _require_pool(org, statement)
    parsed = parse(statement.sql)
    database = tables.open_database(org, statement.environment, statement.properties, statement.principal)
    statement.kind = _KINDS[parsed.form]
    match parsed.form:
        case Form.DROP:
            tables.drop_table(org, database, parsed.table[-1], lenient=parsed.lenient)
            statement.phase = "COMPLETED"
            statement.detail = ""
        case Form.CREATE:
            _create_table(org, statement, parsed, database)
        case Form.INSERT:
            _require_sink(org, database, parsed.table[-1])
            _run(org, statement, parsed, database)
        case Form.SELECT:
            _run(org, statement, parsed, database)
        case Form.DEFINE:
            raise SqlError("CREATE TABLE without AS is not simulated. Use CREATE TABLE … AS SELECT")


def _require_pool(org: Organization, statement: Statement) -> None:
    pool = org.compute_pools.get(statement.pool)
    if pool is None or pool.environment != statement.environment or pool.phase != "PROVISIONED":
        raise SqlError(f"Compute pool '{statement.pool}' is not available")
    if not is_allowed(org, statement.principal, "flink", pool.crn):
        raise SqlError(
            f"Not authorized: User:{statement.principal} needs FlinkDeveloper on compute pool '{pool.id}'"
        )


def _create_table(
    org: Organization, statement: Statement, parsed: ParsedStatement, database: Database
) -> None:
    table = parsed.table[-1]
    if kafka.find_visible_topic(org, database.cluster, table) is not None:
        if parsed.lenient:
            statement.phase = "COMPLETED"
            statement.detail = f"Table '{table}' already exists"
            return
        raise SqlError(f"Table '{table}' already exists")
    plan = org.engine.plan(parsed, database)
    tables.create_table(org, database, table, parsed)
    database.registry.schemas.register(f"{table}-value", plan.build_schema(table))
    _run(org, statement, parsed, database)


def _require_sink(org: Organization, database: Database, table: str) -> None:
    if kafka.find_visible_topic(org, database.cluster, table) is None or database.find_schema(table) is None:
        raise SqlError(f"Cannot find table '{table}' in any of the catalogs")
    tables.require(org, database, "write", table)


def _run(org: Organization, statement: Statement, parsed: ParsedStatement, database: Database) -> None:
    start = carry_over.find_start(org, statement, org.engine.plan(parsed, database))
    statement.run = org.engine.start(parsed, database, bounded=statement.bounded, start=start)
    statement.phase = "RUNNING"
    statement.detail = ""
    _process_records(org, statement)


def _process_records(org: Organization, statement: Statement) -> None:
    """Process new records and schedule the next tick, until the statement is stopped, fails, completes or is
    deleted.
    """
    if (
        statement.run is None
        or statement.phase != "RUNNING"
        or (statement.environment, statement.name) not in org.statements
    ):
        return
    org.clock.catch_up()
    try:
        statement.run.advance()
    except SqlError as error:
        statement.phase = "FAILED"
        statement.detail = str(error)
        return
    if statement.bounded:
        statement.phase = "COMPLETED"
        return
    org.clock.call_later(_TICK, lambda: _process_records(org, statement))


def _resume(org: Organization, statement: Statement) -> None:
    statement.phase = "RUNNING" if statement.run else "PENDING"
    if statement.run:
        _process_records(org, statement)
    else:
        _begin(org, statement)


ROUTES: Final = (
    Route(FLINK, "POST", _PATH, create, {404: 403}),
    Route(FLINK, "GET", _PATH, list_statements),
    Route(FLINK, "GET", _ONE, read),
    Route(FLINK, "PUT", _ONE, replace, {422: 400}),
    Route(FLINK, "DELETE", _ONE, delete),
    Route(FLINK, "GET", _ONE + "/results", read_results),
    Route(FLINK, "GET", _ONE + "/exceptions", list_exceptions),
)
