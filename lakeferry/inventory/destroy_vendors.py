"""Removes what is left over at Confluent and Snowflake: by the verbs of its kind, until the vendor no longer shows it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cached_property
from typing import Any, Final

import attrs

from lakeferry.deployment.context import DeploymentContext
from lakeferry.inventory import CONFLUENT, SNOWFLAKE, Item
from lambdas.confluent.client import Confluent, path
from lambdas.custom_resources import registry
from lambdas.custom_resources.reconcile import Reconciler
from lambdas.custom_resources.request import DELETE
from lambdas.custom_resources.state import ResourceState, StateStore, Versioned
from lambdas.shared.resource import Context
from lambdas.snowflake.client import Snowflake

#: Kinds in the order in which their things let go of one another.
ORDER: Final = (
    "snowflake_iceberg_table", "snowflake_schema", "snowflake_database", "snowflake_catalog_integration",
    "snowflake_external_volume", "snowflake_user", "snowflake_role", "snowflake_warehouse", "connector", "flink_statement",
    "tableflow_topic", "catalog_integration", "flink_compute_pool", "provider_integration", "kafka_cluster", "environment",
    "role_binding", "api_key", "service_account",
)  # fmt: skip
_OF_STATEMENT: Final = re.compile(r"-[0-9a-f]{8}(-undo)?$")
#: Of a statement; none of it matters to one that shall go.
_UNKNOWN: Final = {"compute_pool_id": "", "service_account_id": "", "catalog": "", "database": "", "sql": ""}


@attrs.define
class _Memory:
    """Rows for as long as the command runs."""

    rows: dict[str, Versioned] = attrs.field(factory=dict)

    def read(self, key: str) -> Versioned:
        return self.rows.get(key, Versioned({}, 0))

    def write(self, key: str, document: dict[str, Any], over: int, expires: float | None) -> bool:
        self.rows[key] = Versioned(document, over + 1)
        return True


@attrs.frozen
class Vendors:
    """`gone` may be asked again and again; it does each time what can be done then. Raises CommandFailed, LakeferryError."""

    ctx: DeploymentContext
    _settled: dict[str, Reconciler] = attrs.field(factory=dict, init=False)

    def gone(self, item: Item) -> bool:
        if item.kind == "role_binding":
            return self._unbound(item.id)
        key = f"{item.kind} {item.id} {item.name}"
        if key not in self._settled:
            self._settled[key] = self._reconciler(item)
        return self._settled[key].ensure_absent()

    def _unbound(self, id: str) -> bool:
        cloud, route = self._confluent.cloud, "/iam/v2/role-bindings" + path(id)
        cloud.delete(route)
        return cloud.read(route) is None

    @cached_property
    def _confluent(self) -> Confluent:
        return self.ctx.confluent()

    @cached_property
    def _snowflake(self) -> Snowflake:
        return self.ctx.snowflake()

    def _reconciler(self, item: Item) -> Reconciler:
        registered = registry.find(item.kind)
        vendor: Confluent | Snowflake = self._confluent if item.world == CONFLUENT else self._snowflake
        context = Context(
            vendor=vendor, name=_name(item), secrets=self.ctx.secrets, clock=self.ctx.clock, notes={}, deleting=True
        )
        row = ResourceState(request_id="destroy", verb=DELETE, mark="", since=self.ctx.clock.time(), name=context.name)
        if item.world == CONFLUENT:
            row.facts.object_id = item.id
        ledger = StateStore(_Memory(), self.ctx.clock)
        ledger.change("own", lambda _: row)
        lease = ledger.lease("own", "destroy", "destroy", self.ctx.deadline.at)
        return Reconciler(registered.handler, context, registered.handler.PROPERTIES(**self._values(item)), lease)

    def _values(self, item: Item) -> Mapping[str, Any]:
        """What the kind has to know to find the object and to delete it; the rest of its properties doesn't matter any more."""
        if item.world == SNOWFLAKE:
            return _of_snowflake(item)
        place = dict(zip(("environment_id", "cluster_id"), item.where, strict=False))
        secret = f"{self.ctx.deployment.prefix}/confluent"
        more = {
            "environment": {},
            "service_account": {},
            "api_key": {"service_account_id": item.where[0] if item.where else "", "service": "cloud", "secret": ""},
            "provider_integration": {"role_arn": ""},
            "connector": {"service_account_id": "", "topic": ""},
            "tableflow_topic": {"credentials": f"{secret}/tableflow", "topic": item.id},
            "catalog_integration": {"credentials": f"{secret}/tableflow", "provider_integration_id": ""},
            "flink_statement": {"credentials": f"{secret}/flink", "region": self.ctx.region, **_UNKNOWN},
        }.get(item.kind, {"region": self.ctx.region})
        return more if item.kind == "api_key" else {**place, **more}


def _name(item: Item) -> str:
    """The resource's own name, by which its kind knows its objects."""
    if item.world == SNOWFLAKE:
        return item.id.partition("lakeferry ")[2].split(" ")[0]
    return _OF_STATEMENT.sub("", item.name) if item.kind == "flink_statement" else item.name.partition("/")[0]


def _of_snowflake(item: Item) -> Mapping[str, Any]:
    database, schema = (*item.where, "", "")[:2]
    unknown = {"volume": "", "integration": "", "table": ""}
    return {
        "snowflake_external_volume": {"base_url": "", "role_arn": ""},
        "snowflake_catalog_integration": {"role_arn": "", "region": "", "account_id": "", "namespace": ""},
        "snowflake_schema": {"database": database, "name": item.name},
        "snowflake_iceberg_table": {"database": database, "schema": schema, "name": item.name, **unknown},
        "snowflake_user": {"secret": "", "name": item.name},
    }.get(item.kind, {"name": item.name})
