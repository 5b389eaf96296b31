"""The buckets that the file names: free before the first deployment, and the deployment's own after it."""

from __future__ import annotations

from functools import partial
from typing import Final

from botocore.exceptions import ClientError

from lakeferry.deployment import stacks
from lakeferry.deployment.context import DeploymentContext
from lakeferry.health import runner
from lakeferry.health.checks import Check, Group
from lambdas.shared.aws import error_code

GROUP: Final = Group("storage")
#: What HEAD says of a bucket, which has no body to say more in.
FOREIGN: Final = ("403", "Forbidden", "AccessDenied")
ABSENT: Final = ("404", "NoSuchBucket", "NotFound")


def look(ctx: DeploymentContext) -> list[Check]:
    chosen = {"Tableflow's bucket": ctx.deployment.aws.tableflow_bucket, "lake bucket": ctx.deployment.aws.lake_bucket}
    data = stacks.describe(ctx, f"{ctx.deployment.prefix}-data", with_resources=True)
    own = {resource.physical_id for resource in data.resources if resource.type == "AWS::S3::Bucket"} if data else set()
    return [runner.tried(GROUP, name, partial(_bucket, ctx, name, bucket, own)) for name, bucket in chosen.items()]


def _bucket(ctx: DeploymentContext, name: str, bucket: str | None, own: set[str]) -> Check:
    if bucket is None:
        return GROUP.ok(name, "CloudFormation chooses its name")
    if bucket in own:
        return GROUP.ok(name, f"{bucket}, the deployment's own")
    key = "tableflow_bucket" if name.startswith("Tableflow") else "lake_bucket"
    fix = f"Choose another `aws.{key}`, or none: the deployment makes it"
    state = state_of(ctx, bucket)
    if state == "absent":
        return GROUP.ok(name, f"{bucket} is free")
    if state == "foreign":
        return GROUP.fail(name, f"{bucket} belongs to somebody else, or you may not look at it", fix, "a name that nobody has")
    held = ctx.client("s3").list_objects_v2(Bucket=bucket, MaxKeys=1).get("KeyCount", 0)
    told = f"{bucket} is there already, {'with objects in it' if held else 'empty'}, and no stack of this deployment has it"
    or_else = "" if held else f"; or delete it: `aws s3api delete-bucket --bucket {bucket}`"
    return GROUP.fail(name, told, fix + or_else, "a name that nobody has")


def state_of(ctx: DeploymentContext, bucket: str) -> str:
    """`ours`, `foreign` or `absent`. Raises ClientError."""
    try:
        ctx.client("s3").head_bucket(Bucket=bucket, ExpectedBucketOwner=ctx.account)
    except ClientError as error:
        if error_code(error) in ABSENT:
            return "absent"
        if error_code(error) in FOREIGN:
            return "foreign"
        raise
    return "ours"
