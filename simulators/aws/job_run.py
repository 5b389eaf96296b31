"""Carries out one run of a Glue job under the job's role, and sends its output to CloudWatch Logs.

Standard output goes to the log group <prefix>/output and standard error to <prefix>/error, each in a stream
named after the run. A missing log group is created if the role allows it. Output that the role may not write
is lost, and the run continues.
"""

from __future__ import annotations

import logging
import shutil
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from botocore.exceptions import BotoCoreError, ClientError

from simulators.aws import identity, job_process, network, settings
from simulators.aws.delivery import describe_failure

SERVICE: Final = "glue.amazonaws.com"
DEFAULT_PREFIX: Final = "/aws-glue/jobs"
PREFIX_ARGUMENT: Final = "--custom-logGroup-prefix"
_LINES: Final = 1000
_LINE_BYTES: Final = 200_000
_POLL_SECONDS: Final = 0.5
_log: Final = logging.getLogger("lakeferry.glue")
#: Limits the concurrent runs: each has its own JVM.
_slots: Final = threading.BoundedSemaphore(settings.JOBS_AT_ONCE)


class Failed(Exception):
    """The run failed. The message becomes its ErrorMessage."""


class JobRun:
    """`record` is the JobRun of GetJobRun, which this class keeps up to date.

    `on_end` is called when the run has ended.
    """

    def __init__(
        self,
        job: dict[str, Any],
        record: dict[str, Any],
        arguments: dict[str, str],
        on_end: Callable[[], None],
    ) -> None:
        self.record = record
        self._job = job
        self._arguments = arguments
        self._on_end = on_end
        self._requested_state = ""

    def ask_to_end(self, state: str) -> None:
        """Request the run's end in `state`, STOPPED or TIMEOUT. The first request counts."""
        self._requested_state = self._requested_state or state

    def carry_out(self) -> None:
        folder = Path(tempfile.mkdtemp(prefix="glue-run-"))
        try:
            state, message = self._run_in_slot(folder)
        except Exception as error:  # every run must end, or its job could never start again
            _log.exception("a job run failed unexpectedly")
            state = "FAILED"
            message = f"The embedded AWS failed: {error}"
        finally:
            shutil.rmtree(folder, ignore_errors=True)
        self._end(state, message)

    def _run_in_slot(self, folder: Path) -> tuple[str, str]:
        while not _slots.acquire(timeout=_POLL_SECONDS):
            if self._requested_state:
                return self._build_requested_result()
        try:
            if self._requested_state:
                return self._build_requested_result()
            return self._run_with_role(folder)
        finally:
            _slots.release()

    def _run_with_role(self, folder: Path) -> tuple[str, str]:
        role_arn = str(self._job["Role"])
        if not role_arn.startswith("arn:"):  # Glue also accepts the role's name
            role_arn = f"arn:aws:iam::{settings.ACCOUNT}:role/{role_arn}"
        session_name = f"GlueJobRunnerSession-{self.record['Id'][-8:]}"
        try:
            credentials = identity.assume(role_arn, SERVICE, session_name)
            if problem := network.find_problem_of_job(self._job, role_arn):
                return "FAILED", problem
            script = _download_script(folder, self._job, self._arguments, credentials)
            return self._run(script, credentials)
        except identity.Refused:
            return (
                "FAILED",
                f"Role {self._job['Role']} should be given assume role permissions for Glue Service.",
            )
        except Failed as failure:
            return "FAILED", str(failure)
        except (job_process.NotSetUp, OSError) as error:
            return "FAILED", f"The embedded AWS could not start the run: {error}"

    def _run(self, script: job_process.Script, credentials: identity.Credentials) -> tuple[str, str]:
        log_prefix = self._arguments.get(PREFIX_ARGUMENT, DEFAULT_PREFIX)
        run_id = self.record["Id"]
        tails = [
            Tail(script.output, f"{log_prefix}/output", run_id, credentials),
            Tail(script.error, f"{log_prefix}/error", run_id, credentials),
        ]
        self._enter("RUNNING")
        environment = credentials.build_environment() | settings.build_job_environment(
            identity.get_endpoint()
        )
        with job_process.start_process(script, environment) as process:
            code = self._wait_for_exit(process, tails)
        for tail in tails:
            tail.ship(all_of_it=True)
        if code is None:
            return self._build_requested_result()
        if code:
            return "FAILED", script.read_reason() or f"Command failed with exit code {code}"
        return "SUCCEEDED", ""

    def _build_requested_result(self) -> tuple[str, str]:
        return self._requested_state, {"TIMEOUT": "Job run timed out"}.get(self._requested_state, "")

    def _wait_for_exit(self, process: subprocess.Popen[bytes], tails: list[Tail]) -> int | None:
        """Return the exit code, or None if the run was stopped or timed out."""
        deadline = time.monotonic() + 60 * self.record["Timeout"]
        while True:
            try:
                return process.wait(_POLL_SECONDS)
            except subprocess.TimeoutExpired:
                if time.monotonic() > deadline:
                    self.ask_to_end("TIMEOUT")
                if self._requested_state:
                    return None
            for tail in tails:
                tail.ship()

    def _enter(self, state: str) -> None:
        self.record |= {"JobRunState": state, "LastModifiedOn": time.time()}

    def _end(self, state: str, message: str) -> None:
        now = time.time()
        self.record |= {"CompletedOn": now, "ExecutionTime": int(now - self.record["StartedOn"])}
        if message:
            self.record["ErrorMessage"] = message
        self._enter(state)
        self._on_end()


def _download_script(
    folder: Path, job: dict[str, Any], arguments: dict[str, str], credentials: identity.Credentials
) -> job_process.Script:
    """Download the script and the zips of --extra-py-files with the role's credentials. Raises Failed."""
    client = identity.build_client("s3", credentials)
    zips = [location for location in arguments.get("--extra-py-files", "").split(",") if location]
    script = _fetch(client, job["Command"]["ScriptLocation"], folder / "script")
    fetched = tuple(_fetch(client, location, folder / "zips") for location in zips)
    return job_process.Script(job["GlueVersion"], folder, script, fetched, arguments)


def _fetch(client: Any, location: str, folder: Path) -> Path:
    bucket, _, key = location.removeprefix("s3://").partition("/")
    target = folder / key.rpartition("/")[2]
    folder.mkdir(exist_ok=True)
    try:
        client.download_file(bucket, key, str(target))
    except (ClientError, BotoCoreError) as error:
        refusal = describe_failure(error)
        raise Failed(
            f"Failed to download {location}: {refusal.message} (Error Code: {refusal.code})"
        ) from None
    return target


class Tail:
    """Sends the lines of a growing file to a log stream, once they are complete."""

    def __init__(self, file: Path, group: str, stream: str, credentials: identity.Credentials) -> None:
        self._file = file
        self._group = group
        self._stream = stream
        self._credentials = credentials
        self._sent = 0
        self._client: Any = None
        self._lost = False

    def ship(self, *, all_of_it: bool = False) -> None:
        if self._lost or not self._file.exists():
            return
        with self._file.open("rb") as file:
            file.seek(self._sent)
            new = file.read()
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
            self._client = identity.build_client("logs", self._credentials)
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
