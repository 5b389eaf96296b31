"""The AWS services of a run, and the one bucket that it writes to: whole objects, conditions, listings and clean-up."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

import attrs
import boto3
from botocore.client import Config
from botocore.exceptions import BotoCoreError, ClientError

from glue_jobs.errors import StorageProblem

if TYPE_CHECKING:
    from mypy_boto3_glue import GlueClient
    from mypy_boto3_s3 import S3Client
    from mypy_boto3_secretsmanager import SecretsManagerClient

_GONE = {"NoSuchKey", "404", "NotFound", "NoSuchUpload"}
#: S3 answers a lost race with 412, or with 409 while the other write is under way.
_CONFLICT = {"PreconditionFailed", "ConditionalRequestConflict", "412", "409"}

#: Our code for an answer of AWS, where it isn't EXP-AWS-FAILED.
_CODES = {"AccessDenied": "EXP-AWS-DENIED", "AccessDeniedException": "EXP-AWS-DENIED", "NoSuchBucket": "EXP-AWS-NO-BUCKET"}


@attrs.frozen
class Services:
    s3: S3Client
    glue: GlueClient
    secrets: SecretsManagerClient


class Conflict(Exception):
    """Another writer was faster."""


class Gone(StorageProblem):
    """There is no such object or upload."""


class Unanswered(StorageProblem):
    """A service failed or could not be reached, so what it was asked for may or may not be done."""


#: Retries with backoff, and no call without a timeout (seconds). Parts of an upload have no checksums of S3, with which it
#: would want consecutive part numbers.
_CONFIG = Config(
    connect_timeout=10,
    read_timeout=60,
    retries={"mode": "standard", "total_max_attempts": 6},
    request_checksum_calculation="when_required",
)


def connect() -> Services:
    """Return clients from the environment's credentials, region and endpoints. Raises StorageProblem where there is no region."""
    session = boto3.session.Session()
    with aws_errors("connecting to AWS"):
        return Services(
            s3=session.client("s3", config=_CONFIG),
            glue=session.client("glue", config=_CONFIG),
            secrets=session.client("secretsmanager", config=_CONFIG),
        )


def connect_s3(region: str) -> S3Client:
    """Return what an executor needs. The driver's environment names the region, that of an executor may not."""
    return boto3.session.Session().client("s3", region_name=region, config=_CONFIG)


def read_location(services: Services, location: str) -> bytes:
    """Return the object at an s3:// address."""
    bucket, _, key = location.split("://", 1)[-1].partition("/")
    with aws_errors(f"reading {location}"):
        return services.s3.get_object(Bucket=bucket, Key=key)["Body"].read()


@contextmanager
def aws_errors(doing: str) -> Iterator[None]:
    """Turns what AWS answers into one sentence. Conflicts pass through for the caller to decide."""
    try:
        yield
    except ClientError as error:
        code = error.response["Error"]["Code"]
        if code in _CONFLICT:
            raise Conflict from error
        unsure = error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 500) >= 500
        kind = Gone if code in _GONE else Unanswered if unsure else StorageProblem
        raise kind(_CODES.get(code, "EXP-AWS-FAILED"), f"{doing} failed: {code}", _remedy(code)) from error
    except BotoCoreError as error:
        raise Unanswered(
            "EXP-AWS-UNREACHABLE", f"{doing} failed: {error}", "Check network, region and credentials, then run again"
        ) from error


def _remedy(code: str) -> str:
    if "AccessDenied" in code:
        return "Give the job's role this permission (docs/reference/iam.md lists what it needs), then run again"
    if code == "NoSuchBucket":
        return "Check --bucket; the run never makes buckets"
    return "Run again; if it stays so, look the code up in the service's documentation"


