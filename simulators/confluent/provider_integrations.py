"""Provider integrations: the customer's IAM roles that Confluent may assume."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from simulators.confluent.errors import bad_request, conflict
from simulators.confluent.http import Call
from simulators.confluent.model import ProviderIntegration, Resource
from simulators.confluent.organization import CLOUD, Organization
from simulators.confluent.resources import ENVIRONMENT, Field, Kind

#: The id of Confluent's AWS account if no embedded AWS is attached.
_NO_ACCOUNT: Final = "000000000000"


class ProviderIntegrations(Kind[ProviderIntegration]):
    """The customer's IAM roles that Confluent may assume."""

    api_version = "pim/v1"
    name = "Integration"
    path = "/pim/v1/integrations"
    label = "Integration"
    store = "provider_integrations"
    record = ProviderIntegration
    id_prefix = "cspi"
    parent = ENVIRONMENT
    spec = ""
    quota = ("provider_integrations_per_org", "provider_integrations")
    verbs = ("create", "list", "read", "delete")
    fields = (
        Field("provider", default="AWS", choices=("AWS", "aws")),
        Field("config.kind", required=True, choices=("AwsIntegrationConfig",)),
        Field(
            "config.customer_iam_role_arn",
            "role_arn",
            required=True,
            pattern=r"arn:aws:iam::\d{12}:role/[\w+=,.@/-]{1,512}",
        ),
        Field("display_name", "name", required=True, pattern=r".{1,60}"),
    )

    def build_crn(
        self, org: Organization, parent: Resource | None, new_id: str, values: Mapping[str, Any]
    ) -> str:
        return f"{org.environments[values['environment']].crn}/provider-integration={new_id}"

    def check(self, call: Call, values: dict[str, Any], current: ProviderIntegration | None) -> None:
        environment_and_role = values["environment"], values["role_arn"]
        integrations = call.org.provider_integrations.values()
        for integration in integrations:
            if (integration.environment, integration.role_arn) == environment_and_role:
                raise conflict("customer_iam_role_arn is in use by another integration of the environment")

    def compute_attributes(self, org: Organization, new_id: str) -> dict[str, Any]:
        vendor_role = f"arn:aws:iam::{_NO_ACCOUNT}:role/vendor/{new_id}"
        if org.lake:
            vendor_role = org.lake.create_vendor_role(new_id)
        return {"vendor_role_arn": vendor_role, "external_id": str(org.create_uuid())}

    def is_listed(self, call: Call, record: ProviderIntegration) -> bool:
        return call.query.get("provider", CLOUD).upper() == CLOUD

    def build_header(self, org: Organization, record: ProviderIntegration) -> dict[str, Any]:
        """Return the header without metadata, which the vendor's document doesn't have either."""
        return {
            name: value for name, value in super().build_header(org, record).items() if name != "metadata"
        }

    def read_only(self, org: Organization, record: ProviderIntegration) -> dict[str, Any]:
        config = {"config.iam_role_arn": record.vendor_role_arn, "config.external_id": record.external_id}
        return {**config, "usages": list_usages(org, record)}

    def check_deletable(self, org: Organization, record: ProviderIntegration) -> None:
        if users := list_usages(org, record):
            raise bad_request(f"The integration is in use by {', '.join(users)}")

    def erase(self, org: Organization, record: ProviderIntegration) -> None:
        """Delete the integration with Confluent's role for it."""
        if org.lake:
            org.lake.forget_vendor_role(record.vendor_role_arn)
        super().erase(org, record)


def list_usages(org: Organization, integration: ProviderIntegration) -> list[str]:
    """Return the CRNs of the objects that use the integration, or stopped using it less than `Delays.usage`
    seconds ago.
    """
    users = [topic.crn for topic in org.tableflow_topics.values() if topic.integration == integration.id]
    catalogs = org.catalog_integrations.values()
    users += [catalog.crn for catalog in catalogs if catalog.integration == integration.id]
    return users + [
        crn for end, crn in integration.ended_usages if end > org.clock.now() and crn not in users
    ]


def end_usage(org: Organization, name: str, crn: str) -> None:
    """Record that an object no longer uses the integration.

    `list_usages` lists it for another `Delays.usage` seconds.
    """
    if integration := org.provider_integrations.get(name):
        integration.ended_usages.append((org.clock.now() + org.delays.usage, crn))


PROVIDER_INTEGRATIONS: Final = ProviderIntegrations()
