"""The lake that the data stack creates or finds, and others use: buckets, prefixes and names."""

from __future__ import annotations

import attrs

from glue_jobs.platform import DEFAULT_ARGUMENTS
from lambdas import contract


@attrs.frozen
class Prefixes:
    """The beginnings of keys in the lake bucket, without a slash at the end. In a bucket that exists, all of
    them begin with the deployment's own prefix.
    """

    root: str

    @property
    def exports(self) -> str:
        return f"{self.root}{DEFAULT_ARGUMENTS['prefix']}"

    @property
    def warehouse(self) -> str:
        """Return where the aggregates are."""
        return f"{self.root}{contract.WAREHOUSE}"

    @property
    def athena(self) -> str:
        return f"{self.root}athena"

    @property
    def people(self) -> str:
        """Return where the results of people's queries are, who see some columns only."""
        return f"{self.root}athena-people"

    @property
    def temporary(self) -> str:
        """Return where Glue's own temporary files are."""
        return f"{self.root}temporary"

    @property
    def notices(self) -> str:
        """Return where the markers of mails are that were sent."""
        return f"{self.root}{contract.NOTICES}"

    @property
    def links(self) -> str:
        """Return where downloads by links are counted, and where it says which links are revoked."""
        return f"{self.root}{contract.LINKS}"


@attrs.frozen
class Lake:
    """`tableflow_bucket` and its ARN are "" if all tables are in Confluent's storage and somebody else's.
    `pseudonym_key_arn` is "" if the deployment file names an existing secret. `tableflow_key_arn` and
    `key_arn` are "" if the bucket has no KMS key that the file names.
    """

    tableflow_bucket: str
    tableflow_arn: str
    tableflow_key_arn: str
    bucket: str
    arn: str
    key_arn: str
    prefixes: Prefixes
    pseudonym_secret_arn: str
    pseudonym_key_arn: str
    aggregates: str
    workgroup: str
