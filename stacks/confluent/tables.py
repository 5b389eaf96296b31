"""Topics as Iceberg tables: how Confluent gets into the account, the role of that handshake, Glue, Tableflow."""

from __future__ import annotations

from typing import Any, Final

from aws_cdk import aws_iam as iam

from deployments.model import Tableflow, Topic
from lambdas import contract
from lambdas.confluent.properties import CatalogIntegrationProps, ProviderIntegrationProps, TableflowTopicProps
from stacks.base import LakeferryStack, words
from stacks.confluent.access import Keys, Place
from stacks.constructs.statements import ITS_KEYS, ONE_DATABASE, allow, glue_tables
from stacks.constructs.statements import role as own_role
from stacks.constructs.vendor_resources import Made, VendorResources

_DAY_MS: Final = 86_400_000


def role_name(stack: LakeferryStack) -> str:
    """Known before the role is there, because the integration is made with its ARN."""
    return f"{stack.deployment.regional_prefix}-tableflow"


def integration(resources: VendorResources, stack: LakeferryStack, where: Place) -> Made:
    return resources.make(
        ProviderIntegrationProps,
        "ProviderIntegration",
        environment_id=where.environment_id,
        role_arn=stack.own_arn("iam", f"role/{role_name(stack)}", region=False),
    )


def role(stack: LakeferryStack, made: Made, bucket_arn: str, database: str) -> iam.Role:
    """Trusts the one principal of this integration, by value. A session's tag carries no external id: AWS knows none there."""
    confluent, needs = iam.ArnPrincipal(made["confluent_role_arn"]), contract.TABLEFLOW_NEEDS
    trusting = own_role(
        stack,
        "TableflowRole",
        role_name=role_name(stack),
        purpose="Confluent's Tableflow writes tables and shows them in Glue",
        trusts=confluent.with_conditions({"StringEquals": {"sts:ExternalId": made["external_id"]}}),
        statements=[
            allow("UseBucket", needs["bucket"], [bucket_arn]),
            allow("WriteTables", needs["objects"], [f"{bucket_arn}/*"], why=ITS_KEYS),
            allow("ShowTables", needs["tables"], glue_tables(stack, database), why=ONE_DATABASE),
        ],
    )
    trust = trusting.assume_role_policy
    assert trust is not None
    trust.add_statements(iam.PolicyStatement(actions=["sts:TagSession"], principals=[confluent]))
    return trusting


def catalog(resources: VendorResources, where: Place, keys: Keys, made: Made) -> Made:
    return resources.make(
        CatalogIntegrationProps,
        "CatalogIntegration",
        **where.ids,
        credentials=keys.tableflow["secret"],
        provider_integration_id=made["id"],
    )


def table(resources: VendorResources, topic: Topic, *, where: Place, keys: Keys, integration_id: str, bucket: str) -> Made:
    assert topic.tableflow is not None
    return resources.make(
        TableflowTopicProps,
        f"{words(topic.name)}Table",
        **where.ids,
        credentials=keys.tableflow["secret"],
        topic=topic.name,
        **_settings(topic.tableflow, integration_id, bucket),
    )


def _settings(wanted: Tableflow, integration_id: str, bucket: str) -> dict[str, Any]:
    own = wanted.storage == "own_bucket"
    return {
        "storage": wanted.storage,
        "bucket": bucket if own else None,
        "provider_integration_id": integration_id if own else None,
        "table_formats": list(wanted.formats) or None,
        "retention_ms": wanted.snapshots_days * _DAY_MS,
        "data_retention_ms": wanted.rows_days * _DAY_MS if wanted.rows_days else None,
        "error_handling": wanted.on_error,
        "error_log_topic": wanted.error_log_topic if wanted.on_error == "LOG" else None,
        "metadata_columns": wanted.metadata_columns,
        "await_catalog": wanted.in_glue,
    }
