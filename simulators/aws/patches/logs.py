"""CloudWatch Logs: the resources of its permissions.

- logs_resources: A call on a log group needs the permission on arn:aws:logs:region:account:log-group:name:*,
  and one on a stream of it on …:log-group:name:log-stream:stream; calls about tags need it on the ARN without
  the end. The attribute Arn of a log group in CloudFormation ends with ":*". Stock MiniStack asks for the
  permission on the ARN without the end, so that a role may not write into the group whose Arn it has. Source:
  CloudWatch Logs user guide, "CloudWatch Logs resources and operations"; service authorization reference.

See stock: `.venv/bin/python -m pytest simulators/tests/aws/test_patches.py -m simulators -k "stock and logs"`
"""

from __future__ import annotations

import json
from typing import Final

from simulators.aws.hooks import Patch

_ON_STREAMS: Final = ("DeleteLogStream", "GetLogEvents", "PutLogEvents")
_ABOUT_TAGS: Final = ("TagResource", "UntagResource", "ListTagsForResource")

RESOURCES = Patch("logs_resources")


@RESOURCES.names_resources("logs")
def name_log_group(target: str, body: bytes) -> str | None:
    """Return the group or the stream; None for a call that names no group."""
    action = target.rpartition(".")[2]
    try:
        request = json.loads(body or b"{}")
    except ValueError:
        return None
    name = request.get("logGroupName")
    if not name or action in _ABOUT_TAGS:
        return None
    if action in _ON_STREAMS:
        return f"log-group:{name}:log-stream:{request.get('logStreamName', '')}"
    return f"log-group:{name}:*"


PATCHES: Final = (RESOURCES,)
