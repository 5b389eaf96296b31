"""Small tables and contracts with personal data, and with texts long enough for files of several parts."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future, wait
from datetime import timedelta
from typing import Any

from tests.support.job_process import LOOK
from tests.support.lake import MONDAY, column, contract, topic_of

TOPIC = topic_of(("who", "string"), ("text", "string"), ("kind", "string"))
#: A few of these texts make a partition so large that its executor uploads a part.
LONG_TEXT = "x" * 1_000_000
PEOPLE = {"treatment": "hash", "kind": "email"}

#: One row per event. With long texts, its file has several parts.
LINES = contract(column("id"), column("who", personal=PEOPLE), column("text"))


def counts(name: str = "counts") -> str:
    """Return a contract with one row per kind, which is also kept as an Iceberg table."""
    columns = column("kind"), column("things", "integer", measure="count(*)")
    kept = {"no_persons_because": "Counts only.", "keep_as_table": True}
    return contract(*columns, name=name, aggregate=kept)


def events(count: int, *, text: str = "t", first: int = 0) -> list[dict]:
    """Return events of the exported week, one per hour."""
    return [
        {
            "id": f"{n:04}",
            "at": MONDAY + timedelta(hours=n),
            "who": f"p{n}@example.org",
            "text": text,
            "kind": "ab"[n % 2],
        }
        for n in range(first, first + count)
    ]


def files_of(lake, below: str) -> set[str]:
    """Return the keys of objects in windows, visible or not."""
    return {key for key in lake.keys(below) if "/data/" in key}


def uploads_of(lake, below: str) -> set[str]:
    """Return uploads that are started and not completed."""
    found = lake.s3.list_multipart_uploads(Bucket=lake.target.bucket, Prefix=below).get("Uploads", [])
    return {f"{row['Key']} {row['UploadId']}" for row in found}


def ended(running: Future[Any]) -> Callable[[], bool]:
    """Return a function for await_held that waits for an export in a thread."""
    return lambda: bool(wait([running], LOOK).done)
