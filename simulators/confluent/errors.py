"""Errors of the simulated services. Each service renders them in its own format (http.py)."""

from __future__ import annotations

from collections.abc import Mapping


class ApiError(Exception):
    """`code` is the service's error code: text in the control plane, a number in the data planes.

    `pointer` is the field's.
    """

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
        self.status = status
        self.detail = detail
        self.code = code
        self.pointer = pointer
        self.parameter = parameter
        self.headers = dict(headers or {})


def bad_request(detail: str, pointer: str = "", parameter: str = "") -> ApiError:
    return ApiError(400, detail, code="bad_request", pointer=pointer, parameter=parameter)


def immutable(pointer: str) -> ApiError:
    return bad_request(f"{pointer} is immutable", pointer)


def over_quota(quota: str, limit: int) -> ApiError:
    return ApiError(402, f"Your quota {quota} of {limit} has been reached", code="quota_exceeded")


def forbidden(detail: str = "Access is denied") -> ApiError:
    return ApiError(403, detail, code="forbidden_access")


def not_found(label: str, name: str) -> ApiError:
    return ApiError(404, f"{label} {name!r} not found", code="resource_not_found")


def conflict(detail: str) -> ApiError:
    return ApiError(409, detail, code="resource_conflict")


def invalid(pointer: str, detail: str) -> ApiError:
    return ApiError(422, detail, code="invalid_configuration", pointer=pointer)
