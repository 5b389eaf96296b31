"""The model of a rehearsal's checks, and the access to the deployment that they share."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import attrs

from lakeferry.deployment.cdk import Cdk
from lakeferry.deployment.context import DeploymentContext
from lambdas.shared.clock import Deadline, SystemClock
from rehearsal.environments import SimulatedEnvironment

_PATIENCE_SECONDS: Final = 120.0
_POLL_SECONDS: Final = 0.2


class CheckFailed(Exception):
    """Says what was observed instead of what a check claims."""


def require(condition: object, message: str) -> None:
    """Raise CheckFailed with the message unless the condition holds."""
    if not condition:
        raise CheckFailed(message)


@attrs.frozen
class Check:
    """A check that passed: what it claims, what was seen, and the same as numbers for programs."""

    claim: str
    seen: str
    numbers: dict[str, Any] = attrs.Factory(dict)


@attrs.frozen
class Phase:
    """A part of a rehearsal with the checks that passed in it. `seconds` are wall-clock time."""

    name: str
    seconds: float
    checks: list[Check]
    failure: str = ""


@attrs.define
class Harness:
    """A deployment in the simulators. The rehearsal writes its files to `out`."""

    ctx: DeploymentContext
    simulators: SimulatedEnvironment
    cdk: Cdk
    out: Path

    def output(self, part: str, name: str) -> str:
        """Return an output of the stack `<prefix>-<part>`. Raises CheckFailed if it has no such output."""
        stack = f"{self.ctx.deployment.prefix}-{part}"
        (described,) = self.ctx.client("cloudformation").describe_stacks(StackName=stack)["Stacks"]
        for output in described.get("Outputs", []):
            if output["OutputKey"] == name:
                return str(output["OutputValue"])
        raise CheckFailed(f"stack {stack} has no output {name}")

    def secret(self, secret_id: str, stage: str = "AWSCURRENT") -> dict[str, str]:
        value = self.ctx.client("secretsmanager").get_secret_value(SecretId=secret_id, VersionStage=stage)
        fields: dict[str, str] = json.loads(value["SecretString"])
        return fields

    def records(self, topic: str) -> list[dict[str, Any]]:
        """Return the topic's records as their producers wrote them."""
        records: list[dict[str, Any]] = self.simulators.ask_confluent("POST", "/records", {"topic": topic})["records"]
        return records

    def objects(self, bucket: str, prefix: str) -> list[str]:
        pages = self.ctx.client("s3").get_paginator("list_objects_v2").paginate(Bucket=bucket, Prefix=prefix)
        return [each["Key"] for page in pages for each in page.get("Contents", [])]

    def content(self, bucket: str, key: str) -> bytes:
        body: bytes = self.ctx.client("s3").get_object(Bucket=bucket, Key=key)["Body"].read()
        return body

    def table(self, bucket: str, key: str) -> list[dict[str, str]]:
        """Return the rows of a CSV file."""
        return list(csv.DictReader(io.StringIO(self.content(bucket, key).decode("utf-8-sig"))))


def until(poll: Callable[[], Any], message: str, seconds: float = _PATIENCE_SECONDS) -> Any:
    """Return the first true answer of `poll`. Raises CheckFailed after `seconds`."""
    clock = SystemClock()
    deadline = Deadline(clock, clock.time() + seconds)
    while not (answer := poll()):
        if not deadline.left():
            raise CheckFailed(f"{message}, after {seconds:.0f} s")
        clock.sleep(_POLL_SECONDS)
    return answer
