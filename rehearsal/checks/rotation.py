"""Every secret rotates while somebody who reads goes on logging in with what stands in it."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final

import attrs
import requests

from lambdas.shared.errors import LakeferryError
from lambdas.snowflake import sql
from rehearsal.check import Proof, require
from rehearsal.checks.readers import snowflake_reader
from rehearsal.harness import Harness, until

_ROTATION_SECONDS: Final = 120.0


@attrs.define
class Reading:
    """How often the readers logged in, and what refused them."""

    logins: int = 0
    refusals: list[str] = attrs.Factory(list)


def rotates(stage: Harness) -> list[Proof]:
    secrets = stage.ctx.client("secretsmanager")
    rotating = [each for each in _secrets(stage) if each.get("RotationEnabled")]
    require(rotating, "no secret has a rotation")
    before = {each["ARN"]: _version(stage, each["ARN"]) for each in rotating}
    with _read_meanwhile(stage) as reading:
        for arn in before:
            secrets.rotate_secret(SecretId=arn, RotateImmediately=True)
        until(
            lambda: all(_version(stage, arn) != version for arn, version in before.items()), "not all rotated", _ROTATION_SECONDS
        )
    require(reading.logins, "nobody read meanwhile")
    require(not reading.refusals, f"{len(reading.refusals)} logins were refused: {reading.refusals[:1]}")
    seen = f"{len(before)} secrets; {reading.logins} logins meanwhile, none refused"
    return [Proof("every secret rotates while a reader reads", seen, {"secrets": len(before), "logins": reading.logins})]


def _secrets(stage: Harness) -> list[dict[str, Any]]:
    pages = stage.ctx.client("secretsmanager").get_paginator("list_secrets").paginate()
    prefix = f"{stage.ctx.deployment.prefix}/"
    return [each for page in pages for each in page["SecretList"] if each["Name"].startswith(prefix)]


def _version(stage: Harness, arn: str) -> str:
    held: dict[str, list[str]] = stage.ctx.client("secretsmanager").describe_secret(SecretId=arn)["VersionIdsToStages"]
    return next(version for version, stages in held.items() if "AWSCURRENT" in stages)


@contextmanager
def _read_meanwhile(stage: Harness) -> Iterator[Reading]:
    """One reader in Snowflake and one at Schema Registry, each with a fresh look at its secret."""
    reading, over = Reading(), threading.Event()
    readers = [threading.Thread(target=_read, args=(ask, reading, over)) for ask in (_snowflake(stage), _registry(stage))]
    for reader in readers:
        reader.start()
    try:
        yield reading
    finally:
        over.set()
        for reader in readers:
            reader.join()


def _read(ask: Callable[[], str], reading: Reading, over: threading.Event) -> None:
    while not over.is_set():
        if refused := ask():
            reading.refusals.append(refused)
        reading.logins += 1


def _snowflake(stage: Harness) -> Callable[[], str]:
    asked = sql.statement("SELECT CURRENT_USER()")

    def ask() -> str:
        try:
            snowflake_reader(stage).run(asked)
        except LakeferryError as error:
            return str(error)
        return ""

    return ask


def _registry(stage: Harness) -> Callable[[], str]:
    url, arn = stage.output("confluent", "SchemaRegistryUrl"), stage.output("confluent", "SchemaRegistryKeySecretArn")

    def ask() -> str:
        held = stage.secret(arn)
        answer = requests.get(f"{url}/subjects", auth=(held["apiKey"], held["apiSecret"]), timeout=30)
        return "" if answer.ok else f"Schema Registry: HTTP {answer.status_code}"

    return ask
