"""Provider integrations (pim/v1/integrations): which role of the customer's Confluent may assume."""

from __future__ import annotations

import uuid
from typing import Any, Final

import attrs

from simulators.confluent import access
from simulators.confluent.calls import CONTROL, Answer, Call, Route
from simulators.confluent.fields import Fields
from simulators.confluent.refusals import Refusal, conflict, not_found, over_quota
from simulators.confluent.resources import Kind, Resource, reference
from simulators.confluent.world import World

KIND: Final = Kind("pim/v1", "Integration", "/pim/v1/integrations")
_ROLE_ARN: Final = r"arn:aws:iam::\d{12}:role/[\w+=,.@/-]{1,512}"
#: Where no embedded AWS is attached, nobody can assume anything, and this stands for Confluent's account.
_NOBODYS_ACCOUNT: Final = "000000000000"


@attrs.define
class ProviderIntegration(Resource):
    """`vendor_role_arn` is Confluent's role, `role_arn` the customer's. `lingering` are usages that are on their way out."""

    environment: str
    name: str
    role_arn: str
    vendor_role_arn: str
    external_id: str
    lingering: list[tuple[float, str]] = attrs.Factory(list)


def usages(world: World, integration: ProviderIntegration) -> list[str]:
    """CRNs of what uses it, or did until a moment ago."""
    users = [each.crn for each in world.tableflow_topics.values() if each.integration == integration.id]
    users += [each.crn for each in world.catalog_integrations.values() if each.integration == integration.id]
    return users + [crn for until, crn in integration.lingering if until > world.clock.now() and crn not in users]


def linger(world: World, name: str, crn: str) -> None:
    """A use that ends is listed a while longer."""
    if integration := world.provider_integrations.get(name):
        integration.lingering.append((world.clock.now() + world.delays.usage, crn))


def document(world: World, integration: ProviderIntegration) -> dict[str, Any]:
    config = {
        "kind": "AwsIntegrationConfig",
        "iam_role_arn": integration.vendor_role_arn,
        "external_id": integration.external_id,
        "customer_iam_role_arn": integration.role_arn,
    }
    return {
        "api_version": KIND.api_version,
        "kind": KIND.name,
        "id": integration.id,
        "display_name": integration.name,
        "provider": "AWS",
        "config": config,
        "usages": usages(world, integration),
        "environment": reference(world, world.environments[integration.environment], "/org/v2/environments"),
    }


def create(call: Call) -> Answer:
    world, body = call.world, Fields(call.body)
    environment = access.environment_of_body(call, body)
    if len(world.provider_integrations) >= world.quotas.provider_integrations:
        raise over_quota("provider_integrations_per_org", world.quotas.provider_integrations)
    body.choice("provider", ["AWS", "aws"], "AWS")
    config = body.inside("config")
    config.choice("kind", ["AwsIntegrationConfig"])
    role_arn = config.text("customer_iam_role_arn", required=True, pattern=_ROLE_ARN)
    if any((each.environment, each.role_arn) == (environment.id, role_arn) for each in world.provider_integrations.values()):
        raise conflict("customer_iam_role_arn is in use by another integration of the environment")
    name = body.text("display_name", required=True, pattern=r".{1,60}")
    new, now = world.new_id("cspi"), world.clock.now()
    vendor_role = world.lake.vendor_role(new) if world.lake else f"arn:aws:iam::{_NOBODYS_ACCOUNT}:role/vendor/{new}"
    external_id = str(uuid.UUID(int=world.random.getrandbits(128), version=4))
    crn = f"{environment.crn}/provider-integration={new}"
    integration = ProviderIntegration(new, crn, now, now, environment.id, name, role_arn, vendor_role, external_id)
    world.provider_integrations[new] = integration
    return Answer(201, document(world, integration))


def listing(call: Call) -> Answer:
    environment = access.environment_of_query(call)
    if call.query.get("provider", "AWS").upper() != "AWS":
        return KIND.page(call, [], document)
    return KIND.page(
        call, [each for each in call.world.provider_integrations.values() if each.environment == environment.id], document
    )


def read(call: Call) -> Answer:
    return Answer(200, document(call.world, _found(call)))


def delete(call: Call) -> Answer:
    integration = _found(call)
    if used := usages(call.world, integration):
        raise Refusal(400, f"The integration is in use by {', '.join(used)}", code="bad_request")
    erase(call.world, integration)
    return Answer(204)


def erase(world: World, integration: ProviderIntegration) -> None:
    """With Confluent's role for it."""
    if world.lake:
        world.lake.forget_vendor_role(integration.vendor_role_arn)
    del world.provider_integrations[integration.id]


def _found(call: Call) -> ProviderIntegration:
    environment = access.environment_of_query(call)
    found = call.world.provider_integrations.get(call.parameters["id"])
    if found is None or found.environment != environment.id:
        raise not_found("Integration", call.parameters["id"])
    return found


ROUTES: Final = (
    Route(CONTROL, "POST", "/pim/v1/integrations", create),
    Route(CONTROL, "GET", "/pim/v1/integrations", listing),
    Route(CONTROL, "GET", "/pim/v1/integrations/{id}", read),
    Route(CONTROL, "DELETE", "/pim/v1/integrations/{id}", delete),
)
