"""Lines that a job run writes, on their way to CloudWatch Logs while it runs, under the job's role.

Output goes to <prefix>/output and errors to <prefix>/error, each in a stream named after the run. A group that isn't there is
created if the role may. What the role may not write is lost, and the run goes on.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any, Final

from botocore.exceptions import BotoCoreError, ClientError

from simulators.aws import identity

DEFAULT_PREFIX: Final = "/aws-glue/jobs"
PREFIX_ARGUMENT: Final = "--custom-logGroup-prefix"
_LINES: Final = 1000
_LINE_BYTES: Final = 200_000


class Tail:
    """One file, shipped as far as its lines are complete."""

    def __init__(self, file: Path, group: str, stream: str, credentials: identity.Credentials) -> None:
        self._file, self._group, self._stream, self._credentials = file, group, stream, credentials
        self._sent = 0
        self._client: Any = None
        self._lost = False

    def ship(self, *, all_of_it: bool = False) -> None:
        if self._lost or not self._file.exists():
            return
        with self._file.open("rb") as written:
            written.seek(self._sent)
            new = written.read()
        complete = new if all_of_it else new[: new.rfind(b"\n") + 1]
        if not complete:
            return
        try:
            self._put(complete.decode(errors="replace").splitlines())
        except (ClientError, BotoCoreError):
            self._lost = True
        self._sent += len(complete)

    def _put(self, lines: list[str]) -> None:
        if self._client is None:
            self._client = identity.client("logs", self._credentials)
            self._open()
        now = int(time.time() * 1000)
        events = [{"timestamp": now, "message": line[:_LINE_BYTES]} for line in lines if line]
        for start in range(0, len(events), _LINES):
            self._client.put_log_events(
                logGroupName=self._group, logStreamName=self._stream, logEvents=events[start : start + _LINES]
            )

    def _open(self) -> None:
        stream = {"logGroupName": self._group, "logStreamName": self._stream}
        try:
            self._client.create_log_stream(**stream)
        except ClientError as error:
            if error.response["Error"]["Code"] != "ResourceNotFoundException":
                raise
            self._client.create_log_group(logGroupName=self._group)
            self._client.create_log_stream(**stream)
