"""Custom resources, behind CDK's provider framework. CloudFormation gets the returned value or the exception's message."""

from __future__ import annotations

import functools
import json
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final

import attrs

from lambdas import contract
from lambdas.confluent.client import CONTROL_PLANE, Confluent
from lambdas.custom_resources import provider, registry
from lambdas.custom_resources.provider import Deployment, Lifecycle
from lambdas.custom_resources.request import CloudFormationStacks, is_first_call
from lambdas.custom_resources.state import DynamoDocuments, StateStore
from lambdas.handlers import cleanup
from lambdas.handlers.runtime import LambdaContext, client, deadline, entry_point, require_own_stack, require_variables
from lambdas.shared import errors
from lambdas.shared.clock import Deadline, SystemClock
from lambdas.shared.errors import LakeferryError
from lambdas.shared.http import Session
from lambdas.shared.log import Log
from lambdas.shared.redaction import redact
from lambdas.shared.secrets import SecretStore
from lambdas.snowflake import secret_fields, sql
from lambdas.snowflake.client import Login, Snowflake

#: The outputs' share of the 4 KB of JSON that CloudFormation accepts as an answer.
DATA_BYTES: Final = 2500


@attrs.frozen
class Settings:
    """What a vendor needs is "" where it isn't set: a stack that uses one vendor only sets that one's variables."""

    project: str
    stage: str
    state_table: str
    cloud_key_secret: str
    confluent_url: str
    catalog_url: str
    snowflake_account: str
    snowflake_user: str
    snowflake_role: str
    snowflake_warehouse: str
    snowflake_secret: str
    snowflake_url: str


def handle(event: dict[str, Any], context: LambdaContext) -> dict[str, Any]:
    """Serve CDK's provider framework: name the resource at the first call, reconcile it at all others."""
    if event.get("ResourceType") == contract.CLEANUP_TYPE:
        return cleanup.handle(event, context)
    return on_event(event, context) if is_first_call(event) else is_complete(event, context)


def on_event(event: dict[str, Any], context: LambdaContext) -> dict[str, Any]:
    with _invocation(event, context):
        return provider.on_event(event, SystemClock().time())


def is_complete(event: dict[str, Any], context: LambdaContext) -> dict[str, Any]:
    with _invocation(event, context) as log:
        lifecycle = build(read_settings(os.environ), deadline(context, contract.HANDLER_MARGIN_SECONDS), log)
        return require_deliverable(lifecycle.is_complete(event))


@contextmanager
def _invocation(event: dict[str, Any], context: LambdaContext) -> Iterator[Log]:
    fields = {"request": event.get("RequestId"), "verb": event.get("RequestType"), "resource": event.get("LogicalResourceId")}
    with entry_point(**fields) as log:
        require_own_stack(event, context)
        yield log


def build(settings: Settings, deadline: Deadline, log: Log) -> Lifecycle:
    store = SecretStore(client("secretsmanager"))
    return Lifecycle(
        deployment=Deployment(settings.project, settings.stage),
        states=StateStore(DynamoDocuments(client("dynamodb"), settings.state_table), deadline.clock),
        stacks=CloudFormationStacks(client("cloudformation")),
        secrets=store,
        vendors=vendor_clients(settings, store, deadline),
        deadline=deadline,
        log=log,
    )


def vendor_clients(settings: Settings, store: SecretStore, deadline: Deadline) -> Mapping[str, Callable[[], Any]]:
    """Return for each vendor a function that creates its client once. It raises LakeferryError for what is missing."""
    return {
        registry.CONFLUENT: functools.cache(lambda: _confluent(settings, store, deadline)),
        registry.SNOWFLAKE: functools.cache(lambda: _snowflake(settings, store, deadline)),
    }


def _confluent(settings: Settings, store: SecretStore, deadline: Deadline) -> Confluent:
    require_variables({contract.CLOUD_KEY_SECRET: settings.cloud_key_secret}, contract.CLOUD_KEY_SECRET)
    key = store.read_key(settings.cloud_key_secret)
    return Confluent(Session(deadline), deadline.clock, key, settings.confluent_url, settings.catalog_url)


def _snowflake(settings: Settings, store: SecretStore, deadline: Deadline) -> Snowflake:
    given = {
        contract.SNOWFLAKE_ACCOUNT: settings.snowflake_account,
        contract.SNOWFLAKE_USER: settings.snowflake_user,
        contract.SNOWFLAKE_ROLE: settings.snowflake_role,
        contract.SNOWFLAKE_WAREHOUSE: settings.snowflake_warehouse,
        contract.SNOWFLAKE_SECRET: settings.snowflake_secret,
    }
    require_variables(given, *given)
    key = secret_fields.read_pair(store, settings.snowflake_secret)
    role, warehouse = sql.named(settings.snowflake_role), sql.named(settings.snowflake_warehouse)
    login = Login(settings.snowflake_account, settings.snowflake_user, role, warehouse)
    return Snowflake(Session(deadline), deadline.clock, login, key, settings.snowflake_url)


def read_settings(environment: Mapping[str, str]) -> Settings:
    """Read the function's environment. Raises LakeferryError that names all missing variables that both vendors need."""
    require_variables(environment, contract.PROJECT, contract.STAGE, contract.STATE_TABLE)
    return Settings(
        project=environment[contract.PROJECT],
        stage=environment[contract.STAGE],
        state_table=environment[contract.STATE_TABLE],
        cloud_key_secret=environment.get(contract.CLOUD_KEY_SECRET, ""),
        confluent_url=environment.get(contract.CONFLUENT_URL) or CONTROL_PLANE,
        catalog_url=environment.get(contract.CATALOG_URL, ""),
        snowflake_account=environment.get(contract.SNOWFLAKE_ACCOUNT, ""),
        snowflake_user=environment.get(contract.SNOWFLAKE_USER, ""),
        snowflake_role=environment.get(contract.SNOWFLAKE_ROLE, ""),
        snowflake_warehouse=environment.get(contract.SNOWFLAKE_WAREHOUSE, ""),
        snowflake_secret=environment.get(contract.SNOWFLAKE_SECRET, ""),
        snowflake_url=environment.get(contract.SNOWFLAKE_URL, ""),
    )


def require_deliverable(answer: dict[str, Any]) -> dict[str, Any]:
    """Return `answer` if its outputs can be given to CloudFormation as they are. Raises LakeferryError otherwise."""
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
