"""The deployment file's lists as an object in S3, because they may not fit into a function's environment.

`lambdas.shared.deployment` reads it. It contains what is known at synthesis: names, never ids or secrets.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from aws_cdk import Stack
from aws_cdk import aws_s3_assets as s3_assets
from constructs import Construct

from config.deployments.confluent_model import Topic
from config.deployments.export_model import Export
from config.deployments.model import Deployment
from lambdas import contract
from stacks.constructs.statements import Statement, allow
from stacks.constructs.synthesis import build_own_arn


class PublishedSettings(Construct):
    """A settings object in S3. `secrets` are names of secrets that rotate."""

    def __init__(
        self, scope: Construct, id: str, *, deployment: Deployment, secrets: Sequence[str] = ()
    ) -> None:
        super().__init__(scope, id)
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "settings.json"
            file.write_text(json.dumps(_document(deployment, secrets), sort_keys=True), encoding="utf-8")
            self._asset = s3_assets.Asset(self, "File", path=str(file))

    @property
    def url(self) -> str:
        return self._asset.s3_object_url

    def may_read(self) -> Statement:
        arn = f"arn:{Stack.of(self).partition}:s3:::{self._asset.s3_bucket_name}/{self._asset.s3_object_key}"
        return allow("ReadSettings", ["s3:GetObject"], [arn])


def build_topic_name(deployment: Deployment, export: str) -> str:
    """Return the name of an export's SNS topic.

    A deployment's name has no underscore, so the prefix is unique.
    """
    return f"{deployment.prefix}_{export}"


def build_topic_arns(scope: Construct, deployment: Deployment) -> str:
    """Return the common prefix of the ARNs of all exports' SNS topics."""
    return build_own_arn(scope, "sns", build_topic_name(deployment, ""))


def list_recipient_ids(deployment: Deployment, export: Export) -> list[str]:
    """Return the ids of the recipients who get mails of their own."""
    if export.link_days is None and deployment.mail is None:
        return []
    return [
        contract.build_recipient_id(deployment.prefix, export.contract, address)
        for address in export.recipients
    ]


def _document(deployment: Deployment, secrets: Sequence[str]) -> dict[str, Any]:
    by_hand = list(deployment.manual_secrets)
    if deployment.snowflake and deployment.uses_snowflake:
        by_hand.append(deployment.snowflake.key_secret)
    return {
        "tables": [_describe_table(topic, deployment) for topic in deployment.tables],
        "exports": [_export(export, deployment) for export in deployment.exports],
        "secrets": list(secrets),
        "deployer_secrets": by_hand,
        "tables_exist": deployment.uses_existing_cluster or deployment.source is not None,
    }


def _describe_table(topic: Topic, deployment: Deployment) -> dict[str, Any]:
    table = topic.tableflow
    if table is None:
        is_managed = topic in deployment.managed_tables
        return {
            "topic": topic.name,
            "name": topic.table,
            "in_glue": not is_managed,
            "managed": is_managed,
        }
    return {
        "topic": topic.name,
        "name": topic.table,
        "in_glue": table.in_glue,
        "managed": table.is_managed,
        "snowflake": (table.snowflake_table or "").upper() if deployment.uses_snowflake else "",
        "error_log": table.error_log_topic if table.on_error == "LOG" else "",
    }


def _export(export: Export, deployment: Deployment) -> dict[str, Any]:
    return {
        "export": export.contract,
        "job": f"{deployment.prefix}-{export.contract}",
        "cron": export.cron,
        "zone": export.zone,
        "late_after_hours": export.late_after_hours,
        "recipients": len(export.recipients),
        "recipient_ids": list_recipient_ids(deployment, export),
        "addresses": list(export.recipients) if deployment.mail else [],
        "link_days": export.link_days or 0,
        "link_downloads": export.link_downloads,
        "first_day": export.first_day.isoformat() if export.first_day else "",
    }
