"""Links in mails: to files and pages in the AWS console, and those that open for one recipient."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import datetime
from urllib.parse import quote

import attrs

_BUCKET = re.compile(r"[a-z0-9][a-z0-9-]{1,61}[a-z0-9]")
_REGION = re.compile(r"[a-z]{2}(?:-[a-z]+)+-\d")


@attrs.frozen
class Links:
    """Links to one bucket in one region, with exports below `prefix`. Raises ValueError for invalid names."""

    bucket: str
    region: str
    prefix: str

    def __attrs_post_init__(self) -> None:
        if not _BUCKET.fullmatch(self.bucket) or not _REGION.fullmatch(self.region):
            raise ValueError("no bucket or no region")

    def page(self, key: str) -> str:
        """Return the object's page in the S3 console."""
        return f"{self._console}/s3/object/{self.bucket}?region={self.region}&prefix={quote(key, safe='/')}"

    def command(self, key: str) -> str:
        """Return the command that downloads the object, quoted for every shell."""
        return f"aws s3 cp 's3://{self.bucket}/{quote(key, safe='/-_.=:')}' ."

    def run(self, job: str, job_run_id: str) -> str:
        """Return the run's page in the Glue console."""
        page = f"{quote(job, safe='')}/run/{quote(job_run_id, safe='')}"
        return f"{self._console}/gluestudio/home?region={self.region}#/job/{page}"

    def record(self, export: str, run_id: str) -> str:
        return f"s3://{self.bucket}/{quote(f'{self.prefix}/{export}/runs/{run_id}.json')}"

    @property
    def _console(self) -> str:
        return f"https://{self.region}.console.aws.amazon.com"


@attrs.frozen
class PersonalLinks:
    """Links that open files for one recipient. `sign` takes a window's label and a generation, and `until` is
    when a link that is signed now ends.
    """

    sign: Callable[[str, int], str]
    until: datetime
