"""A provider integration: Confluent's access to the customer's AWS account.

It is created with the ARN of a role that doesn't exist yet, and returns the principal and the external id for
the role's trust policy. It can't be changed.
"""

from __future__ import annotations

import functools
from typing import Any, Final

from lambdas.confluent import errors as confluent_errors
from lambdas.confluent.client import CLOUD
from lambdas.confluent.lookup import Ctx, find_by_id_or_name, require_existing, treat_gone_container_as_empty
from lambdas.confluent.properties import ProviderIntegrationProps
from lambdas.confluent.rest_client import build_path, get_path, get_text, require_text
from lambdas.shared.errors import InProgress
from lambdas.shared.principals import require_principal
from lambdas.shared.resource import Outputs

PROPERTIES: Final = ProviderIntegrationProps
TIMEOUT_SECONDS: Final = 3000.0
_ROUTE: Final = "/pim/v1/integrations"


def create(context: Ctx, spec: ProviderIntegrationProps) -> str:
    body = {
        "display_name": context.name,
        "provider": CLOUD,
        "config": {"kind": "AwsIntegrationConfig", "customer_iam_role_arn": spec.role_arn},
        "environment": {"id": spec.environment_id},
    }
    return require_text(context.vendor.cloud.post(_ROUTE, body), "id")


def is_ready(context: Ctx, spec: ProviderIntegrationProps, object_id: str) -> Outputs | None:
    actual = require_existing(_read(context, spec, object_id), f"provider integration {object_id}")
    return {
        "id": object_id,
        "name": get_text(actual, "display_name"),
        "confluent_role_arn": require_principal(
            require_text(actual, "config", "iam_role_arn"), f"provider integration {object_id}"
        ),
        "external_id": require_text(actual, "config", "external_id"),
    }


def update(context: Ctx, spec: ProviderIntegrationProps, object_id: str) -> None:
    require_existing(_read(context, spec, object_id), f"provider integration {object_id}")


def delete(context: Ctx, spec: ProviderIntegrationProps, object_id: str) -> None:
    """Delete it.

    Confluent refuses while anything uses it, and takes some time to notice that nothing does.
    """
    usages = get_path(_read(context, spec, object_id), "usages")
    if usages:
        names = ", ".join(map(str, usages)) if isinstance(usages, list) else str(usages)
        raise InProgress(
            confluent_errors.INTEGRATION_IN_USE, f"provider integration {object_id} is used by {names[:300]}"
        )
    context.vendor.cloud.delete(_ROUTE + build_path(object_id), environment=spec.environment_id)


def find_existing(context: Ctx, spec: ProviderIntegrationProps, known_id: str | None) -> list[str]:
    def find_objects() -> list[str]:
        integrations = context.vendor.cloud.pages(_ROUTE, environment=spec.environment_id)
        read_by_id = functools.partial(_read, context, spec)
        return find_by_id_or_name(known_id, read_by_id, integrations, context.name, "display_name")

    return treat_gone_container_as_empty(
        context, lambda: context.vendor.is_environment_gone(spec.environment_id), find_objects
    )


def _read(context: Ctx, spec: ProviderIntegrationProps, object_id: str) -> dict[str, Any] | None:
    return context.vendor.cloud.read(_ROUTE + build_path(object_id), environment=spec.environment_id)
