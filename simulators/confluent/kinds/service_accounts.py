"""Service accounts (iam/v2/service-accounts): a name is unique in the organization."""

from __future__ import annotations

from typing import Any, Final

from simulators.confluent import authorization
from simulators.confluent.errors import conflict, forbidden, over_quota
from simulators.confluent.fields import Fields
from simulators.confluent.http import CONTROL, Answer, Call, Route
from simulators.confluent.model import ServiceAccount
from simulators.confluent.organization import Organization
from simulators.confluent.resources import Kind

KIND: Final = Kind("iam/v2", "ServiceAccount", "/iam/v2/service-accounts")


def document(org: Organization, account: ServiceAccount) -> dict[str, Any]:
    return KIND.header(org, account) | {"display_name": account.name, "description": account.description}


def create(call: Call) -> Answer:
    org, body = call.org, Fields(call.body)
    authorization.require(call, "admin", org.crn)
    if len(org.service_accounts) >= org.quotas.service_accounts:
        raise over_quota("service_accounts_per_org", org.quotas.service_accounts)
    name = body.text("display_name", required=True, pattern=r".{1,128}")
    _require_free(org, name)
    new, now = org.new_id("sa"), org.clock.now()
    account = ServiceAccount(new, f"{org.crn}/service-account={new}", now, now, name, body.text("description"))
    org.service_accounts[new] = account
    return Answer(201, document(org, account))


def listing(call: Call) -> Answer:
    wanted = call.query.get("display_name")
    return KIND.page(call, [each for each in call.org.service_accounts.values() if wanted in (None, each.name)], document)


def read(call: Call) -> Answer:
    return Answer(200, document(call.org, _found(call)))


def update(call: Call) -> Answer:
    account, body = _found(call), Fields(call.body)
    authorization.require(call, "admin", call.org.crn)
    name = body.text("display_name", account.name)
    if name != account.name:
        _require_free(call.org, name)
    account.name, account.description = name, body.text("description", account.description)
    account.updated = call.org.clock.now()
    return Answer(200, document(call.org, account))


def delete(call: Call) -> Answer:
    """Its keys go with it; its role bindings stay, and bind nobody."""
    org, account = call.org, _found(call)
    authorization.require(call, "admin", org.crn)
    for key in [key for key in org.api_keys.values() if key.owner == account.id]:
        del org.api_keys[key.id]
    del org.service_accounts[account.id]
    return Answer(204)


def _require_free(org: Organization, name: str) -> None:
    if any(each.name == name for each in org.service_accounts.values()):
        raise conflict("Service name is already in use")


def _found(call: Call) -> ServiceAccount:
    """An account that is gone reads as forbidden: so it does at the vendor."""
    if found := call.org.service_accounts.get(call.parameters["id"]):
        return found
    raise forbidden("Forbidden Access")


ROUTES: Final = (
    Route(CONTROL, "POST", "/iam/v2/service-accounts", create),
    Route(CONTROL, "GET", "/iam/v2/service-accounts", listing),
    Route(CONTROL, "GET", "/iam/v2/service-accounts/{id}", read),
    Route(CONTROL, "PATCH", "/iam/v2/service-accounts/{id}", update),
    Route(CONTROL, "DELETE", "/iam/v2/service-accounts/{id}", delete),
)
