"""Flink statements (sql/v1) on the regional address: a name is unique until the statement is gone."""

from __future__ import annotations

import re
import uuid
from typing import TYPE_CHECKING, Any, Final

import attrs

from simulators.confluent import flink_run
from simulators.confluent.authorization import allowed
from simulators.confluent.calls import FLINK, Answer, Call, Plane, Route
from simulators.confluent.fields import Fields
from simulators.confluent.refusals import Refusal, conflict, forbidden, immutable, invalid, not_found
from simulators.confluent.resources import Kind, Resource
from simulators.confluent.world import World

if TYPE_CHECKING:
    from simulators.confluent.flink_engine import Run

KIND: Final = Kind("sql/v1", "Statement", "/sql/v1/statements")
_NAME: Final = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
_LONGEST_NAME: Final = 100
_PATH: Final = "/sql/v1/organizations/{organization}/environments/{environment}/statements"
_ONE: Final = _PATH + "/{name}"


@attrs.define
class Statement(Resource):
    """`id` is unique for good, `name` only while it is there. `version` goes up with each change."""

    environment: str
    name: str
    sql: str
    properties: dict[str, str]
    pool: str
    principal: str
    phase: str = "PENDING"
    detail: str = ""
    kind: str = ""
    version: int = 1
    run: Run | None = attrs.field(default=None, repr=False)

    @property
    def bounded(self) -> bool:
        """A snapshot query: over what there is now."""
        return self.properties.get("sql.snapshot.mode") == "now"

    def touch(self, world: World) -> None:
        self.version, self.updated = self.version + 1, world.clock.now()


def document(world: World, statement: Statement) -> dict[str, Any]:
    own = _PATH.format(organization=world.organization_id, environment=statement.environment)
    metadata = {
        "self": f"{world.addresses[Plane.FLINK]}{own}/{statement.name}",
        "resource_name": statement.crn,
        "created_at": world.clock.text(statement.created),
        "updated_at": world.clock.text(statement.updated),
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
        "api_version": KIND.api_version,
        "kind": KIND.name,
        "metadata": metadata,
        "name": statement.name,
        "organization_id": world.organization_id,
        "environment_id": statement.environment,
        "spec": spec,
        "status": {"phase": statement.phase, "detail": statement.detail} | _traits(statement),
    }


def _traits(statement: Statement) -> dict[str, Any]:
    """What is known of a statement once it was planned."""
    if not statement.kind:
        return {}
    traits = {"sql_kind": statement.kind, "is_bounded": statement.bounded, "is_append_only": True}
    return {"traits": traits | ({"schema": {"columns": statement.run.columns}} if statement.run else {})}


def create(call: Call) -> Answer:
    world, environment, body = call.world, _environment(call), Fields(call.body)
    name, spec = body.text("name", required=True), body.inside("spec")
    if len(name) > _LONGEST_NAME or not _NAME.fullmatch(name):
        raise invalid("/name", f"Statement name {name!r} must be lower-case letters, digits and '-', at most {_LONGEST_NAME}")
    if (environment, name) in world.statements:
        raise conflict(f"Statement {name} already exists")
    if spec.flag("stopped"):
        raise invalid("/spec/stopped", "A statement can't be created stopped")
    sql, principal = spec.text("statement", required=True, pattern=r"[\s\S]{1,131072}"), spec.text("principal", call.principal)
    _require_assignable(call, principal)
    pool, properties = spec.text("compute_pool_id", required=True), dict(call.body["spec"].get("properties") or {})
    now = world.clock.now()
    region = call.key.resource.partition(".")[2]
    crn = f"{world.environments[environment].crn}/flink-region={region}/statement={name}"
    new_id = str(uuid.UUID(int=world.random.getrandbits(128), version=4))
    statement = Statement(new_id, crn, now, now, environment, name, sql, properties, pool, principal)
    world.statements[environment, name] = statement
    world.clock.after(world.delays.statement, lambda: flink_run.begin(world, statement))
    return Answer(201, document(world, statement))


def _require_assignable(call: Call, principal: str) -> None:
    if principal == call.principal:
        return
    if principal not in call.world.service_accounts:
        raise invalid("/spec/principal", f"principal {principal} does not exist")
    if not allowed(call.world, call.principal, "assign", f"{call.world.crn}/service-account={principal}"):
        raise forbidden(f"Assigner on {principal} is needed to run statements as it")


