"""Check what the job relies on in its environment. The job's argument `--probe true` runs this instead of an
export.

It reads the table's metadata and counts its rows, lists one key of the bucket, and writes nothing. AWS does
not document all that the job relies on. What each line means:
docs/how-to/when-a-run-fails.md#check-the-glue-environment.
"""

from __future__ import annotations

import json
import os
import platform
import sys
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from importlib import metadata
from typing import Any, Final

import attrs
import boto3
import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from config.exports import contracts
from glue_jobs import session
from glue_jobs.arguments import Arguments
from glue_jobs.catalogs import open_catalog
from glue_jobs.delivery import multipart
from glue_jobs.platform import RELEASES, SPARK_SETTINGS, compute_code_version
from glue_jobs.store import connect, connect_s3

#: A text that the probe fails to read as a number. No log may contain it.
VALUE: Final = "-".join(("lakeferry", "probe", "value"))
_PACKAGES: Final = ("attrs", "boto3", "numpy", "pandas", "pyarrow")
_ENVIRONMENT: Final = ("TZ", "LC_ALL")
#: What a task's JVM shows, by name: class, static method and argument.
_JVM: Final = {
    "language": ("java.util.Locale", "getDefault"),
    "zone": ("java.time.ZoneId", "systemDefault"),
    "log_level": ("org.apache.logging.log4j.LogManager", "getLogger", "org.apache.spark.executor.Executor"),
}
_EXPECTED_JVM: Final = {"language": "en", "zone": "UTC", "log_level": "FATAL"}
#: Expressions that must fail, and the error of each.
_FAILING: Final = {
    "cast(value as bigint)": "CAST_INVALID_INPUT",
    "9223372036854775807 + length(value)": "ARITHMETIC_OVERFLOW",
    "1 / (length(value) - length(value))": "DIVIDE_BY_ZERO",
}


@attrs.frozen
class Finding:
    """An assumption of the job. `seen` is a JSON value without secrets and without data."""

    name: str
    holds: bool
    seen: Any

    def line(self) -> str:
        return f"probe {'ok  ' if self.holds else 'FAIL'} {self.name}: {json.dumps(self.seen)}"


def run(args: Arguments) -> int:
    """Print a line for each assumption, and all as JSON in the last line. Return 0 if all hold, or 1."""
    findings: list[Finding] = []
    for finding in look(args):
        print(finding.line(), flush=True)  # noqa: T201 - Glue's log is this stream
        findings.append(finding)
    passed = all(finding.holds for finding in findings)
    document = {"passed": passed, "findings": [attrs.asdict(finding) for finding in findings]}
    print("probe", json.dumps(document), flush=True)  # noqa: T201
    return 0 if passed else 1


def look(args: Arguments) -> Iterator[Finding]:
    """Yield the findings, each as soon as it is known."""
    yield Finding("Glue passes the id of the run", args.job_run_id is not None, args.job_run_id)
    yield _run_check("AWS clients have a region", lambda: _check_region(args))
    yield _run_check("the code has a version", lambda: (True, [compute_code_version(), multipart.__file__]))
    start = session.start_in_background(args.warehouse, args.region)
    yield _run_check("Spark starts", lambda: _release(start()))
    spark = session.activate(start())
    for name, check in _CHECKS.items():
        yield _run_check(name, partial(check, spark))
    yield from _check_executors(spark, args)
    yield _run_check("the table can be read", lambda: _check_table(spark, args))


def _run_check(name: str, check: Callable[[], tuple[bool, Any]]) -> Finding:
    """Return the finding of a check.

    Of an error, it has the class only, because the text may contain data.
    """
    try:
        holds, seen = check()
    except Exception as error:  # Spark, py4j, boto3 and pyarrow raise many classes
        return Finding(name, False, type(error).__name__)
    return Finding(name, holds, seen)


def _check_region(args: Arguments) -> tuple[bool, Any]:
    region = connect(args.region).s3.meta.region_name
    return bool(args.region), {"argument": args.region, "client": region, "environment": _find_own_region()}


