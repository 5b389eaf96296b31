"""The bucket and database that exports and queries work with, from environment variables; and the environment
itself.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from datetime import datetime
from pathlib import Path
from typing import Any

import attrs
import boto3

from lakeferry.errors import CommandFailed
from lakeferry.local.bootstrap import ROOT

STATE = ROOT / ".lakeferry"
DEMO_STATE = STATE / "demo"
VARIABLES = {
    "bucket": "LAKEFERRY_BUCKET",
    "database": "LAKEFERRY_DATABASE",
    "prefix": "LAKEFERRY_PREFIX",
    "pseudonym_secret": "LAKEFERRY_PSEUDONYM_SECRET",
    "aggregates_database": "LAKEFERRY_AGGREGATES_DATABASE",
}


@attrs.frozen
class ExportTarget:
    """The names that an export needs. `embedded_url` is the address of the embedded AWS, "" for the real one.

    If the tables are known to have all events that Kafka received before an instant, that is
    `complete_until`.
    """

    bucket: str
    database: str
    prefix: str = "exports"
    pseudonym_secret: str = "lakeferry/pseudonyms"  # noqa: S105 - a name
    aggregates_database: str = "lakeferry"
    embedded_url: str = ""
    complete_until: datetime | None = None

    @property
    def source(self) -> str:
        """Describe for users which AWS this is."""
        if self.embedded_url:
            return "the last demo in this clone (embedded AWS)"
        region = boto3.session.Session().region_name or "no region"
        endpoint = os.environ.get("AWS_ENDPOINT_URL", "")
        at = f" at {endpoint}" if endpoint else ""
        return (
            f"database {self.database} and bucket {self.bucket} in {region}, of the AWS that the "
            f"environment names{at}"
        )

    @property
    def warehouse(self) -> str:
        """Return the location of tables that exports write."""
        return f"s3://{self.bucket}/warehouse"

    def arguments(self) -> list[str]:
        """Return the arguments of the job."""
        stated = ["--complete-until", self.complete_until.isoformat()] if self.complete_until else []
        return [
            *stated,
            *("--bucket", self.bucket),
            *("--database", self.database),
            *("--prefix", self.prefix),
            *("--warehouse", self.warehouse),
            *("--pseudonym-secret", self.pseudonym_secret),
            *("--aggregates-database", self.aggregates_database),
        ]


def from_environment(environment: Mapping[str, str]) -> ExportTarget:
    """Read the variables. Raises CommandFailed with all that are missing."""
    missing = [VARIABLES[name] for name in ("bucket", "database") if not environment.get(VARIABLES[name])]
    if missing:
        raise CommandFailed(
            "NO-BUCKET", f"{' and '.join(missing)} not set", "Set both, or neither to use the demo"
        )
    given: dict[str, Any] = {
        name: environment[variable] for name, variable in VARIABLES.items() if environment.get(variable)
    }
    return ExportTarget(**given)


def replace_environment(values: Mapping[str, str]) -> None:
    for name in os.environ.keys() - values.keys():
        del os.environ[name]
    os.environ.update(values)


@contextmanager
def set_environment(values: Mapping[str, str]) -> Iterator[None]:
    """Replace this process's environment with `values` for the block."""
    before = dict(os.environ)
    replace_environment(values)
    try:
        yield
    finally:
        replace_environment(before)


def require_writable(out: Path) -> None:
    """Raise CommandFailed if files can't be written to `out`. Leaves nothing behind."""
    missing = [folder for folder in (out, *out.parents) if not folder.exists()]
    try:
        out.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=out):
            pass
    except OSError as error:
        hint = "Name another folder with --out; nothing was done"
        raise CommandFailed("OUT-FOLDER", f"{out} can't be written: {error.strerror}", hint) from None
    finally:
        for folder in missing:
            with suppress(OSError):
                folder.rmdir()


def shorten_path(path: Path) -> str:
    """Return the path relative to the current folder, if it is below it."""
    try:
        return str(path.resolve().relative_to(Path.cwd()))
    except ValueError:
        return str(path)
