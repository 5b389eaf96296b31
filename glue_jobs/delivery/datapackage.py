"""datapackage.json: the data dictionary, in the form of the Frictionless Data Package and Table Schema
(v1).
"""

from __future__ import annotations

import re
from typing import Any

import attrs

from config.exports.contract import Column, Contract
from config.exports.file_model import ROW_ROLES
from glue_jobs.delivery import csv
from glue_jobs.delivery.manifest import File, WindowResult, describe_window

#: How values of a type are written, in terms of the Table Schema. Other properties have their defaults.
_TYPES: dict[str, dict[str, Any]] = {
    "text": {"type": "string"},
    "integer": {"type": "integer", "bareNumber": True},
    "number": {"type": "number", "decimalChar": ".", "bareNumber": True},
    "date": {"type": "date", "format": "%Y-%m-%d"},
    "timestamp": {"type": "datetime", "format": "%Y-%m-%dT%H:%M:%S.%fZ"},
    "boolean": {"type": "boolean", "trueValues": ["true"], "falseValues": ["false"]},
}
MEDIA_TYPES: dict[str, str] = {
    "parquet": "application/vnd.apache.parquet",
    "jsonl": "application/x-ndjson",
    "xlsx": "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
}


def build_data_package(result: WindowResult) -> dict[str, Any]:
    """Describe the files. Paths are relative to the folder of datapackage.json."""
    contract = result.contract
    return {
        "profile": "data-package" if contract.delivery.also else "tabular-data-package",
        "name": contract.name.replace("_", "-"),
        "title": contract.title,
        "description": contract.description,
        "version": str(contract.version),
        "contributors": [{"title": contract.owner, "role": "publisher"}],
        "sources": [
            {"title": f"topic {contract.source.topic}, table {result.table.database}.{result.table.name}"}
        ],
        "lakeferry": _describe_provenance(result),
        "resources": [
            _describe_resource(contract, file) if file.role == "data" else _describe_format(file)
            for file in result.files
            if file.role in ROW_ROLES
        ],
    }


def _describe_provenance(result: WindowResult) -> dict[str, Any]:
    contract = result.contract
    left_out = [column for column in contract.column if not column.delivered]
    return {
        "grain": contract.grain,
        "status": result.status,
        "window": describe_window(result.window, contract),
        "run_id": result.run_id,
        "snapshot_id": result.table.snapshot_id,
        "contract_sha256": contract.sha256,
        "key_version": result.key_version,
        "order_by": contract.delivery.order_by,
        "filters": [{"where": filter_.where, "reason": filter_.reason} for filter_ in contract.filter],
        "not_delivered": [
            {"name": column.name, "title": column.title, "description": column.description}
            for column in left_out
        ],
    }


def _describe_resource(contract: Contract, file: File) -> dict[str, Any]:
    path = file.key.rpartition("/")[2]
    null_text = contract.delivery.null_text
    resource: dict[str, Any] = {
        "profile": "tabular-data-resource",
        "name": re.sub(r"\.csv(\.gz)?$", "", path).replace("_", "-").lower(),
        "path": path,
        "format": "csv",
        "mediatype": "text/csv",
        # A byte order mark doesn't make it another encoding, and utf-8-sig is a name that only Python knows.
        "encoding": "utf-8",
        "bytes": file.size,
        "hash": f"sha256:{file.sha256}",
        "dialect": {
            "delimiter": contract.delivery.delimiter,
            "quoteChar": '"',
            "doubleQuote": True,
            "lineTerminator": "\r\n",
            "header": True,
        },
        "schema": {
            "fields": [_describe_field(column, null_text) for column in contract.columns],
            "missingValues": [null_text],
        },
    }
    if contract.delivery.gzip:
        resource["compression"] = "gz"
    return resource


def _describe_format(file: File) -> dict[str, Any]:
    """Describe a file with the rows of the CSV file in another format."""
    path = file.key.rpartition("/")[2]
    resource = {
        "profile": "data-resource",
        "name": path.replace("_", "-").replace(".", "-").lower(),
        "path": path,
        "description": "The rows of the CSV file, in the same order.",
        "format": file.role,
        "mediatype": MEDIA_TYPES[file.role],
        "bytes": file.size,
        "hash": f"sha256:{file.sha256}",
    }
    return resource | ({"compression": "gz"} if path.endswith(".gz") else {})


def _describe_field(column: Column, null_text: str) -> dict[str, Any]:
    constraints: dict[str, Any] = {}
    if not column.nullable and _never_reads_as_missing(column, null_text):
        constraints["required"] = True
    if column.allowed:
        constraints["enum"] = [_as_read(column, value) for value in column.allowed]
    personal = attrs.asdict(column.personal) if column.personal else {}
    personal = {name: value for name, value in personal.items() if value not in (None, [])}
    field: dict[str, Any] = {"name": column.name, "title": column.title, "description": column.description}
    field |= _TYPES["number" if column.type.startswith("decimal") else column.type]
    if constraints:
        field["constraints"] = constraints
    extras = {
        "unit": column.unit,
        "per": column.per,
        "example": column.example,
        "source": column.field,
        "formula": column.expression or column.measure,
        "storage": column.type,
        "nullable": column.nullable,
        "personal": personal or None,
        "adds_up": column.adds_up,
    }
    return field | {name: value for name, value in extras.items() if value is not None}


def _never_reads_as_missing(column: Column, null_text: str) -> bool:
    """Return whether no value equals `null_text`.

    Readers of the Table Schema ignore quotes, so it would be missing to them.
    """
    return (
        column.type != "text"
        or column.is_hashed
        or (bool(column.allowed) and null_text not in column.allowed)
    )


def _as_read(column: Column, value: str) -> str | int | bool:
    """Return the value as the file's reader gets it. A decimal is text, because JSON has no decimals."""
    if column.type == "text":
        return csv.guarded(value)
    if column.type == "integer":
        return int(value)
    return value == "true" if column.type == "boolean" else value
