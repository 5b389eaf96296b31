"""Buckets as every security team wants them: no public access, TLS only, encrypted, versioned, no ACLs, nothing for ever."""

from __future__ import annotations

from aws_cdk import Duration, RemovalPolicy
from aws_cdk import aws_s3 as s3
from constructs import Construct


def bucket(scope: Construct, id: str, *, chosen: str | None, keep: bool, rules: list[s3.LifecycleRule]) -> s3.Bucket:
    """Encrypted with keys of S3: a key of ours would have to let in Confluent, Snowflake and Athena one by one."""
    return s3.Bucket(
        scope,
        id,
        bucket_name=chosen,
        block_public_access=s3.BlockPublicAccess.BLOCK_ALL,
        encryption=s3.BucketEncryption.S3_MANAGED,
        enforce_ssl=True,
        minimum_tls_version=1.2,
        object_ownership=s3.ObjectOwnership.BUCKET_OWNER_ENFORCED,
        versioned=True,
        lifecycle_rules=[_tidy(), *rules],
        removal_policy=RemovalPolicy.RETAIN if keep else RemovalPolicy.DESTROY,
    )


def _tidy() -> s3.LifecycleRule:
    """Uploads that nobody ends, and old versions: Iceberg keeps its own history, so they are for accidents only."""
    return s3.LifecycleRule(
        id="tidy",
        abort_incomplete_multipart_upload_after=Duration.days(7),
        noncurrent_version_expiration=Duration.days(7),
        expired_object_delete_marker=True,
    )


def expire(prefix: str, days: int) -> s3.LifecycleRule:
    return s3.LifecycleRule(id=f"expire-{prefix.strip('/')}", prefix=prefix, expiration=Duration.days(days))
