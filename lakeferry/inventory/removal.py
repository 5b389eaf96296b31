"""Removes orphans, kind by kind, and waits until each is gone.

AWS resources are deleted through the API of their service. Objects of vendors are deleted by the code of
their custom resource, as their stack would do it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property
from typing import Any, Final

import attrs
from botocore.exceptions import BotoCoreError, ClientError

from lakeferry.deployment.context import DeploymentContext
from lakeferry.inventory.aws_kinds import KINDS
from lakeferry.inventory.aws_listing import GONE
from lakeferry.inventory.model import AWS, CONFLUENT, SNOWFLAKE, Item, Verdict
from lakeferry.output import Reporter
from lambdas.confluent.client import Confluent
from lambdas.confluent.rest_client import build_path
from lambdas.custom_resources import registry
from lambdas.custom_resources.reconcile import Reconciler
from lambdas.custom_resources.request import DELETE
from lambdas.custom_resources.state import ResourceState, StateStore, Versioned
from lambdas.shared.aws import answer_to, read_error_code
from lambdas.shared.errors import LakeferryError, Transient
from lambdas.shared.redaction import redact
from lambdas.shared.resource import Context
from lambdas.snowflake.client import Snowflake

#: Kinds in the order of their removal. Snowflake's and Confluent's objects go first: they read what is in
#: AWS.
ORDER: Final = (
    "snowflake_view", "snowflake_iceberg_table", "snowflake_schema", "snowflake_database",
    "snowflake_catalog_integration", "snowflake_external_volume", "snowflake_user", "snowflake_role",
    "snowflake_warehouse", "connector", "flink_statement", "tableflow_topic", "catalog_integration",
    "flink_compute_pool", "kafka_cluster", "provider_integration", "environment", "role_binding",
    "api_key", "service_account",
    *(kind.name for kind in KINDS),
)  # fmt: skip
_AWS_KINDS: Final = {kind.name: kind for kind in KINDS}
#: They are kept while something can't be listed, because it may take one of them to list it.
_KEYS: Final = ("secret", "kms_key", "role_binding", "api_key", "service_account")
_POLL: Final = 5.0
_PATIENCE: Final = 600.0
_OF_STATEMENT: Final = re.compile(r"-[0-9a-f]{8}(-undo)?$")
#: Properties of a statement that its deletion doesn't need.
_UNKNOWN: Final = {"compute_pool_id": "", "service_account_id": "", "catalog": "", "database": "", "sql": ""}


@attrs.frozen
class Outcome:
    """`stuck` has the items that could not be removed, each with the reason."""

    removed: tuple[Item, ...] = ()
    stuck: tuple[tuple[Item, str], ...] = ()


def list_removable(items: Iterable[Item]) -> list[Item]:
    """Return the orphans in the order of their removal.

    An environment is the last: it is only deleted once it is empty.
    """
    listed = list(items)
    is_partial = any(item.verdict is Verdict.UNKNOWN and item.system != AWS for item in listed)
    orphans = [item for item in listed if item.verdict is Verdict.ORPHANED and item.kind in ORDER]
    orphans = [item for item in orphans if not (is_partial and item.kind in _KEYS)]
    return sorted(orphans, key=lambda item: ORDER.index(item.kind))


def remove(ctx: DeploymentContext, items: Iterable[Item], report: Reporter) -> Outcome:
    """Remove all of one kind together, one kind after the other. Raises CommandFailed."""
    orphans = list_removable(items)
    vendors = _VendorObjects(ctx)
    removed: list[Item] = []
    stuck: list[tuple[Item, str]] = []
    for kind in dict.fromkeys(item.kind for item in orphans):
        remaining_items = [item for item in orphans if item.kind == kind]
        began = ctx.clock.time()
        while remaining_items:
            waiting = []
            for item in remaining_items:
                report(f"{item.kind} {item.name}")
                why, patience = _try(ctx, vendors, item)
                if why is None:
                    removed.append(item)
                elif ctx.clock.time() - began >= patience:
                    stuck.append((item, why))
                else:
                    waiting.append(item)
            remaining_items = waiting
            if remaining_items:
                ctx.clock.sleep(_POLL)
    return Outcome(tuple(removed), tuple(stuck))


def _try(ctx: DeploymentContext, vendors: _VendorObjects, item: Item) -> tuple[str | None, float]:
    """Return why the object still exists (None if it is gone), and for how many seconds to try again."""
    patience = _PATIENCE if item.system == AWS else registry.find(item.kind).handler.TIMEOUT_SECONDS
    try:
        is_gone = _delete_aws(ctx, item) if item.system == AWS else vendors.delete(item)
    except LakeferryError as error:
        return f"{error.kind.code}: {error.what}", patience if isinstance(
            error, Transient
        ) else error.patience
    except ClientError as error:
        return redact(answer_to(error)), _PATIENCE / 10
    except BotoCoreError as error:
        return type(error).__name__, _PATIENCE / 10
    return (None, 0.0) if is_gone else ("it is still there", patience)


def _delete_aws(ctx: DeploymentContext, item: Item) -> bool:
    """Return whether it is gone; may be called again. Raises ClientError, BotoCoreError, LakeferryError."""
    try:
        return _AWS_KINDS[item.kind].delete(ctx, item) is not False
    except ClientError as error:
        if any(sign in read_error_code(error) for sign in GONE):
            return True
        raise


@attrs.define
class _MemoryTable:
    """Keeps the states of resources in memory, instead of in the DynamoDB table."""

    rows: dict[str, Versioned] = attrs.field(factory=dict)

    def read(self, key: str) -> Versioned:
        return self.rows.get(key, Versioned({}, 0))

    def write(self, key: str, document: dict[str, Any], over: int, expires: float | None) -> bool:
        self.rows[key] = Versioned(document, over + 1)
        return True

    def read_all(self) -> Iterator[dict[str, Any]]:
        return (row.document for row in self.rows.values())


@attrs.frozen
class _VendorObjects:
    ctx: DeploymentContext
    _reconcilers: dict[str, Reconciler] = attrs.field(factory=dict, init=False)

    def delete(self, item: Item) -> bool:
        """Do what can be done now, and return whether the object is gone.

        Raises CommandFailed, LakeferryError.
        """
        if item.kind == "role_binding":
            route = "/iam/v2/role-bindings" + build_path(item.id)
            self._confluent.cloud.delete(route)
            return self._confluent.cloud.read(route) is None
        key = f"{item.kind} {item.id} {item.name}"
        if key not in self._reconcilers:
            self._reconcilers[key] = self._build_reconciler(item)
        return self._reconcilers[key].ensure_absent()

    @cached_property
    def _confluent(self) -> Confluent:
        return self.ctx.confluent()

    @cached_property
    def _snowflake(self) -> Snowflake:
        return self.ctx.snowflake()

    def _build_reconciler(self, item: Item) -> Reconciler:
        handler = registry.find(item.kind).handler
        vendor: Confluent | Snowflake = self._confluent if item.system == CONFLUENT else self._snowflake
        context = Context(
            vendor=vendor,
            name=_find_resource_name(item),
            secrets=self.ctx.secrets,
            clock=self.ctx.clock,
            notes={},
            deleting=True,
            # The list of orphans, which the user has confirmed, has only the deployment's own.
            is_owned=lambda: True,
        )
        state = ResourceState(
            request_id="destroy", verb=DELETE, fingerprint="", since=self.ctx.clock.time(), name=context.name
        )
        if item.system == CONFLUENT:
            state.facts.object_id = item.id
            state.facts.tenant = vendor.tenant
        store = StateStore(_MemoryTable(), self.ctx.clock)
        store.change("own", lambda _: state)
        lease = store.lease("own", "destroy", "destroy", self.ctx.deadline.at)
        return Reconciler(handler, context, handler.PROPERTIES(**self._build_properties(item)), lease)

    def _build_properties(self, item: Item) -> Mapping[str, Any]:
        """Return what the resource type needs to find and delete the object; other properties don't matter
        any more.
        """
        if item.system == SNOWFLAKE:
            return _build_snowflake_properties(item)
        parents = dict(zip(("environment_id", "cluster_id"), item.parents, strict=False))
        container_ids = {
            "environment": {},
            "service_account": {},
            "api_key": {
                "service_account_id": item.parents[0] if item.parents else "",
                "service": "cloud",
                "secret": "",
            },
            "provider_integration": {"role_arn": ""},
            "connector": {"service_account_id": "", "topic": ""},
            "tableflow_topic": {"credentials": self.ctx.confluent_secret("tableflow"), "topic": item.id},
            "catalog_integration": {
                "credentials": self.ctx.confluent_secret("tableflow"),
                "provider_integration_id": "",
            },
            "flink_statement": {
                "credentials": self.ctx.confluent_secret("flink"),
                "region": self.ctx.region,
                **_UNKNOWN,
            },
        }.get(item.kind, {"region": self.ctx.region})
        return container_ids if item.kind == "api_key" else {**parents, **container_ids}


def _find_resource_name(item: Item) -> str:
    """Return the resource's name, by which its resource type finds its objects."""
    if item.system == SNOWFLAKE:
        return item.name_in_comment
    if item.kind == "flink_statement":
        return _OF_STATEMENT.sub("", item.name)
    return item.name.partition("/")[0]


def _build_snowflake_properties(item: Item) -> Mapping[str, Any]:
    database, schema = (*item.parents, "", "")[:2]
    unknown = {"volume": "", "integration": "", "table": ""}
    properties: dict[str, Mapping[str, Any]] = {
        "snowflake_external_volume": {"base_url": "", "role_arn": ""},
        "snowflake_catalog_integration": {"role_arn": "", "region": "", "account_id": "", "namespace": ""},
        "snowflake_schema": {"database": database, "name": item.name},
        "snowflake_iceberg_table": {"database": database, "schema": schema, "name": item.name, **unknown},
        "snowflake_view": {
            "database": database,
            "schema": schema,
            "name": item.name,
            "table": "A.B.C",  # its deletion needs neither table nor columns
            "columns": ["A"],
        },
        "snowflake_user": {"secret": "", "name": item.name},
    }
    return properties.get(item.kind, {"name": item.name})
