"""The AWS that tables go into: Confluent's own principals there, and the customer's roles as Confluent assumes them."""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable
from functools import lru_cache
from typing import Any, Final, TypeVar

import attrs
import boto3
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError

from simulators.confluent.vendor_catalog import VendorCatalog

#: Confluent's principals stand under a path of their own, so that they aren't mistaken for the customer's.
VENDOR_PATH: Final = "/vendor/"
_DENIED: Final = ("AccessDenied", "AccessDeniedException")
_SESSION: Final = "confluent-tableflow"
_CONFIG: Final = Config(request_checksum_calculation="when_required", retries={"total_max_attempts": 2})

T = TypeVar("T")


class LakeRefused(Exception):
    """Why Tableflow can't work there, as it tells its user."""


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
        """As PyIceberg's FileIO, and any client of an Iceberg REST catalog, takes them."""
        token = {"s3.session-token": self.token} if self.token else {}
        return {
            "s3.endpoint": self.endpoint,
            "s3.region": self.region,
            "s3.access-key-id": self.key,
            "s3.secret-access-key": self.secret,
            "s3.path-style-access": "true",
        } | token


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
    """`root` may do anything in the account. `used_buckets` are those that Tableflow has been on before."""

    def __init__(self, endpoint: str, region: str, key: str, secret: str) -> None:
        self.root = Access(endpoint, region, key, secret)
        self.catalog = VendorCatalog()
        self.used_buckets: set[str] = set()
        self._readers: dict[str, str] = {}
        self._managed = ""

    def vendor_role(self, name: str) -> str:
        """The ARN of Confluent's role for one provider integration, made here."""
        identity = self.root.client("sts").get_caller_identity()
        trust = _allow(["sts:AssumeRole", "sts:TagSession"], principal=f"arn:aws:iam::{identity['Account']}:root")
        iam, role = self.root.client("iam"), f"confluent-{name}"
        arn = iam.create_role(Path=VENDOR_PATH, RoleName=role, AssumeRolePolicyDocument=trust)["Role"]["Arn"]
        assume = _allow(["sts:AssumeRole", "sts:TagSession"], resource="*")
        iam.put_role_policy(RoleName=role, PolicyName="assume", PolicyDocument=assume)
        return str(arn)

    def forget_vendor_role(self, arn: str) -> None:
        iam, role = self.root.client("iam"), arn.rpartition("/")[2]
        iam.delete_role_policy(RoleName=role, PolicyName="assume")
        iam.delete_role(RoleName=role)

    def assume(self, vendor_role: str, role: str, external_id: str, region: str) -> Access:
        """Confluent's role assumes the customer's, to act in `region`. Raises LakeRefused where the trust doesn't allow it."""
        vendor = self._as(self.root, vendor_role)
        plain = refused_as(f"Confluent's role {vendor_role} can't assume {role}", self._as, vendor, role, ExternalId=external_id)
        try:
            self._as(vendor, role, ExternalId=f"not-{external_id}")
        except ClientError:
            pass
        else:
            raise LakeRefused(f"The trust policy of {role} takes any external id. Require sts:ExternalId {external_id}")
        tags = [{"Key": "confluent", "Value": "tableflow"}]
        what = f"Confluent's role {vendor_role} may not tag its session of {role} (sts:TagSession)"
        refused_as(what, self._as, vendor, role, ExternalId=external_id, Tags=tags)
        return attrs.evolve(plain, region=region)

    def _as(self, access: Access, role: str, **given: Any) -> Access:
        answer = access.client("sts").assume_role(RoleArn=role, RoleSessionName=_SESSION, **given)["Credentials"]
        return attrs.evolve(access, key=answer["AccessKeyId"], secret=answer["SecretAccessKey"], token=answer["SessionToken"])

    def managed_bucket(self) -> str:
        """Confluent's own, made when it is first needed."""
        if not self._managed:
            name = f"confluent-managed-{uuid.uuid4().hex[:12]}"
            where = {"LocationConstraint": self.root.region}
            self.root.client("s3").create_bucket(Bucket=name, CreateBucketConfiguration=where)
            self._managed = name
        return self._managed

    def vend(self, location: str) -> Access:
        """Credentials that read what lies below `location`, and nothing else."""
        if location not in self._readers:
            self._readers[location] = self._reader(location)
        return self._as(self.root, self._readers[location])

    def _reader(self, location: str) -> str:
        """The ARN of a role that does."""
        bucket, _, prefix = location.removeprefix("s3://").partition("/")
        name = f"reader-{uuid.uuid4().hex[:12]}"
        arn = self.vendor_role(name)
        objects = {"Effect": "Allow", "Action": "s3:GetObject", "Resource": f"arn:aws:s3:::{bucket}/{prefix}/*"}
        listing = {"Effect": "Allow", "Action": ["s3:ListBucket", "s3:GetBucketLocation"], "Resource": f"arn:aws:s3:::{bucket}"}
        policy = json.dumps({"Version": "2012-10-17", "Statement": [objects, listing]})
        self.root.client("iam").put_role_policy(RoleName=f"confluent-{name}", PolicyName="assume", PolicyDocument=policy)
        return arn


def _allow(actions: list[str], *, principal: str = "", resource: str = "") -> str:
    whom = {"Principal": {"AWS": principal}} if principal else {"Resource": resource}
    statement = {"Effect": "Allow", "Action": actions} | whom
    return json.dumps({"Version": "2012-10-17", "Statement": [statement]})


def refused_as(what: str, call: Callable[..., T], *arguments: Any, **named: Any) -> T:
    """What `call` returns. Raises LakeRefused, with `what` and AWS's own word, where AWS refuses or can't be reached."""
    try:
        return call(*arguments, **named)
    except ClientError as error:
        raise LakeRefused(f"{what}: {error.response['Error']['Code']}") from None
    except BotoCoreError as error:
        raise LakeRefused(f"{what}: {type(error).__name__}") from None


def require_allowed(what: str, call: Callable[..., Any], *arguments: Any, **named: Any) -> None:
    """Only a denial counts: a call may fail for other reasons, and was still allowed. Raises LakeRefused."""
    try:
        call(*arguments, **named)
    except ClientError as error:
        if error.response["Error"]["Code"] in _DENIED:
            raise LakeRefused(f"Access denied: the role lacks {what}") from None
