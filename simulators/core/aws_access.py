"""Access of the vendors' simulators to the embedded AWS: session credentials, role assumption, and refused
calls.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any, Final, TypeVar

import attrs
import boto3
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError

#: The IAM path of a vendor's principals, which tells them apart from the customer's.
VENDOR_PATH: Final = "/vendor/"
#: The name of the inline policy of a vendor's principal, by which it can be deleted again.
POLICY: Final = "assume"
_CONFIG: Final = Config(request_checksum_calculation="when_required", retries={"total_max_attempts": 2})
DENIED: Final = ("AccessDenied", "AccessDeniedException", "403", "Forbidden")

T = TypeVar("T")


class AwsRefused(Exception):
    """AWS refused the call, or can't be reached.

    `code` is AWS's error code, or the name of botocore's exception.
    """

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
        return _build_client(self, service)

    def build_properties(self) -> dict[str, str]:
        """Return the credentials as properties of PyIceberg's FileIO, which clients of an Iceberg REST
        catalog use too.
        """
        token = {"s3.session-token": self.token} if self.token else {}
        return {
            "s3.endpoint": self.endpoint,
            "s3.region": self.region,
            "s3.access-key-id": self.key,
            "s3.secret-access-key": self.secret,
            "s3.path-style-access": "true",
        } | token

    def assume(self, role: str, session: str, **options: Any) -> Access:
        """Return a session of the role. `options` are further parameters of AssumeRole. Raises AwsRefused."""
        parameters = {"RoleArn": role, "RoleSessionName": session, **options}
        answer = call_aws(self.client("sts").assume_role, **parameters)["Credentials"]
        return attrs.evolve(
            self, key=answer["AccessKeyId"], secret=answer["SecretAccessKey"], token=answer["SessionToken"]
        )


@lru_cache(maxsize=64)  # creating a client takes longer than most calls
def _build_client(access: Access, service: Any) -> Any:
    return boto3.client(
        service,
        endpoint_url=access.endpoint,
        region_name=access.region,
        aws_access_key_id=access.key,
        aws_secret_access_key=access.secret,
        aws_session_token=access.token,
        config=_CONFIG,
    )


def call_aws(call: Callable[..., T], *arguments: Any, **options: Any) -> T:
    """Return what `call` returns. Raises AwsRefused if AWS refuses or can't be reached."""
    try:
        return call(*arguments, **options)
    except ClientError as error:
        reason = error.response["Error"]
        raise AwsRefused(
            f"{reason.get('Message', '')} (Error Code: {reason['Code']})", str(reason["Code"])
        ) from None
    except BotoCoreError as error:
        raise AwsRefused(str(error), type(error).__name__) from None


def allow(actions: str | Sequence[str], *, principal: str = "", resource: str = "") -> str:
    """Return a policy document of one Allow statement: a trust policy for `principal`, or a policy on
    `resource`.
    """
    target = {"Principal": {"AWS": principal}} if principal else {"Resource": resource}
    return json.dumps(
        {"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Action": actions} | target]}
    )
