"""Rules about what exists in the AWS account: network, KMS keys, buckets. They are rules like those of
rules.py.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from config.deployments.model import Deployment
from config.deployments.shared_rules import list_network_problems
from config.deployments.sources import Sources

Finding = tuple[str, str]
#: Keys that name a bucket that exists, each with the key that names one to create.
_BUCKETS: Final = {
    "existing_tableflow_bucket": "tableflow_bucket",
    "existing_lake_bucket": "lake_bucket",
}


def network_is_complete(deployment: Deployment, sources: Sources) -> Iterator[Finding]:
    """`[network]` has one to sixteen subnets, whose availability zones are in the region, and one to five
    security groups.
    """
    network = deployment.network
    if network is None:
        return
    for key, problem in list_network_problems(network, deployment.aws.region):
        yield f"network.{key}", problem


def keys_are_in_region(deployment: Deployment, sources: Sources) -> Iterator[Finding]:
    """Keys of `[encryption]` are in the deployment's region. `tables` is the key of a bucket that Tableflow
    writes to for this deployment.
    """
    region = deployment.aws.region
    for name, key in deployment.encryption.keys.items():
        if key.split(":")[3] != region:
            yield (
                f"encryption.{name}",
                f"is a key in {key.split(':')[3]}, and the deployment is in {region}: AWS encrypts with keys "
                "of the same region",
            )
    if deployment.encryption.tables and deployment.source:
        yield (
            "encryption.tables",
            "is for a bucket that Lakeferry's Tableflow writes to, and with [source] it only reads. Write "
            "the key to source.kms_key",
        )


def buckets_are_created_or_exist(deployment: Deployment, sources: Sources) -> Iterator[Finding]:
    """A bucket is either created or exists, and no bucket is used for both purposes."""
    aws = deployment.aws
    for existing, created in _BUCKETS.items():
        if getattr(aws, existing) and getattr(aws, created):
            yield (
                f"aws.{existing}",
                f"can't be combined with {created}: the first names a bucket that exists, the second one "
                "that is created. Keep one",
            )
    source = deployment.source
    if source and aws.existing_tableflow_bucket:
        yield (
            "aws.existing_tableflow_bucket",
            "is for tables that Lakeferry creates, and with [source] it only reads. Write its name to "
            "source.tableflow_bucket",
        )
    tableflow_bucket = aws.tableflow_bucket or aws.existing_tableflow_bucket
    if source:
        tableflow_bucket = source.tableflow_bucket
    for key in ("lake_bucket", "existing_lake_bucket"):
        name = getattr(aws, key)
        if name and name == tableflow_bucket:
            yield f"aws.{key}", "is Tableflow's bucket too, and nobody else may write to that"
