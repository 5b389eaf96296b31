"""The AWS account that has the tables: Snowflake's own IAM user in it, and the customer's roles that
Snowflake assumes.
"""

from __future__ import annotations

import urllib.error
import urllib.request
from contextlib import suppress
from typing import Final

import attrs
from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials
from botocore.exceptions import BotoCoreError, ClientError

from simulators.core.aws_access import POLICY, VENDOR_PATH, Access, AwsRefused, allow

_SESSION: Final = "snowflake"


def call_iceberg_config(access: Access, warehouse: str) -> None:
    """Call /v1/config of Glue's Iceberg REST endpoint, a client's first call, which needs glue:GetCatalog.

    Raises AwsRefused.
    """
    request = AWSRequest("GET", f"{access.endpoint}/iceberg/v1/config", params={"warehouse": warehouse})
    SigV4Auth(Credentials(access.key, access.secret, access.token), "glue", access.region).add_auth(request)
    prepared = request.prepare()
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with opener.open(urllib.request.Request(prepared.url, headers=dict(prepared.headers.items()))):  # noqa: S310
            return
    except urllib.error.HTTPError as error:
        with error:
            raise AwsRefused(error.read().decode(errors="replace"), str(error.code)) from None
    except OSError as error:
        raise AwsRefused(str(error), type(error).__name__) from None


class Lake:
    """`root` may do anything in the AWS account, and creates Snowflake's IAM user."""

    def __init__(self, endpoint: str, region: str, key: str, secret: str) -> None:
        self.root = Access(endpoint, region, key, secret)
        self._users: dict[str, Access] = {}
        self._account = ""

    @property
    def account(self) -> str:
        if not self._account:
            self._account = str(self.root.client("sts").get_caller_identity()["Account"])
        return self._account

    def create_vendor_user(self, name: str) -> str:
        """Return the ARN of Snowflake's IAM user for one Snowflake account.

        The first call creates the user.
        """
        if name not in self._users:
            iam = self.root.client("iam")
            with suppress(iam.exceptions.EntityAlreadyExistsException):  # an earlier call failed halfway
                iam.create_user(Path=VENDOR_PATH, UserName=name)
            iam.put_user_policy(
                UserName=name, PolicyName=POLICY, PolicyDocument=allow("sts:AssumeRole", resource="*")
            )
            key = iam.create_access_key(UserName=name)["AccessKey"]
            self._users[name] = attrs.evolve(self.root, key=key["AccessKeyId"], secret=key["SecretAccessKey"])
        return f"arn:aws:iam::{self.account}:user{VENDOR_PATH}{name}"

    def forget_vendor_user(self, name: str) -> None:
        """Delete Snowflake's IAM user. Errors are ignored, because the embedded AWS may have stopped."""
        access = self._users.pop(name, None)
        if access is None:
            return
        iam = self.root.client("iam")
        try:
            iam.delete_access_key(UserName=name, AccessKeyId=access.key)
            iam.delete_user_policy(UserName=name, PolicyName=POLICY)
            iam.delete_user(UserName=name)
        except (ClientError, BotoCoreError):
            return

    def assume(self, user: str, role: str, external_id: str, region: str = "") -> Access:
        """Assume the customer's role as Snowflake's IAM user.

        Raises AwsRefused if the trust policy doesn't allow it.
        """
        self.create_vendor_user(user)
        session = self._users[user].assume(role, _SESSION, ExternalId=external_id)
        return attrs.evolve(session, region=region or self.root.region)
