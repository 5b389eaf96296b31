"""S3: multipart uploads, API limits, encryption with the AWS managed key, missing keys, and
aws:SecureTransport.

- s3_multipart: CompleteMultipartUpload refuses (400) EntityTooSmall if a part other than the last is under 5
  MiB; InvalidPartOrder if the list doesn't ascend, or if the upload has a checksum algorithm and the numbers
  are not 1, 2, 3 and so on; MalformedXML if the list is empty or an entry has no ETag; InvalidRequest if the
  upload has a checksum algorithm and an entry has no checksum. UploadPart refuses a part whose checksum is
  missing or of another algorithm (InvalidRequest). Stock MiniStack sorts the list and accepts all of these.
  Source: S3 API reference, CompleteMultipartUpload (errors), CompletedPart (PartNumber) and UploadPart; S3
  user guide, "Multipart upload limits".
- s3_limits: ListObjects, ListObjectsV2, ListObjectVersions, ListMultipartUploads and ListParts return at most
  1,000 entries; stock returns as many as the request asks for, which hides a missing pagination loop.
  DeleteObjects with more than 1,000 keys is MalformedXML, a key of more than 1,024 bytes KeyTooLongError;
  stock accepts both. PutObject returns the checksum with which the object was stored; stock omits it. Source:
  S3 API reference of these operations; user guide, "Naming Amazon S3 objects".
- s3_managed_key: A write with aws:kms that names no key uses the account's key alias/aws/s3; CDK uploads
  assets in this way. Stock refuses it. Source: S3 user guide, "Specifying server-side encryption with AWS
  KMS".
- s3_missing_key: GetObject and HeadObject of a key that doesn't exist are 404 only for a caller with
  s3:ListBucket, and 403 (AccessDenied) for others. Stock answers 404 to both, so a role without s3:ListBucket
  fails only on AWS. Source: S3 API reference, GetObject (permissions).
- secure_transport: A request on loopback counts as one over TLS (aws:SecureTransport), because the embedded
  AWS speaks plain HTTP. On stock, bucket policies that deny access without TLS deny every call. This patch is
  not AWS's behaviour; it makes such policies testable.

See stock: `.venv/bin/python -m pytest simulators/tests/aws/test_patches.py -m simulators -k "stock and s3"`
"""

from __future__ import annotations

import ipaddress
from collections.abc import Callable, Mapping
from typing import Any, Final
from xml.etree import ElementTree

from simulators.aws import settings
from simulators.aws.answers import build_s3_error
from simulators.aws.hooks import Answer, Original, Patch, get_region, import_ministack
from simulators.aws.patches.s3_bodies import Completion, Part

MULTIPART = Patch("s3_multipart")
_S3 = "ministack.services.s3"
MIN_PART_BYTES = 5 * 1024 * 1024
#: The only algorithm with which S3 has checksums of whole objects only, so that parts need none.
_FULL_OBJECT = "CRC64NVME"


