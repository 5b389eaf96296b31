"""Executors in processes of their own, as Glue's are: their code, their logs, and the loss of all of them."""

from __future__ import annotations

import importlib.util
import json
import os
import sys
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import suppress
from pathlib import Path

import psutil
import pytest

from glue_jobs.platform import SPARK_SETTINGS
from simulators.core.faults import FaultClient
from stacks.assets import build_glue_zip
from tests.support.lake import AS_OF, MONDAY, column, contract, topic_of

pytestmark = [pytest.mark.cluster(only=True), pytest.mark.slow]
TEXTS = topic_of(("text", "string"))
CAST = contract(column("id"), column("number", "integer", expression="cast(text as bigint)"))
SECRET = "ada.lovelace@example.org"


@pytest.mark.cluster
def test_the_session_has_the_settings_of_the_glue_job(spark):
    settings = dict(spark.sparkContext.getConf().getAll())
    # Spark prepends the module options that Java 17 needs.
    assert [
        name for name, value in SPARK_SETTINGS.items() if not f" {settings[name]}".endswith(f" {value}")
    ] == []
    util = spark._jvm.java.util
    assert (util.Locale.getDefault().toString(), util.TimeZone.getDefault().getID()) == ("en", "UTC")


def on_executors(spark, look):
    """Return what `look` returns on both executors. Spark sends it whole, because it is a nested function."""
    return spark.sparkContext.parallelize(range(4), 4).map(lambda _: look()).collect()


def logs():
    """Return what executors wrote to their standard output and error."""
    files = (
        file
        for name in ("stdout", "stderr")
        for file in Path(os.environ["SPARK_HOME"], "work").glob(f"*/*/{name}")
    )
    return "".join(file.read_text(errors="replace") for file in files)


def test_the_zip_that_ships_is_the_only_code_of_ours_there(spark):
    def look():
        import glue_jobs.export

        absent = [
            name
            for name in ("lakeferry", "simulators", "stacks", "tests")
            if importlib.util.find_spec(name) is None
        ]
        return glue_jobs.export.__file__, absent, "site" in sys.modules

    for file, absent, site in on_executors(spark, look):
        assert file.endswith(f"{build_glue_zip().name}/glue_jobs/export.py")
        assert (absent, site) == (["lakeferry", "simulators", "stacks", "tests"], False)


def test_executors_run_in_utc_and_in_no_language_of_the_machine(spark):
    def look():
        return os.environ["TZ"], os.environ["LC_ALL"]

    assert set(on_executors(spark, look)) == {("UTC", "C.UTF-8")}
    asked = spark.range(0, 4, 1, 4).selectExpr(
        "java_method('java.util.Locale', 'getDefault') AS language",
        "java_method('java.lang.System', 'getProperty', 'user.country') AS country",
        "java_method('java.time.ZoneId', 'systemDefault') AS zone",
    )
    assert {tuple(row) for row in asked.collect()} == {("en", "null", "UTC")}


def level(spark, name):
    """Set the log level of the logger for failed tasks on the executors."""
    set_level = (
        "java_method('org.apache.logging.log4j.core.config.Configurator', 'setLevel', 'org.apache.spark', "
        "'{}')"
    )
    spark.range(0, 64, 1, 64).selectExpr(
        set_level.format(name)
    ).collect()  # so many tasks that each executor runs some


def test_no_executor_logs_the_value_that_an_expression_failed_on(lake):
    lake.commit(TEXTS, {"id": "1", "at": MONDAY, "text": SECRET})
    # Spark 4's executors log, if they may, that a task failed, but not why.
    failure = SECRET if lake.spark.version.startswith("3.") else "Aborting commit for partition"
    assert "Spark Executor Command" in logs()
    assert lake.export(CAST).window()["code"] == "EXP-CAST"
    assert SECRET not in logs()
    before = logs().count(failure)
    # The control: at another level, the same failure is logged.
    level(lake.spark, "ERROR")
    try:
        assert lake.export(CAST).window()["code"] == "EXP-CAST"
    finally:
        level(lake.spark, "FATAL")
    assert logs().count(failure) > before


def executors():
    """Return the running Java processes of a local cluster that this process has started."""
    backend = "org.apache.spark.executor.CoarseGrainedExecutorBackend"
    running = []
    for child in psutil.Process().children(recursive=True):
        # A process may end after it is listed. psutil's error for a zombie is a subclass of NoSuchProcess.
        with suppress(psutil.NoSuchProcess):
            if backend in child.cmdline():
                running.append(child)
    return running


def test_counts_are_right_after_all_executors_were_lost(lake, lake_aws):
    # Some texts are so long that an executor uploads a part, and waits for the response.
    events = [
        {"id": f"{n:04}", "at": MONDAY, "text": f"{n:01000000}" if n < 14 else f"text {n}"}
        for n in range(300)
    ]
    strange = [{"id": "x", "at": None, "text": ""}, {"id": " ", "at": MONDAY, "text": ""}]
    for part in range(3):
        lake.commit(TEXTS, *events[part::3], *strange, at=AS_OF)
    texts = contract(column("id"), column("text"))
    undisturbed = lake.export(texts, "--prefix", "undisturbed")
    faults = FaultClient(lake_aws.url)
    faults.rule(
        {"fault": "hang", "method": "PUT", "path": "/lake-*/lost/*/data/*.csv", "query": {"partNumber": "2"}}
    )
    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(lake.export, texts, "--prefix", "lost")
        try:
            while not faults.state()["held"]:
                assert not wait([running], 0.05).done, running.result()
            lost = executors()
            assert len(lost) == 2
            for item in lost:
                item.kill()
        finally:
            faults.clear()
        run = running.result(timeout=300)
    assert run.record.windows[0]["state"] == "published", run.record.windows
    before, after = (json_of(lake, prefix) for prefix in ("undisturbed", "lost"))
    assert undisturbed.record.windows[0]["state"] == "published"
    assert after["rows"] == before["rows"]
    assert [file["sha256"] for file in after["files"] if file["role"] == "data"] == [
        file["sha256"] for file in before["files"] if file["role"] == "data"
    ]
    assert {executor.pid for executor in executors()}.isdisjoint(each.pid for each in lost)


def json_of(lake, prefix):
    (key,) = lake.keys(f"{prefix}/things/manifests/")
    return json.loads(lake.read(key))
