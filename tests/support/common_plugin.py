"""What each run of tests has: settings of Hypothesis, and the embedded AWS.

Hypothesis tries the same examples each time, so that only a change of the code makes a test fail;
`pytest --hypothesis-profile=search` looks for others.

It is a plugin because conftest.py imports Spark and CDK. `make test-functions` has neither, on each
version of Python that it tries.
"""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, settings

from simulators.aws.server import EmbeddedAws
from tests.support.aws_clients import Clients

# A slow or busy machine makes no test fail.
_PATIENT = {"deadline": None, "suppress_health_check": [HealthCheck.too_slow]}
settings.register_profile("steady", derandomize=True, **_PATIENT)
settings.register_profile("search", max_examples=2_000, print_blob=True, **_PATIENT)
settings.load_profile("steady")


@pytest.fixture(scope="session")
def aws():
    """Start an embedded AWS that enforces IAM, and return the `Clients` of its root user."""
    with EmbeddedAws(iam=True) as server:
        yield Clients(server)


@pytest.fixture(scope="session")
def lake_aws():
    """Start an embedded AWS and set the environment to it until the end of the run."""
    with EmbeddedAws() as aws, pytest.MonkeyPatch.context() as patch:
        for name, value in aws.environment().items():
            patch.setenv(name, value)
        yield aws
