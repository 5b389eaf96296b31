"""Lake Formation: the settings of the account, and its permissions on databases and tables of Glue. MiniStack
has neither.

- Without settings of a test, IAM alone decides, as in an account that nobody has set up for Lake Formation:
  the defaults of new databases and tables give all permissions to IAMAllowedPrincipals.
- In an account that Lake Formation governs, a call to Glue needs a permission of Lake Formation besides
  IAM's. Without it, it is refused with AccessDeniedException, "Insufficient Lake Formation permission(s):
  Required Describe on <name>". Source: Lake Formation's developer guide, "Changing the default settings for
  your data lake" and "Overview of Lake Formation permissions"; the words are those of public bug reports
  (aws-samples/dbt-glue #548).

- Whoever has a permission on a database but not on a table of it, doesn't see the table in Glue's lists: this
  is not simulated.

POST lake-formation {"governs": true, "administrators": ["<ARN>", …], "grants": {"<name of a role>":
["DESCRIBE", …]}} under /_simulator changes them.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any, Final

from simulators.aws import controls
from simulators.core import control
from simulators.core.control import App, Message, Receive, Send, answer, read

_IAM: Final = {"Principal": {"DataLakePrincipalIdentifier": "IAM_ALLOWED_PRINCIPALS"}, "Permissions": ["ALL"]}
#: The permission that an action of Glue needs, and its name in the refusal.
REQUIRED: Final = {
    "glue:CreateDatabase": "Create Database",
    "glue:GetDatabase": "Describe",
    "glue:DeleteDatabase": "Drop",
    "glue:CreateTable": "Create Table",
    "glue:GetTable": "Describe",
    "glue:GetTables": "Describe",
    "glue:UpdateTable": "Alter",
    "glue:DeleteTable": "Drop",
}


@dataclass
class LakeFormation:
    """`grants` has the permissions of roles, in capitals with underscores, by the role's name."""

    governs: bool = False
    administrators: list[str] = field(default_factory=list)
    grants: dict[str, list[str]] = field(default_factory=dict)

    def find_refusal(self, action: str, principal: str, resource: str) -> str:
        """Return why a call is refused, "" if it is not. `principal` is an ARN."""
        needed = REQUIRED.get(action, "")
        parts = principal.split("/")
        role = parts[1] if len(parts) > 1 else parts[0].rpartition(":")[2]
        granted_permissions = self.grants.get(role, [])
        if not self.governs or not needed or needed.upper().replace(" ", "_") in granted_permissions:
            return ""
        return (
            f"Insufficient Lake Formation permission(s): Required {needed} on {resource.rpartition('/')[2]}"
        )

    def describe_settings(self) -> dict[str, Any]:
        defaults = [] if self.governs else [_IAM]
        return {
            "DataLakeAdmins": [{"DataLakePrincipalIdentifier": arn} for arn in self.administrators],
            "CreateDatabaseDefaultPermissions": defaults,
            "CreateTableDefaultPermissions": defaults,
        }


ACCOUNT: Final = LakeFormation()


@controls.register("POST", "/lake-formation")
def change(request: control.Request) -> control.Response:
    account = LakeFormation(**request.read_document())
    ACCOUNT.governs = account.governs
    ACCOUNT.administrators = account.administrators
    ACCOUNT.grants = account.grants
    return control.build_json_response({"governs": ACCOUNT.governs})


class Settings:
    """ASGI middleware that answers GetDataLakeSettings and passes all other requests to `app`."""

    def __init__(self, app: App) -> None:
        self._app = app

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        is_http = scope["type"] == "http"
        if not is_http or (scope["method"], scope.get("path")) != ("POST", "/GetDataLakeSettings"):
            await self._app(scope, receive, send)
            return
        await read(receive)
        document = json.dumps({"DataLakeSettings": ACCOUNT.describe_settings()}).encode()
        await answer(send, 200, {"content-type": "application/json"}, document)
