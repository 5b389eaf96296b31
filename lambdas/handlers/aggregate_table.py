"""The table of an export's aggregates, called by CDK's provider framework.

It is created before the export's first run. On delete nothing happens: the table is dropped with the data.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from lambdas.custom_resources.aggregate_table import AggregateTable
from lambdas.custom_resources.request import DELETE, STARTED, CloudFormationStacks, is_first_call
from lambdas.handlers.runtime import LambdaContext, entry_point, get_client, require_own_stack
from lambdas.shared import errors
from lambdas.shared.clock import SystemClock
from lambdas.shared.errors import Denied, TimedOut, Transient
from lambdas.shared.log import Log

#: Seconds after which the deployment fails. A run takes about two minutes. The framework waits for an hour.
_LIMIT: Final = 2700.0


def handle(event: dict[str, Any], context: LambdaContext) -> dict[str, Any]:
    """Name the resource in the framework's first call for a request; look at its run in all later calls."""
    return on_event(event, context) if is_first_call(event) else is_complete(event, context)


def on_event(event: dict[str, Any], context: LambdaContext) -> dict[str, Any]:
    """Name the resource after its export. It calls no AWS service, so it can't fail."""
    export = event["ResourceProperties"]["export"]
    return {"PhysicalResourceId": f"aggregates:{export}", STARTED: SystemClock().time()}


def is_complete(event: dict[str, Any], context: LambdaContext) -> dict[str, Any]:
    if event["RequestType"] == DELETE:
        return {"IsComplete": True}
    with entry_point(
        request=event.get("RequestId"), verb=event["RequestType"], resource=event.get("LogicalResourceId")
    ) as log:
        require_own_stack(event, context)
        return {"IsComplete": _create(event, log)}


def _create(event: Mapping[str, Any], log: Log) -> bool:
    """Return whether there is nothing left to do. Raises LakeferryError once the time for it is over.

    A rollback needs no run: the table keeps the columns that it has. A run would fail again for the reason
    that the update failed for, and then CloudFormation could not roll back.
    """
    stacks = CloudFormationStacks(get_client("cloudformation"))
    waited = SystemClock().time() - float(event[STARTED])
    table = AggregateTable(
        get_client("glue"), SystemClock(), event["ResourceProperties"], str(event["RequestId"])
    )
    missing = "its run has not ended"
    try:
        if stacks.is_rolling_back(event["StackId"]) or table.is_created():
            return True
    except (Transient, Denied) as error:
        # A new role's permissions take some seconds to become effective.
        if isinstance(error, Denied) and waited > error.patience:
            raise
        missing = error.what
    log.info("waiting", reason=missing)
    if waited > _LIMIT:
        raise TimedOut(errors.AGGREGATE_TABLE, f"not within {_LIMIT / 60:.0f} minutes: {missing}")
    return False
