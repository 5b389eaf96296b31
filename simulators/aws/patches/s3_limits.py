"""S3 caps its pages and batches, and gives back the checksum that it checked.

- ListObjects, ListObjectsV2, ListObjectVersions, ListMultipartUploads and ListParts return at most 1,000 entries,
  whatever the caller asks for. Stock MiniStack returns as many as are asked for, which hides a missing loop.
- DeleteObjects with more than 1,000 keys is MalformedXML (400). Stock deletes them all.
- A key of more than 1,024 bytes is KeyTooLongError (400). Stock takes it.
- PutObject answers with the checksum it was given. Stock checks it and does not answer with it.
"""

from __future__ import annotations

from typing import Any

from simulators.aws.answers import s3_error
from simulators.aws.hooks import Answer, Original, Patch, ministack

PATCH = Patch("s3_limits")
_S3 = "ministack.services.s3"
MAX_ENTRIES = 1000
MAX_KEY_BYTES = 1024


def _capped(query_params: dict[str, Any], name: str) -> dict[str, Any]:
    wanted = ministack("services.s3")._qp(query_params, name)
    if wanted.isdigit() and int(wanted) > MAX_ENTRIES:
        return {**query_params, name: [str(MAX_ENTRIES)]}
    return query_params


@PATCH.replaces(_S3, "_list_objects_v1", "bucket_name query_params")
@PATCH.replaces(_S3, "_list_objects_v2", "bucket_name query_params")
@PATCH.replaces(_S3, "_list_object_versions", "bucket_name query_params")
def list_objects(original: Original, bucket_name: str, query_params: dict[str, Any]) -> Answer:
    return original(bucket_name, _capped(query_params, "max-keys"))


@PATCH.replaces(_S3, "_list_multipart_uploads", "bucket_name query_params")
def list_multipart_uploads(original: Original, bucket_name: str, query_params: dict[str, Any]) -> Answer:
    return original(bucket_name, _capped(query_params, "max-uploads"))


@PATCH.replaces(_S3, "_list_parts", "bucket_name key query_params")
def list_parts(original: Original, bucket_name: str, key: str, query_params: dict[str, Any]) -> Answer:
    return original(bucket_name, key, _capped(query_params, "max-parts"))


@PATCH.replaces(_S3, "_delete_objects", "bucket_name body headers")
def delete_objects(original: Original, bucket_name: str, body: bytes, headers: dict[str, str] | None = None) -> Answer:
    if body.count(b"<Object>") > MAX_ENTRIES:
        return s3_error("MalformedXML", f"More than {MAX_ENTRIES} keys")
    return original(bucket_name, body, headers)


@PATCH.replaces(_S3, "_put_object", "bucket_name key body headers")
def put_object(original: Original, bucket_name: str, key: str, body: bytes, headers: dict[str, str]) -> Answer:
    if refusal := _too_long(key):
        return refusal
    answer: Answer = original(bucket_name, key, body, headers)
    if answer[0] == 200:
        checksums = ministack("services.s3")._buckets[bucket_name]["objects"][key]["checksums"]
        answer[1].update({f"x-amz-checksum-{name.lower()}": value for name, value in checksums.items()})
    return answer


@PATCH.replaces(_S3, "_create_multipart_upload", "bucket_name key headers")
def create_multipart_upload(original: Original, bucket_name: str, key: str, headers: dict[str, str]) -> Answer:
    return _too_long(key) or original(bucket_name, key, headers)


def _too_long(key: str) -> Answer | None:
    if len(key.encode()) <= MAX_KEY_BYTES:
        return None
    return s3_error("KeyTooLongError", "Your key is too long")
