"""The hops in AWS: what Tableflow committed last, and what of it the Glue catalog shows."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Final, Protocol
from urllib.parse import urlsplit

import attrs
from botocore.exceptions import ClientError

from lambdas.monitoring import errors as monitoring_errors
from lambdas.monitoring.remembered import HOUR
from lambdas.shared.aws import error_code, told
from lambdas.shared.errors import LakeferryError
from lambdas.shared.s3 import S3, Objects

_METADATA: Final = ".metadata.json"
_COUNTED: Final = re.compile(r"\d{5,}-")


class Glue(Protocol):
    def get_table(self, **asked: Any) -> Any: ...


@attrs.frozen
class Lake:
    """One Glue database. Ages are in hours, of the snapshot that is current at the hop."""

    glue: Glue
    s3: S3
    database: str
    now: Callable[[], float]

    def glue_age(self, table: str) -> float:
        return self._age(*self._shown(table))

    def iceberg_age(self, table: str) -> float:
        """Of the newest metadata that lies there, whether or not Glue knows it. A commit that failed may leave some too; the
        next one that doesn't puts that right."""
        bucket, key = self._shown(table)
        return self._age(bucket, self._newest(bucket, key))

    def _shown(self, table: str) -> tuple[str, str]:
        """Bucket and key of the metadata that Glue names."""
        with told(f"asking Glue for {self.database}.{table}"):
            try:
                found = self.glue.get_table(DatabaseName=self.database, Name=table)["Table"]
            except ClientError as error:
                if error_code(error) != "EntityNotFoundException":
                    raise
                found = {}
        parts = urlsplit((found.get("Parameters") or {}).get("metadata_location", ""))
        if not parts.netloc:
            raise LakeferryError(monitoring_errors.NO_TABLE, f"{self.database}.{table}")
        return parts.netloc, parts.path.lstrip("/")

    def _newest(self, bucket: str, key: str) -> str:
        """Names of metadata count up; where they don't, the time of writing tells."""
        folder, name = key.rsplit("/", 1)
        counted = bool(_COUNTED.match(name))
        listed = Objects(self.s3, bucket).list(f"{folder}/", after=key if counted else "")
        found = [each for each in listed if each.key.endswith(_METADATA)]
        if not found:
            return key
        return found[-1].key if counted else max(found, key=lambda each: each.modified).key

    def _age(self, bucket: str, key: str) -> float:
        found = Objects(self.s3, bucket).read(key)
        metadata = found.document if found else {}
        current = metadata.get("current-snapshot-id")
        for snapshot in metadata.get("snapshots") or []:
            if snapshot["snapshot-id"] == current:
                return (self.now() - float(snapshot["timestamp-ms"]) / 1000) / HOUR
        raise LakeferryError(monitoring_errors.NO_COMMIT, f"s3://{bucket}/{key}")
