"""Check rotation: every secret rotates while readers go on logging in with its current value."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final

import attrs
import requests

from lakeferry.rehearsal.checks.tables import snowflake_reader
from lakeferry.rehearsal.harness import Check, Harness, NotApplicable, Result, require, wait_until
from lambdas.shared.errors import LakeferryError
from lambdas.snowflake import sql

_CLAIM: Final = "every secret rotates while a reader reads"
_ROTATION_SECONDS: Final = 120.0


@attrs.define
class Reading:
    """The logins of the readers, and the refusals."""

    logins: int = 0
    refusals: list[str] = attrs.Factory(list)


def secrets_rotate(harness: Harness) -> list[Result]:
    secrets = harness.ctx.client("secretsmanager")
    rotating = _list_rotating(harness)
    if not rotating:
        return [NotApplicable(_CLAIM, "the deployment has no key that rotates")]
    before = {secret["ARN"]: _read_version(harness, secret["ARN"]) for secret in rotating}
    with _run_readers(harness) as reading:
        for arn in before:
            secrets.rotate_secret(SecretId=arn, RotateImmediately=True)
        wait_until(
            lambda: all(_read_version(harness, arn) != version for arn, version in before.items()),
            "not all rotated",
            _ROTATION_SECONDS,
        )
    require(reading.logins or not _list_readers(harness), "no reader logged in during the rotation")
    require(not reading.refusals, f"{len(reading.refusals)} logins were refused: {reading.refusals[:1]}")
    result = f"{len(before)} secrets; {reading.logins} logins during the rotation, none refused"
    return [
        Check(
            _CLAIM,
            result,
            {"secrets": len(before), "logins": reading.logins},
        )
    ]


def _list_rotating(harness: Harness) -> list[dict[str, Any]]:
    """Return the deployment's secrets that rotate."""
    pages = harness.ctx.client("secretsmanager").get_paginator("list_secrets").paginate()
    everything = [secret for page in pages for secret in page["SecretList"]]
    prefix = f"{harness.deployment.prefix}/"
    return [
        secret for secret in everything if secret["Name"].startswith(prefix) and secret.get("RotationEnabled")
    ]


def _read_version(harness: Harness, arn: str) -> str:
    versions: dict[str, list[str]] = harness.ctx.client("secretsmanager").describe_secret(SecretId=arn)[
        "VersionIdsToStages"
    ]
    return next(version for version, stages in versions.items() if "AWSCURRENT" in stages)


@contextmanager
def _run_readers(harness: Harness) -> Iterator[Reading]:
    """Run one reader in Snowflake and one at Schema Registry, if the deployment has their keys; each reads
    its secret again for every login.
    """
    reading = Reading()
    stop = threading.Event()
    readers = [
        threading.Thread(target=_read, args=(log_in, reading, stop)) for log_in in _list_readers(harness)
    ]
    for reader in readers:
        reader.start()
    try:
        yield reading
    finally:
        stop.set()
        for reader in readers:
            reader.join()


def _list_readers(harness: Harness) -> list[Callable[[], str]]:
    readers = []
    deployment = harness.deployment
    if deployment.uses_snowflake:
        readers.append(_open_snowflake_reader(harness))
    name = f"{deployment.prefix}/confluent/schema_registry"
    if any(secret["Name"] == name for secret in _list_rotating(harness)):
        readers.append(_open_registry_reader(harness))
    return readers


def _read(log_in: Callable[[], str], reading: Reading, stop: threading.Event) -> None:
    while not stop.is_set():
        if refused := log_in():
            reading.refusals.append(refused)
        reading.logins += 1


def _open_snowflake_reader(harness: Harness) -> Callable[[], str]:
    query = sql.statement("SELECT CURRENT_USER()")

    def log_in() -> str:
        try:
            snowflake_reader(harness).run(query)
        except LakeferryError as error:
            return str(error)
        return ""

    return log_in


def _open_registry_reader(harness: Harness) -> Callable[[], str]:
    url = harness.output("confluent", "SchemaRegistryUrl")
    arn = harness.output("confluent", "SchemaRegistryKeySecretArn")

    def log_in() -> str:
        key = harness.secret(arn)
        answer = requests.get(f"{url}/subjects", auth=(key["apiKey"], key["apiSecret"]), timeout=30)
        return "" if answer.ok else f"Schema Registry: HTTP {answer.status_code}"

    return log_in
