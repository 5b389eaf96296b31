"""Where commands work: the AWS that the environment names, or the embedded one with the demo's buckets and tables."""

from __future__ import annotations

import base64
import fcntl
import json
import os
import secrets
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import attrs
import boto3

from lakeferry.errors import CommandFailed
from lakeferry.local.bootstrap import ROOT
from simulators.aws.server import EmbeddedAws, EmbeddedAwsFailed

STATE = ROOT / ".lakeferry"
_DEMO_STATE = STATE / "demo"
_VARIABLES = {
    "bucket": "LAKEFERRY_BUCKET",
    "database": "LAKEFERRY_DATABASE",
    "prefix": "LAKEFERRY_PREFIX",
    "pseudonym_secret": "LAKEFERRY_PSEUDONYM_SECRET",
    "aggregates_database": "LAKEFERRY_AGGREGATES_DATABASE",
}


@attrs.frozen
class ExportTarget:
    """Names of what an export works with. `embedded` is the running embedded AWS, or None for a real one."""

    bucket: str
    database: str
    prefix: str = "exports"
    pseudonym_secret: str = "lakeferry/pseudonyms"  # noqa: S105 - a name
    aggregates_database: str = "lakeferry"
    embedded: EmbeddedAws | None = None

    @property
    def source(self) -> str:
        """Which AWS answers, in words for users."""
        if self.embedded is not None:
            return "the last demo in this clone (embedded AWS)"
        region = boto3.session.Session().region_name or "no region"
        endpoint = os.environ.get("AWS_ENDPOINT_URL", "")
        at = f" at {endpoint}" if endpoint else ""
        return f"database {self.database} and bucket {self.bucket} in {region}, of the AWS that the environment names{at}"

    @property
    def warehouse(self) -> str:
        """Where tables of ours go."""
        return f"s3://{self.bucket}/warehouse"

    def arguments(self) -> list[str]:
        """As the job takes them."""
        return [
            *("--bucket", self.bucket),
            *("--database", self.database),
            *("--prefix", self.prefix),
            *("--warehouse", self.warehouse),
            *("--pseudonym-secret", self.pseudonym_secret),
            *("--aggregates-database", self.aggregates_database),
        ]


DEMO = ExportTarget(bucket="lakeferry-demo-exports", database="lkc-00demo")
TABLEFLOW_BUCKET = "lakeferry-demo-tableflow"


@contextmanager
def fresh_demo() -> Iterator[ExportTarget]:
    """An embedded AWS with empty buckets and a new pseudonymisation key."""
    with _only_one(), _embedded(fresh=True) as world:
        s3 = boto3.client("s3")
        region: Any = os.environ["AWS_REGION"]
        for bucket in (DEMO.bucket, TABLEFLOW_BUCKET):
            s3.create_bucket(Bucket=bucket, CreateBucketConfiguration={"LocationConstraint": region})
        key = json.dumps({"key": base64.b64encode(secrets.token_bytes(32)).decode()})
        boto3.client("secretsmanager").create_secret(Name=DEMO.pseudonym_secret, SecretString=key)
        yield world


@contextmanager
def open_target() -> Iterator[ExportTarget]:
    """Open the target that the environment names, or else the last demo. Raises CommandFailed where there is neither."""
    if os.environ.get(_VARIABLES["bucket"]) or os.environ.get(_VARIABLES["database"]):
        yield from_environment(os.environ)
    elif _DEMO_STATE.exists():
        with _only_one(), _embedded() as world:
            yield world
    else:
        raise CommandFailed(
            "NO-BUCKET",
            "there is nothing to work on: no demo was run here, and the environment names no bucket",
            f"Run `lakeferry demo`, or set {', '.join(_VARIABLES.values())} and AWS credentials",
        )


def from_environment(environment: Mapping[str, str]) -> ExportTarget:
    """Raises CommandFailed with all variables that are missing."""
    missing = [_VARIABLES[name] for name in ("bucket", "database") if not environment.get(_VARIABLES[name])]
    if missing:
        raise CommandFailed("NO-BUCKET", f"{' and '.join(missing)} not set", "Set both, or neither to use the demo")
    given = {name: environment[variable] for name, variable in _VARIABLES.items() if environment.get(variable)}
    return ExportTarget(**given)  # type: ignore[arg-type]


@contextmanager
def _only_one() -> Iterator[None]:
    """Keeps other processes away from the demo's state. The lock ends with its process. Raises CommandFailed."""
    STATE.mkdir(parents=True, exist_ok=True)
    with (STATE / "demo.lock").open("a+", encoding="ascii") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            file.seek(0)
            message = f"process {file.read() or 'unknown'} is using the demo in this clone"
            raise CommandFailed("DEMO-IN-USE", message) from None
        file.truncate(0)
        file.write(str(os.getpid()))
        file.flush()
        yield


@contextmanager
def _embedded(*, fresh: bool = False) -> Iterator[ExportTarget]:
    if fresh:
        shutil.rmtree(_DEMO_STATE, ignore_errors=True)
    _DEMO_STATE.mkdir(parents=True, exist_ok=True)
    before = dict(os.environ)
    try:
        with EmbeddedAws(state_dir=_DEMO_STATE) as aws:
            _replace_environment(aws.environment(before))
            yield attrs.evolve(DEMO, embedded=aws)
    except EmbeddedAwsFailed as error:
        raise CommandFailed("EMBEDDED-AWS", str(error)) from None
    finally:
        _replace_environment(before)


def _replace_environment(values: Mapping[str, str]) -> None:
    for name in os.environ.keys() - values.keys():
        del os.environ[name]
    os.environ.update(values)


@contextmanager
def in_environment(values: Mapping[str, str]) -> Iterator[None]:
    """`values` are the whole environment of this process meanwhile."""
    before = dict(os.environ)
    _replace_environment(values)
    try:
        yield
    finally:
        _replace_environment(before)


def require_writable(out: Path) -> None:
    """Leaves nothing behind. Raises CommandFailed where files can't be written to `out`."""
    missing = [folder for folder in (out, *out.parents) if not folder.exists()]
    try:
        out.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=out):
            pass
    except OSError as error:
        raise CommandFailed("OUT-FOLDER", f"{out} can't be written: {error.strerror}") from None
    finally:
        for folder in missing:
            with suppress(OSError):
                folder.rmdir()


def relative(path: Path) -> str:
    """As a user in this folder would write it."""
    try:
        return str(path.resolve().relative_to(Path.cwd()))
    except ValueError:
        return str(path)