def _find_own_region() -> str | None:
    region: str | None = boto3.session.Session().region_name
    return region


def _release(spark: SparkSession) -> tuple[bool, Any]:
    """Compare the versions of Spark and Python with those of a version of Glue."""
    seen = {"spark": spark.version, "python": platform.python_version()}
    releases = [release for release in RELEASES.values() if spark.version.startswith(release.spark)]
    return any(release.python == sys.version_info[:2] for release in releases), seen


def _check_session_settings(spark: SparkSession) -> tuple[bool, Any]:
    configured = dict(spark.sparkContext.getConf().getAll())
    # Spark prepends the module options that Java 17 needs.
    right = {
        name: value
        for name, value in SPARK_SETTINGS.items()
        if f" {configured.get(name)}".endswith(f" {value}")
    }
    seen = {name: configured.get(name) for name in SPARK_SETTINGS} | right
    return seen == SPARK_SETTINGS, seen


def _check_expression_settings(spark: SparkSession) -> tuple[bool, Any]:
    """Compare the settings with which Spark builds an expression in this thread."""
    jvm: Any = spark._jvm
    conf = jvm.org.apache.spark.sql.internal.SQLConf.get()
    seen = {name: conf.getConfString(name, "") for name in SPARK_SETTINGS if name.startswith("spark.sql.")}
    return seen == _read_sql_settings(), seen


def _read_sql_settings() -> dict[str, str]:
    return {name: value for name, value in SPARK_SETTINGS.items() if name.startswith("spark.sql.")}


def _check_driver_jvm(spark: SparkSession) -> tuple[bool, Any]:
    jvm: Any = spark._jvm
    logger = jvm.org.apache.logging.log4j.LogManager.getLogger("org.apache.spark.scheduler.TaskSetManager")
    seen = {
        "language": jvm.java.util.Locale.getDefault().toString(),
        "zone": jvm.java.time.ZoneId.systemDefault().toString(),
        "log_level": logger.getLevel().toString(),
    }
    return seen == _EXPECTED_JVM, seen


def _check_iceberg(spark: SparkSession) -> tuple[bool, Any]:
    """Look for the Java classes that the job calls: Iceberg's for planned files, and Spark's parser."""
    jvm: Any = spark._jvm
    parser = type(jvm.org.apache.iceberg.ScanTaskParser).__name__
    tree: Any = spark._jsparkSession.sessionState().sqlParser().parseExpression("a + 1")
    return parser == "JavaClass" and "Add" in tree.toJSON(), jvm.org.apache.iceberg.IcebergBuild.fullVersion()


def _check_failures(spark: SparkSession) -> tuple[bool, Any]:
    """Check that expressions fail as ANSI mode says, instead of giving null or a wrong number."""
    value = _build_value(spark)
    seen = {
        expression: _is_failing(value.select(F.expr(expression)), code)
        for expression, code in _FAILING.items()
    }
    return all(seen.values()), seen


def _is_failing(frame: DataFrame, code: str) -> bool:
    try:
        frame.collect()
    except Exception as error:  # PySpark has several classes for an error in a task
        return code in str(error)
    return False


def _build_value(spark: SparkSession) -> DataFrame:
    """Return a row that only a task can compute with."""
    return spark.createDataFrame([(VALUE,)], "value string").repartition(2)


def _check_zero(spark: SparkSession) -> tuple[bool, Any]:
    """Check the text of a decimal zero, which depends on ANSI mode."""
    zero = F.expr("cast(cast(length(value) * 0 as decimal(20,8)) as string)").alias("zero")
    (row,) = _build_value(spark).select(zero).collect()
    return row.zero == "0.00000000", row.zero


_CHECKS: Final[dict[str, Callable[[SparkSession], tuple[bool, Any]]]] = {
    "the session has the job's settings": _check_session_settings,
    "expressions have the job's settings": _check_expression_settings,
    "language, time zone and log level of the driver's Java": _check_driver_jvm,
    "Java classes that the job calls": _check_iceberg,
    "wrong values fail": _check_failures,
    "a decimal zero has its decimal places": _check_zero,
}


