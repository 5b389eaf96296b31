"""What the provisioners of CloudFormation's types have in common: they ask the service, and tell what it refuses."""

from __future__ import annotations

import json
from typing import Any

from simulators.aws.hooks import ministack

#: A resource's physical id, and what Fn::GetAtt finds of it.
Made = tuple[str, dict[str, Any]]


class ProvisioningFailed(Exception):
    """What the service answered; CloudFormation tells it as the resource's reason."""


def asked(service: str, operation: str, *given: Any) -> dict[str, Any]:
    """The service's own answer. Raises ProvisioningFailed where it refuses."""
    status, _, body = getattr(ministack(f"services.{service}"), operation)(*given)
    answer: dict[str, Any] = json.loads(body or b"{}")
    if status >= 400:
        raise ProvisioningFailed(f"{answer.get('__type', 'error')}: {answer.get('message') or answer.get('Message')}")
    return answer


def typed(value: Any) -> Any:
    """Templates may say numbers and booleans as strings."""
    if value in ("true", "false"):
        return value == "true"
    return int(value) if isinstance(value, str) and value.isdigit() else value
