"""What the vendor refuses, and how each of its services says so."""

from __future__ import annotations

import json
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any, Final, NamedTuple

#: Connect counts its own errors by HTTP status; Kafka and Schema Registry append two digits.
_KAFKA_CODES: Final = {400: 40002, 401: 40101, 403: 40301, 404: 40403, 409: 40902, 422: 42206}


class Refusal(Exception):
    """`code` is the service's own (a word in the control plane, a number in the data planes); `pointer` names the field."""

    def __init__(
        self,
        status: int,
        detail: str,
        *,
        code: str | int | None = None,
        pointer: str = "",
        parameter: str = "",
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(detail)
        self.status, self.detail, self.code = status, detail, code
        self.pointer, self.parameter, self.headers = pointer, parameter, dict(headers or {})


class Rendered(NamedTuple):
    content_type: str
    content: bytes


def not_found(what: str, name: str) -> Refusal:
    return Refusal(404, f"{what} {name!r} not found", code="resource_not_found")


def forbidden(detail: str = "Access is denied") -> Refusal:
    return Refusal(403, detail, code="forbidden_access")


def conflict(detail: str) -> Refusal:
    return Refusal(409, detail, code="resource_conflict")


def over_quota(quota: str, limit: int) -> Refusal:
    return Refusal(402, f"Your quota {quota} of {limit} has been reached", code="quota_exceeded")


def invalid(pointer: str, detail: str) -> Refusal:
    return Refusal(422, detail, code="invalid_configuration", pointer=pointer)


def immutable(pointer: str) -> Refusal:
    return Refusal(400, f"{pointer} is immutable", code="bad_request", pointer=pointer)


def control_plane(refusal: Refusal, request_id: str) -> Rendered:
    source = {"pointer": refusal.pointer} if refusal.pointer else {"parameter": refusal.parameter} if refusal.parameter else {}
    error: dict[str, Any] = {
        "id": request_id,
        "status": str(refusal.status),
        "code": str(refusal.code or HTTPStatus(refusal.status).phrase.lower().replace(" ", "_")),
        "title": HTTPStatus(refusal.status).phrase,
        "detail": refusal.detail,
        "source": source,
    }
    return _json({"errors": [error]})


def metadata_service(refusal: Refusal, request_id: str) -> Rendered:
    """Role bindings: permission errors, and so those of a binding that is missing, come from the service behind, in its shape."""
    if refusal.status == 403:
        return _json({"error_code": _KAFKA_CODES[403], "message": refusal.detail})
    return control_plane(refusal, request_id)


def kafka_rest(refusal: Refusal, request_id: str) -> Rendered:
    if refusal.status == 401:
        page = "<html><head><title>Error 401 Unauthorized</title></head><body><h2>HTTP ERROR 401 Unauthorized</h2></body></html>"
        return Rendered("text/html;charset=iso-8859-1", page.encode())
    return _numbered(refusal)


def schema_registry(refusal: Refusal, request_id: str) -> Rendered:
    code = refusal.code if isinstance(refusal.code, int) else refusal.status
    if refusal.status in (400, 401, 403):  # they come from the gateway before it
        return _json({"error_code": code, "message": refusal.detail})
    return Rendered("application/vnd.schemaregistry.v1+json", _dump({"error_code": code, "message": refusal.detail}))


def connect(refusal: Refusal, request_id: str) -> Rendered:
    match refusal.status:
        case 401:
            return _json({"error": {"code": 401, "message": refusal.detail}})
        case 400:
            return _json({"code": 400, "message": refusal.detail})
    return _json({"error_code": refusal.status, "message": refusal.detail})


def iceberg(refusal: Refusal, request_id: str) -> Rendered:
    return _json(
        {"error": {"message": refusal.detail, "type": str(refusal.code or "BadRequestException"), "code": refusal.status}}
    )


def oauth(refusal: Refusal, request_id: str) -> Rendered:
    return _json({"error": str(refusal.code or "invalid_request"), "error_description": refusal.detail})


def _numbered(refusal: Refusal) -> Rendered:
    code = refusal.code if isinstance(refusal.code, int) else _KAFKA_CODES.get(refusal.status, refusal.status * 100)
    return _json({"error_code": code, "message": refusal.detail})


def _json(document: Any) -> Rendered:
    return Rendered("application/json", _dump(document))


def _dump(document: Any) -> bytes:
    return json.dumps(document, separators=(",", ":")).encode()