def _check_executors(spark: SparkSession, args: Arguments) -> Iterator[Finding]:
    yield _run_check(
        "language, time zone and log level of the executors' Java", lambda: _check_executor_jvms(spark)
    )
    try:
        workers = _read_workers(spark, args)
    except Exception as error:
        yield Finding("Python on executors imports the job", False, type(error).__name__)
        return
    yield Finding("Python on executors imports the job", True, [worker["file"] for worker in workers])
    own = {"python": platform.python_version(), "packages": _list_packages()}
    for name, expected in (
        ("python", own["python"]),
        ("packages", own["packages"]),
        ("environment", {"TZ": "UTC", "LC_ALL": "C.UTF-8"}),
        ("settings", _read_sql_settings()),
        ("bucket", "can be listed"),
    ):
        seen = [worker[name] for worker in workers]
        yield Finding(f"Python on executors: {name}", all(value == expected for value in seen), seen)


def _check_executor_jvms(spark: SparkSession) -> tuple[bool, Any]:
    tasks = 2 * spark.sparkContext.defaultParallelism
    columns = []
    for name, call in _JVM.items():
        arguments = ", ".join(map(repr, call))
        columns.append(F.expr(f"java_method({arguments})").alias(name))
    answers = spark.range(0, tasks, 1, tasks).select(*columns).distinct().collect()
    rows = [answer.asDict() for answer in answers]
    for row in rows:
        # Log4j shows a logger as `name:FATAL in context`.
        row["log_level"] = row["log_level"].rpartition(":")[2].partition(" ")[0]
    return all(row == _EXPECTED_JVM for row in rows), rows


def _read_workers(spark: SparkSession, args: Arguments) -> list[dict[str, Any]]:
    """Return what Python sees in tasks, each different answer once."""
    region = connect(args.region).s3.meta.region_name
    bucket = args.bucket
    names = tuple(_read_sql_settings())
    tasks = 2 * spark.sparkContext.defaultParallelism

    def look_from_task(batches: Iterable[pa.RecordBatch]) -> Iterable[pa.RecordBatch]:
        for _ in batches:
            yield pa.RecordBatch.from_pydict({"seen": [json.dumps(_inspect_worker(region, bucket, names))]})

    rows = spark.range(0, tasks, 1, tasks).mapInArrow(look_from_task, "seen string").distinct().collect()
    return [json.loads(row.seen) for row in rows]


def _inspect_worker(region: str, bucket: str, settings: tuple[str, ...]) -> dict[str, Any]:
    """Return what Python sees in a task, in which this runs."""
    task: Any = TaskContext.get()
    return {
        "file": multipart.__file__,
        "python": platform.python_version(),
        "packages": _list_packages(),
        "environment": {name: os.environ.get(name) for name in _ENVIRONMENT},
        "settings": {name: task.getLocalProperty(name) for name in settings},
        "region": _find_own_region(),
        "bucket": _list_bucket(region, bucket),
    }


def _list_packages() -> dict[str, str]:
    return {package: metadata.version(package) for package in _PACKAGES}


def _list_bucket(region: str, bucket: str) -> str:
    """List one key of the bucket with the credentials of this process."""
    try:
        connect_s3(region).list_objects_v2(Bucket=bucket, MaxKeys=1)
    except Exception as error:  # botocore has many classes
        return type(error).__name__
    return "can be listed"


def _check_table(spark: SparkSession, args: Arguments) -> tuple[bool, Any]:
    catalog = open_catalog(
        connect(args.region), lambda: spark, args.tableflow_secret, args.catalog_uri, args.proxy
    )
    name = args.table or catalog.name_table(contracts.load(args.export).source)
    pinned = catalog.pin(args.database, name)
    return True, {"snapshot": pinned.snapshot_id, "rows": catalog.read_events(pinned).count()}
