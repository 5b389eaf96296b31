"""The lake of the tests that run the real job. All tests share one embedded AWS and one Spark session.

Tests marked `cluster` run a second time at night on executors that are processes of their own, as Glue's are,
and that import the job from the zip that ships; those marked `only` run nowhere else. The whole Spark suite
runs there with

    pytest -m 'not deep' tests/spark tests/faults --master 'local-cluster[2,1,1024]'
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
from xdist.scheduler import LoadScopeScheduling

from config.exports.table_columns import list_spark_columns
from glue_jobs import session
from glue_jobs.analyse import analyse
from lakeferry.local import spark as local_spark
from lakeferry.local.judge_worker import create_empty_table
from stacks.assets import build_glue_zip
from tests.support.lake import Lake, new_lake

pytest_plugins = ["tests.support.common_plugin"]

# boto3's sessions share their loader: parsing the descriptions of all services takes half a second, and every
# deployment of a test has a session of its own.
botocore.session.create_loader = functools.cache(botocore.session.create_loader)

#: Files whose tests use one Spark session.
_SPARK = (
    "tests/spark/",
    "tests/faults/",
    "tests/cli/test_export_commands.py",
    "tests/unit/test_check.py",
    "simulators/tests/tableflow/test_tableflow_glue.py",
)
#: Files whose parametrised tests take many minutes for each case.
_LONGEST = "tests/rehearsal/test_fault_runs.py"
_CAMPAIGNS = (_LONGEST, "tests/faults/test_kill_everywhere.py", "tests/vendors/test_every_fault.py")


class BySparkSession(LoadScopeScheduling):
    """Distributes tests to processes (`-n 2`): tests that share a Spark session to one of them, all others by
    file.

    Each case of a campaign in `_CAMPAIGNS` is a group of its own: it takes long and needs nothing of the
    others.
    """

    def _split_scope(self, nodeid):
        file, _, test = nodeid.partition("::")
        if file in _CAMPAIGNS:
            return f"{file}[{test.partition('[')[2]}"
        if file.startswith(_SPARK):
            return "cluster" if "cluster" in test.partition("[")[2] else "spark"
        return file


def pytest_configure():
    """Restore the defaults of signals. A shell starts background commands with interrupts ignored, `nohup`
    with SIGHUP ignored.

    Children would inherit that.
    """
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:
        signal.signal(signal.SIGHUP, signal.SIG_DFL)


#: Two executors with one core and 1 GB each.
CLUSTER = "local-cluster[2,1,1024]"


def pytest_addoption(parser):
    parser.addoption("--master", help=f"the Spark master of all tests that run the job, like {CLUSTER}")
    parser.addoption(
        "--sample-seed",
        type=int,
        default=17,
        help="draws the cases of tests marked `sampled`, and the lives of resources",
    )


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config, items):
    """Put the longest campaign first, and mark the cases of a sampled test that are not drawn as slow.

    pytest-xdist deals out groups in this order, and a process gets its next group before it has ended the
    last one. Each of the first groups goes to another process; later, one process would get several long ones
    and run them one after another.
    """
    items.sort(key=lambda item: not (item.nodeid.startswith(_LONGEST) and item.get_closest_marker("deep")))
    cases = defaultdict(list)
    for item in items:
        if item.get_closest_marker("sampled"):
            cases[item.path, item.originalname].append(item)
    for (_, name), all_of_them in cases.items():
        (count,) = all_of_them[0].get_closest_marker("sampled").args
        drawn = random.Random(f"{config.getoption('sample_seed')} {name}").sample(
            all_of_them, min(count, len(all_of_them))
        )
        for item in all_of_them:
            if item not in drawn:
                item.add_marker(pytest.mark.slow)


def pytest_terminal_summary(terminalreporter, config):
    terminalreporter.write_line(f"samples are drawn with --sample-seed {config.getoption('sample_seed')}")


def pytest_generate_tests(metafunc):
    if (marked := metafunc.definition.get_closest_marker("cluster")) and not metafunc.config.getoption(
        "master"
    ):
        if marked.kwargs.get("only"):
            masters = [pytest.param(CLUSTER, id="cluster")]
        else:  # a test without this parameter gets None too, so that both share a session
            masters = [
                pytest.param(None, id="local"),
                pytest.param(CLUSTER, id="cluster", marks=pytest.mark.deep),
            ]
        metafunc.parametrize("spark", masters, indirect=True, scope="session")


def pytest_xdist_make_scheduler(config, log):
    return BySparkSession(config, log)


@pytest.fixture(scope="session")
def warehouse(lake_aws):
    """Return the location of the tests' tables."""
    boto3.client("s3").create_bucket(
        Bucket="warehouse", CreateBucketConfiguration={"LocationConstraint": lake_aws.region}
    )
    return "s3://warehouse/warehouse"


@pytest.fixture(scope="session")
def spark(lake_aws, warehouse, request):
    """Return the job's Spark session. A different master ends the previous session."""
    master = getattr(request, "param", None) or request.config.getoption("master") or local_spark.LOCAL
    path = list(sys.path)
    java_home = local_spark.prepare(
        master=master, code=build_glue_zip if local_spark.is_cluster(master) else None
    )
    shipped = os.environ["SPARK_SUBMIT_OPTS"]
    # Each query of a test runs once or twice, so the second compiler, which optimises hot code, only costs
    # time: a fifth of it.
    os.environ["SPARK_SUBMIT_OPTS"] = f"{shipped} -XX:TieredStopAtLevel=1"
    started = session.start_in_background(
        warehouse
    )()  # as the job starts it; `export.run` activates it in its own thread
    os.environ["SPARK_SUBMIT_OPTS"] = shipped  # for jobs in processes of their own
    yield started
    local_spark.end(java_home)
    sys.path[:] = path  # the driver's session puts the zip there


@pytest.fixture(scope="session")
def judge(spark):
    """Return the judge of contracts that the commands have, in this process and without kept answers."""
    session.activate(spark)
    return lambda contract, schema: analyse(contract, create_empty_table(spark, list_spark_columns(schema)))[
        0
    ]


@pytest.fixture(scope="session")
def lakes(lake_aws, spark, tmp_path_factory):
    """Return a function that creates lakes, for fixtures that several tests share."""
    return lambda: new_lake(lake_aws, spark, tmp_path_factory.mktemp("contracts"))


@pytest.fixture
def lake(lakes) -> Lake:
    return lakes()
