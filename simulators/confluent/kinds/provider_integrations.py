"""Provider integrations (pim/v1/integrations): which role of the customer's Confluent may assume."""

from __future__ import annotations

from typing import Any, Final

from simulators.confluent import access
from simulators.confluent.errors import ApiError, conflict, not_found, over_quota
from simulators.confluent.fields import Fields
from simulators.confluent.http import CONTROL, Answer, Call, Route
from simulators.confluent.model import ProviderIntegration
from simulators.confluent.organization import Organization
from simulators.confluent.resources import Kind, reference

KIND: Final = Kind("pim/v1", "Integration", "/pim/v1/integrations")
_ROLE_ARN: Final = r"arn:aws:iam::\d{12}:role/[\w+=,.@/-]{1,512}"
#: Where no embedded AWS is attached, nobody can assume anything, and this stands for Confluent's account.
_NOBODYS_ACCOUNT: Final = "000000000000"


def usages(org: Organization, integration: ProviderIntegration) -> list[str]:
    """CRNs of what uses it, or did until a moment ago."""
    users = [each.crn for each in org.tableflow_topics.values() if each.integration == integration.id]
    users += [each.crn for each in org.catalog_integrations.values() if each.integration == integration.id]
    return users + [crn for until, crn in integration.ended_usages if until > org.clock.now() and crn not in users]


def end_usage(org: Organization, name: str, crn: str) -> None:
    """A use that ends is listed a while longer."""
    if integration := org.provider_integrations.get(name):
        integration.ended_usages.append((org.clock.now() + org.delays.usage, crn))


def document(org: Organization, integration: ProviderIntegration) -> dict[str, Any]:
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
        "usages": usages(org, integration),
        "environment": reference(org, org.environments[integration.environment], "/org/v2/environments"),
    }


def create(call: Call) -> Answer:
    org, body = call.org, Fields(call.body)
    environment = access.environment_of_body(call, body)
    if len(org.provider_integrations) >= org.quotas.provider_integrations:
        raise over_quota("provider_integrations_per_org", org.quotas.provider_integrations)
    body.choice("provider", ["AWS", "aws"], "AWS")
    config = body.inside("config")
    config.choice("kind", ["AwsIntegrationConfig"])
    role_arn = config.text("customer_iam_role_arn", required=True, pattern=_ROLE_ARN)
    if any((each.environment, each.role_arn) == (environment.id, role_arn) for each in org.provider_integrations.values()):
        raise conflict("customer_iam_role_arn is in use by another integration of the environment")
    name = body.text("display_name", required=True, pattern=r".{1,60}")
    new, now = org.new_id("cspi"), org.clock.now()
    vendor_role = org.lake.vendor_role(new) if org.lake else f"arn:aws:iam::{_NOBODYS_ACCOUNT}:role/vendor/{new}"
    external_id = str(org.new_uuid())
    crn = f"{environment.crn}/provider-integration={new}"
    integration = ProviderIntegration(new, crn, now, now, environment.id, name, role_arn, vendor_role, external_id)
    org.provider_integrations[new] = integration
    return Answer(201, document(org, integration))


def listing(call: Call) -> Answer:
    environment = access.environment_of_query(call)
    if call.query.get("provider", "AWS").upper() != "AWS":
        return KIND.page(call, [], document)
    return KIND.page(
        call, [each for each in call.org.provider_integrations.values() if each.environment == environment.id], document
    )


def read(call: Call) -> Answer:
    return Answer(200, document(call.org, _found(call)))


def delete(call: Call) -> Answer:
    integration = _found(call)
    if used := usages(call.org, integration):
        raise ApiError(400, f"The integration is in use by {', '.join(used)}", code="bad_request")
    erase(call.org, integration)
    return Answer(204)


def erase(org: Organization, integration: ProviderIntegration) -> None:
    """With Confluent's role for it."""
    if org.lake:
        org.lake.forget_vendor_role(integration.vendor_role_arn)
    del org.provider_integrations[integration.id]


def _found(call: Call) -> ProviderIntegration:
    environment = access.environment_of_query(call)
    found = call.org.provider_integrations.get(call.parameters["id"])
    if found is None or found.environment != environment.id:
        raise not_found("Integration", call.parameters["id"])
    return found


ROUTES: Final = (
    Route(CONTROL, "POST", "/pim/v1/integrations", create),
    Route(CONTROL, "GET", "/pim/v1/integrations", listing),
    Route(CONTROL, "GET", "/pim/v1/integrations/{id}", read),
    Route(CONTROL, "DELETE", "/pim/v1/integrations/{id}", delete),
)
