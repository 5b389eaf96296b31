"""The Glue Data Catalog and Iceberg tables, read with the credentials of whoever asked the query."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final

import attrs
import boto3
from botocore.config import Config
from botocore.exceptions import ClientError
from pyiceberg.table import StaticTable

from simulators.aws.athena.outcomes import (
    NOT_SIMULATED,
    PERMISSION_DENIED,
    SCHEMA_NOT_FOUND,
    TABLE_NOT_FOUND,
    Failed,
)

_CONFIG: Final = Config(request_checksum_calculation="when_required", retries={"total_max_attempts": 2})
_DENIED: Final = ("AccessDenied", "AccessDeniedException")
_OBJECT: Final = re.compile(r"key '(?P<key>[^']+)' in bucket '(?P<bucket>[^']+)'")


def client(service: Any) -> Any:
    """With the credentials that the environment holds now."""
    return boto3.client(
        service,
        config=_CONFIG,
        endpoint_url=os.environ["AWS_ENDPOINT_URL"],
        region_name=os.environ["AWS_REGION"],
        aws_access_key_id=os.environ["AWS_ACCESS_KEY_ID"],
        aws_secret_access_key=os.environ["AWS_SECRET_ACCESS_KEY"],
        aws_session_token=os.environ.get("AWS_SESSION_TOKEN"),
    )


def warm() -> None:
    """Has botocore read what it knows of the services, which takes longer than most queries."""
    for service in ("glue", "s3"):
        boto3.client(service, region_name="eu-west-1", aws_access_key_id="-", aws_secret_access_key="-")  # noqa: S106


@contextmanager
def reading(location: str) -> Iterator[None]:
    """Raises Failed where the object, or what it leads to, can't be read."""
    try:
        yield
    except OSError as error:
        told = str(error)
        if "ACCESS_DENIED" not in told and "403" not in told:
            raise Failed(f"ICEBERG_CANNOT_OPEN_SPLIT: Error opening Iceberg split {location}: {told}") from None
        found = _OBJECT.search(told)
        path = f"s3://{found['bucket']}/{found['key']}" if found else location
        raise Failed(f"{PERMISSION_DENIED}: Permission denied on S3 path: {path}") from None


@attrs.frozen
class Lake:
    """Databases and tables, as the caller may see them."""

    glue: Any = attrs.field(factory=lambda: client("glue"))

    def table(self, database: str, name: str, where: str = "") -> StaticTable:
        """`where` is the place in the statement. Raises Failed."""
        found = self._ask("get_table", DatabaseName=database, Name=name)
        if found is None:
            self.database(database, where)
            raise Failed(f"{TABLE_NOT_FOUND}: {where}Table 'awsdatacatalog.{database}.{name}' does not exist")
        parameters = found["Table"].get("Parameters") or {}
        location = parameters.get("metadata_location", "")
        if parameters.get("table_type", "").lower() != "iceberg" or not location:
            raise Failed(f"{NOT_SIMULATED}: {database}.{name} is not an Iceberg table")
        with reading(location):
            return StaticTable.from_metadata(location, self._properties)

    def database(self, name: str, where: str = "") -> None:
        """Raises Failed where it isn't there."""
        if self._ask("get_database", Name=name) is None:
            raise Failed(f"{SCHEMA_NOT_FOUND}: {where}Schema '{name}' does not exist")

    def names(self, database: str = "") -> list[str]:
        """Of a database's tables, or of the databases."""
        if database:
            self.database(database)
        verb, field, given = (
            ("tables", "TableList", {"DatabaseName": database}) if database else ("databases", "DatabaseList", {})
        )
        pages = self.glue.get_paginator(f"get_{verb}").paginate(**given)
        with _allowed():
            return sorted(str(entry["Name"]) for page in pages for entry in page[field])

    def _ask(self, operation: str, **given: str) -> dict[str, Any] | None:
        """None where Glue doesn't have it."""
        with _allowed():
            call: Callable[..., dict[str, Any]] = getattr(self.glue, operation)
            try:
                return call(**given)
            except self.glue.exceptions.EntityNotFoundException:
                return None

    @property
    def _properties(self) -> dict[str, str]:
        """PyIceberg's own client of S3 doesn't follow AWS_ENDPOINT_URL."""
        return {
            "s3.endpoint": os.environ["AWS_ENDPOINT_URL"],
            "s3.region": os.environ["AWS_REGION"],
            "s3.access-key-id": os.environ["AWS_ACCESS_KEY_ID"],
            "s3.secret-access-key": os.environ["AWS_SECRET_ACCESS_KEY"],
            "s3.session-token": os.environ.get("AWS_SESSION_TOKEN", ""),
        }


@contextmanager
def _allowed() -> Iterator[None]:
    try:
        yield
    except ClientError as error:
        told = error.response["Error"]
        if told["Code"] not in _DENIED:
            raise Failed(f"HIVE_METASTORE_ERROR: {told['Code']}: {told['Message']}") from None
        raise Failed(f"Insufficient permissions to execute the query. {told['Message']}") from None
