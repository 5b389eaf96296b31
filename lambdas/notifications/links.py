"""Where a file is, for people who may read it. Every address asks for a sign-in, and none of them runs out."""

from __future__ import annotations

import re
from urllib.parse import quote

import attrs

_BUCKET = re.compile(r"[a-z0-9][a-z0-9-]{1,61}[a-z0-9]")
_REGION = re.compile(r"[a-z]{2}(?:-[a-z]+)+-\d")


@attrs.frozen
class Links:
    """Addresses in one bucket of one region, where exports lie below `prefix`. Raises ValueError for names that AWS doesn't
    give."""

    bucket: str
    region: str
    prefix: str

    def __attrs_post_init__(self) -> None:
        if not _BUCKET.fullmatch(self.bucket) or not _REGION.fullmatch(self.region):
            raise ValueError("no bucket or no region")

    def page(self, key: str) -> str:
        """The object's page in the S3 console."""
        return f"{self._console}/s3/object/{self.bucket}?region={self.region}&prefix={quote(key, safe='/')}"

    def command(self, key: str) -> str:
        """How to fetch it on a command line. No shell reads anything else into it."""
        return f"aws s3 cp 's3://{self.bucket}/{quote(key, safe='/-_.=:')}' ."

    def run(self, job: str, job_run_id: str) -> str:
        """The job's page in the Glue console, or that of one of its runs."""
        of_run = f"/run/{quote(job_run_id, safe='')}" if job_run_id else "/runs"
        return f"{self._console}/gluestudio/home?region={self.region}#/job/{quote(job, safe='')}{of_run}"

    def record(self, export: str, run_id: str) -> str:
        return f"s3://{self.bucket}/{quote(f'{self.prefix}/{export}/runs/{run_id}.json')}"

    @property
    def _console(self) -> str:
        return f"https://{self.region}.console.aws.amazon.com"
