"""Where proofs look: the deployment's ground, its outputs, the vendors' clocks and what was produced."""

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
from rehearsal.check import NotProven
from rehearsal.environments import SimulatedEnvironment

_PATIENCE_SECONDS: Final = 120.0
_LOOK_SECONDS: Final = 0.2


@attrs.define
class Harness:
    """`out` is where the files go that the rehearsal leaves."""

    ctx: DeploymentContext
    worlds: SimulatedEnvironment
    cdk: Cdk
    out: Path

    def output(self, part: str, name: str) -> str:
        """Of a stack, by the part of its name. Raises NotProven where there is none."""
        stack = f"{self.ctx.deployment.prefix}-{part}"
        (described,) = self.ctx.client("cloudformation").describe_stacks(StackName=stack)["Stacks"]
        for output in described.get("Outputs", []):
            if output["OutputKey"] == name:
                return str(output["OutputValue"])
        raise NotProven(f"stack {stack} has no output {name}")

    def secret(self, secret_id: str, stage: str = "AWSCURRENT") -> dict[str, str]:
        held = self.ctx.client("secretsmanager").get_secret_value(SecretId=secret_id, VersionStage=stage)
        fields: dict[str, str] = json.loads(held["SecretString"])
        return fields

    def records(self, topic: str) -> list[dict[str, Any]]:
        """What lies in the topic, as its producers wrote it."""
        found: list[dict[str, Any]] = self.worlds.ask_confluent("POST", "/records", {"topic": topic})["records"]
        return found

    def objects(self, bucket: str, prefix: str) -> list[str]:
        pages = self.ctx.client("s3").get_paginator("list_objects_v2").paginate(Bucket=bucket, Prefix=prefix)
        return [each["Key"] for page in pages for each in page.get("Contents", [])]

    def content(self, bucket: str, key: str) -> bytes:
        body: bytes = self.ctx.client("s3").get_object(Bucket=bucket, Key=key)["Body"].read()
        return body

    def table(self, bucket: str, key: str) -> list[dict[str, str]]:
        """The rows of a CSV file."""
        return list(csv.DictReader(io.StringIO(self.content(bucket, key).decode("utf-8-sig"))))


def until(look: Callable[[], Any], otherwise: str, seconds: float = _PATIENCE_SECONDS) -> Any:
    """The first answer of `look` that is true. Raises NotProven after `seconds`."""
    clock = SystemClock()
    deadline = Deadline(clock, clock.time() + seconds)
    while not (found := look()):
        if not deadline.left():
            raise NotProven(f"{otherwise}, after {seconds:.0f} s")
        clock.sleep(_LOOK_SECONDS)
    return found
