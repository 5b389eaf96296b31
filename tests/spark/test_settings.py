"""The job refuses to run with other settings of Spark SQL than its own, in the thread that builds its
expressions.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest

from glue_jobs import session
from glue_jobs.errors import Inconsistent
from glue_jobs.platform import SPARK_SETTINGS
from tests.support.lake import MONDAY, column, contract, topic_of

THINGS = topic_of(("n", "long"))
#: Settings that decide results and that a session can change while it runs, with other values.
OTHERS = {
    "spark.sql.adaptive.enabled": "true",
    "spark.sql.ansi.enabled": "false",
    "spark.sql.caseSensitive": "false",
    "spark.sql.decimalOperations.allowPrecisionLoss": "true",
    "spark.sql.session.timeZone": "Asia/Tokyo",
    "spark.sql.storeAssignmentPolicy": "LEGACY",
}


@pytest.mark.sampled(1)
@pytest.mark.parametrize("name", OTHERS)
def test_another_setting_stops_the_run_before_it_publishes(lake, spark, name):
    lake.commit(THINGS, {"id": "a", "at": MONDAY, "n": 1})
    spark.conf.set(name, OTHERS[name])
    try:
        with pytest.raises(Inconsistent, match=name) as refused:
            lake.export(contract(column("id")))
    finally:
        spark.conf.set(name, SPARK_SETTINGS[name])
    assert refused.value.code == "EXP-SETTINGS"
    assert lake.published() == []
    assert lake.export(contract(column("id"))).state() == "published"


def test_a_thread_has_the_settings_of_the_session_after_it_activates_it(spark):
    """Spark's active session belongs to a thread. Without one, expressions get Spark's defaults."""
    sql_conf = spark._jvm.org.apache.spark.sql.internal.SQLConf

    def see(activate: bool) -> bool:
        if activate:
            session.activate(spark)
        return sql_conf.get().ansiEnabled()

    with ThreadPoolExecutor(1) as plain, ThreadPoolExecutor(1) as active:
        default = not spark.version.startswith("3.")  # Spark 4 has ANSI mode by default
        assert plain.submit(see, activate=False).result() is default
        assert active.submit(see, activate=True).result() is True
