"""One embedded AWS of each sort for the whole run.

Each test makes buckets, databases and secrets of its own.
"""

from pathlib import Path

import pytest

from simulators.aws.server import EmbeddedAws
from simulators.confluent.flink.engine import FLINK_PYTHON, FlinkWorker
from tests.support.aws_clients import Clients

HERE = Path(__file__).parent


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items):
    """What tests a simulator, and nothing of the product, has a marker, so that `make test` can leave it
    out.
    """
    for item in items:
        if HERE in item.path.parents:
            item.add_marker(pytest.mark.simulators)


@pytest.fixture(scope="session")
def stock_aws():
    """As MiniStack ships, IAM enforced."""
    with EmbeddedAws(iam=True, stock=True) as server:
        yield Clients(server)


@pytest.fixture(scope="session")
def flink():
    """One warm Flink for the whole run: its start takes longer than any test."""
    if not FLINK_PYTHON.exists():
        pytest.skip(
            "Flink is not installed (.venv-flink is missing). Run `.venv/bin/python -m "
            "lakeferry.local.bootstrap flink`"
        )
    worker = FlinkWorker()
    worker.warm()
    yield worker
    worker.close()
