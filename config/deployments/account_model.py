"""What the security department of an AWS account gives a deployment: a network and KMS keys, which exist."""

from __future__ import annotations

import attrs

from config.deployments import validation
from config.toml_model import setting


@attrs.frozen
class Network:
    """`[network]`: a VPC that exists. All functions and export jobs run in it."""

    subnets: dict[str, str] = setting(
        'Private subnets, each with its availability zone: `subnet-0a1b = "eu-west-1a"`. AWS\'s own '
        "services must be reachable from them, through VPC endpoints or a NAT gateway.",
        form=validation.ZONE,
    )
    security_groups: list[str] = setting(
        "Security groups of the functions and jobs, at most five. For Glue, one of them must let its own "
        "members reach each other on all TCP ports.",
        form=validation.SECURITY_GROUP,
    )
    proxy: str | None = setting(
        "Address of the proxy through which Confluent and Snowflake are called. AWS is called without it.",
        default=None,
        form=validation.PROXY,
    )


@attrs.frozen
class Encryption:
    """`[encryption]`: ARNs of KMS keys that exist. Without `tables` and `data`, S3 encrypts with its own
    keys; without `secrets` and `logs`, the deployment creates keys.
    """

    tables: str | None = setting(
        "Key of the bucket that Tableflow writes to.", default=None, form=validation.KMS_KEY
    )
    data: str | None = setting(
        "Key of the bucket with exports, aggregates and results of queries. Everybody who reads a file needs "
        "kms:Decrypt with it.",
        default=None,
        form=validation.KMS_KEY,
    )
    secrets: str | None = setting("Key of all secrets.", default=None, form=validation.KMS_KEY)
    logs: str | None = setting(
        "Key of logs and alarms. Its policy must let CloudWatch Logs and CloudWatch use it.",
        default=None,
        form=validation.KMS_KEY,
    )

    @property
    def keys(self) -> dict[str, str]:
        """Return the keys that the file names, by their name in the file."""
        return {name: key for name, key in attrs.asdict(self).items() if key}
