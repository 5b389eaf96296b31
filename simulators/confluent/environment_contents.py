"""Objects that an environment may hold. Only their names are simulated: nothing uses them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from simulators.confluent.model import Content, Resource
from simulators.confluent.organization import Organization
from simulators.confluent.resources import CLOUD_FIELD, ENVIRONMENT, Field, Kind


class _Contents(Kind[Content]):
    """Objects that an environment may hold. Only their names are simulated: nothing uses them."""

    record = Content
    parent = ENVIRONMENT
    verbs = ("create", "list", "read", "delete")

    def build_crn(
        self, org: Organization, parent: Resource | None, new_id: str, values: Mapping[str, Any]
    ) -> str:
        return (
            f"{org.environments[values['environment']].crn}/{self.label.lower().replace(' ', '-')}={new_id}"
        )


class Networks(_Contents):
    """Private networks. Source: Confluent's API reference, "Networks (networking/v1)"."""

    api_version = "networking/v1"
    name = "Network"
    path = "/networking/v1/networks"
    label = "Network"
    store = "networks"
    id_prefix = "n"
    fields = (CLOUD_FIELD, Field("display_name", "name", pattern=r".{0,64}"))


class PrivateLinkAttachments(_Contents):
    """Source: Confluent's API reference, "Private Link Attachments (networking/v1)"."""

    api_version = "networking/v1"
    name = "PrivateLinkAttachment"
    label = "Private link attachment"
    path = "/networking/v1/private-link-attachments"
    store = "private_link_attachments"
    id_prefix = "platt"
    fields = (CLOUD_FIELD, Field("display_name", "name", pattern=r".{0,64}"))


class ProviderIntegrationsV2(_Contents):
    """The second version of provider integrations: its lists don't have those of the first. Source:
    Confluent's API reference, "Integrations (pim/v2)"."""

    api_version = "pim/v2"
    name = "Integration"
    path = "/pim/v2/integrations"
    label = "Integration"
    store = "provider_integrations_v2"
    id_prefix = "cspi"
    spec = ""
    fields = (
        Field("provider", choices=("GCP",), required=True),
        Field("display_name", "name", required=True, pattern=r".{1,60}"),
    )
