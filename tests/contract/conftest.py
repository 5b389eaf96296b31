"""One embedded AWS of each sort for the whole run. Each test makes buckets, databases and secrets of its own."""

from __future__ import annotations

import pytest
from aws_clients import Clients

from simulators.aws.server import EmbeddedAws


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
