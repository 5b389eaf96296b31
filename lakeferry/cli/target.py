"""Choose what `export run` and `query` work on: the bucket that environment variables name, or the last
demo.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from lakeferry.errors import CommandFailed

if TYPE_CHECKING:
    from lakeferry.local.target import ExportTarget


@contextmanager
def open_target() -> Iterator[ExportTarget]:
    """Open the bucket and catalog to work on.

    Raises CommandFailed if no variable names a bucket and no demo was run.
    """
    from lakeferry.local.target import DEMO_STATE, VARIABLES, from_environment

    if os.environ.get(VARIABLES["bucket"]) or os.environ.get(VARIABLES["database"]):
        yield from_environment(os.environ)
    elif DEMO_STATE.exists():
        from lakeferry.local.demo_aws import open_demo

        with open_demo() as target:
            yield target
    else:
        raise CommandFailed(
            "NO-BUCKET",
            "there is no data: no demo was run in this clone, and no variable names a bucket",
            f"Run `lakeferry demo`, or set {', '.join(VARIABLES.values())} and AWS credentials",
        )
