"""Custom resources, called by CDK's provider framework.

CloudFormation gets the returned value or the exception's message.
"""

from __future__ import annotations

import functools
import json
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final

from lambdas import contract
from lambdas.confluent.client import CONTROL_PLANE, Confluent
from lambdas.custom_resources import provider, registry
from lambdas.custom_resources.provider import Deployment, Lifecycle
from lambdas.custom_resources.request import CloudFormationStacks, is_first_call
from lambdas.custom_resources.state import DynamoDocuments, StateStore
from lambdas.handlers import aggregate_table, cleanup
from lambdas.handlers.runtime import (
    LambdaContext,
    compute_deadline,
    entry_point,
    get_client,
    require_own_stack,
)
from lambdas.shared import errors
from lambdas.shared.clock import Deadline, SystemClock
from lambdas.shared.errors import LakeferryError
from lambdas.shared.http import Session
from lambdas.shared.log import Log
from lambdas.shared.redaction import redact
from lambdas.shared.secrets import SecretStore
from lambdas.shared.settings import ConfluentSettings, ResourceSettings, SnowflakeSettings
from lambdas.snowflake import secret_fields, sql
from lambdas.snowflake.client import Login, Snowflake

#: The outputs' share of the 4 KB of JSON that CloudFormation accepts as an answer.
DATA_BYTES: Final = 2500


def handle(event: dict[str, Any], context: LambdaContext) -> dict[str, Any]:
    """Name the resource in the framework's first call for a request; reconcile it in all later calls."""
    if event.get("ResourceType") == contract.CLEANUP_TYPE:
        return cleanup.handle(event, context)
    if event.get("ResourceType") == contract.AGGREGATE_TABLE_TYPE:
        return aggregate_table.handle(event, context)
    return on_event(event, context) if is_first_call(event) else is_complete(event, context)


def on_event(event: dict[str, Any], context: LambdaContext) -> dict[str, Any]:
    with _open_invocation(event, context):
        return provider.on_event(event, SystemClock().time())


def is_complete(event: dict[str, Any], context: LambdaContext) -> dict[str, Any]:
    with _open_invocation(event, context) as log:
        lifecycle = build(os.environ, compute_deadline(context, contract.HANDLER_MARGIN_SECONDS), log)
        return require_deliverable(lifecycle.is_complete(event))


@contextmanager
def _open_invocation(event: dict[str, Any], context: LambdaContext) -> Iterator[Log]:
    fields = {
        "request": event.get("RequestId"),
        "verb": event.get("RequestType"),
        "resource": event.get("LogicalResourceId"),
    }
    with entry_point(**fields) as log:
        require_own_stack(event, context)
        yield log


def build(environment: Mapping[str, str], deadline: Deadline, log: Log) -> Lifecycle:
    """Raises LakeferryError that names all missing variables.

    A vendor's variables are checked when its client is created.
    """
    settings = ResourceSettings.from_environment(environment)
    store = SecretStore(get_client("secretsmanager"))
    return Lifecycle(
        deployment=Deployment(settings.project, settings.stage),
        states=StateStore(DynamoDocuments(get_client("dynamodb"), settings.state_table), deadline.clock),
        stacks=CloudFormationStacks(get_client("cloudformation")),
        secrets=store,
        vendors=build_vendor_clients(environment, store, deadline),
        deadline=deadline,
        log=log,
    )


def build_vendor_clients(
    environment: Mapping[str, str], store: SecretStore, deadline: Deadline
) -> Mapping[str, Callable[[], Any]]:
    """Return for each vendor a function that creates its client once.

    It raises LakeferryError for missing settings.
    """
    return {
        registry.CONFLUENT: functools.cache(lambda: _open_confluent(environment, store, deadline)),
        registry.SNOWFLAKE: functools.cache(lambda: _open_snowflake(environment, store, deadline)),
    }


def _open_confluent(environment: Mapping[str, str], store: SecretStore, deadline: Deadline) -> Confluent:
    settings = ConfluentSettings.from_environment(environment)
    key = store.read_key(settings.cloud_key_secret)
    url = settings.confluent_url or CONTROL_PLANE
    session = Session(deadline, proxy=settings.proxy)
    return Confluent(session, deadline.clock, key, url, settings.catalog_url)


def _open_snowflake(environment: Mapping[str, str], store: SecretStore, deadline: Deadline) -> Snowflake:
    settings = SnowflakeSettings.from_environment(environment)
    key = secret_fields.read_pair(store, settings.key_secret)
    role = sql.to_exact_name(settings.role)
    login = Login(settings.account, settings.user, role, sql.to_exact_name(settings.warehouse))
    session = Session(deadline, proxy=settings.proxy)
    return Snowflake(session, deadline.clock, login, key, settings.snowflake_url)


def require_deliverable(answer: dict[str, Any]) -> dict[str, Any]:
    """Return `answer`.

    Raises LakeferryError if its outputs contain a secret or are too long for CloudFormation.
    """
    data: dict[str, str] = answer.get("Data") or {}
    if hidden := [name for name, value in data.items() if redact(value) != value]:
        raise LakeferryError(errors.OUTPUTS, f"{', '.join(hidden)} would show a secret")
    length = len(json.dumps(data, ensure_ascii=False).encode())
    if length > DATA_BYTES:
        longest = max(data, key=lambda name: len(data[name].encode()))
        raise LakeferryError(
            errors.OUTPUTS,
            f"the outputs are {length} bytes of JSON, and {DATA_BYTES} are allowed; the longest is {longest}",
        )
    return answer
