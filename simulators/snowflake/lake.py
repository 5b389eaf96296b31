"""The AWS that tables lie in: Snowflake's own IAM user there, and the customer's roles as it assumes them."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from collections.abc import Callable
from contextlib import suppress
from functools import lru_cache
from typing import Any, Final, TypeVar

import attrs
import boto3
from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.config import Config
from botocore.credentials import Credentials
from botocore.exceptions import BotoCoreError, ClientError

#: A vendor's principals stand under a path of their own, so that they aren't mistaken for the customer's.
VENDOR_PATH: Final = "/vendor/"
_SESSION: Final = "snowflake"
_CONFIG: Final = Config(request_checksum_calculation="when_required", retries={"total_max_attempts": 2})
_DENIED: Final = ("AccessDenied", "AccessDeniedException", "403", "Forbidden")
_ANYTHING: Final = {"Effect": "Allow", "Action": "sts:AssumeRole", "Resource": "*"}
#: What a user's policy is called, so that it can be found again.
_POLICY: Final = "assume"

T = TypeVar("T")


class AwsRefused(Exception):
    """Why Snowflake can't work there, in AWS's words. `code` is AWS's own."""

    def __init__(self, message: str, code: str = "") -> None:
        super().__init__(message)
        self.code = code

    @property
    def denied(self) -> bool:
        return self.code in _DENIED


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
        """As PyIceberg's FileIO takes them."""
        token = {"s3.session-token": self.token} if self.token else {}
        return {
            "s3.endpoint": self.endpoint,
            "s3.region": self.region,
            "s3.access-key-id": self.key,
            "s3.secret-access-key": self.secret,
            "s3.path-style-access": "true",
        } | token

    def iceberg_config(self, warehouse: str) -> None:
        """The first call of Glue's Iceberg REST endpoint, which needs glue:GetCatalog. Raises AwsRefused."""
        request = AWSRequest("GET", f"{self.endpoint}/iceberg/v1/config", params={"warehouse": warehouse})
        SigV4Auth(Credentials(self.key, self.secret, self.token), "glue", self.region).add_auth(request)
        prepared = request.prepare()
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        try:
            with opener.open(urllib.request.Request(prepared.url, headers=dict(prepared.headers.items()))):  # noqa: S310
                return
        except urllib.error.HTTPError as error:
            with error:
                raise AwsRefused(error.read().decode(errors="replace"), str(error.code)) from None
        except OSError as error:
            raise AwsRefused(str(error)) from None


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


class Lake:
    """`root` may do anything in the account, and makes Snowflake's user there."""

    def __init__(self, endpoint: str, region: str, key: str, secret: str) -> None:
        self.root = Access(endpoint, region, key, secret)
        self._users: dict[str, Access] = {}
        self._account = ""

    @property
    def account(self) -> str:
        if not self._account:
            self._account = str(self.root.client("sts").get_caller_identity()["Account"])
        return self._account

    def vendor_user(self, name: str) -> str:
        """The ARN of Snowflake's user for one Snowflake account, made when it is first asked for."""
        if name not in self._users:
            iam = self.root.client("iam")
            with suppress(iam.exceptions.EntityAlreadyExistsException):  # of a time that failed in the middle
                iam.create_user(Path=VENDOR_PATH, UserName=name)
            document = json.dumps({"Version": "2012-10-17", "Statement": [_ANYTHING]})
            iam.put_user_policy(UserName=name, PolicyName=_POLICY, PolicyDocument=document)
            made = iam.create_access_key(UserName=name)["AccessKey"]
            self._users[name] = attrs.evolve(self.root, key=made["AccessKeyId"], secret=made["SecretAccessKey"])
        return f"arn:aws:iam::{self.account}:user{VENDOR_PATH}{name}"

    def forget_vendor_user(self, name: str) -> None:
        """AWS may be gone by now, and with it the user."""
        access = self._users.pop(name, None)
        if access is None:
            return
        iam = self.root.client("iam")
        try:
            iam.delete_access_key(UserName=name, AccessKeyId=access.key)
            iam.delete_user_policy(UserName=name, PolicyName=_POLICY)
            iam.delete_user(UserName=name)
        except (ClientError, BotoCoreError):
            return

    def assume(self, user: str, role: str, external_id: str, region: str = "") -> Access:
        """Snowflake's user assumes the customer's role. Raises AwsRefused where the trust doesn't allow it."""
        self.vendor_user(user)
        vendor = self._users[user]
        given = {"RoleArn": role, "RoleSessionName": _SESSION, "ExternalId": external_id}
        answer = refused(vendor.client("sts").assume_role, **given)["Credentials"]
        return Access(
            self.root.endpoint,
            region or self.root.region,
            answer["AccessKeyId"],
            answer["SecretAccessKey"],
            answer["SessionToken"],
        )


def refused(call: Callable[..., T], **given: Any) -> T:
    """What `call` returns. Raises AwsRefused where AWS refuses or can't be reached."""
    try:
        return call(**given)
    except ClientError as error:
        told = error.response["Error"]
        raise AwsRefused(f"{told.get('Message', '')} (Error Code: {told['Code']})", str(told["Code"])) from None
    except BotoCoreError as error:
        raise AwsRefused(str(error)) from None
