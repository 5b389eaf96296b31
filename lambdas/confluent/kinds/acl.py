"""An access control entry of a Kafka cluster. It is what its values say: there is nothing to update."""

from __future__ import annotations

from typing import Any, Final

import attrs

from lambdas.confluent.finding import Ctx, existing, in_container
from lambdas.confluent.plane import Plane, path
from lambdas.confluent.reading import objects, text
from lambdas.core.kind import Outputs
from lambdas.core.properties import Properties, prop

OUTPUTS: Final = ("id",)
PATIENCE: Final = 1800.0
#: The one resource name that entries on the cluster itself have.
CLUSTER_NAME: Final = "kafka-cluster"


@attrs.frozen
class Spec(Properties):
    environment_id: str = prop("The environment, env-….")
    cluster_id: str = prop("The Kafka cluster, lkc-….")
    credentials: str = prop("Name or ARN of the secret with a Kafka key that may administer the cluster.")
    service_account_id: str = prop("The account that the entry is about, sa-….")
    resource_type: str = prop("What is allowed or denied.", one_of=("TOPIC", "GROUP", "CLUSTER", "TRANSACTIONAL_ID"))
    resource_name: str = prop(f"Its name; {CLUSTER_NAME} for CLUSTER.", default=CLUSTER_NAME)
    pattern_type: str = prop("Whether the name is whole or a beginning.", default="LITERAL", one_of=("LITERAL", "PREFIXED"))
    operation: str = prop(
        "What may be done.",
        one_of=(
            "ALL", "READ", "WRITE", "CREATE", "DELETE", "ALTER", "DESCRIBE", "CLUSTER_ACTION", "DESCRIBE_CONFIGS",
            "ALTER_CONFIGS", "IDEMPOTENT_WRITE",
        ),
    )  # fmt: skip
    permission: str = prop("Whether it is allowed.", default="ALLOW", one_of=("ALLOW", "DENY"))
    host: str = prop("From where.", default="*")


def create(context: Ctx, spec: Spec) -> str:
    """The same entry made twice is one entry."""
    _plane(context, spec).post(_route(spec), _entry(spec), repeatable=True)
    return _id(spec)


def is_ready(context: Ctx, spec: Spec, object_id: str) -> Outputs | None:
    existing(_found(context, spec), f"ACL {object_id}")
    return {"id": object_id}


def update(context: Ctx, spec: Spec, object_id: str) -> None:
    existing(_found(context, spec), f"ACL {object_id}")


def delete(context: Ctx, spec: Spec, object_id: str) -> None:
    """The filter names every field: a looser one would remove entries of others."""
    _plane(context, spec).delete(_route(spec), **_entry(spec))


REPLACE_ON: Final = (
    "environment_id", "cluster_id", "service_account_id", "resource_type", "resource_name", "pattern_type", "operation",
    "permission", "host",
)  # fmt: skip


def adopt(context: Ctx, spec: Spec, known: str | None) -> list[str]:
    return in_container(
        context,
        lambda: context.vendor.cluster(spec.environment_id, spec.cluster_id) is None,
        lambda: [_id(spec)] if _found(context, spec) else [],
    )


def _found(context: Ctx, spec: Spec) -> dict[str, Any] | None:
    wanted = _entry(spec)
    listed = objects(_plane(context, spec).read(_route(spec), **wanted) or {}, "data")
    return next((one for one in listed if all(text(one, name) == value for name, value in wanted.items())), None)


def _entry(spec: Spec) -> dict[str, str]:
    return {
        "resource_type": spec.resource_type,
        "resource_name": spec.resource_name,
        "pattern_type": spec.pattern_type,
        "principal": f"User:{spec.service_account_id}",
        "host": spec.host,
        "operation": spec.operation,
        "permission": spec.permission,
    }


def _id(spec: Spec) -> str:
    return "/".join(_entry(spec).values())


def _plane(context: Ctx, spec: Spec) -> Plane:
    return context.vendor.kafka(spec.environment_id, spec.cluster_id, context.secrets.read_key(spec.credentials))


def _route(spec: Spec) -> str:
    return path("kafka", "v3", "clusters", spec.cluster_id, "acls")
