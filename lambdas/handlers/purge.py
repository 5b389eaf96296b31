"""Purging, behind CDK's provider framework: what a resource names goes when its whole stack goes, and never else."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Any, Final

import boto3
from botocore.config import Config

from lambdas import contract
from lambdas.core import errors
from lambdas.core.clock import Deadline, SystemClock
from lambdas.core.errors import LakeferryError, Transient
from lambdas.core.log import open_log
from lambdas.handlers.custom_resource import REASON_BYTES, Failed, LambdaContext, cut, require_own
from lambdas.purge.leftovers import Leftovers

_AWS: Final = Config(connect_timeout=5, read_timeout=30, retries={"mode": "standard", "total_max_attempts": 4})
#: What another value of makes another resource, so that the old value is purged and the new one is not. Secrets come and go
#: with their stack, under names of ours.
_PLACES: Final = ("bucket", "glue_database")


def on_event(event: dict[str, Any], context: LambdaContext) -> dict[str, Any]:
    """Asks nobody."""
    if event["RequestType"] == "Delete":
        return {"PhysicalResourceId": event["PhysicalResourceId"]}
    return {"PhysicalResourceId": physical_id(event["LogicalResourceId"], event["ResourceProperties"])}


def is_complete(event: dict[str, Any], context: LambdaContext) -> dict[str, Any]:
    if event["RequestType"] != "Delete":
        return {"IsComplete": True}
    log = open_log().bind(request=event.get("RequestId"), verb="Delete", resource=event.get("LogicalResourceId"))
    try:
        require_own(event, context.invoked_function_arn)
        clock = SystemClock()
        left = context.get_remaining_time_in_millis() / 1000 - contract.HANDLER_MARGIN_SECONDS
        leftovers = Leftovers(_client, context.invoked_function_arn.split(":")[4], Deadline(clock, clock.time() + left))
        if not leftovers.stack_is_going(event["StackId"]):
            log.info("left alone: the stack stays")
            return {"IsComplete": True}
        return {"IsComplete": leftovers.remove(event["ResourceProperties"])}
    except Transient as error:
        log.info("waiting", code=error.row.code, reason=str(error))
        return {"IsComplete": False}
    except LakeferryError as error:
        log.error("failed", code=error.row.code, reason=str(error))
        raise Failed(cut(str(error), REASON_BYTES)) from None
    except Exception as error:
        log.error("failed unexpectedly", trace=True)
        raise Failed(str(LakeferryError(errors.INTERNAL, type(error).__name__))) from None


def physical_id(logical_id: str, properties: Mapping[str, Any]) -> str:
    """The same for the same place, whatever else changes."""
    place = next((f"{name}:{properties[name]}" for name in _PLACES if properties.get(name)), logical_id)
    return f"purge:{place}"


@functools.cache
def _client(service: str) -> Any:
    session: Any = boto3.session.Session()
    return session.client(service, config=_AWS)
