"""The disk for Spark's temporary files is full."""

from __future__ import annotations

import random
import resource

import pytest

from tests.support import job_process
from tests.support.lake import AS_OF
from tests.support.things import LINES, TOPIC, events, files_of, uploads_of
from tests.support.waiting import PATIENCE

KILOBYTE = 1 << 10


def small_files():
    """Limit the size of files that this process can write, as a full disk does.

    Files that Java needs to start are smaller.
    """
    resource.setrlimit(resource.RLIMIT_FSIZE, (512 * KILOBYTE, 512 * KILOBYTE))


@pytest.mark.slow
def test_a_full_disk_is_reported_and_leaves_nothing(lake):
    drawn = random.Random(7)
    lake.commit(
        TOPIC, *(event | {"text": drawn.randbytes(4 * KILOBYTE).hex()} for event in events(160)), at=AS_OF
    )
    job = job_process.start(lake, lake.write_contract(LINES), limits=small_files)
    job.process.wait(PATIENCE)
    assert job.process.returncode == 1, job.output()
    (record,) = lake.keys("exports/things/runs/")
    assert b"EXP-DISK-FULL" in lake.read(record)
    assert (files_of(lake, "exports"), uploads_of(lake, "exports"), lake.published()) == (set(), set(), [])
    assert lake.export(LINES).state() == "published"
