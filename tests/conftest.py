"""How Hypothesis searches: the same examples each time, so that a failure is one of the code and not of the day.

`pytest --hypothesis-profile=search` looks for others. And the lake of the tests that run the real job: one embedded AWS
and one Spark session for all of them.
"""

from __future__ import annotations

import signal

import boto3
import pytest
from hypothesis import HealthCheck, settings
from lake import Lake, new_lake
from xdist.scheduler import LoadScopeScheduling

from glue_jobs import session
from lakeferry import local_spark
from simulators.aws.server import EmbeddedAws

# Neither a slow machine nor a busy one makes a test fail.
_PATIENT = {"deadline": None, "suppress_health_check": [HealthCheck.too_slow]}
settings.register_profile("steady", derandomize=True, **_PATIENT)
settings.register_profile("search", max_examples=2_000, print_blob=True, **_PATIENT)
settings.load_profile("steady")


#: Files whose tests use one Spark session.
_SPARK = ("tests/spark/", "tests/faults/", "tests/cli/test_export_commands.py", "tests/contract/test_tableflow_glue.py")


#: What takes minutes comes first, so that no process waits for it at the end.
_LONG = ("tests/rehearsal/", "tests/cli/test_six_commands.py")


class ByRoom(LoadScopeScheduling):
    """For two processes (`-n 2`): what shares a session of Spark runs in one of them, everything else by file in either.

    A campaign of faults is long, and shares nothing with that of another kind.
    """

    def _split_scope(self, nodeid):
        file, _, test = nodeid.partition("::")
        if file == "tests/vendors/test_every_fault.py":
            return f"{file}[{test.partition('[')[2]}"
        return "spark" if file.startswith(_SPARK) else file


def pytest_configure():
    """A shell starts what runs in the background with interrupts ignored, and children inherit that: Ctrl-C would do nothing."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_collection_modifyitems(items):
    items.sort(key=lambda item: not item.nodeid.startswith(_LONG))


def pytest_xdist_make_scheduler(config, log):
    return ByRoom(config, log)


@pytest.fixture(scope="session")
def lake_aws():
    """From here to the end of the run, the environment leads to this embedded AWS."""
    with EmbeddedAws() as aws, pytest.MonkeyPatch.context() as patch:
        for name, value in aws.environment().items():
            patch.setenv(name, value)
        yield aws


@pytest.fixture(scope="session")
def spark(lake_aws):
    """The session of the job, as a laptop runs it."""
    region = lake_aws.region
    boto3.client("s3").create_bucket(Bucket="warehouse", CreateBucketConfiguration={"LocationConstraint": region})
    java_home = local_spark.prepare()
    yield session.start("s3://warehouse/warehouse")
    local_spark.end(java_home)


@pytest.fixture(scope="session")
def lakes(lake_aws, spark, tmp_path_factory):
    """Makes lakes, for fixtures that several tests share."""
    return lambda: new_lake(lake_aws, spark, tmp_path_factory.mktemp("contracts"))


@pytest.fixture
def lake(lakes) -> Lake:
    return lakes()
