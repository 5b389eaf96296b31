"""Cleanup on delete, called by CDK's provider framework.

A bucket or database is emptied when the whole stack is deleted, and only then.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any, Final

from botocore.config import Config

from lambdas import contract
from lambdas.custom_resources.cleanup import Cleaner, list_own_tables
from lambdas.custom_resources.request import STARTED, is_first_call
from lambdas.custom_resources.state import DynamoDocuments, StateStore
from lambdas.handlers.runtime import (
    LambdaContext,
    compute_deadline,
    entry_point,
    get_client,
    require_own_stack,
)
from lambdas.shared.clock import SystemClock
from lambdas.shared.errors import Transient
from lambdas.shared.log import Log
from lambdas.shared.settings import ResourceSettings

#: The read timeout is long because one call deletes up to a thousand objects.
_SLOW_CALLS: Final = Config(
    connect_timeout=5, read_timeout=30, retries={"mode": "standard", "total_max_attempts": 4}
)


def handle(event: dict[str, Any], context: LambdaContext) -> dict[str, Any]:
    """Name the resource in the framework's first call for a request; clean up in all later calls."""
    return on_event(event, context) if is_first_call(event) else is_complete(event, context)


def on_event(event: dict[str, Any], context: LambdaContext) -> dict[str, Any]:
    """Name the resource. It calls no AWS service, so it can't fail."""
    resource_id = event["PhysicalResourceId"] if event["RequestType"] == "Delete" else physical_id(event)
    return {"PhysicalResourceId": resource_id, STARTED: SystemClock().time()}


def is_complete(event: dict[str, Any], context: LambdaContext) -> dict[str, Any]:
    if event["RequestType"] != "Delete":
        return {"IsComplete": True}
    with entry_point(
        request=event.get("RequestId"), verb="Delete", resource=event.get("LogicalResourceId")
    ) as log:
        require_own_stack(event, context)
        return {"IsComplete": _clean_up(event, context, log)}


def _clean_up(event: dict[str, Any], context: LambdaContext, log: Log) -> bool:
    """Return whether nothing is left to do. The data of a stack that isn't being deleted is kept."""
    account = context.invoked_function_arn.split(":")[4]
    cleaner = Cleaner(
        lambda service: get_client(service, _SLOW_CALLS),
        account,
        compute_deadline(context, contract.HANDLER_MARGIN_SECONDS),
        _find_own_tables,
    )
    try:
        if not cleaner.stack_is_deleting(event["StackId"]):
            log.info("nothing removed: the stack stays")
            return True
        return cleaner.remove(event["ResourceProperties"])
    except Transient as error:
        log.info("waiting", code=error.kind.code, reason=str(error))
        return False


def _find_own_tables(bucket: str) -> frozenset[str]:
    """Raises Transient, and LakeferryError if AWS refuses."""
    settings = ResourceSettings.from_environment(os.environ)
    documents = DynamoDocuments(get_client("dynamodb"), settings.state_table)
    return list_own_tables(StateStore(documents, SystemClock()).read_all(), bucket)


def physical_id(event: Mapping[str, Any]) -> str:
    """Return the id, which contains the bucket or database: another one replaces the resource, and the old
    one is deleted.
    """
    properties = event["ResourceProperties"]
    parts = (f"{name}:{properties[name]}" for name in contract.CLEANUPS if properties.get(name))
    return f"{contract.CLEANUP_ID}:{next(parts, event['LogicalResourceId'])}"
