"""Where commands work: the AWS that the environment names, or the embedded one with the demo's buckets and tables."""

from __future__ import annotations

import base64
import json
import os
import secrets
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import attrs
import boto3

from lakeferry.bootstrap import ROOT
from lakeferry.console import NOT_SET_UP, WRONG_INPUT, CommandFailed
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
class World:
    """Names of what an export works with. `embedded` is the running embedded AWS, or None for a real one."""

    bucket: str
    database: str
    prefix: str = "exports"
    pseudonym_secret: str = "lakeferry/pseudonyms"  # noqa: S105 - a name
    aggregates_database: str = "lakeferry"
    embedded: EmbeddedAws | None = None

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


DEMO = World(bucket="lakeferry-demo-exports", database="lkc-00demo")
TABLEFLOW_BUCKET = "lakeferry-demo-tableflow"


@contextmanager
def fresh_demo() -> Iterator[World]:
    """An embedded AWS with empty buckets and a new pseudonymisation key."""
    shutil.rmtree(_DEMO_STATE, ignore_errors=True)
    with _embedded() as world:
        s3 = boto3.client("s3")
        region: Any = os.environ["AWS_REGION"]
        for bucket in (DEMO.bucket, TABLEFLOW_BUCKET):
            s3.create_bucket(Bucket=bucket, CreateBucketConfiguration={"LocationConstraint": region})
        key = json.dumps({"key": base64.b64encode(secrets.token_bytes(32)).decode()})
        boto3.client("secretsmanager").create_secret(Name=DEMO.pseudonym_secret, SecretString=key)
        yield world


@contextmanager
def current() -> Iterator[World]:
    """The world that the environment names; else what the last demo left. Raises CommandFailed where there is neither."""
    if os.environ.get(_VARIABLES["bucket"]) or os.environ.get(_VARIABLES["database"]):
        yield from_environment(os.environ)
    elif _DEMO_STATE.exists():
        with _embedded() as world:
            yield world
    else:
        raise CommandFailed(
            WRONG_INPUT,
            "NO-WORLD",
            "there is nothing to work on: no demo was run here, and the environment names no bucket",
            f"Run `lakeferry demo`, or set {', '.join(_VARIABLES.values())} and AWS credentials",
        )


def from_environment(environment: Mapping[str, str]) -> World:
    """Raises CommandFailed with all variables that are missing."""
    missing = [_VARIABLES[name] for name in ("bucket", "database") if not environment.get(_VARIABLES[name])]
    if missing:
        raise CommandFailed(WRONG_INPUT, "NO-WORLD", f"{' and '.join(missing)} not set", "Set both, or neither to use the demo")
    given = {name: environment[variable] for name, variable in _VARIABLES.items() if environment.get(variable)}
    return World(**given)  # type: ignore[arg-type]


@contextmanager
def _embedded() -> Iterator[World]:
    _DEMO_STATE.mkdir(parents=True, exist_ok=True)
    before = dict(os.environ)
    try:
        with EmbeddedAws(state_dir=_DEMO_STATE) as aws:
            _replace_environment(aws.environment(before))
            yield attrs.evolve(DEMO, embedded=aws)
    except EmbeddedAwsFailed as error:
        raise CommandFailed(NOT_SET_UP, "EMBEDDED-AWS", str(error), "Run `make setup`, then the command again") from None
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


def relative(path: Path) -> str:
    """As a user in this folder would write it."""
    try:
        return str(path.resolve().relative_to(Path.cwd()))
    except ValueError:
        return str(path)
