"""Tableflow for a topic: Confluent writes the topic's records to an Iceberg table, in your bucket or in its
own storage.

A topic has one table, and it doesn't name its owner. A table that somebody else enabled is neither changed
nor disabled.
"""

from __future__ import annotations

from typing import Any, Final, NoReturn

from lambdas.confluent import errors as confluent_errors
from lambdas.confluent.errors import mentions
from lambdas.confluent.lookup import Ctx, require_existing, require_unprotected, treat_gone_container_as_empty
from lambdas.confluent.properties import TableflowTopicProps
from lambdas.confluent.resources import catalog_integration
from lambdas.confluent.resources.catalog_integration import (
    FAULT_PATIENCE,
    build_cluster_ref,
    build_query,
    connect,
    resume,
)
from lambdas.confluent.rest_client import build_path, get_objects, get_path, get_text
from lambdas.shared import errors
from lambdas.shared.errors import (
    Denied,
    InProgress,
    Refused,
    ReplacementRequired,
    ResourceFailed,
    shorten_detail,
)
from lambdas.shared.resource import Outputs

PROPERTIES: Final = TableflowTopicProps
TIMEOUT_SECONDS: Final = 3000.0
_ROUTE: Final = "/tableflow/v1/tableflow-topics"
#: Seconds to wait for a catalog whose state the key's owner may not see. A table takes some ten minutes.
_UNSEEN_PATIENCE: Final = 1800.0


def create(context: Ctx, spec: TableflowTopicProps) -> str:
    """Enable Tableflow.

    It takes some time to see a new topic, schema or role, so errors about these are temporary.
    """
    body = {
        "display_name": spec.topic,
        **build_cluster_ref(spec),
        "storage": _build_storage(spec),
        "table_formats": _list_formats(spec),
        "config": _build_config(spec),
    }
    tableflow = connect(context, spec)
    context.claim()
    try:
        tableflow.post(_ROUTE, {"spec": body})
    except Refused as refused:
        if mentions(refused, "schemaless"):
            raise InProgress(confluent_errors.SCHEMALESS, refused.what) from None
        if mentions(refused, "not empty"):
            raise Refused(confluent_errors.STORAGE_NOT_EMPTY, refused.what) from None
        if mentions(refused, "assume"):
            raise ResourceFailed(
                confluent_errors.TABLEFLOW_FAILED, refused.what, patience=FAULT_PATIENCE
            ) from None
        raise
    return spec.topic


def is_ready(context: Ctx, spec: TableflowTopicProps, object_id: str) -> Outputs | None:
    """Return the outputs once it runs.

    If it is suspended or has failed, resume it and raise an error with Confluent's reason.
    """
    actual = require_existing(_read(context, spec), f"Tableflow of topic {object_id}")
    phase = get_text(actual, "status", "phase")
    if phase == "FAILED" or get_path(actual, "spec", "suspended") is True:
        resume(context, spec, _ROUTE + build_path(spec.topic))
        raise _build_topic_fault(spec, get_text(actual, "status", "error_message"), failed=phase == "FAILED")
    failing_formats = get_objects(actual, "status", "failing_table_formats")
    if failing_formats:
        reasons = [get_text(table_format, "error_message") for table_format in failing_formats]
        raise _build_topic_fault(spec, "; ".join(reasons), failed=True)
    table_path = get_text(actual, "spec", "storage", "table_path")
    if phase != "RUNNING" or not table_path:
        return None
    if spec.await_catalog:
        _require_synced(context, spec, actual)
    base, middle, _ = table_path.partition("/v1/")
    return {
        "topic": object_id,
        "table_path": table_path,
        "table_base": base + middle,
        "write_mode": get_text(actual, "status", "write_mode"),
    }


def update(context: Ctx, spec: TableflowTopicProps, object_id: str) -> None:
    actual = require_existing(_read(context, spec), f"Tableflow of topic {object_id}")
    before = context.previous
    current = get_path(actual, "spec", "config")
    was_set = isinstance(before, TableflowTopicProps) and before.data_retention_ms is not None
    if was_set and spec.data_retention_ms is None and not context.rolling_back():
        # The API has no value for "never", and keeps the old value if none is sent.
        raise Refused(
            confluent_errors.CANT_CHANGE, f"data_retention_ms of Tableflow topic {object_id} can't be removed"
        )
    expected = _build_storage(spec)
    is_same_storage = all(get_text(actual, "spec", "storage", name) == expected[name] for name in expected)
    if not is_same_storage:
        raise ReplacementRequired(errors.OUTDATED, f"Tableflow of topic {object_id} writes to other storage")
    changes: dict[str, Any] = {}
    config = _build_config(spec)
    changed_config = {
        name: value for name, value in config.items() if not _is_same(get_path(current, name), value)
    }
    if changed_config:
        changes["config"] = changed_config
    current_formats = get_path(actual, "spec", "table_formats") or []
    if set(current_formats) != set(_list_formats(spec)):
        changes["table_formats"] = _list_formats(spec)
    if changes:
        connect(context, spec).patch(
            _ROUTE + build_path(spec.topic), {"spec": {**build_cluster_ref(spec), **changes}}
        )


def delete(context: Ctx, spec: TableflowTopicProps, object_id: str) -> None:
    """Disable Tableflow.

    Files in your own bucket and tables in AWS Glue stay; Confluent's own storage is emptied.
    """
    if spec.storage == "managed":
        require_unprotected(context, spec, f"the table of topic {object_id} has rows")
    connect(context, spec).delete(_ROUTE + build_path(spec.topic), **build_query(spec))


