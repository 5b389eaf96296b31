"""A request on loopback counts as one over TLS.

Our bucket policies deny what comes without TLS (aws:SecureTransport is false), as they must on AWS. The embedded AWS
speaks plain HTTP on loopback, and stock MiniStack then says false, so that every call to such a bucket is denied.
"""

from __future__ import annotations

import ipaddress
from typing import Any

from simulators.aws.hooks import Patch

PATCH = Patch("secure_transport")


@PATCH.replaces("ministack.core.iam_evaluator", "_resolve_condition_key", "key ctx")
def resolve_condition_key(original: Any, key: str, ctx: Any) -> Any:
    if key.lower() == "aws:securetransport" and ipaddress.ip_address(ctx.source_ip).is_loopback:
        return "true"
    return original(key, ctx)
