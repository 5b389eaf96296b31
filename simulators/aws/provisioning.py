"""What the provisioners of CloudFormation types share: calls of the service, with its refusals as exceptions."""

from __future__ import annotations

import json
from typing import Any

from simulators.aws.hooks import ministack

#: A resource's physical id, and its attributes for Fn::GetAtt.
Provisioned = tuple[str, dict[str, Any]]


class ProvisioningFailed(Exception):
    """The service's refusal, which becomes the reason of the resource's failure."""


def call_service(service: str, operation: str, *given: Any) -> dict[str, Any]:
    """Return the service's answer. Raises ProvisioningFailed if it refuses."""
    status, _, body = getattr(ministack(f"services.{service}"), operation)(*given)
    answer: dict[str, Any] = json.loads(body or b"{}")
    if status >= 400:
        raise ProvisioningFailed(f"{answer.get('__type', 'error')}: {answer.get('message') or answer.get('Message')}")
    return answer


def typed(value: Any) -> Any:
    """Parse a number or boolean, which templates may give as strings."""
    if value in ("true", "false"):
        return value == "true"
    return int(value) if isinstance(value, str) and value.isdigit() else value
