"""The AWS clients of a run, and the bucket that it writes to: reads, conditional writes, listings and
deletion.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

import attrs
import boto3
from botocore.client import Config
from botocore.exceptions import BotoCoreError, ClientError, IncompleteReadError

from config.aws_denials import DENIED, find_denial, format_aws_answer
from glue_jobs.errors import StorageProblem

if TYPE_CHECKING:
    from mypy_boto3_glue import GlueClient
    from mypy_boto3_s3 import S3Client
    from mypy_boto3_secretsmanager import SecretsManagerClient

_GONE = {"NoSuchKey", "404", "NotFound", "NoSuchUpload"}
#: If another writer was faster, S3 answers with 412, or with 409 while the other write is in progress.
_CONFLICT = {"PreconditionFailed", "ConditionalRequestConflict", "412", "409"}

EXPIRED = ("ExpiredToken", "ExpiredTokenException")
#: Lakeferry's code for an error code of AWS. It is EXP-AWS-FAILED for all others.
_CODES = {
    **dict.fromkeys(DENIED, "EXP-AWS-DENIED"),
    **dict.fromkeys(EXPIRED, "EXP-CREDENTIALS-ENDED"),
    "NoSuchBucket": "EXP-AWS-NO-BUCKET",
}


@attrs.frozen
class Services:
    s3: S3Client
    glue: GlueClient
    secrets: SecretsManagerClient


class Conflict(Exception):
    """Another writer was faster; or, if boto3 has repeated the request, perhaps an earlier attempt of it."""

    def __init__(self, *, is_repeated: bool = False) -> None:
        super().__init__()
        self.is_repeated = is_repeated


class Gone(StorageProblem):
    """There is no such object or upload."""


class Unanswered(StorageProblem):
    """A service failed or could not be reached, at least once, so it is unknown whether it executed the
    request.
    """


#: Waits for a number of seconds.
Pause = Callable[[float], None]
#: Seconds before the attempts to read on after the body of an answer broke off.
_PAUSES = (0.5, 1.0, 2.0, 4.0)
_CHUNK = 1 << 20

#: Retries with backoff, and timeouts in seconds. Parts of an upload have no S3 checksums, because with them
#: S3 requires consecutive part numbers.
CLIENT_CONFIG = Config(
    connect_timeout=10,
    read_timeout=60,
    retries={"mode": "standard", "total_max_attempts": 6},
    request_checksum_calculation="when_required",
)


def connect(region: str = "") -> Services:
    """Return clients of a region, or of the environment's. Credentials and endpoints come from the
    environment.

    Raises StorageProblem if no region is known.
    """
    session = boto3.session.Session(region_name=region or None)
    with translate_aws_errors("connecting to AWS"):
        return Services(
            s3=session.client("s3", config=CLIENT_CONFIG),
            glue=session.client("glue", config=CLIENT_CONFIG),
            secrets=session.client("secretsmanager", config=CLIENT_CONFIG),
        )


def connect_s3(region: str) -> S3Client:
    """Return the client of an executor, whose environment may not name the region as the driver's does."""
    return boto3.session.Session().client("s3", region_name=region, config=CLIENT_CONFIG)


