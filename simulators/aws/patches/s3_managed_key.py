"""An upload encrypted with aws:kms that names no key uses the account's own key for S3 (alias aws/s3), as CDK's command line
does it. Stock MiniStack refuses it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from simulators.aws import settings
from simulators.aws.hooks import Patch

PATCH = Patch("s3_managed_key")
_SSE: Final = "x-amz-server-side-encryption"
_KEY: Final = f"{_SSE}-aws-kms-key-id"
_MANAGED: Final = f"arn:aws:kms:{settings.REGION}:{settings.ACCOUNT}:alias/aws/s3"


@PATCH.replaces("ministack.services.s3", "_resolve_sse_write_headers", "headers bucket_name")
def resolve_sse_write_headers(original: Callable[..., Any], headers: Mapping[str, str], bucket_name: str) -> Any:
    if headers.get(_SSE) == "aws:kms" and not headers.get(_KEY):
        headers = {**headers, _KEY: _MANAGED}
    return original(headers, bucket_name)
