"""What stacks, the local run and the job agree on: versions, jars and Spark settings.

Standard library only: `stacks` and `lakeferry.bootstrap` read this without Spark or boto3 installed.
Versions are those of AWS Glue 5.1 (Glue release notes: Spark 3.5.6, Iceberg 1.10.0, Python 3.11, Java 17).
"""

from __future__ import annotations

from typing import Final, NamedTuple

GLUE_VERSION: Final = "5.1"
SPARK_VERSION: Final = "3.5.6"
ICEBERG_VERSION: Final = "1.10.0"
PYTHON_VERSION: Final = (3, 11)
JAVA_VERSION: Final = 17

#: The Spark catalog under which the job sees the AWS Glue Data Catalog.
CATALOG: Final = "lake"


class Jar(NamedTuple):
    """A jar of Maven Central that Glue has on board and a laptop must fetch; `sha512` is of the file, in hex."""

    group: str
    artifact: str
    version: str
    sha512: str

    @property
    def file_name(self) -> str:
        return f"{self.artifact}-{self.version}.jar"


JARS: Final = (
    Jar(
        "org.apache.iceberg",
        "iceberg-spark-runtime-3.5_2.12",
        ICEBERG_VERSION,
        "2ce6c02c8104a8ca2412a261abba7413964677db74ad96d25bd58e25abb7c27c"
        "bf94c7dc4cfa33eb12d05a2df04cb0074344983b09abbc43e4a1b4e4abf2b5e1",
    ),
    Jar(
        "org.apache.iceberg",
        "iceberg-aws-bundle",
        ICEBERG_VERSION,
        "150b885dd827713af0b105e655ec24a47f823ce7269d218522b7149fdb160603"
        "9458470e5006da31c9fdc5bb839c59447279e7968e04bd6d7984c57d46980ccb",
    ),
)
