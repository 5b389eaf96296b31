"""The lake that the data stack creates and others use: buckets, prefixes and names."""

from __future__ import annotations

from typing import Final

import attrs

from glue_jobs.platform import DEFAULT_ARGUMENTS

EXPORTS: Final = DEFAULT_ARGUMENTS["prefix"]
WAREHOUSE: Final = "warehouse"
ATHENA: Final = "athena"
#: Glue's own temporary files.
TEMPORARY: Final = "temporary"


@attrs.frozen
class Lake:
    """`tableflow_bucket` and its ARN are "" if all tables are in Confluent's storage and somebody else's.
    `pseudonym_key_arn` is "" if the deployment file names an existing secret, and `tableflow_key_arn` if
    the bucket has no KMS key that it names.
    """

    tableflow_bucket: str
    tableflow_arn: str
    tableflow_key_arn: str
    bucket: str
    arn: str
    pseudonym_secret_arn: str
    pseudonym_key_arn: str
    aggregates: str
    workgroup: str
