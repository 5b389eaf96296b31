"""How Hypothesis searches: the same examples each time, so that a failure is one of the code and not of the day.

`pytest --hypothesis-profile=search` looks for others. And the lake of the tests that run the real job: one embedded AWS and one
Spark session for all of them. Tests marked `cluster` run a second time at night, on executors that are processes of their own, as
Glue's are, and that import the job from the zip that ships; those marked `only` run there every day. The whole Spark suite runs
there with

    pytest tests/spark tests/faults --master 'local-cluster[2,1,1024]'
"""

from __future__ import annotations

import functools
import os
import random
import signal
import sys
from collections import defaultdict

import boto3
import botocore.session
import pytest
from aws_clients import Clients
from hypothesis import HealthCheck, settings
from lake import Lake, new_lake
from xdist.scheduler import LoadScopeScheduling

from glue_jobs import session
from lakeferry.local import spark as local_spark
from simulators.aws.server import EmbeddedAws
from stacks.assets import glue_zip

# Neither a slow machine nor a busy one makes a test fail.
_PATIENT = {"deadline": None, "suppress_health_check": [HealthCheck.too_slow]}
settings.register_profile("steady", derandomize=True, **_PATIENT)
settings.register_profile("search", max_examples=2_000, print_blob=True, **_PATIENT)
settings.load_profile("steady")

# boto3's sessions share what they have read: parsing the descriptions of all services takes half a second each time, and every
# deployment of a test has a session of its own.
botocore.session.create_loader = functools.cache(botocore.session.create_loader)

#: Files whose tests use one Spark session.
_SPARK = (
    "tests/spark/",
    "tests/faults/",
    "tests/cli/test_export_commands.py",
    "tests/simulators/tableflow/test_tableflow_glue.py",
)


class ByRoom(LoadScopeScheduling):
    """For two processes (`-n 2`): what shares a session of Spark runs in one of them, everything else by file in either.

    A campaign of faults is long, and shares nothing with that of another kind.
    """

    def _split_scope(self, nodeid):
        file, _, test = nodeid.partition("::")
        if file == "tests/vendors/test_every_fault.py":
            return f"{file}[{test.partition('[')[2]}"
        if file.startswith(_SPARK):
            return "cluster" if "cluster" in test.partition("[")[2] else "spark"
        return file


def pytest_configure():
    """A shell starts what runs in the background with interrupts ignored, and children inherit that: Ctrl-C would do nothing."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


#: Two executors with one core and 1 GB each.
CLUSTER = "local-cluster[2,1,1024]"


def pytest_addoption(parser):
    parser.addoption("--master", help=f"the Spark master of all tests that run the job, like {CLUSTER}")
    parser.addoption(
        "--sample-seed", type=int, default=17, help="draws the cases of tests marked `sampled`, and the lives of resources"
    )


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config, items):
    """Cases of a sampled test that are not drawn are slow."""
    cases = defaultdict(list)
    for item in items:
        if item.get_closest_marker("sampled"):
            cases[item.path, item.originalname].append(item)
    for (_, name), all_of_them in cases.items():
        (count,) = all_of_them[0].get_closest_marker("sampled").args
        drawn = random.Random(f"{config.getoption('sample_seed')} {name}").sample(all_of_them, min(count, len(all_of_them)))
        for item in all_of_them:
            if item not in drawn:
                item.add_marker(pytest.mark.slow)


def pytest_terminal_summary(terminalreporter, config):
    terminalreporter.write_line(f"samples are drawn with --sample-seed {config.getoption('sample_seed')}")


def pytest_generate_tests(metafunc):
    if (marked := metafunc.definition.get_closest_marker("cluster")) and not metafunc.config.getoption("master"):
        if marked.kwargs.get("only"):
            masters = [pytest.param(CLUSTER, id="cluster")]
        else:  # None is what a test without this parameter gets too, so that both share a session
            masters = [pytest.param(None, id="local"), pytest.param(CLUSTER, id="cluster", marks=pytest.mark.deep)]
        metafunc.parametrize("spark", masters, indirect=True, scope="session")


def pytest_xdist_make_scheduler(config, log):
    return ByRoom(config, log)


@pytest.fixture(scope="session")
def aws():
    """IAM enforced; its `Clients` are the account's root, whom no policy holds back."""
    with EmbeddedAws(iam=True) as server:
        yield Clients(server)


@pytest.fixture(scope="session")
def lake_aws():
    """From here to the end of the run, the environment leads to this embedded AWS."""
    with EmbeddedAws() as aws, pytest.MonkeyPatch.context() as patch:
        for name, value in aws.environment().items():
            patch.setenv(name, value)
        yield aws


@pytest.fixture(scope="session")
def warehouse(lake_aws):
    """Where tables of ours go."""
    boto3.client("s3").create_bucket(Bucket="warehouse", CreateBucketConfiguration={"LocationConstraint": lake_aws.region})
    return "s3://warehouse/warehouse"


@pytest.fixture(scope="session")
def spark(lake_aws, warehouse, request):
    """The session of the job. Another master than before ends the former session."""
    master = getattr(request, "param", None) or request.config.getoption("master") or local_spark.LOCAL
    path = list(sys.path)
    java_home = local_spark.prepare(master=master, code=glue_zip if local_spark.is_cluster(master) else None)
    # Each query of a test runs once or twice. The second compiler, which optimises what runs often, takes a fifth of the time.
    os.environ["SPARK_SUBMIT_OPTS"] += " -XX:TieredStopAtLevel=1"
    yield session.start(warehouse)
    local_spark.end(java_home)
    sys.path[:] = path  # the driver's session puts the zip there


@pytest.fixture(scope="session")
def lakes(lake_aws, spark, tmp_path_factory):
    """Makes lakes, for fixtures that several tests share."""
    return lambda: new_lake(lake_aws, spark, tmp_path_factory.mktemp("contracts"))


@pytest.fixture
def lake(lakes) -> Lake:
    return lakes()
