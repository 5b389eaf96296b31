"""Purging, behind CDK's provider framework: what a resource names goes when its whole stack goes, and never else."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Any, Final

import boto3
from botocore.config import Config

from lambdas import contract
from lambdas.custom_resources.cleanup import Cleaner
from lambdas.handlers import runtime
from lambdas.handlers.custom_resource import require_own
from lambdas.handlers.runtime import LambdaContext
from lambdas.shared.clock import Deadline, SystemClock
from lambdas.shared.errors import Transient
from lambdas.shared.log import Log, open_log

_AWS: Final = Config(connect_timeout=5, read_timeout=30, retries={"mode": "standard", "total_max_attempts": 4})


def on_event(event: dict[str, Any], context: LambdaContext) -> dict[str, Any]:
    """Asks nobody."""
    if event["RequestType"] == "Delete":
        return {"PhysicalResourceId": event["PhysicalResourceId"]}
    return {"PhysicalResourceId": physical_id(event["LogicalResourceId"], event["ResourceProperties"])}


def is_complete(event: dict[str, Any], context: LambdaContext) -> dict[str, Any]:
    if event["RequestType"] != "Delete":
        return {"IsComplete": True}
    log = open_log().bind(request=event.get("RequestId"), verb="Delete", resource=event.get("LogicalResourceId"))
    with runtime.told(log):
        require_own(event, context.invoked_function_arn)
        return {"IsComplete": _removed(event, context, log)}


def _removed(event: dict[str, Any], context: LambdaContext, log: Log) -> bool:
    """False while something has to be waited for. What a stack that stays holds is left alone."""
    clock = SystemClock()
    left = context.get_remaining_time_in_millis() / 1000 - contract.HANDLER_MARGIN_SECONDS
    leftovers = Cleaner(_client, context.invoked_function_arn.split(":")[4], Deadline(clock, clock.time() + left))
    try:
        if not leftovers.stack_is_going(event["StackId"]):
            log.info("left alone: the stack stays")
            return True
        return leftovers.remove(event["ResourceProperties"])
    except Transient as error:
        log.info("waiting", code=error.row.code, reason=str(error))
        return False


def physical_id(logical_id: str, properties: Mapping[str, Any]) -> str:
    """Return one id for each bucket or database: CloudFormation deletes the old one when a resource names another."""
    place = next((f"{name}:{properties[name]}" for name in contract.PURGES if properties.get(name)), logical_id)
    return f"purge:{place}"


@functools.cache
def _client(service: str) -> Any:
    session: Any = boto3.session.Session()
    return session.client(service, config=_AWS)
