"""Tables and contracts for the tests of what breaks: small, but with personal data and a text long enough for parts."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future, wait
from datetime import timedelta
from typing import Any

from job_process import LOOK
from lake import MONDAY, column, contract, topic_of

TOPIC = topic_of(("who", "string"), ("text", "string"), ("kind", "string"))
#: A few of these make a partition so long that its executor uploads a part.
LONG_TEXT = "x" * 1_000_000
PEOPLE = {"treatment": "hash", "kind": "email"}

#: One row a thing. Its file is made of parts where the texts are long.
LINES = contract(column("id"), column("who", personal=PEOPLE), column("text"))


def counts(name: str = "counts") -> str:
    """One row a kind, and kept as an Iceberg table."""
    columns = column("kind"), column("things", "integer", measure="count(*)")
    kept = {"no_persons_because": "Counts only.", "keep_as_table": True}
    return contract(*columns, name=name, aggregate=kept)


def events(count: int, *, text: str = "t", first: int = 0) -> list[dict]:
    """Of the week that is exported, an hour apart."""
    return [
        {"id": f"{n:04}", "at": MONDAY + timedelta(hours=n), "who": f"p{n}@example.org", "text": text, "kind": "ab"[n % 2]}
        for n in range(first, first + count)
    ]


def files_of(lake, below: str) -> set[str]:
    """Keys of objects in windows, visible or not."""
    return {key for key in lake.keys(below) if "/data/" in key}


def uploads_of(lake, below: str) -> set[str]:
    """Uploads that were begun and not ended."""
    found = lake.s3.list_multipart_uploads(Bucket=lake.target.bucket, Prefix=below).get("Uploads", [])
    return {f"{each['Key']} {each['UploadId']}" for each in found}


def ended(running: Future[Any]) -> Callable[[], bool]:
    """For await_held: an export in a thread."""
    return lambda: bool(wait([running], LOOK).done)
