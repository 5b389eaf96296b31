"""datapackage.json: the data dictionary, in the form of the Frictionless Data Package and Table Schema (v1)."""

from __future__ import annotations

from typing import Any

from exports.contract import Column, Contract
from glue_jobs.delivery.manifest import Delivered, File, window_document

_TYPES = {"text": "string", "integer": "integer", "date": "date", "timestamp": "datetime", "boolean": "boolean"}


def data_package(delivered: Delivered) -> dict[str, Any]:
    """Paths are relative to the folder in which the package lies."""
    contract = delivered.contract
    return {
        "profile": "tabular-data-package",
        "name": contract.name.replace("_", "-"),
        "title": contract.title,
        "description": contract.description,
        "version": str(contract.version),
        "contributors": [{"title": contract.owner, "role": "publisher"}],
        "lakeferry": {
            "grain": contract.grain,
            "status": delivered.status,
            "window": window_document(delivered.window, contract),
            "run_id": delivered.run_id,
            "not_delivered": [_left_out(column) for column in contract.column if not column.delivered],
        },
        "resources": [_resource(contract, file) for file in delivered.files if file.role == "data"],
    }


def _resource(contract: Contract, file: File) -> dict[str, Any]:
    null_text = contract.delivery.null_text
    name = file.key.rpartition("/")[2]
    resource = {
        "profile": "tabular-data-resource",
        "name": name.partition(".")[0].replace("_", "-").lower(),
        "path": name,
        "format": "csv",
        "mediatype": "text/csv",
        "encoding": "utf-8-sig" if contract.delivery.dialect == "excel" else "utf-8",
        "bytes": file.size,
        "hash": f"sha256:{file.sha256}",
        "dialect": {"delimiter": ",", "quoteChar": '"', "doubleQuote": True, "lineTerminator": "\r\n", "header": True},
        "schema": {"fields": [_field(column) for column in contract.columns], "missingValues": [null_text]},
    }
    return resource | ({"compression": "gz"} if contract.delivery.gzip else {})


def _field(column: Column) -> dict[str, Any]:
    field: dict[str, Any] = {
        "name": column.name,
        "type": _TYPES.get(column.type, "number"),
        "title": column.title,
        "description": column.description,
    }
    if column.type == "timestamp":
        field["format"] = "%Y-%m-%dT%H:%M:%S.%fZ"
    constraints: dict[str, Any] = {} if column.nullable else {"required": True}
    if column.allowed:
        constraints["enum"] = column.allowed
    extras = {"unit": column.unit, "example": column.example, "formula": column.expression or column.measure}
    extras |= {"source": column.field, "storage": column.type, "personal": _treatment(column)}
    return field | ({"constraints": constraints} if constraints else {}) | {k: v for k, v in extras.items() if v}


def _treatment(column: Column) -> str | None:
    return column.personal.treatment if column.personal else None


def _left_out(column: Column) -> dict[str, str]:
    return {"name": column.name, "title": column.title, "description": column.description}