class Refused(Exception):
    """S3 refuses the request with this error code and message."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(code, message)
        self.code = code
        self.message = message


@MULTIPART.replaces(_S3, "_upload_part", "bucket_name key body query_params headers")
def upload_part(  # noqa: PLR0917  (MiniStack's own parameters)
    original: Original,
    bucket_name: str,
    key: str,
    body: bytes,
    query_params: dict[str, Any],
    headers: dict[str, str],
) -> Answer:
    s3 = import_ministack("services.s3")
    upload = s3._multipart_uploads.get(s3._qp(query_params, "uploadId"))
    algorithm_of_upload = (upload or {}).get("checksum_algorithm") or ""
    prefix = "x-amz-checksum-"
    sent_algorithms = [name.removeprefix(prefix) for name in headers if name.startswith(prefix)] or ["null"]
    expected = algorithm_of_upload.lower()
    if algorithm_of_upload not in {"", _FULL_OBJECT} and sent_algorithms != [expected]:
        message = f"expected checksum Type: {expected}, actual checksum Type: {sent_algorithms[0]}"
        return build_s3_error(
            "InvalidRequest", f"Checksum Type mismatch occurred, {message}", resource=f"/{bucket_name}/{key}"
        )
    return original(bucket_name, key, body, query_params, headers)


@MULTIPART.replaces(_S3, "_complete_multipart_upload", "bucket_name key body query_params headers")
def complete_multipart_upload(  # noqa: PLR0917  (MiniStack's own parameters)
    original: Original,
    bucket_name: str,
    key: str,
    body: bytes,
    query_params: dict[str, Any],
    headers: dict[str, str] | None = None,
) -> Answer:
    s3 = import_ministack("services.s3")
    headers = headers or {}
    upload_id = s3._qp(query_params, "uploadId")
    upload = s3._multipart_uploads.get(upload_id)
    bucket = s3._ensure_bucket(bucket_name)
    if bucket is None or upload is None or (upload["bucket"], upload["key"]) != (bucket_name, key):
        # The upload doesn't exist, or is complete: then S3 repeats its first response. Stock does both
        # correctly.
        return original(bucket_name, key, body, query_params, headers)
    refusal: Answer | None = s3._check_sse_c_part(headers, upload)
    refusal = refusal or s3._check_put_preconditions(headers, bucket["objects"].get(key))
    if refusal:
        return refusal
    try:
        parts = read_parts(body)
        checksum = check_completion(parts, upload, headers)
    except Refused as error:
        return build_s3_error(error.code, error.message, resource=f"/{bucket_name}/{key}")
    answer = Completion(bucket_name, key, upload, parts, checksum).publish(headers.get("host", ""))
    del s3._multipart_uploads[upload_id]
    s3._completed_multipart_uploads[upload_id] = {"key": key, "response": answer}
    return answer


def read_parts(body: bytes) -> list[Part]:
    """Read the list of parts. Raises Refused if it does not follow the schema."""
    try:
        root = ElementTree.fromstring(body)  # noqa: S314  (only local clients call this)
        parts = [_read_part(entry) for entry in root if _get_tag(entry) == "Part"]
    except (ElementTree.ParseError, KeyError, TypeError, ValueError):
        parts = []
    if not parts:
        raise Refused("MalformedXML", "The XML you provided was not well-formed or did not validate")
    return parts


def _read_part(entry: ElementTree.Element) -> Part:
    values = {_get_tag(child): child.text or "" for child in entry}
    prefix = "Checksum"
    checksums = {name[len(prefix) :]: text for name, text in values.items() if name.startswith(prefix)}
    return Part(int(values["PartNumber"]), values["ETag"].strip('"'), checksums)


def _get_tag(element: ElementTree.Element) -> str:
    return element.tag.rpartition("}")[2]


def check_completion(parts: list[Part], upload: dict[str, Any], headers: dict[str, str]) -> str | None:
    """Return the checksum of the whole object, or None if the upload has no algorithm. Raises Refused."""
    numbers = [part.number for part in parts]
    if numbers != sorted(set(numbers)):
        raise Refused("InvalidPartOrder", "The list of parts was not in ascending order")
    for part in parts:
        _require_match(part, upload)
    has_part_checksums = (upload.get("checksum_algorithm") or _FULL_OBJECT) != _FULL_OBJECT
    if has_part_checksums and numbers != list(range(1, len(numbers) + 1)):
        raise Refused(
            "InvalidPartOrder", "Parts with checksums must be numbered consecutively, starting with 1"
        )
    stored_parts = [upload["parts"][number] for number in numbers]
    if any(part["size"] < MIN_PART_BYTES for part in stored_parts[:-1]):
        raise Refused("EntityTooSmall", "Your proposed upload is smaller than the minimum allowed size")
    total = str(sum(part["size"] for part in stored_parts))
    if headers.get("x-amz-mp-object-size", total) != total:
        raise Refused("InvalidRequest", f"x-amz-mp-object-size does not match what was computed: {total}")
    return _compute_composite_checksum(stored_parts, upload, headers)


def _require_match(part: Part, upload: dict[str, Any]) -> None:
    stored_part = upload["parts"].get(part.number, {"etag": ""})
    known_checksums = stored_part.get("checksums", {}).items()
    if part.etag != stored_part["etag"].strip('"') or not part.checksums.items() <= known_checksums:
        raise Refused("InvalidPart", f"Part {part.number} was not found, or its entity tag did not match")
    algorithm = upload.get("checksum_algorithm") or ""
    if algorithm not in {"", _FULL_OBJECT, *part.checksums}:
        raise Refused(
            "InvalidRequest",
            f"The upload was created using a {algorithm.lower()} checksum. The complete request must "
            f"include the checksum for each part. It was missing for part {part.number} in the request.",
        )


def _compute_composite_checksum(
    stored_parts: list[dict[str, Any]], upload: dict[str, Any], headers: dict[str, str]
) -> str | None:
    algorithm = upload.get("checksum_algorithm")
    if not algorithm:
        return None
    part_checksums = [part.get("checksums", {}).get(algorithm) for part in stored_parts]
    result: str | None = import_ministack("services.s3")._composite_checksum(algorithm, part_checksums)
    declared = headers.get(f"x-amz-checksum-{algorithm.lower()}")
    if declared and declared != result:
        raise Refused("BadDigest", f"The {algorithm} you specified did not match the calculated checksum.")
    return result


LIMITS = Patch("s3_limits")
MAX_ENTRIES = 1000
MAX_KEY_BYTES = 1024


def _cap_parameter(query_params: dict[str, Any], name: str) -> dict[str, Any]:
    value = import_ministack("services.s3")._qp(query_params, name)
    if value.isdigit() and int(value) > MAX_ENTRIES:
        return {**query_params, name: [str(MAX_ENTRIES)]}
    return query_params


@LIMITS.replaces(_S3, "_list_objects_v1", "bucket_name query_params")
@LIMITS.replaces(_S3, "_list_objects_v2", "bucket_name query_params")
@LIMITS.replaces(_S3, "_list_object_versions", "bucket_name query_params")
def list_objects(original: Original, bucket_name: str, query_params: dict[str, Any]) -> Answer:
    return original(bucket_name, _cap_parameter(query_params, "max-keys"))


@LIMITS.replaces(_S3, "_list_multipart_uploads", "bucket_name query_params")
def list_multipart_uploads(original: Original, bucket_name: str, query_params: dict[str, Any]) -> Answer:
    return original(bucket_name, _cap_parameter(query_params, "max-uploads"))


@LIMITS.replaces(_S3, "_list_parts", "bucket_name key query_params")
def list_parts(original: Original, bucket_name: str, key: str, query_params: dict[str, Any]) -> Answer:
    return original(bucket_name, key, _cap_parameter(query_params, "max-parts"))


@LIMITS.replaces(_S3, "_delete_objects", "bucket_name body headers")
def delete_objects(
    original: Original, bucket_name: str, body: bytes, headers: dict[str, str] | None = None
) -> Answer:
    if body.count(b"<Object>") > MAX_ENTRIES:
        return build_s3_error("MalformedXML", f"More than {MAX_ENTRIES} keys")
    return original(bucket_name, body, headers)


@LIMITS.replaces(_S3, "_put_object", "bucket_name key body headers")
def put_object(
    original: Original, bucket_name: str, key: str, body: bytes, headers: dict[str, str]
) -> Answer:
    if refusal := _refuse_long_key(key):
        return refusal
    answer: Answer = original(bucket_name, key, body, headers)
    if answer[0] == 200:
        checksums = import_ministack("services.s3")._buckets[bucket_name]["objects"][key]["checksums"]
        answer[1].update({f"x-amz-checksum-{name.lower()}": value for name, value in checksums.items()})
    return answer


@LIMITS.replaces(_S3, "_create_multipart_upload", "bucket_name key headers")
def create_multipart_upload(
    original: Original, bucket_name: str, key: str, headers: dict[str, str]
) -> Answer:
    return _refuse_long_key(key) or original(bucket_name, key, headers)


def _refuse_long_key(key: str) -> Answer | None:
    if len(key.encode()) <= MAX_KEY_BYTES:
        return None
    return build_s3_error("KeyTooLongError", "Your key is too long")


MANAGED_KEY = Patch("s3_managed_key")
_SSE: Final = "x-amz-server-side-encryption"
_SSE_KEY: Final = f"{_SSE}-aws-kms-key-id"


@MANAGED_KEY.replaces("ministack.services.s3", "_resolve_sse_write_headers", "headers bucket_name")
def resolve_sse_write_headers(
    original: Callable[..., Any], headers: Mapping[str, str], bucket_name: str
) -> Any:
    if headers.get(_SSE) == "aws:kms" and not headers.get(_SSE_KEY):
        managed = f"arn:aws:kms:{get_region()}:{settings.ACCOUNT}:alias/aws/s3"
        headers = {**headers, _SSE_KEY: managed}
    return original(headers, bucket_name)


MISSING_KEY = Patch("s3_missing_key")
_OBJECT_ARN = "arn:aws:s3:::"


@MISSING_KEY.replaces(
    "ministack.core.iam_evaluator",
    "enforce",
    "access_key_id iam_action service region resource_arn service_context",
)
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
    bucket = import_ministack("services.s3")._buckets.get(bucket_name)
    return bucket is not None and key not in bucket["objects"]


SECURE_TRANSPORT = Patch("secure_transport")


@SECURE_TRANSPORT.replaces("ministack.core.iam_evaluator", "_resolve_condition_key", "key ctx")
def resolve_condition_key(original: Any, key: str, ctx: Any) -> Any:
    if key.lower() == "aws:securetransport" and ipaddress.ip_address(ctx.source_ip).is_loopback:
        return "true"
    return original(key, ctx)


PATCHES: Final = (
    MULTIPART,
    LIMITS,
    MANAGED_KEY,
    MISSING_KEY,
    SECURE_TRANSPORT,
)
