"""Service Quotas, as far as it is simulated: ListServiceQuotas, with two quotas of Glue. Their values are
examples: AWS has others in each region. Stock MiniStack has no such service. The quotas are only listed: no
run is refused because of them.
"""

from __future__ import annotations

import json
from typing import Any, Final

from simulators.aws import identity, settings
from simulators.aws.hooks import import_ministack
from simulators.core.control import App, Message, Receive, Send, answer, read

_TARGET: Final = "ServiceQuotasV20190624.ListServiceQuotas"
_ACTION: Final = "servicequotas:ListServiceQuotas"
_CONTENT: Final = {"content-type": "application/x-amz-json-1.1"}
_QUOTAS: Final = {
    "glue": {"Max concurrent job runs per account": 50.0, "Max task DPUs per account": 300.0},
}


class ServiceQuotas:
    """ASGI middleware that answers ListServiceQuotas and passes all other requests to `app`."""

    def __init__(self, app: App) -> None:
        self._app = app

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        pairs: Any = scope.get("headers", [])
        headers = {bytes(name).decode().lower(): bytes(value).decode() for name, value in pairs}
        if scope["type"] != "http" or headers.get("x-amz-target") != _TARGET:
            await self._app(scope, receive, send)
            return
        request = json.loads(await read(receive) or b"{}")
        status, document = _list_quotas(headers, str(request.get("ServiceCode", "")))
        await answer(send, status, _CONTENT, json.dumps(document).encode())


def _list_quotas(headers: dict[str, str], service: str) -> tuple[int, dict[str, Any]]:
    """Return the status and the body of the answer."""
    evaluator = import_ministack("core.iam_evaluator")
    access_key = import_ministack("core.router").extract_access_key_id(headers, {})
    caller = evaluator.resolve_principal(access_key or "", settings.ACCOUNT)
    if isinstance(caller, evaluator.AuthError):
        return 400, {"__type": caller.code, "Message": caller.message}
    if not identity.may(str(caller.arn), _ACTION, "*"):
        message = f"User: {caller.arn} is not authorized to perform: {_ACTION} on resource: *"
        return 400, {"__type": "AccessDeniedException", "Message": message}
    quotas = [
        {"ServiceCode": service, "QuotaName": name, "Value": value}
        for name, value in _QUOTAS.get(service, {}).items()
    ]
    return 200, {"Quotas": quotas}
