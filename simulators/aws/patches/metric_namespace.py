"""IAM's condition key cloudwatch:namespace, by which policies narrow PutMetricData, which names no resource.

Stock MiniStack doesn't know the key: what a policy allows under it is denied (Service Authorization Reference, CloudWatch).
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from simulators.aws.hooks import Patch

PATCH = Patch("metric_namespace")


@PATCH.replaces("ministack.core.iam_actions", "request_tag_context", "service iam_action body params")
def condition_keys(
    original: Callable[..., dict[str, Any]], service: str, iam_action: str, body: bytes, params: dict[str, Any]
) -> dict[str, Any]:
    """What a request says of itself to the conditions of policies."""
    context = original(service, iam_action, body, params)
    if iam_action.lower() != "cloudwatch:putmetricdata":
        return context
    return context | {"cloudwatch:namespace": _namespace(body, params)}


def _namespace(body: bytes, params: dict[str, Any]) -> str:
    """Clients write it as JSON, or as a form. One that can't be read is none that a policy names."""
    if body[:1] == b"{":
        try:
            return str(json.loads(body).get("Namespace", ""))
        except ValueError:
            return ""
    given = params.get("Namespace", "")
    return str(given[0] if isinstance(given, list) else given)
