"""The embedded AWS of the demo: the only place where the command line starts a simulator of AWS."""

from __future__ import annotations

import base64
import json
import os
import secrets
import shutil
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any, Final

import attrs
import boto3

from glue_jobs.runs import utc_now
from lakeferry.errors import CommandFailed
from lakeferry.local import lock
from lakeferry.local.target import DEMO_STATE, STATE, ExportTarget, replace_environment
from simulators.aws.server import EmbeddedAws, EmbeddedAwsFailed

DEMO: Final = ExportTarget(bucket="lakeferry-demo-exports", database="lkc-00demo")
TABLEFLOW_BUCKET: Final = "lakeferry-demo-tableflow"


@contextmanager
def start_fresh_demo() -> Iterator[ExportTarget]:
    """Start an embedded AWS with empty buckets and a new pseudonymisation key."""
    with _lock_demo(), _start_embedded(fresh=True) as target:
        s3 = boto3.client("s3")
        region: Any = os.environ["AWS_REGION"]
        for bucket in (DEMO.bucket, TABLEFLOW_BUCKET):
            s3.create_bucket(Bucket=bucket, CreateBucketConfiguration={"LocationConstraint": region})
        key = json.dumps({"key": base64.b64encode(secrets.token_bytes(32)).decode()})
        boto3.client("secretsmanager").create_secret(Name=DEMO.pseudonym_secret, SecretString=key)
        yield target


@contextmanager
def open_demo() -> Iterator[ExportTarget]:
    """Start the embedded AWS with what the last demo left. Raises CommandFailed."""
    with _lock_demo(), _start_embedded() as target:
        yield target


def _lock_demo() -> AbstractContextManager[None]:
    """Keep other processes away from the demo's state. Raises CommandFailed."""

    def in_use(process: str) -> CommandFailed:
        return CommandFailed("DEMO-IN-USE", f"process {process} is using the demo in this clone")

    return lock.hold_lock(STATE / "demo.lock", in_use)


@contextmanager
def _start_embedded(*, fresh: bool = False) -> Iterator[ExportTarget]:
    if fresh:
        shutil.rmtree(DEMO_STATE, ignore_errors=True)
    DEMO_STATE.mkdir(parents=True, exist_ok=True)
    before = dict(os.environ)
    try:
        with EmbeddedAws(state_dir=DEMO_STATE) as aws:
            replace_environment(aws.environment(before))
            # The demo has written all events before it exports them.
            yield attrs.evolve(DEMO, embedded_url=aws.url, complete_until=utc_now())
    except EmbeddedAwsFailed as error:
        raise CommandFailed("EMBEDDED-AWS", str(error)) from None
    finally:
        replace_environment(before)
