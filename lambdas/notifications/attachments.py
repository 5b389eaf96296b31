"""Files that a mail carries, so that the recipient needs no link."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from pathlib import PurePosixPath
from typing import Any, Final

import attrs

from lambdas import contract
from lambdas.notifications import errors as notification_errors
from lambdas.shared.errors import LakeferryError
from lambdas.shared.s3 import Objects

#: The types of the files' contents (RFC 2046), by the endings of their names.
_TYPES: Final = {
    ".csv": ("text", "csv"),
    ".gz": ("application", "gzip"),
    ".jsonl": ("application", "jsonl"),
    ".parquet": ("application", "vnd.apache.parquet"),
    ".xlsx": ("application", "vnd.openxmlformats-officedocument.spreadsheetml.sheet"),
}


@attrs.frozen
class Attachment:
    name: str
    content: bytes = attrs.field(repr=False)

    @property
    def type(self) -> tuple[str, str]:
        """Return the main type and the subtype."""
        return _TYPES.get(PurePosixPath(self.name).suffix, ("application", "octet-stream"))


def read_attachments(
    objects: Objects, files: Sequence[Mapping[str, Any]], most_kb: int
) -> tuple[Attachment, ...]:
    """Return the files with rows, if together they have at most `most_kb` kilobytes of 1,000 bytes.

    Return nothing if they have more, or if one has expired. `files` is from the run's record. Raises
    LakeferryError (MAIL-ATTACHMENT) if a file isn't the one that the run wrote.
    """
    with_rows = [file for file in files if file["role"] in contract.ROLES_WITH_ROWS]
    if sum(int(file["size"]) for file in with_rows) > most_kb * 1000:
        return ()
    attachments = []
    for file in with_rows:
        content = objects.read_bytes(file["key"])
        if content is None:
            return ()
        if hashlib.sha256(content).hexdigest() != file["sha256"]:
            raise LakeferryError(notification_errors.ATTACHMENT, f"s3://{objects.bucket}/{file['key']}")
        attachments.append(Attachment(PurePosixPath(file["key"]).name, content))
    return tuple(attachments)