@attrs.frozen
class Bucket:
    """One bucket below one prefix. Keys are relative to the prefix."""

    s3: S3Client
    name: str
    prefix: str

    def key(self, relative: str) -> str:
        return f"{self.prefix}/{relative}" if self.prefix else relative

    def relative(self, key: str) -> str:
        return key.removeprefix(f"{self.prefix}/") if self.prefix else key

    def read(self, relative: str) -> tuple[bytes, str] | None:
        """Return content and ETag, or None where there is no such object."""
        try:
            with aws_errors(f"reading s3://{self.name}/{self.key(relative)}"):
                answer = self.s3.get_object(Bucket=self.name, Key=self.key(relative))
                return answer["Body"].read(), answer["ETag"]
        except Gone:
            return None

    def read_json(self, relative: str) -> tuple[dict[str, Any], str] | None:
        stored = self.read(relative)
        return (json.loads(stored[0]), stored[1]) if stored else None

    def write(self, relative: str, content: bytes, content_type: str, **condition: Any) -> None:
        """`condition` is IfMatch or IfNoneMatch. Raises Conflict where it doesn't hold."""
        with aws_errors(f"writing s3://{self.name}/{self.key(relative)}"):
            self.s3.put_object(Bucket=self.name, Key=self.key(relative), Body=content, ContentType=content_type, **condition)

    def write_if(self, relative: str, content: bytes, content_type: str, *, etag: str | None) -> None:
        """Write only if the object still has this ETag or, for None, doesn't exist yet. Raises Conflict."""
        condition = {"IfNoneMatch": "*"} if etag is None else {"IfMatch": etag}
        try:
            self.write(relative, content, content_type, **condition)
        except Gone:
            raise Conflict from None  # somebody deleted the object meanwhile

    def size_of(self, key: str) -> int | None:
        """Return bytes of the object with this absolute key, as manifests hold it, or None where there is none."""
        try:
            with aws_errors(f"asking for s3://{self.name}/{key}"):
                return self.s3.head_object(Bucket=self.name, Key=key)["ContentLength"]
        except Gone:
            return None

    def keys(self, below: str) -> Iterator[str]:
        """Return relative keys below `below`, in order."""
        return (key for key, _ in self.sizes(below))

    def sizes(self, below: str) -> Iterator[tuple[str, int]]:
        """Return relative keys below `below`, in order, with the bytes of their objects."""
        pages = self.s3.get_paginator("list_objects_v2").paginate(Bucket=self.name, Prefix=self.key(below))
        with aws_errors(f"listing s3://{self.name}/{self.key(below)}"):
            for page in pages:
                for item in page.get("Contents", []):
                    yield self.relative(item["Key"]), item["Size"]

    def uploads(self, below: str) -> Iterator[tuple[str, str]]:
        """List (relative key, upload id) of multipart uploads that were begun and not ended."""
        pages = self.s3.get_paginator("list_multipart_uploads").paginate(Bucket=self.name, Prefix=self.key(below))
        with aws_errors(f"listing uploads of s3://{self.name}/{self.key(below)}"):
            for page in pages:
                for item in page.get("Uploads", []):
                    yield self.relative(item["Key"]), item["UploadId"]

    def delete(self, relative_keys: list[str]) -> None:
        for start in range(0, len(relative_keys), 1000):
            objects = [{"Key": self.key(one)} for one in relative_keys[start : start + 1000]]
            with aws_errors(f"deleting below s3://{self.name}/{self.prefix}"):
                answer = self.s3.delete_objects(Bucket=self.name, Delete={"Objects": objects, "Quiet": True})  # type: ignore[typeddict-item]
            for error in answer.get("Errors", []):  # the call itself succeeds where some objects stay
                code = error.get("Code", "unknown")
                what = f"deleting s3://{self.name}/{error.get('Key', '')} failed: {code}"
                raise StorageProblem(_CODES.get(code, "EXP-AWS-FAILED"), what, _remedy(code))

    def abort(self, relative: str, upload_id: str) -> None:
        with suppress(Gone), aws_errors(f"aborting the upload of s3://{self.name}/{self.key(relative)}"):
            self.s3.abort_multipart_upload(Bucket=self.name, Key=self.key(relative), UploadId=upload_id)
