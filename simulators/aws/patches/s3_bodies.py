"""S3 bodies stay on disk: memory is bounded by the parts in flight, not by the size of objects.

AWS streams. Stock MiniStack holds every part of an upload and the assembled object in memory, reads a whole object for
each range of it that is asked for (357 MB in ranges of 8 MiB: 35 MB/s), and keeps all versions of a versioned bucket in
memory for good. Here parts are spooled to a file as they arrive, and objects are sent from their file in chunks.

Also here, because it is the same lines: AWS honours Range together with VersionId, stock MiniStack sends the whole
version.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextvars import ContextVar
from functools import partial
from pathlib import Path
from typing import Any

from simulators.aws.hooks import Answer, Original, OriginalRequest, Patch, Request, ministack
from simulators.aws.patches.extents import Extent, Spool

PATCH = Patch("s3_bodies")
_S3 = "ministack.services.s3"

#: A smaller object is read whole, as stock does: cheaper than opening a stream.
_STREAM_FROM = 1024 * 1024
#: Set while GetObject runs: its own slicing is all that happens to the body, so an Extent can stand for it.
_getting: ContextVar[bool] = ContextVar("lakeferry_getting_object", default=False)


@PATCH.replaces(_S3, "_get_object", "bucket_name key headers query_params")
def get_object(
    original: Original, bucket_name: str, key: str, headers: dict[str, str], query_params: dict[str, Any] | None = None
) -> Answer:
    token = _getting.set(True)
    try:
        status, answer, body = original(bucket_name, key, headers, query_params)
    finally:
        _getting.reset(token)
    if status == 200 and "versionId" in (query_params or {}):
        status, body = _in_range(headers.get("range", ""), answer, body)
    return status, answer, _streaming(body) if isinstance(body, Extent) else body


@PATCH.replaces(_S3, "_read_body", "bucket_name key obj")
def read_body(original: Any, bucket_name: str, key: str, obj: dict[str, Any]) -> Any:
    if not _getting.get() or obj.get("body") is not None or obj["size"] < _STREAM_FROM:
        return original(bucket_name, key, obj)
    return Extent.whole(Path(ministack("services.s3")._object_disk_path(bucket_name, key)))


@PATCH.replaces(_S3, "_record_object_version", "bucket_name key prior_obj obj data")
def record_object_version(  # noqa: PLR0917  (MiniStack's own parameters)
    original: Callable[..., str | None],
    bucket_name: str,
    key: str,
    prior_obj: dict[str, Any] | None,
    obj: dict[str, Any],
    data: bytes | None,
) -> str | None:
    """Without its bytes a version is read from its file, which is how all versions come back after a restart."""
    return original(bucket_name, key, prior_obj, obj, None)


@PATCH.replaces(_S3, "_upload_part", "bucket_name key body query_params headers")
def upload_part(  # noqa: PLR0917  (MiniStack's own parameters)
    original: Original, bucket_name: str, key: str, body: bytes, query_params: dict[str, Any], headers: dict[str, str]
) -> Answer:
    s3 = ministack("services.s3")
    upload = s3._multipart_uploads.get(s3._qp(query_params, "uploadId"))
    answer = original(bucket_name, key, body, query_params, headers)
    if answer[0] == 200:
        if "spool" not in upload:
            upload["spool"] = Spool()
        part = upload["parts"][int(s3._qp(query_params, "partNumber"))]
        part["body"] = upload["spool"].append(body)
    return answer


@PATCH.handles(_S3, "signed_path enforce_bucket_region internal access_point_region access_point")
async def handle_request(original: OriginalRequest, request: Request) -> Answer:
    """Parts are hashed and written in threads, so that meanwhile others arrive. They don't wait for one another on AWS."""
    answering = original()
    if request.method == "PUT" and {"partNumber", "uploadId"} <= request.query.keys():
        return await asyncio.to_thread(asyncio.run, answering)
    return await answering


def _in_range(wanted: str, answer: dict[str, str], body: Any) -> tuple[int, Any]:
    total = len(body)
    found = ministack("services.s3")._parse_range(wanted, total) if wanted else None
    if found is None:
        return 200, body
    start, end = found
    answer["Content-Length"] = str(end + 1 - start)
    answer["Content-Range"] = f"bytes {start}-{end}/{total}"
    return 206, body[start : end + 1]


def _streaming(body: Extent) -> Any:
    return ministack("core.responses").StreamingResponse(partial(_send_chunks, body))


async def _send_chunks(body: Extent, send: Any, receive: Any) -> None:
    for chunk in body.chunks():
        await send({"type": "http.response.body", "body": chunk, "more_body": True})
    await send({"type": "http.response.body", "body": b"", "more_body": False})
