"""Custom resources, behind CDK's provider framework. What is returned or raised here goes to CloudFormation."""

from __future__ import annotations

import functools
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

import boto3
from botocore.config import Config

from lambdas import contract
from lambdas.custom_resources import provider, request
from lambdas.custom_resources.provider import Deployment, Lifecycle
from lambdas.custom_resources.request import CloudFormationStacks
from lambdas.custom_resources.state import DynamoDocuments, StateStore
from lambdas.handlers import runtime, settings, vendors
from lambdas.handlers.runtime import LambdaContext
from lambdas.handlers.settings import Settings
from lambdas.shared import errors
from lambdas.shared.clock import Clock, Deadline, SystemClock
from lambdas.shared.errors import LakeferryError
from lambdas.shared.log import Log, open_log
from lambdas.shared.redaction import redact
from lambdas.shared.secrets import SecretStore

#: Of the 4 KB of JSON that CloudFormation takes as an answer, the outputs' share.
DATA_BYTES: Final = 2500
_AWS: Final = Config(connect_timeout=5, read_timeout=10, retries={"mode": "standard", "total_max_attempts": 4})


def on_event(event: dict[str, Any], context: LambdaContext) -> dict[str, Any]:
    with _invocation(event, context):
        return provider.on_event(event, SystemClock().time())


def is_complete(event: dict[str, Any], context: LambdaContext) -> dict[str, Any]:
    with _invocation(event, context) as log:
        clock = SystemClock()
        left = context.get_remaining_time_in_millis() / 1000 - contract.HANDLER_MARGIN_SECONDS
        deadline = Deadline(clock, clock.time() + left)
        return fitting(build(settings.read(os.environ), deadline, clock, log).is_complete(event))


@contextmanager
def _invocation(event: dict[str, Any], context: LambdaContext) -> Iterator[Log]:
    log = open_log().bind(request=event.get("RequestId"), verb=event.get("RequestType"), resource=event.get("LogicalResourceId"))
    with runtime.told(log):
        require_own(event, context.invoked_function_arn)
        yield log


def build(read: Settings, deadline: Deadline, clock: Clock, log: Log) -> Lifecycle:
    """The composition: the only place that chooses what stands behind the ports."""
    store = SecretStore(_client("secretsmanager"))
    return Lifecycle(
        deployment=Deployment(read.project, read.stage),
        ledger=StateStore(DynamoDocuments(_client("dynamodb"), read.ledger_table), clock),
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
    account, region, _ = request.parse_stack_arn(str(event.get("StackId")))
    if [region, account] != function_arn.split(":")[3:5]:
        raise LakeferryError(errors.FOREIGN, f"a stack of account {account} in {region} asks")


def fitting(answer: dict[str, Any]) -> dict[str, Any]:
    """`answer`, if its outputs can be given to CloudFormation as they are. Raises LakeferryError otherwise."""
    data: dict[str, str] = answer.get("Data") or {}
    if hidden := [name for name, value in data.items() if redact(value) != value]:
        raise LakeferryError(errors.OUTPUTS, f"{', '.join(hidden)} would show a secret")
    length = len(json.dumps(data, ensure_ascii=False).encode())
    if length > DATA_BYTES:
        longest = max(data, key=lambda name: len(data[name].encode()))
        raise LakeferryError(
            errors.OUTPUTS, f"they are {length} bytes of JSON, of at most {DATA_BYTES}; the longest is {longest}"
        )
    return answer
