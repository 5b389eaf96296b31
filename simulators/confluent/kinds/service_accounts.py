"""Service accounts (iam/v2/service-accounts): a name is unique in the organization."""

from __future__ import annotations

from typing import Any, Final

import attrs

from simulators.confluent import access
from simulators.confluent.calls import CONTROL, Answer, Call, Route
from simulators.confluent.fields import Fields
from simulators.confluent.refusals import conflict, forbidden, over_quota
from simulators.confluent.resources import Kind, Resource
from simulators.confluent.world import World

KIND: Final = Kind("iam/v2", "ServiceAccount", "/iam/v2/service-accounts")


@attrs.define
class ServiceAccount(Resource):
    name: str
    description: str


def document(world: World, account: ServiceAccount) -> dict[str, Any]:
    return KIND.header(world, account) | {"display_name": account.name, "description": account.description}


def create(call: Call) -> Answer:
    world, body = call.world, Fields(call.body)
    access.require(call, "admin", world.crn)
    if len(world.service_accounts) >= world.quotas.service_accounts:
        raise over_quota("service_accounts_per_org", world.quotas.service_accounts)
    name = body.text("display_name", required=True, pattern=r".{1,128}")
    _require_free(world, name)
    new, now = world.new_id("sa"), world.clock.now()
    account = ServiceAccount(new, f"{world.crn}/service-account={new}", now, now, name, body.text("description"))
    world.service_accounts[new] = account
    return Answer(201, document(world, account))


def listing(call: Call) -> Answer:
    wanted = call.query.get("display_name")
    return KIND.page(call, [each for each in call.world.service_accounts.values() if wanted in (None, each.name)], document)


def read(call: Call) -> Answer:
    return Answer(200, document(call.world, _found(call)))


def update(call: Call) -> Answer:
    account, body = _found(call), Fields(call.body)
    access.require(call, "admin", call.world.crn)
    name = body.text("display_name", account.name)
    if name != account.name:
        _require_free(call.world, name)
    account.name, account.description = name, body.text("description", account.description)
    account.updated = call.world.clock.now()
    return Answer(200, document(call.world, account))


def delete(call: Call) -> Answer:
    """Its keys go with it; its role bindings stay, and bind nobody."""
    world, account = call.world, _found(call)
    access.require(call, "admin", world.crn)
    for key in [key for key in world.api_keys.values() if key.owner == account.id]:
        del world.api_keys[key.id]
    del world.service_accounts[account.id]
    return Answer(204)


def _require_free(world: World, name: str) -> None:
    if any(each.name == name for each in world.service_accounts.values()):
        raise conflict("Service name is already in use")


def _found(call: Call) -> ServiceAccount:
    """An account that is gone reads as forbidden: so it does at the vendor."""
    if found := call.world.service_accounts.get(call.parameters["id"]):
        return found
    raise forbidden("Forbidden Access")


ROUTES: Final = (
    Route(CONTROL, "POST", "/iam/v2/service-accounts", create),
    Route(CONTROL, "GET", "/iam/v2/service-accounts", listing),
    Route(CONTROL, "GET", "/iam/v2/service-accounts/{id}", read),
    Route(CONTROL, "PATCH", "/iam/v2/service-accounts/{id}", update),
    Route(CONTROL, "DELETE", "/iam/v2/service-accounts/{id}", delete),
)
