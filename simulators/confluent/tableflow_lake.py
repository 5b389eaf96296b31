"""The AWS that tables go into: Confluent's own principals there, and the customer's roles as Confluent assumes them."""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Final, TypeVar

import attrs
from botocore.exceptions import ClientError

from simulators.confluent.vendor_catalog import VendorCatalog
from simulators.core.aws_access import DENIED, POLICY, VENDOR_PATH, Access, AwsRefused, allow, refused

_SESSION: Final = "confluent-tableflow"

T = TypeVar("T")


class LakeRefused(Exception):
    """Why Tableflow can't work there, as it tells its user."""


class Lake:
    """`root` may do anything in the account. `used_buckets` are those that Tableflow has been on before."""

    def __init__(self, endpoint: str, region: str, key: str, secret: str) -> None:
        self.root = Access(endpoint, region, key, secret)
        self.catalog = VendorCatalog()
        self.used_buckets: set[str] = set()
        self._readers: dict[str, str] = {}
        self._managed = ""

    def vendor_role(self, name: str) -> str:
        """Return the ARN of Confluent's role for one provider integration, made here."""
        identity = self.root.client("sts").get_caller_identity()
        trust = allow(["sts:AssumeRole", "sts:TagSession"], principal=f"arn:aws:iam::{identity['Account']}:root")
        iam, role = self.root.client("iam"), f"confluent-{name}"
        arn = iam.create_role(Path=VENDOR_PATH, RoleName=role, AssumeRolePolicyDocument=trust)["Role"]["Arn"]
        assume = allow(["sts:AssumeRole", "sts:TagSession"], resource="*")
        iam.put_role_policy(RoleName=role, PolicyName=POLICY, PolicyDocument=assume)
        return str(arn)

    def forget_vendor_role(self, arn: str) -> None:
        """Delete the role. A call before may have done so in part, if AWS's answer to it was lost."""
        iam, role = self.root.client("iam"), arn.rpartition("/")[2]
        with suppress(iam.exceptions.NoSuchEntityException):
            iam.delete_role_policy(RoleName=role, PolicyName=POLICY)
        with suppress(iam.exceptions.NoSuchEntityException):
            iam.delete_role(RoleName=role)

    def assume(self, vendor_role: str, role: str, external_id: str, region: str) -> Access:
        """Assume the customer's role as Confluent's, to act in `region`. Raises LakeRefused if the trust doesn't allow it."""
        vendor = self.root.assume(vendor_role, _SESSION)
        what = f"Confluent's role {vendor_role} can't assume {role}"
        customer = refused_as(what, vendor.assume, role, _SESSION, ExternalId=external_id)
        try:
            vendor.assume(role, _SESSION, ExternalId=f"not-{external_id}")
        except AwsRefused:
            pass
        else:
            raise LakeRefused(f"The trust policy of {role} takes any external id. Require sts:ExternalId {external_id}")
        tags = [{"Key": "confluent", "Value": "tableflow"}]
        what = f"Confluent's role {vendor_role} may not tag its session of {role} (sts:TagSession)"
        refused_as(what, vendor.assume, role, _SESSION, ExternalId=external_id, Tags=tags)
        return attrs.evolve(customer, region=region)

    def managed_bucket(self) -> str:
        """Return Confluent's own bucket, created when it is first needed."""
        if not self._managed:
            name = f"confluent-managed-{uuid.uuid4().hex[:12]}"
            where = {"LocationConstraint": self.root.region}
            self.root.client("s3").create_bucket(Bucket=name, CreateBucketConfiguration=where)
            self._managed = name
        return self._managed

    def vend(self, location: str) -> Access:
        """Return credentials that read what lies below `location`, and nothing else."""
        if location not in self._readers:
            self._readers[location] = self._reader(location)
        return self.root.assume(self._readers[location], _SESSION)

    def _reader(self, location: str) -> str:
        """Create a role of Confluent's that reads what lies below `location`, and return its ARN."""
        bucket, _, prefix = location.removeprefix("s3://").partition("/")
        name = f"reader-{uuid.uuid4().hex[:12]}"
        arn = self.vendor_role(name)
        objects = {"Effect": "Allow", "Action": "s3:GetObject", "Resource": f"arn:aws:s3:::{bucket}/{prefix}/*"}
        listing = {"Effect": "Allow", "Action": ["s3:ListBucket", "s3:GetBucketLocation"], "Resource": f"arn:aws:s3:::{bucket}"}
        policy = json.dumps({"Version": "2012-10-17", "Statement": [objects, listing]})
        self.root.client("iam").put_role_policy(RoleName=f"confluent-{name}", PolicyName=POLICY, PolicyDocument=policy)
        return arn


def refused_as(what: str, call: Callable[..., T], *arguments: Any, **named: Any) -> T:
    """Return what `call` returns. Raises LakeRefused, with `what` and AWS's code, where AWS refuses or can't be reached."""
    try:
        return refused(call, *arguments, **named)
    except AwsRefused as error:
        raise LakeRefused(f"{what}: {error.code}") from None


def require_allowed(what: str, call: Callable[..., Any], *arguments: Any, **named: Any) -> None:
    """Raise LakeRefused if the call is denied. A call that fails for another reason was allowed."""
    try:
        call(*arguments, **named)
    except ClientError as error:
        if error.response["Error"]["Code"] in DENIED:
            raise LakeRefused(f"Access denied: the role lacks {what}") from None