def find_existing(context: Ctx, spec: TableflowTopicProps, known_id: str | None) -> list[str]:
    """Return the topic if it has a table.

    Raises Refused if that is neither the resource's own nor to be adopted.
    """

    def find_objects() -> list[str]:
        actual = _read(context, spec)
        if actual is None:
            return []
        if not context.owned and not spec.adopt:
            place = get_text(actual, "spec", "storage", "bucket_name") or "Confluent's storage"
            message = (
                f"topic {spec.topic} has Tableflow already, into {place}, and this deployment did not "
                "enable it"
            )
            raise Refused(confluent_errors.FOREIGN_TABLEFLOW, message)
        return [spec.topic]

    if context.deleting and not context.owned:
        return []
    return treat_gone_container_as_empty(
        context, lambda: context.vendor.cluster(spec.environment_id, spec.cluster_id) is None, find_objects
    )


def _build_topic_fault(spec: TableflowTopicProps, reason: str, *, failed: bool) -> ResourceFailed:
    row = confluent_errors.TABLEFLOW_FAILED if failed else confluent_errors.TABLEFLOW_SUSPENDED
    if "not empty" in reason.lower():
        row = confluent_errors.STORAGE_NOT_EMPTY
    return ResourceFailed(
        row,
        f"Tableflow of topic {spec.topic}: {shorten_detail(reason) or 'no reason given'}",
        patience=FAULT_PATIENCE,
    )


def _require_synced(context: Ctx, spec: TableflowTopicProps, actual: dict[str, Any]) -> None:
    """Raise InProgress until all catalogs show the table, and ResourceFailed if one of them fails."""
    statuses = get_objects(actual, "status", "catalog_sync_statuses")
    if statuses and all(get_text(status, "sync_status") == "SYNCED" for status in statuses):
        return
    integrations = _list_catalog_integrations(context, spec)
    for integration in integrations or []:
        catalog_integration.require_working(context, spec, integration)
    for status in statuses:
        if get_text(status, "sync_status") == "FAILED":
            raise catalog_integration.build_fault(f"topic {spec.topic}", get_text(status, "error_message"))
    if not integrations and not statuses:
        _explain_missing_catalog(spec, is_unseen=integrations is None)
    states = []
    for integration in integrations or []:
        phase = get_text(integration, "status", "phase")
        states.append(f"catalog integration {get_text(integration, 'id')} is {phase}")
    state = ", ".join(states) or "its state is not synced"
    raise InProgress(errors.WAITING, f"no catalog shows the table of topic {spec.topic} yet: {state}")


def _explain_missing_catalog(spec: TableflowTopicProps, *, is_unseen: bool) -> NoReturn:
    """Raise ResourceFailed, with more patience if the cluster may have an integration that the key's owner
    may not see.
    """
    if is_unseen:
        why = "the owner of the key may not see whether the cluster has a catalog integration"
        patience = _UNSEEN_PATIENCE
    else:
        why = f"Kafka cluster {spec.cluster_id} has no catalog integration"
        patience = FAULT_PATIENCE
    message = f"no catalog shows the table of topic {spec.topic}, and {why}"
    raise ResourceFailed(confluent_errors.NO_CATALOG, message, patience=patience)


def _list_catalog_integrations(context: Ctx, spec: TableflowTopicProps) -> list[dict[str, Any]] | None:
    """Return the cluster's integrations, None if the key's owner may not see them.

    The owner of a topic need not be allowed to.
    """
    try:
        return connect(context, spec).pages(catalog_integration.ROUTE, **build_query(spec))
    except Denied:
        return None


def _is_same(current: Any, expected: Any) -> bool:
    """Return whether the current value is the wanted one.

    The API returns numbers as text, and more fields of error handling.
    """
    if isinstance(expected, dict):
        if not isinstance(current, dict):
            return False
        return all(get_text(current, name) == value for name, value in expected.items())
    return current is not None and str(current) == str(expected)


def _build_storage(spec: TableflowTopicProps) -> dict[str, str]:
    if spec.storage == "managed":
        return {"kind": "Managed"}
    return {
        "kind": "ByobAws",
        "bucket_name": spec.bucket,
        "provider_integration_id": spec.provider_integration_id,
    }


def _list_formats(spec: TableflowTopicProps) -> list[str]:
    return sorted(set(spec.table_formats)) or ["ICEBERG"]


def _build_config(spec: TableflowTopicProps) -> dict[str, Any]:
    """Return the configuration.

    With both error_handling and the deprecated record_failure_strategy, creation would fail.
    """
    error_handling = {"mode": spec.error_handling}
    if spec.error_handling == "LOG":
        error_handling["target"] = spec.error_log_topic
    config: dict[str, Any] = {
        "error_handling": error_handling,
        "metadata_column_naming_scheme": spec.metadata_columns,
    }
    if spec.retention_ms is not None:
        config["retention_ms"] = str(spec.retention_ms)
    if spec.data_retention_ms is not None:
        config["data_retention_ms"] = str(spec.data_retention_ms)
    return config


def _read(context: Ctx, spec: TableflowTopicProps) -> dict[str, Any] | None:
    return connect(context, spec).read(_ROUTE + build_path(spec.topic), **build_query(spec))
