"""The process that `lakeferry.local.judge` starts: it reads a request from each line, and writes what Spark
finds.

Nothing else may write to its standard output.
"""

from __future__ import annotations

import json
import os
import sys
from typing import Any, TextIO

from pyspark.sql import DataFrame, SparkSession

from config.exports.contract import Contract
from glue_jobs import session
from glue_jobs.analyse import analyse
from lakeferry.local import spark as local_spark
from lakeferry.local.judge import CONVERTER


def main() -> None:
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "w", encoding="utf-8")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    try:
        java_home = local_spark.prepare(master="local[1]", write_archive=False)
    except local_spark.NotSetUp as missing:
        sys.stdin.readline()
        _write(answers, {"not_set_up": str(missing)})
        return
    try:
        spark = session.activate(session.start(""))
        for line in sys.stdin:
            request = json.loads(line)
            contract = CONVERTER.structure(request["contract"], Contract)
            analysis, _ = analyse(contract, create_empty_table(spark, request["columns"]))
            _write(answers, {"analysis": analysis.document()})
    finally:
        local_spark.end(java_home)


def create_empty_table(spark: SparkSession, columns: dict[str, Any]) -> DataFrame:
    """Return a frame without rows. `columns` are as `config.exports.table_columns` describes them."""
    jvm: Any = spark._jvm
    schema = jvm.org.apache.spark.sql.types.DataType.fromJson(json.dumps(columns))
    return DataFrame(spark._jsparkSession.createDataFrame(jvm.java.util.ArrayList(), schema), spark)


def _write(answers: TextIO, answer: dict[str, Any]) -> None:
    answers.write(json.dumps(answer) + "\n")
    answers.flush()


if __name__ == "__main__":
    main()
