"""JSON objects in a bucket. A write succeeds only if the object is still the one that was read."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import attrs
from botocore.exceptions import ClientError

from lambdas.shared import errors
from lambdas.shared.aws import read_error_code, translate_aws_errors
from lambdas.shared.errors import LakeferryError

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client

_GONE: Final = ("NoSuchKey", "404", "NotFound")
#: S3 answers 412 if another write was faster, or 409 while the other write is in progress.
_CONFLICT: Final = ("PreconditionFailed", "ConditionalRequestConflict", "412", "409")
_GZIP: Final = b"\x1f\x8b"


class Stored(NamedTuple):
    document: dict[str, Any]
    etag: str


class Listed(NamedTuple):
    key: str
    modified: datetime


@attrs.frozen
class Objects:
    client: S3Client
    bucket: str

    def read(self, key: str) -> Stored | None:
        """Return the object, or None if there is none. Raises LakeferryError unless it is a JSON object."""
        found = self._get(key)
        if found is None:
            return None
        content, etag = found
        if content.startswith(_GZIP):  # Iceberg's metadata may be compressed
            content = gzip.decompress(content)
        try:
            document = json.loads(content)
        except ValueError:
            document = None
        if not isinstance(document, dict):
            raise LakeferryError(errors.DOCUMENT, f"s3://{self.bucket}/{key} is not a JSON object")
        return Stored(document, etag)

    def read_bytes(self, key: str) -> bytes | None:
        """Return the content of the object, or None if there is none."""
        found = self._get(key)
        return found[0] if found else None

    def _get(self, key: str) -> tuple[bytes, str] | None:
        """Return the content and the ETag, None if there is no object."""
        with translate_aws_errors(f"reading s3://{self.bucket}/{key}"):
            try:
                answer = self.client.get_object(Bucket=self.bucket, Key=key)
                return answer["Body"].read(), str(answer["ETag"])
            except ClientError as error:
                if read_error_code(error) in _GONE:
                    return None
                raise

    def write(self, key: str, document: dict[str, Any], *, over: str | None) -> str | None:
        """Overwrite the object if its ETag is `over`; for None, create the object if there is none. Return
        the new ETag.

        Return None if another write was faster; that may be this write itself, sent twice.
        """
        body = json.dumps(document, indent=2, ensure_ascii=False).encode()
        with translate_aws_errors(f"writing s3://{self.bucket}/{key}"):
            try:
                if over:
                    answer = self.client.put_object(
                        Bucket=self.bucket, Key=key, Body=body, ContentType="application/json", IfMatch=over
                    )
                else:
                    answer = self.client.put_object(
                        Bucket=self.bucket,
                        Key=key,
                        Body=body,
                        ContentType="application/json",
                        IfNoneMatch="*",
                    )
            except ClientError as error:
                if read_error_code(error) in (*_CONFLICT, *_GONE):
                    return None
                raise
        return str(answer["ETag"])

    def list(self, prefix: str, after: str = "") -> Iterator[Listed]:
        """Yield the objects whose keys come after `after`, ordered by key."""
        parameters: dict[str, Any] = {
            "Bucket": self.bucket,
            "Prefix": prefix,
            **({"StartAfter": after} if after else {}),
        }
        while True:
            with translate_aws_errors(f"listing s3://{self.bucket}/{prefix}"):
                answer = self.client.list_objects_v2(**parameters)
            for item in answer.get("Contents", []):
                yield Listed(item["Key"], item["LastModified"])
            if not answer.get("NextContinuationToken"):
                return
            parameters["ContinuationToken"] = answer["NextContinuationToken"]
