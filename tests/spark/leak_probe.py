"""Runs an export in a process of its own, with Spark's UI and event log on, and saves everything that Spark
shows of it.

`python leak_probe.py FOLDER MARK ARGUMENTS…`: FOLDER receives the event log, each page of the UI and its REST
interface, and the plans of the rows with their generated code. MARK (hex) is a literal, as text and as bytes,
in a query of its own: if literals are shown anywhere, it is found.
"""

from __future__ import annotations

import json
import os
import re
import sys
import urllib.request
from pathlib import Path

import attrs
from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812 - how PySpark is read

from config.exports import contracts
from config.exports.windows import find_window
from glue_jobs import arguments, export, runs, session
from glue_jobs.arguments import Arguments
from glue_jobs.catalogs import open_catalog
from glue_jobs.pseudonyms import fetch_key
from glue_jobs.rows import ExportQuery
from glue_jobs.store import connect
from lakeferry.local import spark as local_spark

PAGES = ["jobs", "stages", "storage", "environment", "executors", "SQL"]
REST = [
    "jobs",
    "stages?details=true",
    "executors",
    "environment",
    "storage/rdd",
    "sql?details=true&planDescription=true&length=1000",
]


@attrs.frozen
class Shown:
    folder: Path

    def keep(self, name: str, text: str) -> None:
        (self.folder / f"{re.sub('[^A-Za-z0-9]+', '_', name)}.txt").write_text(text, encoding="utf-8")


def main() -> None:
    folder, mark, *words = sys.argv[1:]
    shown = Shown(Path(folder))
    java_home = local_spark.prepare()
    seen = {
        "spark.ui.enabled": "true",
        "spark.ui.port": "0",
        "spark.eventLog.enabled": "true",
        "spark.eventLog.compress": "false",
        "spark.eventLog.rolling.enabled": "false",
    }
    seen |= {"spark.eventLog.dir": shown.folder.as_uri(), "spark.sql.maxPlanStringLength": "10000000"}
    options = " ".join(f"--conf {name}={value}" for name, value in seen.items())
    os.environ["PYSPARK_SUBMIT_ARGS"] = os.environ["PYSPARK_SUBMIT_ARGS"].replace(
        "pyspark-shell", f"{options} pyspark-shell"
    )
    spark = session.start("s3://warehouse/warehouse")
    args = arguments.parse(words, now=runs.utc_now())
    record = export.run(args, spark=spark)
    plant(spark, bytes.fromhex(mark))
    explain(spark, args, shown)
    browse(spark, shown)
    local_spark.end(java_home)
    sys.stdout.write(json.dumps({"windows": record.windows}))


def plant(spark: SparkSession, mark: bytes) -> None:
    number = F.col("id").cast("string")
    spark.range(3).select(
        F.concat(F.lit(mark.hex()), number), F.concat(F.lit(bytearray(mark)), number.cast("binary"))
    ).collect()


def explain(spark: SparkSession, args: Arguments, shown: Shown) -> None:
    """Save all plans of the rows and their generated code."""
    contract = contracts.load(args.export)
    services = connect()
    catalog = open_catalog(services, lambda: spark, args.tableflow_secret, args.catalog_uri, args.proxy)
    table = catalog.pin(args.database, catalog.name_table(contract.source))
    key = fetch_key(services, args.pseudonym_secret).value if contract.hashed else b""
    window = find_window(contract.window.first, contract.window)
    utils = spark._jvm.PythonSQLUtils
    rows = ExportQuery(spark, contract, table, [window], key, catalog).window(window).rows()
    for mode in ("extended", "codegen"):
        shown.keep(f"plan {mode}", utils.explainString(rows.frame._jdf.queryExecution(), mode))


def browse(spark: SparkSession, shown: Shown) -> None:
    url = spark.sparkContext.uiWebUrl
    application = spark.sparkContext.applicationId
    wanted = [f"{url}/{page}/" for page in PAGES] + [
        f"{url}/api/v1/applications/{application}/{page}" for page in REST
    ]
    while wanted:
        page = wanted.pop(0)
        with urllib.request.urlopen(page, timeout=30) as answer:
            text = answer.read().decode("utf-8", errors="replace")
        shown.keep(page.removeprefix(str(url)), text)
        wanted += sorted(
            {
                f"{url}{path}"
                for path in re.findall(r'href="(?:http://[^/"]+)?(/SQL/execution/\?id=\d+)"', text)
            }
        )


if __name__ == "__main__":
    main()