def listing(call: Call) -> Answer:
    environment, pool = _environment(call), call.query.get("spec.compute_pool_id")
    found = [each for each in call.world.statements.values() if each.environment == environment and pool in (None, each.pool)]
    answer = KIND.page(call, found, document)
    metadata = {"self": f"{call.address}{call.path}"} | answer.body["metadata"]
    return Answer(200, answer.body | {"metadata": {name: value for name, value in metadata.items() if name != "total_size"}})


def read(call: Call) -> Answer:
    return Answer(200, document(call.world, _found(call)))


def replace(call: Call) -> Answer:
    """Stop, resume, or move: of what a statement does nothing changes."""
    world, statement, spec = call.world, _found(call), Fields(call.body).inside("spec")
    version = Fields(call.body).inside("metadata", required=False).text("resource_version")
    if version and version != str(statement.version):
        raise conflict(f"resource_version is {statement.version}, not {version}")
    spec.keep("statement", statement.sql)
    if call.body["spec"].get("properties", statement.properties) != statement.properties:
        raise immutable("/spec/properties")
    principal = spec.text("principal", statement.principal)
    _require_assignable(call, principal)
    statement.principal, statement.pool = principal, spec.text("compute_pool_id", statement.pool)
    stopped = spec.flag("stopped")
    if stopped and statement.phase in ("PENDING", "RUNNING"):
        statement.phase = "STOPPED"
    elif not stopped and statement.phase == "STOPPED":
        flink_run.resume(world, statement)
    statement.touch(world)
    return Answer(202)


def delete(call: Call) -> Answer:
    """Stops it. What it made stays."""
    world, statement = call.world, _found(call)
    statement.phase = "DELETING"
    key = (statement.environment, statement.name)
    world.clock.after(world.delays.statement_deletion, lambda: world.statements.pop(key, None))
    return Answer(202)


def results(call: Call) -> Answer:
    statement = _found(call)
    if statement.kind != "SELECT" or statement.run is None:
        raise Refusal(400, "The statement has no results", code="bad_request")
    token = call.query.get("page_token", "0")
    start = int(token) if token.isdecimal() else 0
    rows = statement.run.rows[start:]
    own = f"{call.address}{call.path}"
    over = statement.phase not in ("PENDING", "RUNNING") and not rows
    following = "" if over else f"{own}?page_token={start + len(rows)}"
    metadata = {"self": own, "created_at": call.world.clock.text(), "next": following}
    data = [{"op": 0, "row": row} for row in rows]
    return Answer(200, {"api_version": "sql/v1", "kind": "StatementResult", "metadata": metadata, "results": {"data": data}})


def exceptions(call: Call) -> Answer:
    statement = _found(call)
    told = {"name": "SqlException", "message": statement.detail, "timestamp": call.world.clock.text(statement.updated)}
    data = [{"kind": "StatementException"} | told] if statement.phase == "FAILED" else []
    metadata = {"self": f"{call.address}{call.path}"}
    return Answer(200, {"api_version": "sql/v1", "kind": "StatementExceptionList", "metadata": metadata, "data": data})


def _environment(call: Call) -> str:
    """The environment that both path and key name."""
    environment = call.world.environments.get(call.parameters["environment"])
    if call.parameters["organization"] != call.world.organization_id or environment is None:
        raise not_found("Environment", call.parameters["environment"])
    named, _, region = call.key.resource.partition(".")
    if named != environment.id:
        raise Refusal(401, "invalid API key for this environment and region", code="unauthorized")
    if not allowed(call.world, call.principal, "flink", f"{environment.crn}/flink-region={region}"):
        raise forbidden()
    return environment.id


def _found(call: Call) -> Statement:
    found = call.world.statements.get((_environment(call), call.parameters["name"]))
    if found is None:
        raise not_found("Statement", call.parameters["name"])
    return found


ROUTES: Final = (
    Route(FLINK, "POST", _PATH, create, {404: 403}),
    Route(FLINK, "GET", _PATH, listing),
    Route(FLINK, "GET", _ONE, read),
    Route(FLINK, "PUT", _ONE, replace, {422: 400}),
    Route(FLINK, "DELETE", _ONE, delete),
    Route(FLINK, "GET", _ONE + "/results", results),
    Route(FLINK, "GET", _ONE + "/exceptions", exceptions),
)
