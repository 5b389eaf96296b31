"""The result as Athena leaves it in the bucket: CSV, or text for SHOW and DESCRIBE, and a file that describes it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any
from urllib.parse import urlsplit

import attrs
from botocore.exceptions import ClientError

from simulators.aws.athena import catalog
from simulators.aws.athena.outcomes import Asked, Failed, Rows


def write(asked: Asked, found: Rows) -> None:
    """With the caller's credentials. Raises Failed."""
    place = f"{asked.output}.{'csv' if found.header else 'txt'}"
    _put(asked, place, _csv(found) if found.header else _plain(found))
    # Athena's own is in a format that it doesn't document.
    described = {"ColumnInfo": [attrs.asdict(column) for column in found.columns]}
    _put(asked, f"{place}.metadata", json.dumps(described).encode())


def _csv(found: Rows) -> bytes:
    """Every value in quotes but NULL, which is nothing."""
    names: list[str | None] = [column.name for column in found.columns]
    return "".join(f"{_line(line)}\n" for line in (names, *found.rows)).encode()


def _line(values: Sequence[str | None]) -> str:
    quoted = ("" if value is None else '"{}"'.format(value.replace('"', '""')) for value in values)
    return ",".join(quoted)


def _plain(found: Rows) -> bytes:
    return "".join(f"{row[0]}\n" for row in found.rows).encode()


def _put(asked: Asked, place: str, body: bytes) -> None:
    parts = urlsplit(place)
    given: dict[str, Any] = {"Bucket": parts.netloc, "Key": parts.path.lstrip("/"), "Body": body, **asked.put}
    try:
        catalog.client("s3").put_object(**given)
    except ClientError as error:
        told = error.response["Error"]
        if told["Code"] in ("AccessDenied", "403"):
            raise Failed(f"Access denied when writing output to url: {place}. {told['Message']}") from None
        raise Failed(f"Writing output to url {place} failed: {told['Code']}: {told['Message']}") from None
