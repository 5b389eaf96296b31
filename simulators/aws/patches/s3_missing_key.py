"""Whoever may not list a bucket does not learn that a key is missing.

AWS answers GetObject and HeadObject for a key that does not exist with 404 only to a caller who has s3:ListBucket on
the bucket, and with 403 (AccessDenied) to all others. Stock MiniStack answers 404 to both, so a job whose role lacks
s3:ListBucket looks for a first manifest in vain only on AWS.
"""

from __future__ import annotations

from typing import Any

from simulators.aws.hooks import Patch, ministack

PATCH = Patch("s3_missing_key")
_OBJECT_ARN = "arn:aws:s3:::"


@PATCH.replaces("ministack.core.iam_evaluator", "enforce", "access_key_id iam_action service region resource_arn service_context")
def enforce(  # noqa: PLR0917  (MiniStack's own parameters)
    original: Any,
    access_key_id: str,
    iam_action: str,
    service: str,
    region: str,
    resource_arn: str = "*",
    service_context: dict[str, Any] | None = None,
) -> Any:
    denied = original(access_key_id, iam_action, service, region, resource_arn, service_context)
    if denied or iam_action != "s3:GetObject" or not _is_missing(resource_arn):
        return denied
    bucket_arn = resource_arn.partition("/")[0]
    return original(access_key_id, "s3:ListBucket", service, region, bucket_arn, None)


def _is_missing(object_arn: str) -> bool:
    bucket_name, _, key = object_arn.removeprefix(_OBJECT_ARN).partition("/")
    bucket = ministack("services.s3")._buckets.get(bucket_name)
    return bucket is not None and key not in bucket["objects"]
