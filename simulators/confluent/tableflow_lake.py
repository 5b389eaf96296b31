"""The AWS account that tables are written to, with Confluent's own principals and the customer's roles that
Confluent assumes.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Final, TypeVar

import attrs
from botocore.exceptions import ClientError

from simulators.confluent.vendor_catalog import VendorCatalog
from simulators.core.aws_access import DENIED, POLICY, VENDOR_PATH, Access, AwsRefused, allow, call_aws

_SESSION: Final = "confluent-tableflow"

T = TypeVar("T")


class LakeRefused(Exception):
    """Tableflow can't use the customer's AWS account. The message is shown to the user."""


class Lake:
    """`root` may do anything in the account.

    `used_buckets` are the buckets that Tableflow has already used.
    """

    def __init__(self, endpoint: str, region: str, key: str, secret: str) -> None:
        self.root = Access(endpoint, region, key, secret)
        self.catalog = VendorCatalog()
        self.used_buckets: set[str] = set()
        self._readers: dict[str, str] = {}
        self._managed = ""

    def create_vendor_role(self, name: str) -> str:
        """Create Confluent's role for one provider integration and return its ARN."""
        identity = self.root.client("sts").get_caller_identity()
        trust = allow(
            ["sts:AssumeRole", "sts:TagSession"], principal=f"arn:aws:iam::{identity['Account']}:root"
        )
        iam = self.root.client("iam")
        role = f"confluent-{name}"
        arn = iam.create_role(Path=VENDOR_PATH, RoleName=role, AssumeRolePolicyDocument=trust)["Role"]["Arn"]
        assume = allow(["sts:AssumeRole", "sts:TagSession"], resource="*")
        iam.put_role_policy(RoleName=role, PolicyName=POLICY, PolicyDocument=assume)
        return str(arn)

    def forget_vendor_role(self, arn: str) -> None:
        """Delete the role.

        The role or its policy may already be gone, after an earlier deletion that failed halfway.
        """
        iam = self.root.client("iam")
        role = arn.rpartition("/")[2]
        with suppress(iam.exceptions.NoSuchEntityException):
            iam.delete_role_policy(RoleName=role, PolicyName=POLICY)
        with suppress(iam.exceptions.NoSuchEntityException):
            iam.delete_role(RoleName=role)

    def assume(self, vendor_role: str, role: str, external_id: str, region: str) -> Access:
        """Assume the customer's role from Confluent's role, to act in `region`.

        Raises LakeRefused if the trust policy doesn't allow this or the tagging of the session, or if it
        accepts any external id.
        """
        vendor = self.root.assume(vendor_role, _SESSION)
        problem = f"Confluent's role {vendor_role} can't assume {role}"
        customer = call_or_refuse(problem, vendor.assume, role, _SESSION, ExternalId=external_id)
        try:
            vendor.assume(role, _SESSION, ExternalId=f"not-{external_id}")
        except AwsRefused:
            pass
        else:
            raise LakeRefused(
                f"The trust policy of {role} takes any external id. Require sts:ExternalId {external_id}"
            )
        tags = [{"Key": "confluent", "Value": "tableflow"}]
        problem = f"Confluent's role {vendor_role} may not tag its session of {role} (sts:TagSession)"
        call_or_refuse(problem, vendor.assume, role, _SESSION, ExternalId=external_id, Tags=tags)
        return attrs.evolve(customer, region=region)

    def get_managed_bucket(self) -> str:
        """Return Confluent's own bucket, which is created on the first call."""
        if not self._managed:
            name = f"confluent-managed-{uuid.uuid4().hex[:12]}"
            configuration = {"LocationConstraint": self.root.region}
            self.root.client("s3").create_bucket(Bucket=name, CreateBucketConfiguration=configuration)
            self._managed = name
        return self._managed

    def vend(self, location: str) -> Access:
        """Return credentials that can only read what is below `location`."""
        if location not in self._readers:
            self._readers[location] = self._create_reader_role(location)
        return self.root.assume(self._readers[location], _SESSION)

    def _create_reader_role(self, location: str) -> str:
        """Create a role of Confluent's that can read what is below `location`, and return its ARN."""
        bucket, _, prefix = location.removeprefix("s3://").partition("/")
        name = f"reader-{uuid.uuid4().hex[:12]}"
        arn = self.create_vendor_role(name)
        objects = {
            "Effect": "Allow",
            "Action": "s3:GetObject",
            "Resource": f"arn:aws:s3:::{bucket}/{prefix}/*",
        }
        listing = {
            "Effect": "Allow",
            "Action": ["s3:ListBucket", "s3:GetBucketLocation"],
            "Resource": f"arn:aws:s3:::{bucket}",
        }
        policy = json.dumps({"Version": "2012-10-17", "Statement": [objects, listing]})
        self.root.client("iam").put_role_policy(
            RoleName=f"confluent-{name}", PolicyName=POLICY, PolicyDocument=policy
        )
        return arn


def call_or_refuse(action: str, call: Callable[..., T], *arguments: Any, **options: Any) -> T:
    """Return the result of `call`.

    Raises LakeRefused, with `action` and AWS's error code, if AWS refuses or can't be reached.
    """
    try:
        return call_aws(call, *arguments, **options)
    except AwsRefused as error:
        raise LakeRefused(f"{action}: {error.code}") from None


def require_allowed(action: str, call: Callable[..., Any], *arguments: Any, **options: Any) -> None:
    """Raise LakeRefused if AWS denies access. A call that fails for another reason was allowed."""
    try:
        call(*arguments, **options)
    except ClientError as error:
        if error.response["Error"]["Code"] in DENIED:
            raise LakeRefused(f"Access denied: the role lacks {action}") from None