class ObjectBody:
    """The bytes of an object, or those from `start` to `end`. If the connection breaks, reading goes on where
    it stopped.

    boto3 retries requests, but not the bodies of their answers. The rest must be of an object with the same
    ETag.
    """

    def __init__(
        self,
        s3: S3Client,
        bucket: str,
        key: str,
        pause: Pause = time.sleep,
        *,
        start: int = 0,
        end: int | None = None,
    ) -> None:
        self._s3 = s3
        self._bucket = bucket
        self._key = key
        self._pause = pause
        self._at = start
        self._end = end
        span = {} if end is None else {"Range": f"bytes={start}-{end}"}
        answer = s3.get_object(Bucket=bucket, Key=key, **span)  # type: ignore[arg-type]
        self.etag: str = answer["ETag"]
        self._body = answer["Body"]
        self._left = answer["ContentLength"]

    def read(self, amount: int = -1) -> bytes:
        """Return up to `amount` bytes, all that are left for -1, and none at the end."""
        if amount < 0:
            return b"".join(iter(lambda: self.read(_CHUNK), b""))
        if not self._left or not amount:
            return b""
        data = self._next(min(amount, self._left))
        self._at = self._at + len(data)
        self._left = self._left - len(data)
        return data

    def _next(self, amount: int) -> bytes:
        for seconds in (*_PAUSES, None):
            try:
                if data := bytes(self._body.read(amount)):
                    return data
                raise IncompleteReadError(actual_bytes=0, expected_bytes=self._left)
            except BotoCoreError:
                if seconds is None:
                    raise
            self._pause(seconds)
            self._body = self._read_rest()
        raise AssertionError("the last attempt returns or raises")

    def _read_rest(self) -> Any:
        span = f"bytes={self._at}-{'' if self._end is None else self._end}"
        try:
            return self._s3.get_object(Bucket=self._bucket, Key=self._key, Range=span, IfMatch=self.etag)[
                "Body"
            ]
        except ClientError as error:
            if error.response["Error"]["Code"] not in _CONFLICT:
                raise
            what = f"s3://{self._bucket}/{self._key} was replaced while it was read"
            raise StorageProblem("EXP-AWS-FAILED", what) from error


def read_location(services: Services, location: str, pause: Pause = time.sleep) -> bytes:
    """Return the object at an s3:// address."""
    bucket, _, key = location.split("://", 1)[-1].partition("/")
    with translate_aws_errors(f"reading {location}"):
        return ObjectBody(services.s3, bucket, key, pause).read()


@contextmanager
def translate_aws_errors(doing: str) -> Iterator[None]:
    """Turn errors of AWS into a StorageProblem with one sentence, or into Conflict, which the caller
    handles.
    """
    try:
        yield
    except ClientError as error:
        code = error.response["Error"]["Code"]
        metadata = error.response.get("ResponseMetadata", {})
        is_repeated = metadata.get("RetryAttempts", 0) > 0
        if code in _CONFLICT:
            raise Conflict(is_repeated=is_repeated) from error
        is_unsure = is_repeated or metadata.get("HTTPStatusCode", 500) >= 500
        kind = StorageProblem
        if code in _GONE:
            kind = Gone
        elif is_unsure:
            kind = Unanswered
        answer = format_aws_answer(error.response["Error"])
        raise kind(
            _CODES.get(code, "EXP-AWS-FAILED"), f"{doing} failed: {answer}", _choose_remedy(code, answer)
        ) from error
    except BotoCoreError as error:
        raise Unanswered(
            "EXP-AWS-UNREACHABLE",
            f"{doing} failed: {error}",
            "Check network, region and credentials, then run again",
        ) from error


def _choose_remedy(code: str, answer: str) -> str:
    if code in DENIED and (denial := find_denial(answer)):
        return f"It is denied by {denial.by}. {denial.remedy}"
    if code in DENIED:
        return (
            "Give the job's role this permission (docs/reference/iam.md lists what it needs), then run again"
        )
    if code in EXPIRED:
        return ""  # the catalogue's
    if code == "NoSuchBucket":
        return "Check --bucket; the run never creates buckets"
    return "Run again; if it fails again, look up the code in the service's documentation"


