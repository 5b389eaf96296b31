"""Fixtures that break calls to the shared embedded AWS, and that search for secrets in what was written."""

from __future__ import annotations

import pytest

from simulators.core.faults import FaultClient
from tests.support.canary import Canary


@pytest.fixture
def faults(lake_aws):
    faults = FaultClient(lake_aws.url)
    faults.clear()
    yield faults
    faults.clear()


@pytest.fixture(scope="session", autouse=True)
def no_secret_is_written_down(lake_aws, tmp_path_factory):
    """Check at the end that nothing that these tests have written, locally or in S3, holds a key in any
    form.
    """
    yield
    canary = Canary()
    canary.look_below(tmp_path_factory.getbasetemp())
    canary.look_in_buckets()
    assert canary.pieces > 0
    assert not canary.found
