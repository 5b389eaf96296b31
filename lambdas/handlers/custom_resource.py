"""Custom resources, behind CDK's provider framework. What is returned or raised here goes to CloudFormation."""

from __future__ import annotations

import functools
import json
import os
from collections.abc import Callable
from typing import Any, Final

import boto3
from botocore.config import Config

from lambdas import contract
from lambdas.core import errors
from lambdas.core.clock import Clock, Deadline, SystemClock
from lambdas.core.documents import DynamoDocuments
from lambdas.core.errors import LakeferryError
from lambdas.core.log import Log, open_log
from lambdas.core.redaction import redact
from lambdas.core.secret_store import SecretStore
from lambdas.core.stacks import CloudFormationStacks
from lambdas.handlers import failing, settings, vendors
from lambdas.handlers.failing import LambdaContext, cut
from lambdas.handlers.settings import Settings
from lambdas.resources import request
from lambdas.resources.ledger import Ledger
from lambdas.resources.lifecycle import Deployment, Lifecycle

#: Of the 4 KB of JSON that CloudFormation takes as an answer, the outputs' share.
DATA_BYTES: Final = 2500
_AWS: Final = Config(connect_timeout=5, read_timeout=10, retries={"mode": "standard", "total_max_attempts": 4})


def on_event(event: dict[str, Any], context: LambdaContext) -> dict[str, Any]:
    return _answered(event, context, lambda lifecycle: lifecycle.on_event(event))


def is_complete(event: dict[str, Any], context: LambdaContext) -> dict[str, Any]:
    return _answered(event, context, lambda lifecycle: lifecycle.is_complete(event))


def _answered(event: dict[str, Any], context: LambdaContext, work: Callable[[Lifecycle], dict[str, Any]]) -> dict[str, Any]:
    log = open_log().bind(request=event.get("RequestId"), verb=event.get("RequestType"), resource=event.get("LogicalResourceId"))
    with failing.told(log):
        require_own(event, context.invoked_function_arn)
        clock = SystemClock()
        left = context.get_remaining_time_in_millis() / 1000 - contract.HANDLER_MARGIN_SECONDS
        lifecycle = build(settings.read(os.environ), Deadline(clock, clock.time() + left), clock, log)
        return fitting(work(lifecycle))


def build(read: Settings, deadline: Deadline, clock: Clock, log: Log) -> Lifecycle:
    """The composition: the only place that chooses what stands behind the ports."""
    store = SecretStore(_client("secretsmanager"))
    return Lifecycle(
        deployment=Deployment(read.project, read.stage),
        ledger=Ledger(DynamoDocuments(_client("dynamodb"), read.ledger_table), clock),
        stacks=CloudFormationStacks(_client("cloudformation")),
        secrets=store,
        vendors=vendors.connections(read, store, deadline),
        deadline=deadline,
        log=log,
    )


@functools.cache
def _client(service: str) -> Any:
    """Kept for as long as the function stays warm: making one takes a tenth of a second."""
    session: Any = boto3.session.Session()
    return session.client(service, config=_AWS)


def require_own(event: dict[str, Any], function_arn: str) -> None:
    """Raises LakeferryError unless the event comes from a stack of the function's own account and region."""
    account, region, _ = request.stack_of(str(event.get("StackId")))
    if [region, account] != function_arn.split(":")[3:5]:
        raise LakeferryError(errors.FOREIGN, f"a stack of account {account} in {region} asks")


def fitting(answer: dict[str, Any]) -> dict[str, Any]:
    """`answer` without secrets; outputs that would be too long for CloudFormation lose their ends, the longest first."""
    data = {name: redact(value) for name, value in (answer.get("Data") or {}).items()}
    while any(data.values()) and len(json.dumps(data, ensure_ascii=False).encode()) > DATA_BYTES:
        longest = max(data, key=lambda name: len(data[name].encode()))
        data[longest] = cut(data[longest], len(data[longest].encode()) // 2)
    return {**answer, "Data": data} if data else answer