@attrs.frozen
class Bucket:
    """One bucket below one prefix. Keys are relative to the prefix."""

    s3: S3Client
    name: str
    prefix: str
    pause: Pause = time.sleep

    def key(self, relative: str) -> str:
        return f"{self.prefix}/{relative}" if self.prefix else relative

    def relative(self, key: str) -> str:
        return key.removeprefix(f"{self.prefix}/") if self.prefix else key

    def read(self, relative: str) -> tuple[bytes, str] | None:
        """Return content and ETag, or None where there is no such object."""
        try:
            with translate_aws_errors(f"reading s3://{self.name}/{self.key(relative)}"):
                body = ObjectBody(self.s3, self.name, self.key(relative), self.pause)
                return body.read(), body.etag
        except Gone:
            return None

    def read_json(self, relative: str) -> tuple[dict[str, Any], str] | None:
        stored = self.read(relative)
        return (json.loads(stored[0]), stored[1]) if stored else None

    def write(self, relative: str, content: bytes, content_type: str, **condition: Any) -> None:
        """`condition` is IfMatch or IfNoneMatch. Raises Conflict where it doesn't hold."""
        with translate_aws_errors(f"writing s3://{self.name}/{self.key(relative)}"):
            self.s3.put_object(
                Bucket=self.name, Key=self.key(relative), Body=content, ContentType=content_type, **condition
            )

    def write_if(self, relative: str, content: bytes, content_type: str, *, etag: str | None) -> None:
        """Write only if the object still has this ETag or, for None, doesn't exist yet. Raises Conflict."""
        condition = {"IfNoneMatch": "*"} if etag is None else {"IfMatch": etag}
        try:
            self.write(relative, content, content_type, **condition)
        except Gone:
            raise Conflict from None  # somebody deleted the object meanwhile

    def size_of(self, key: str) -> int | None:
        """Return the size in bytes of the object with this absolute key, as in manifests, or None if there is
        none.
        """
        try:
            with translate_aws_errors(f"asking for s3://{self.name}/{key}"):
                return self.s3.head_object(Bucket=self.name, Key=key)["ContentLength"]
        except Gone:
            return None

    def keys(self, below: str) -> Iterator[str]:
        """Return relative keys below `below`, in order."""
        return (key for key, _ in self.sizes(below))

    def sizes(self, below: str) -> Iterator[tuple[str, int]]:
        """Return relative keys below `below`, in order, with the bytes of their objects."""
        pages = self.s3.get_paginator("list_objects_v2").paginate(Bucket=self.name, Prefix=self.key(below))
        with translate_aws_errors(f"listing s3://{self.name}/{self.key(below)}"):
            for page in pages:
                for item in page.get("Contents", []):
                    yield self.relative(item["Key"]), item["Size"]

    def uploads(self, below: str) -> Iterator[tuple[str, str]]:
        """List (relative key, upload id) of multipart uploads that were neither completed nor aborted."""
        pages = self.s3.get_paginator("list_multipart_uploads").paginate(
            Bucket=self.name, Prefix=self.key(below)
        )
        with translate_aws_errors(f"listing uploads of s3://{self.name}/{self.key(below)}"):
            for page in pages:
                for item in page.get("Uploads", []):
                    yield self.relative(item["Key"]), item["UploadId"]

    def delete(self, relative_keys: list[str]) -> None:
        for start in range(0, len(relative_keys), 1000):
            objects = [{"Key": self.key(key)} for key in relative_keys[start : start + 1000]]
            with translate_aws_errors(f"deleting below s3://{self.name}/{self.prefix}"):
                answer = self.s3.delete_objects(Bucket=self.name, Delete={"Objects": objects, "Quiet": True})  # type: ignore[typeddict-item]
            for error in answer.get("Errors", []):  # the call itself succeeds even if some objects remain
                code = error.get("Code", "unknown")
                said = format_aws_answer(error)
                what = f"deleting s3://{self.name}/{error.get('Key', '')} failed: {said}"
                raise StorageProblem(_CODES.get(code, "EXP-AWS-FAILED"), what, _choose_remedy(code, said))

    def abort(self, relative: str, upload_id: str) -> None:
        with (
            suppress(Gone),
            translate_aws_errors(f"aborting the upload of s3://{self.name}/{self.key(relative)}"),
        ):
            self.s3.abort_multipart_upload(Bucket=self.name, Key=self.key(relative), UploadId=upload_id)
