"""The options of a synthesis, and ARNs that it can build."""

from __future__ import annotations

import attrs
from aws_cdk import Stack
from constructs import Construct


@attrs.frozen
class SynthOptions:
    """Options from the CDK context: URLs of APIs ("" for the vendor's own), the platform of functions, and
    repairs.

    `repairs` has the resources, as stack/logical id, whose missing object is to be created again. `repair` is
    a value that no earlier deployment used.
    """

    confluent_url: str = ""
    catalog_url: str = ""
    snowflake_url: str = ""
    functions_local: bool = False
    repair: str = ""
    repairs: frozenset[str] = frozenset()

    @classmethod
    def of(cls, scope: Construct) -> SynthOptions:
        """Read the context of the construct tree, which `-c` sets on the command line."""
        names = ("confluent_url", "catalog_url", "snowflake_url")
        settings = {name: str(scope.node.try_get_context(name) or "") for name in names}
        repair, _, listed = str(scope.node.try_get_context("repair") or "").partition(":")
        return cls(
            **settings,
            functions_local=scope.node.try_get_context("functions") == "local",
            repair=repair,
            repairs=frozenset(filter(None, listed.split(","))),
        )


def build_own_arn(scope: Construct, service: str, resource: str, *, region: bool = True) -> str:
    """Return an ARN in this account, and in this region unless the service has no regions."""
    stack = Stack.of(scope)
    return f"arn:{stack.partition}:{service}:{stack.region if region else ''}:{stack.account}:{resource}"
