"""Role bindings (iam/v2/role-bindings): made at once, effective later, never changed."""

from __future__ import annotations

from typing import Any, Final
from urllib.parse import unquote

from simulators.confluent import authorization
from simulators.confluent.authorization import may_bind
from simulators.confluent.errors import ApiError, conflict, forbidden
from simulators.confluent.fields import Fields
from simulators.confluent.http import ROLE_BINDINGS, Answer, Call, Route
from simulators.confluent.model import RoleBinding
from simulators.confluent.organization import Organization
from simulators.confluent.resources import Kind

KIND: Final = Kind("iam/v2", "RoleBinding", "/iam/v2/role-bindings")


def document(org: Organization, binding: RoleBinding) -> dict[str, Any]:
    return KIND.header(org, binding) | {
        "principal": binding.principal,
        "role_name": binding.role,
        "crn_pattern": binding.pattern,
    }


def create(call: Call) -> Answer:
    org = call.org
    principal, role, pattern = _wanted(call)
    authorization.require(call, "admin", pattern)
    if any((each.principal, each.role, each.pattern) == (principal, role, pattern) for each in org.role_bindings.values()):
        raise conflict("Role binding already exists")
    new, now = org.new_id("rb"), org.clock.now()
    effective = now + org.delays.role_binding
    binding = RoleBinding(new, f"{org.crn}/role-binding={new}", now, now, principal, role, pattern, effective)
    org.role_bindings[new] = binding
    return Answer(201, document(org, binding))


def _wanted(call: Call) -> tuple[str, str, str]:
    body = Fields(call.body)
    principal = body.text("principal", required=True)
    role = body.text("role_name", required=True)
    pattern = unquote(body.text("crn_pattern", required=True))
    kind, _, name = principal.partition(":")
    if kind not in ("User", "Group") or (kind == "User" and name not in {call.org.owner, *call.org.service_accounts}):
        raise ApiError(400, f"principal {principal} does not exist", code="bad_request", pointer="/principal")
    if not may_bind(role, pattern) or not pattern.startswith(call.org.crn):
        raise ApiError(400, f"role {role} can't be bound at {pattern}", code="bad_request", pointer="/crn_pattern")
    return principal, role, pattern


def listing(call: Call) -> Answer:
    """`crn_pattern` matches every binding that begins with it."""
    pattern = unquote(call.required("crn_pattern"))
    exact = {"principal": call.query.get("principal"), "role": call.query.get("role_name")}
    chosen = [
        each
        for each in call.org.role_bindings.values()
        if each.pattern.startswith(pattern) and all(value in (None, getattr(each, name)) for name, value in exact.items())
    ]
    return KIND.page(call, chosen, document)


def read(call: Call) -> Answer:
    return Answer(200, document(call.org, _found(call)))


def delete(call: Call) -> Answer:
    binding = _found(call)
    authorization.require(call, "admin", binding.pattern)
    del call.org.role_bindings[binding.id]
    return Answer(200, document(call.org, binding))


def _found(call: Call) -> RoleBinding:
    if found := call.org.role_bindings.get(call.parameters["id"]):
        return found
    raise forbidden(f"Role binding {call.parameters['id']} not found or access is denied")


ROUTES: Final = (
    Route(ROLE_BINDINGS, "POST", "/iam/v2/role-bindings", create, {422: 400}),
    Route(ROLE_BINDINGS, "GET", "/iam/v2/role-bindings", listing),
    Route(ROLE_BINDINGS, "GET", "/iam/v2/role-bindings/{id}", read),
    Route(ROLE_BINDINGS, "DELETE", "/iam/v2/role-bindings/{id}", delete),
)
