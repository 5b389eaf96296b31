"""How the vendors' simulators use the embedded AWS: credentials of a session, roles that are assumed, and what AWS refuses."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any, Final, TypeVar

import attrs
import boto3
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError

#: A vendor's principals stand under a path of their own, so that they aren't mistaken for the customer's.
VENDOR_PATH: Final = "/vendor/"
#: The inline policy of a vendor's principal, so that it can be deleted again.
POLICY: Final = "assume"
_CONFIG: Final = Config(request_checksum_calculation="when_required", retries={"total_max_attempts": 2})
DENIED: Final = ("AccessDenied", "AccessDeniedException", "403", "Forbidden")

T = TypeVar("T")


class AwsRefused(Exception):
    """AWS refused, or can't be reached. `code` is AWS's own, or the name of botocore's exception."""

    def __init__(self, message: str, code: str) -> None:
        super().__init__(message)
        self.code = code


@attrs.frozen
class Access:
    """Credentials of one session."""

    endpoint: str
    region: str
    key: str
    secret: str = attrs.field(repr=False)
    token: str | None = attrs.field(default=None, repr=False)

    def client(self, service: str) -> Any:
        return _client(self, service)

    def properties(self) -> dict[str, str]:
        """Return them as PyIceberg's FileIO, and any client of an Iceberg REST catalog, takes them."""
        token = {"s3.session-token": self.token} if self.token else {}
        return {
            "s3.endpoint": self.endpoint,
            "s3.region": self.region,
            "s3.access-key-id": self.key,
            "s3.secret-access-key": self.secret,
            "s3.path-style-access": "true",
        } | token

    def assume(self, role: str, session: str, **given: Any) -> Access:
        """Return a session of the role. `given` are further parameters of AssumeRole. Raises AwsRefused."""
        parameters = {"RoleArn": role, "RoleSessionName": session, **given}
        answer = refused(self.client("sts").assume_role, **parameters)["Credentials"]
        return attrs.evolve(self, key=answer["AccessKeyId"], secret=answer["SecretAccessKey"], token=answer["SessionToken"])


@lru_cache(maxsize=64)  # making one takes longer than most calls
def _client(access: Access, service: Any) -> Any:
    return boto3.client(
        service,
        endpoint_url=access.endpoint,
        region_name=access.region,
        aws_access_key_id=access.key,
        aws_secret_access_key=access.secret,
        aws_session_token=access.token,
        config=_CONFIG,
    )


def refused(call: Callable[..., T], *arguments: Any, **named: Any) -> T:
    """Return what `call` returns. Raises AwsRefused where AWS refuses or can't be reached."""
    try:
        return call(*arguments, **named)
    except ClientError as error:
        reason = error.response["Error"]
        raise AwsRefused(f"{reason.get('Message', '')} (Error Code: {reason['Code']})", str(reason["Code"])) from None
    except BotoCoreError as error:
        raise AwsRefused(str(error), type(error).__name__) from None


def allow(actions: str | Sequence[str], *, principal: str = "", resource: str = "") -> str:
    """Return a policy of one statement: of `principal` for a trust, on `resource` otherwise."""
    target = {"Principal": {"AWS": principal}} if principal else {"Resource": resource}
    return json.dumps({"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Action": actions} | target]})
