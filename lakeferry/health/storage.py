"""The buckets that the file names: free before the first deployment, and the deployment's own after it."""

from __future__ import annotations

from functools import partial
from typing import Final

from botocore.exceptions import ClientError

from lakeferry.deployment.context import Ground
from lakeferry.health import runner as asking
from lakeferry.health.model import Check, Group
from lakeferry.inventory import stacks
from lambdas.shared.aws import error_code

GROUP: Final = Group("storage")
#: What HEAD says of a bucket, which has no body to say more in.
FOREIGN: Final = ("403", "Forbidden", "AccessDenied")
ABSENT: Final = ("404", "NoSuchBucket", "NotFound")


def look(here: Ground) -> list[Check]:
    chosen = {"Tableflow's bucket": here.deployment.aws.tableflow_bucket, "lake bucket": here.deployment.aws.lake_bucket}
    data = stacks.one(here, f"{here.deployment.prefix}-data")
    own = {resource.physical_id for resource in data.resources if resource.type == "AWS::S3::Bucket"} if data else set()
    return [asking.tried(GROUP, name, partial(_bucket, here, name, bucket, own)) for name, bucket in chosen.items()]


def _bucket(here: Ground, name: str, bucket: str | None, own: set[str]) -> Check:
    if bucket is None:
        return GROUP.ok(name, "CloudFormation chooses its name")
    if bucket in own:
        return GROUP.ok(name, f"{bucket}, the deployment's own")
    key = "tableflow_bucket" if name.startswith("Tableflow") else "lake_bucket"
    fix = f"Choose another `aws.{key}`, or none: the deployment makes it"
    state = state_of(here, bucket)
    if state == "absent":
        return GROUP.ok(name, f"{bucket} is free")
    if state == "foreign":
        return GROUP.fail(name, f"{bucket} belongs to somebody else, or you may not look at it", fix, "a name that nobody has")
    held = here.client("s3").list_objects_v2(Bucket=bucket, MaxKeys=1).get("KeyCount", 0)
    told = f"{bucket} is there already, {'with objects in it' if held else 'empty'}, and no stack of this deployment has it"
    or_else = "" if held else f"; or delete it: `aws s3api delete-bucket --bucket {bucket}`"
    return GROUP.fail(name, told, fix + or_else, "a name that nobody has")


def state_of(here: Ground, bucket: str) -> str:
    """`ours`, `foreign` or `absent`. Raises ClientError."""
    try:
        here.client("s3").head_bucket(Bucket=bucket, ExpectedBucketOwner=here.account)
    except ClientError as error:
        if error_code(error) in ABSENT:
            return "absent"
        if error_code(error) in FOREIGN:
            return "foreign"
        raise
    return "ours"
