"""What a statement does once it leaves PENDING, and while it runs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from simulators.confluent import flink_tables
from simulators.confluent.authorization import allowed
from simulators.confluent.flink_sql import Form, Parsed, SqlError, parse
from simulators.confluent.flink_tables import Database
from simulators.confluent.refusals import Refusal

if TYPE_CHECKING:
    from simulators.confluent.kinds.statements import Statement
    from simulators.confluent.world import World

#: Seconds between two looks at the source topics.
TICK: Final = 30.0


def begin(world: World, statement: Statement) -> None:
    """From PENDING to what becomes of it."""
    if world.statements.get((statement.environment, statement.name)) is not statement or statement.phase != "PENDING":
        return
    try:
        _start(world, statement)
    except (SqlError, Refusal) as failed:
        statement.phase, statement.detail = "FAILED", str(failed)
    statement.touch(world)


def _start(world: World, statement: Statement) -> None:
    _require_pool(world, statement)
    parsed = parse(statement.sql)
    where = flink_tables.database(world, statement.environment, statement.properties, statement.principal)
    statement.kind = _KINDS[parsed.form]
    match parsed.form:
        case Form.DROP:
            where.drop(parsed.table[-1], lenient=parsed.lenient)
            statement.phase, statement.detail = "COMPLETED", ""
        case Form.CREATE:
            _create(statement, parsed, where)
        case Form.INSERT:
            _require_table(where, parsed.table[-1], "write")
            _run(statement, parsed, where)
        case Form.SELECT:
            _run(statement, parsed, where)
        case Form.DEFINE:
            raise SqlError("CREATE TABLE without AS is not simulated. Use CREATE TABLE … AS SELECT")


_KINDS: Final = {
    Form.CREATE: "CREATE_TABLE_AS",
    Form.DEFINE: "CREATE_TABLE",
    Form.INSERT: "INSERT_INTO",
    Form.DROP: "DROP_TABLE",
    Form.SELECT: "SELECT",
}


def _require_pool(world: World, statement: Statement) -> None:
    pool = world.compute_pools.get(statement.pool)
    if pool is None or pool.environment != statement.environment or pool.phase != "PROVISIONED":
        raise SqlError(f"Compute pool '{statement.pool}' is not available")
    if not allowed(world, statement.principal, "flink", pool.crn):
        raise SqlError(f"Not authorized: User:{statement.principal} needs FlinkDeveloper on compute pool '{pool.id}'")


def _create(statement: Statement, parsed: Parsed, where: Database) -> None:
    table = parsed.table[-1]
    if where.topic(table) is not None:
        if parsed.lenient:
            statement.phase, statement.detail = "COMPLETED", f"Table '{table}' already exists"
            return
        raise SqlError(f"Table '{table}' already exists")
    plan = where.world.engine.plan(parsed, where)
    where.create(table, parsed)
    where.registry.schemas.register(f"{table}-value", plan.schema(table))
    _run(statement, parsed, where)


def _run(statement: Statement, parsed: Parsed, where: Database) -> None:
    statement.run = where.world.engine.start(parsed, where, bounded=statement.bounded)
    statement.phase, statement.detail = "RUNNING", ""
    _tick(where.world, statement)


def _require_table(where: Database, table: str, action: str) -> None:
    if where.topic(table) is None or where.schema(table) is None:
        raise SqlError(f"Cannot find table '{table}' in any of the catalogs")
    where.require(action, table)


def _tick(world: World, statement: Statement) -> None:
    """Again and again until it is stopped or deleted."""
    if statement.run is None or statement.phase != "RUNNING" or (statement.environment, statement.name) not in world.statements:
        return
    world.clock.catch_up()
    try:
        statement.run.advance()
    except SqlError as failed:
        statement.phase, statement.detail = "FAILED", str(failed)
        return
    if statement.bounded:
        statement.phase = "COMPLETED"
        return
    world.clock.after(TICK, lambda: _tick(world, statement))


def resume(world: World, statement: Statement) -> None:
    statement.phase = "RUNNING" if statement.run else "PENDING"
    if statement.run:
        _tick(world, statement)
    else:
        begin(world, statement)
