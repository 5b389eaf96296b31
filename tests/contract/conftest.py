"""One embedded AWS of each sort for the whole run. Each test makes buckets, databases and secrets of its own."""

from __future__ import annotations

import pytest
from aws_clients import Clients

from simulators.aws.server import EmbeddedAws
from simulators.confluent_cloud.flink_remote import FLINK_PYTHON, FlinkWorker


@pytest.fixture(scope="session")
def aws():
    """Amended, IAM enforced; its `Clients` are the account's root, whom no policy holds back."""
    with EmbeddedAws(iam=True) as server:
        yield Clients(server)


@pytest.fixture(scope="session")
def stock_aws():
    """As MiniStack ships, IAM enforced."""
    with EmbeddedAws(iam=True, stock=True) as server:
        yield Clients(server)


@pytest.fixture(scope="session")
def flink():
    """One warm Flink for the whole run: its start takes longer than any test."""
    if not FLINK_PYTHON.exists():
        pytest.skip("Flink is not installed (.venv-flink is missing). Run `.venv/bin/python -m lakeferry.local.bootstrap flink`")
    worker = FlinkWorker()
    worker.warm()
    yield worker
    worker.close()
