"""Multipart uploads are refused where AWS refuses them, and are assembled on disk.

As S3 does it, CompleteMultipartUpload answers (400)
- EntityTooSmall where a part other than the last is under 5 MiB,
- InvalidPartOrder where the list does not ascend by part number,
- MalformedXML where the list is empty or an entry lacks its ETag,
- InvalidRequest where the upload was made with a checksum algorithm and an entry lacks its checksum;
and UploadPart answers InvalidRequest (400) where the upload was made with an algorithm and the part's checksum is of
another, or missing. Stock MiniStack sorts the list and accepts all of these. It also hashes and copies the whole object
in memory on completion; here that is s3_assembly.py.
"""

from __future__ import annotations

from typing import Any
from xml.etree import ElementTree

from simulators.aws.answers import s3_error
from simulators.aws.hooks import Answer, Original, Patch, ministack
from simulators.aws.patches.s3_assembly import Completion, Part

PATCH = Patch("s3_multipart")
_S3 = "ministack.services.s3"
MIN_PART_BYTES = 5 * 1024 * 1024
#: The one algorithm that S3 knows only for whole objects: their parts need no checksum.
_FULL_OBJECT = "CRC64NVME"


class Refused(Exception):
    """What S3 answers instead."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(code, message)
        self.code, self.message = code, message


@PATCH.replaces(_S3, "_upload_part", "bucket_name key body query_params headers")
def upload_part(  # noqa: PLR0917  (MiniStack's own parameters)
    original: Original, bucket_name: str, key: str, body: bytes, query_params: dict[str, Any], headers: dict[str, str]
) -> Answer:
    s3 = ministack("services.s3")
    upload = s3._multipart_uploads.get(s3._qp(query_params, "uploadId"))
    wanted = (upload or {}).get("checksum_algorithm") or ""
    prefix = "x-amz-checksum-"
    sent = [name.removeprefix(prefix) for name in headers if name.startswith(prefix)] or ["null"]
    if wanted not in {"", _FULL_OBJECT} and sent != [wanted.lower()]:
        message = f"expected checksum Type: {wanted.lower()}, actual checksum Type: {sent[0]}"
        return s3_error("InvalidRequest", f"Checksum Type mismatch occurred, {message}", resource=f"/{bucket_name}/{key}")
    return original(bucket_name, key, body, query_params, headers)


@PATCH.replaces(_S3, "_complete_multipart_upload", "bucket_name key body query_params headers")
def complete_multipart_upload(  # noqa: PLR0917  (MiniStack's own parameters)
    original: Original,
    bucket_name: str,
    key: str,
    body: bytes,
    query_params: dict[str, Any],
    headers: dict[str, str] | None = None,
) -> Answer:
    s3, headers = ministack("services.s3"), headers or {}
    upload_id = s3._qp(query_params, "uploadId")
    upload, bucket = s3._multipart_uploads.get(upload_id), s3._ensure_bucket(bucket_name)
    if bucket is None or upload is None or (upload["bucket"], upload["key"]) != (bucket_name, key):
        # No such upload, or one that is complete already: stock answers as S3 does, which repeats its first answer.
        return original(bucket_name, key, body, query_params, headers)
    refusal: Answer | None = s3._check_sse_c_part(headers, upload)
    refusal = refusal or s3._check_put_preconditions(headers, bucket["objects"].get(key))
    if refusal:
        return refusal
    try:
        parts = listed_parts(body)
        checksum = accept(parts, upload, headers)
    except Refused as refused:
        return s3_error(refused.code, refused.message, resource=f"/{bucket_name}/{key}")
    answer = Completion(bucket_name, key, upload, parts, checksum).publish(headers.get("host", ""))
    del s3._multipart_uploads[upload_id]
    s3._completed_multipart_uploads[upload_id] = {"key": key, "response": answer}
    return answer


def listed_parts(body: bytes) -> list[Part]:
    """Raises Refused where the list is not what the schema wants."""
    try:
        root = ElementTree.fromstring(body)  # noqa: S314  (the caller is a test of ours, on loopback)
        parts = [_listed_part(entry) for entry in root if _tag(entry) == "Part"]
    except (ElementTree.ParseError, KeyError, TypeError, ValueError):
        parts = []
    if not parts:
        raise Refused("MalformedXML", "The XML you provided was not well-formed or did not validate")
    return parts


def _listed_part(entry: ElementTree.Element) -> Part:
    values = {_tag(child): child.text or "" for child in entry}
    prefix = "Checksum"
    checksums = {name[len(prefix) :]: text for name, text in values.items() if name.startswith(prefix)}
    return Part(int(values["PartNumber"]), values["ETag"].strip('"'), checksums)


def _tag(element: ElementTree.Element) -> str:
    return element.tag.rpartition("}")[2]


def accept(parts: list[Part], upload: dict[str, Any], headers: dict[str, str]) -> str | None:
    """The checksum of the object to be, where the upload has an algorithm. Raises Refused."""
    numbers = [part.number for part in parts]
    if numbers != sorted(set(numbers)):
        raise Refused("InvalidPartOrder", "The list of parts was not in ascending order")
    for part in parts:
        _match(part, upload)
    stored = [upload["parts"][number] for number in numbers]
    if any(part["size"] < MIN_PART_BYTES for part in stored[:-1]):
        raise Refused("EntityTooSmall", "Your proposed upload is smaller than the minimum allowed size")
    total = str(sum(part["size"] for part in stored))
    if headers.get("x-amz-mp-object-size", total) != total:
        raise Refused("InvalidRequest", f"x-amz-mp-object-size does not match what was computed: {total}")
    return _composite(stored, upload, headers)


def _match(part: Part, upload: dict[str, Any]) -> None:
    stored = upload["parts"].get(part.number, {"etag": ""})
    known = stored.get("checksums", {}).items()
    if part.etag != stored["etag"].strip('"') or not part.checksums.items() <= known:
        raise Refused("InvalidPart", f"Part {part.number} was not found, or its entity tag did not match")
    algorithm = upload.get("checksum_algorithm") or ""
    if algorithm not in {"", _FULL_OBJECT, *part.checksums}:
        raise Refused(
            "InvalidRequest",
            f"The upload was created using a {algorithm.lower()} checksum. The complete request must include the "
            f"checksum for each part. It was missing for part {part.number} in the request.",
        )


def _composite(stored: list[dict[str, Any]], upload: dict[str, Any], headers: dict[str, str]) -> str | None:
    algorithm = upload.get("checksum_algorithm")
    if not algorithm:
        return None
    of_parts = [part.get("checksums", {}).get(algorithm) for part in stored]
    found: str | None = ministack("services.s3")._composite_checksum(algorithm, of_parts)
    declared = headers.get(f"x-amz-checksum-{algorithm.lower()}")
    if declared and declared != found:
        raise Refused("BadDigest", f"The {algorithm} you specified did not match the calculated checksum.")
    return found
