"""What stacks, local runs and the job share: versions, jars, arguments and Spark settings.

It imports only the standard library, because `stacks` and `lakeferry.local.bootstrap` import it without Spark
or boto3.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from functools import cache
from importlib import resources
from importlib.resources.abc import Traversable
from typing import Final, NamedTuple

#: The version of this package.
VERSION: Final = "0.1.0"

JAVA_VERSION: Final = 17

#: File name extensions of code: modules, and the report's template and style sheet.
CODE: Final = (".py", ".j2", ".css")
#: Files and folders that only authors of deployment files, contracts and schemas need. They import parsers
#: that the job and the functions don't have.
NOT_SHIPPED: Final = (
    "config/deployments/",
    "config/exports/avro_document.py",
    "config/exports/avro_schema.py",
    "config/exports/check.py",
    "config/exports/personal.py",
    "config/exports/personal_words.py",
    "config/exports/table_columns.py",
    "config/exports/topic_schema.py",
    "config/toml_schema.py",
)

#: The Spark catalog under which the job sees the AWS Glue Data Catalog.
CATALOG: Final = "lake"
#: The beginning of the name of the Spark catalogs for Tableflow's catalog.
TABLEFLOW_CATALOG: Final = "tableflow"


class Jar(NamedTuple):
    """A jar of Maven Central.

    Glue provides it, and a local run downloads it. `sha512` is the file's hash in hex.
    """

    group: str
    artifact: str
    version: str
    sha512: str

    @property
    def file_name(self) -> str:
        return f"{self.artifact}-{self.version}.jar"


class Release(NamedTuple):
    """A version of AWS Glue and the versions that it provides (AWS Glue release notes)."""

    glue: str
    spark: str
    scala: str
    python: tuple[int, int]
    jars: tuple[Jar, ...]


#: The versions of Glue that run the job.
RELEASES: Final = {
    release.glue: release
    for release in (
        Release(
            glue="5.1",
            spark="3.5.6",
            scala="2.12",
            python=(3, 11),
            jars=(
                Jar(
                    "org.apache.iceberg",
                    "iceberg-spark-runtime-3.5_2.12",
                    "1.10.0",
                    "2ce6c02c8104a8ca2412a261abba7413964677db74ad96d25bd58e25abb7c27c"
                    "bf94c7dc4cfa33eb12d05a2df04cb0074344983b09abbc43e4a1b4e4abf2b5e1",
                ),
                Jar(
                    "org.apache.iceberg",
                    "iceberg-aws-bundle",
                    "1.10.0",
                    "150b885dd827713af0b105e655ec24a47f823ce7269d218522b7149fdb160603"
                    "9458470e5006da31c9fdc5bb839c59447279e7968e04bd6d7984c57d46980ccb",
                ),
            ),
        ),
        Release(
            glue="6.0",
            spark="4.1.1",
            scala="2.13",
            python=(3, 13),
            jars=(
                Jar(
                    "org.apache.iceberg",
                    "iceberg-spark-runtime-4.1_2.13",
                    "1.11.0",
                    "f4620bb2d20777146a769a8a939a5bed658e1d5708b6a5155e1f6e831c0bfd29"
                    "bd1f82618dc59bc0f30399ffcb03add3e66656286692dc6c2be94e4e1f4e7479",
                ),
                Jar(
                    "org.apache.iceberg",
                    "iceberg-aws-bundle",
                    "1.11.0",
                    "bb50f7dc5f36a001efecf15e4d03eff955466f06557261fbacdd7fe0d88113c8"
                    "2e0b9b2af96cd554cef4a1d4c2348fc950270bc3f51cf6bf1e4526f46ce336a0",
                ),
            ),
        ),
    )
}
#: The release if the deployment file names none. The .venv of a clone has its Python and Spark.
DEFAULT_RELEASE: Final = RELEASES["5.1"]

#: Names and descriptions of the job's arguments, for the job's driver and the stacks: `--name value` on the
#: command line.
ARGUMENTS: Final = {
    "export": "name of a contract in project/exports/, or the path of a .toml file",
    "as-of": "the instant up to which windows count as closed, ISO 8601 with an offset",
    "database": "Glue database of the Tableflow tables: the Kafka cluster's id, lkc-…",
    "bucket": "bucket that receives the files",
    "prefix": "prefix of all keys in the bucket, without a slash at the end",
    "warehouse": "s3://… for Lakeferry's own tables",
    "aggregates-database": "Glue database for aggregates that are kept as tables",
    "pseudonym-secret": "name or ARN of the secret with the pseudonymisation key",
    "time-limit-minutes": "how long this run may take; after that, it publishes nothing",
    "table": "table to read if its name is not the topic's",
    "first-day": "YYYY-MM-DD: windows from this day on, instead of from the contract's",
    "dry-run": "true to compute and check, and to publish nothing",
    "accept-fewer-events": "true to publish a window again although events of its published file are no "
    "longer in the table",
    "region": "AWS region of the table and the bucket; without it, the region of the environment",
    "probe": "true to check what the job relies on in its environment, instead of exporting",
    "prepare-table": "true to create the table of aggregates, or to add the contract's new columns to it, "
    "instead of exporting",
    "accept-window-change": "true to publish a window although older windows were published by other rules "
    "of the contract",
    "partitions": "number of the topic's Kafka partitions; without it, those that have events in the table "
    "count",
    "complete-until": (
        "states that the table has all events that Kafka received before this instant, ISO 8601 with an "
        "offset"
    ),
    "tableflow-secret": (
        "name or ARN of the secret with a Tableflow API key: the table is in Confluent's storage, and is "
        "read through Tableflow's catalog instead of Glue"
    ),
    "catalog-uri": "address of Tableflow's Iceberg REST catalog, if the secret with the key doesn't have it",
    "proxy": "address of the proxy through which Tableflow's catalog is called",
    "windows": (
        "closed windows, the only ones that the run may publish, however old they are: 2026-W40..2026-W44, "
        "or a list with commas"
    ),
    "only": (
        "missing or published: of the windows in --windows, those that no run has published, or those that "
        "one has; without it, both"
    ),
}
REQUIRED_ARGUMENTS: Final = ("export", "as-of", "database", "bucket")
DEFAULT_ARGUMENTS: Final = {
    "prefix": "exports",
    "warehouse": "",
    "aggregates-database": "lakeferry",
    "pseudonym-secret": "",
    "time-limit-minutes": "60",
    "table": "",
    "first-day": "",
    "dry-run": "false",
    "accept-fewer-events": "false",
    "region": "",
    "probe": "false",
    "prepare-table": "false",
    "accept-window-change": "false",
    "partitions": "",
    "complete-until": "",
    "tableflow-secret": "",
    "catalog-uri": "",
    "proxy": "",
    "windows": "",
    "only": "",
}

#: Settings of every session: Glue, the embedded Glue, a laptop and tests get them through `--conf` and add
#: only a master, jars, memory and an endpoint. No value contains a space: Glue splits its `--conf` argument,
#: and AWS does not document how.
SPARK_SETTINGS: Final = {
    "spark.sql.extensions": "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions",
    f"spark.sql.catalog.{CATALOG}": "org.apache.iceberg.spark.SparkCatalog",
    f"spark.sql.catalog.{CATALOG}.catalog-impl": "org.apache.iceberg.aws.glue.GlueCatalog",
    f"spark.sql.catalog.{CATALOG}.io-impl": "org.apache.iceberg.aws.s3.S3FileIO",
    # Tableflow names the Glue database after the Kafka cluster. The name has a hyphen, which Iceberg's
    # validation refuses.
    f"spark.sql.catalog.{CATALOG}.glue.skip-name-validation": "true",
    # Iceberg would cache a table for 30 s or more, and a run in a session that has just read it would not
    # find its snapshot.
    f"spark.sql.catalog.{CATALOG}.cache-enabled": "false",
    # Iceberg 1.10 caches equality deletes with their columns in the order of the first read. A query that
    # selects other columns may have another order. It then finds no match in the cache, and deleted rows
    # reappear.
    "spark.sql.iceberg.executor-cache.enabled": "false",
    # Each Iceberg manifest is read only once, for both the listing of files and the rows.
    f"spark.sql.catalog.{CATALOG}.io.manifest.cache-enabled": "true",
    # The same result in every time zone and locale, and errors instead of nulls and numeric overflow.
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.ansi.enabled": "true",
    "spark.sql.storeAssignmentPolicy": "ANSI",
    "spark.sql.caseSensitive": "true",
    # Spark's default reduces the decimal places of a sum, a product or an average of long decimals, and
    # rounds, without an error.
    "spark.sql.decimalOperations.allowPrecisionLoss": "false",
    # The same result in Spark 3.5 and 4: case mapping of Java 17, the replacement character for malformed
    # bytes, all charsets of Java, a common type of two decimals that keeps the decimal places of both, and
    # one date parser.
    "spark.sql.icu.caseMappings.enabled": "false",
    "spark.sql.legacy.codingErrorAction": "true",
    "spark.sql.legacy.javaCharsets": "true",
    "spark.sql.legacy.decimal.retainFractionDigitsOnTruncate": "true",
    "spark.sql.legacy.timeParserPolicy": "CORRECTED",
    # Java does not compile methods of more than 8,000 bytes of bytecode, and interpreting one is ten times
    # slower. Above this limit, Spark generates a method for each operator instead of one for a whole stage.
    "spark.sql.codegen.hugeMethodLimit": "8000",
    # A task uploads parts of the file, so a second, speculative attempt would be a waste at best.
    "spark.speculation": "false",
    "spark.sql.execution.arrow.maxRecordsPerBatch": "4096",
    # The job chooses the number of partitions itself, because it numbers the parts of a file by partition.
    # There is no skew that adaptive execution could split, so planning again after each shuffle would only
    # cost time.
    "spark.sql.adaptive.enabled": "false",
    # Spark logs the values on which an expression failed. The job logs the cause itself, without values.
    "spark.log.level": "FATAL",
    # In Spark 3.5, `spark.log.level` only affects the driver. Without a file of the name in the first option,
    # Log4j uses its built-in configuration, whose level is the second option. So executors need no file
    # before they log.
    "spark.executor.syncLogLevel.enabled": "true",
    "spark.executor.defaultJavaOptions": "-Dlog4j2.configurationFile=none",
    "spark.executor.extraJavaOptions": "-Dlog4j2.level=FATAL",
    # Case mapping depends on the language of the machine: in Turkish, I is not the upper case of i.
    # `session.start` sets language and time zone of the driver.
    "spark.executorEnv.LC_ALL": "C.UTF-8",
    "spark.executorEnv.TZ": "UTC",
}


def spark_settings(warehouse: str, region: str = "") -> dict[str, str]:
    """Return the settings of a session. `warehouse` (s3://…) is the location of Lakeferry's own tables.

    Without `region`, Iceberg takes the region of the environment.
    """
    catalog = f"spark.sql.catalog.{CATALOG}"
    regional = {f"{catalog}.client.region": region} if region else {}
    return SPARK_SETTINGS | {f"{catalog}.warehouse": warehouse} | regional


def tableflow_settings(catalog: str, uri: str, region: str, proxy: str) -> dict[str, str]:
    """Return the settings of a Spark catalog for Tableflow's Iceberg REST catalog, without its credential.

    They are set when the session runs, because arguments of a Glue job are visible.
    """
    settings = {
        "type": "rest",
        "uri": uri,
        # Iceberg would ask for the token below the catalog's address by itself, but logs a warning then.
        "oauth2-server-uri": f"{uri}/v1/oauth/tokens",
        "scope": "catalog",
        # A session is renewed with the key: Tableflow doesn't document the exchange of tokens.
        "token-exchange-enabled": "false",
        "header.X-Iceberg-Access-Delegation": "vended-credentials",
        "rest-metrics-reporting-enabled": "false",
        "io-impl": "org.apache.iceberg.aws.s3.S3FileIO",
        "client.region": region,
        # For the reasons of these settings of the Glue catalog, see SPARK_SETTINGS.
        "cache-enabled": "false",
        "io.manifest.cache-enabled": "true",
    }
    if proxy:
        host, _, port = proxy.removeprefix("http://").partition(":")
        settings["rest.client.proxy.hostname"] = host
        settings["rest.client.proxy.port"] = port
    name = f"spark.sql.catalog.{catalog}"
    return {name: "org.apache.iceberg.spark.SparkCatalog"} | {
        f"{name}.{key}": value for key, value in settings.items()
    }


@cache
def compute_code_version() -> str:
    """Return a version like 0.1.0+4f1c2a9b03d4, the same from a checkout and from the zip that Glue runs."""
    digest = hashlib.sha256()
    for package in ("config", "glue_jobs"):
        for name, file in sorted(_list_sources(resources.files(package), package)):
            digest.update(name.encode() + b"\0" + file.read_bytes() + b"\0")
    return f"{VERSION}+{digest.hexdigest()[:12]}"


def _list_sources(folder: Traversable, path: str) -> Iterator[tuple[str, Traversable]]:
    for item in folder.iterdir():
        if item.is_dir() and item.name != "__pycache__":
            yield from _list_sources(item, f"{path}/{item.name}")
        elif item.name.endswith(CODE) and not f"{path}/{item.name}".startswith(NOT_SHIPPED):
            yield f"{path}/{item.name}", item
