"""The API of Lake Formation, as far as it is simulated: GetDataLakeSettings, GrantPermissions,
RevokePermissions, ListPermissions, RegisterResource, DeregisterResource, and what Athena may read of a table
for the owner of an access key.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, Final

from simulators.aws import controls, identity, settings
from simulators.aws.hooks import import_ministack
from simulators.aws.lake_formation import ACCOUNT, Refused, Resource
from simulators.core import control
from simulators.core.control import App, Message, Receive, Send, answer, read

Answer = dict[str, Any]
#: The action that Athena needs to read files with the role of their location.
_GET_DATA_ACCESS: Final = "lakeformation:GetDataAccess"


def _get_settings(caller: str, request: dict[str, Any]) -> Answer:
    return {"DataLakeSettings": ACCOUNT.describe_settings()}


def _grant(caller: str, request: dict[str, Any]) -> Answer:
    ACCOUNT.grant(caller, *_read_grant(request))
    return {}


def _revoke(caller: str, request: dict[str, Any]) -> Answer:
    ACCOUNT.revoke(caller, *_read_grant(request))
    return {}


def _list(caller: str, request: dict[str, Any]) -> Answer:
    grants = ACCOUNT.list_grants()
    if principal := request.get("Principal"):
        grants = [grant for grant in grants if grant["Principal"] == principal]
    if resource := request.get("Resource"):
        grants = [grant for grant in grants if Resource.read(grant["Resource"]) == Resource.read(resource)]
    return {"PrincipalResourcePermissions": grants}


def _register(caller: str, request: dict[str, Any]) -> Answer:
    ACCOUNT.register(str(request["ResourceArn"]), str(request["RoleArn"]))
    return {}


def _deregister(caller: str, request: dict[str, Any]) -> Answer:
    ACCOUNT.locations.pop(str(request["ResourceArn"]), None)
    return {}


def _read_grant(request: dict[str, Any]) -> tuple[str, Resource, list[str]]:
    principal = str(request["Principal"]["DataLakePrincipalIdentifier"])
    return principal, Resource.read(request["Resource"]), list(request["Permissions"])


_OPERATIONS: Final[dict[str, Callable[[str, dict[str, Any]], Answer]]] = {
    "/GetDataLakeSettings": _get_settings,
    "/GrantPermissions": _grant,
    "/RevokePermissions": _revoke,
    "/ListPermissions": _list,
    "/RegisterResource": _register,
    "/DeregisterResource": _deregister,
}


class Api:
    """ASGI middleware that answers calls of Lake Formation and passes all other requests to `app`."""

    def __init__(self, app: App) -> None:
        self._app = app

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        path: Any = scope.get("path", "")
        if scope["type"] != "http" or scope["method"] != "POST" or path not in _OPERATIONS:
            await self._app(scope, receive, send)
            return
        headers = {bytes(name).decode().lower(): bytes(value).decode() for name, value in scope["headers"]}
        request = json.loads(await read(receive) or b"{}")
        content = {"content-type": "application/json"}
        try:
            caller = _find_caller(import_ministack("core.router").extract_access_key_id(headers, {}))
            _require_permission(caller, path)
            document = _OPERATIONS[path](caller, request)
        except Refused as refusal:
            body = json.dumps({"__type": refusal.code, "Message": refusal.message}).encode()
            await answer(send, 400, {**content, "x-amzn-errortype": refusal.code}, body)
            return
        await answer(send, 200, content, json.dumps(document).encode())


def _find_caller(access_key: str) -> str:
    """Return the ARN of the owner of an access key. Raises Refused."""
    evaluator = import_ministack("core.iam_evaluator")
    principal = evaluator.resolve_principal(access_key or "", settings.ACCOUNT)
    if isinstance(principal, evaluator.AuthError):
        raise Refused(principal.code, principal.message)
    return str(principal.arn)


def _require_permission(caller: str, path: str) -> None:
    action = f"lakeformation:{path.removeprefix('/')}"
    if not identity.may(caller, action, "*"):
        raise Refused(
            "AccessDeniedException",
            f"User: {caller} is not authorized to perform: {action} on resource: * because no "
            f"identity-based policy allows the {action} action",
        )


@controls.register("GET", "/lake-formation/access")
def tell_access(request: control.Request) -> control.Response:
    """Answer which columns of a table the owner of the access key `key` may select, `null` for all, and with
    which credentials Athena reads its files, which are at `url`: `null` for those of the owner.
    """
    table = Resource(request.query["database"], request.query["table"])
    principal = _find_caller(request.query["key"])
    columns = ACCOUNT.list_columns(principal, table)
    role = ACCOUNT.find_location_role(request.query["url"]) if ACCOUNT.governs else ""
    if not role:
        # About files in a location that isn't registered, IAM decides alone, and it knows no columns.
        return control.build_json_response({"columns": None if columns else columns, "credentials": None})
    if not identity.may(principal, _GET_DATA_ACCESS, "*"):
        return control.build_json_response({"refused": f"{principal} may not {_GET_DATA_ACCESS}"})
    try:
        credentials = identity.assume(role, "lakeformation.amazonaws.com", "AWSLF-00-AT")
    except identity.Refused as refusal:
        return control.build_json_response({"refused": str(refusal)})
    return control.build_json_response({"columns": columns, "credentials": credentials.build_environment()})
