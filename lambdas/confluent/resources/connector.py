"""A fully managed Datagen connector, with a quickstart or your own schema."""

from __future__ import annotations

import json
from typing import Any, Final

from lambdas.confluent import errors as confluent_errors
from lambdas.confluent.errors import mentions
from lambdas.confluent.lookup import Ctx, require_existing, treat_gone_container_as_empty
from lambdas.confluent.properties import ConnectorProps
from lambdas.confluent.rest_client import build_path, get_objects, get_path, get_text
from lambdas.shared.errors import Conflict, NeedsReplacement, Refused, Transient, shorten_detail
from lambdas.shared.resource import Outputs

PROPERTIES: Final = ConnectorProps
TIMEOUT_SECONDS: Final = 3000.0
#: Seconds for which a failure may be temporary, because ACLs take some time to become effective.
_FAULT_PATIENCE: Final = 900.0
DATAGEN: Final = "DatagenSource"
_MASK: Final = "****"


def create(context: Ctx, spec: ConnectorProps) -> str:
    config = _build_config(context, spec)
    _validate(context, spec, config)
    try:
        context.vendor.cloud.post(_build_list_route(spec), {"name": context.name, "config": config})
    except Refused as refused:
        if mentions(refused, "already exists"):
            raise Conflict(confluent_errors.CONFLICT, refused.what) from None
        raise
    return context.name


def is_ready(context: Ctx, spec: ConnectorProps, object_id: str) -> Outputs | None:
    """Return the outputs once it is RUNNING and no task has failed. A paused connector is resumed."""
    actual = require_existing(_read(context, spec), f"connector {object_id}")
    state = get_text(actual, "status", "connector", "state")
    tasks = get_objects(actual, "status", "tasks")
    failed_tasks = [task for task in tasks if get_text(task, "state") == "FAILED"]
    if state == "FAILED" or failed_tasks:
        reasons_of_tasks = "; ".join(get_text(task, "msg") for task in failed_tasks)
        reason = get_text(actual, "status", "connector", "trace") or reasons_of_tasks
        raise NeedsReplacement(
            confluent_errors.CONNECTOR_FAILED,
            f"connector {object_id} failed: {shorten_detail(reason)}",
            patience=_FAULT_PATIENCE,
        )
    if state == "PAUSED":
        context.vendor.cloud.put(_build_route(context, spec) + "/resume", None)
    if state != "RUNNING":
        return None
    return {"name": object_id, "id": get_text(actual, "id", "id")}


def update(context: Ctx, spec: ConnectorProps, object_id: str) -> None:
    actual = require_existing(_read(context, spec), f"connector {object_id}")
    current = get_path(actual, "info", "config") or {}
    config = _build_config(context, spec)
    before = _build_config(context, context.previous) if isinstance(context.previous, ConnectorProps) else {}
    removed_settings = [name for name in before if name not in config and get_text(current, name)]
    changed_settings = [
        name for name, value in config.items() if not _is_same(get_text(current, name), value)
    ]
    if removed_settings or changed_settings:
        _validate(context, spec, config)
        context.vendor.cloud.put(_build_route(context, spec) + "/config", config)


def delete(context: Ctx, spec: ConnectorProps, object_id: str) -> None:
    """Delete it. Confluent answers 200 even if the delete fails; the body then has the error."""
    answer = context.vendor.cloud.delete(_build_route(context, spec))
    error = get_path(answer, "error")
    if error:
        reason = str(error)[:300]
        raise Transient(confluent_errors.CONFLICT, f"connector {object_id} was not deleted: {reason}")


def find_existing(context: Ctx, spec: ConnectorProps, known_id: str | None) -> list[str]:
    return treat_gone_container_as_empty(
        context,
        lambda: context.vendor.cluster(spec.environment_id, spec.cluster_id) is None,
        lambda: [context.name] if _read(context, spec) is not None else [],
    )


def _read(context: Ctx, spec: ConnectorProps) -> dict[str, Any] | None:
    """Return id, configuration and state of the connector, from the list: no call returns all three for one
    connector.
    """
    connectors = context.vendor.cloud.get(_build_list_route(spec), expand="info,status,id")
    actual = get_path(connectors, context.name)
    return actual if isinstance(actual, dict) else None


def _build_config(context: Ctx, spec: ConnectorProps) -> dict[str, str]:
    data = {"quickstart": spec.quickstart} if spec.quickstart else {"schema.string": spec.schema}
    if spec.schema_key_field:
        data["schema.keyfield"] = spec.schema_key_field
    if spec.max_interval_ms is not None:
        data["max.interval"] = str(spec.max_interval_ms)
    return {
        "connector.class": DATAGEN,
        "name": context.name,
        "kafka.auth.mode": "SERVICE_ACCOUNT",
        "kafka.service.account.id": spec.service_account_id,
        "tasks.max": "1",
        "output.data.format": "AVRO",
        "kafka.topic": spec.topic,
        **data,
    }


def _validate(context: Ctx, spec: ConnectorProps, config: dict[str, str]) -> None:
    plugin = build_path(
        "connect", "v1", "environments", spec.environment_id, "clusters", spec.cluster_id,
        "connector-plugins", DATAGEN, "config", "validate",
    )  # fmt: skip
    result = context.vendor.cloud.put(plugin, config)
    if not get_path(result, "error_count"):
        return
    problems = []
    for setting in get_objects(result, "configs"):
        errors = get_path(setting, "value", "errors")
        if errors:
            problems.append(f"{get_text(setting, 'value', 'name')}: {'; '.join(map(str, errors))}")
    details = "; ".join(problems)[:600]
    raise Refused(confluent_errors.CONNECTOR_CONFIG, f"connector {context.name}: {details}")


def _is_same(current: str, expected: str) -> bool:
    """Return whether two values are equal.

    JSON is compared by content, and a masked value counts as equal to any value.
    """
    if current == expected or current.startswith(_MASK):
        return True
    try:
        return bool(json.loads(current) == json.loads(expected))
    except ValueError:
        return False


def _build_list_route(spec: ConnectorProps) -> str:
    return build_path(
        "connect", "v1", "environments", spec.environment_id, "clusters", spec.cluster_id, "connectors"
    )


def _build_route(context: Ctx, spec: ConnectorProps) -> str:
    return _build_list_route(spec) + build_path(context.name)
