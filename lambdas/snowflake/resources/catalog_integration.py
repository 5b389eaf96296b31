"""A catalog integration with AWS Glue's Iceberg REST endpoint: how Snowflake finds the tables' latest metadata.

It is made with the ARN of a role that doesn't exist yet and with an external id of ours. Only its interval can be changed.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

import attrs

from lambdas.shared import errors
from lambdas.shared.errors import ReplacementRequired, Transient
from lambdas.shared.properties import Properties, prop
from lambdas.shared.resource import Outputs
from lambdas.snowflake import errors as snowflake_errors
from lambdas.snowflake import lookup, sql, trust
from lambdas.snowflake.lookup import Ctx
from lambdas.snowflake.sql import Sql

OUTPUTS: Final = ("name", "iam_user_arn", "external_id")
PATIENCE: Final = 3000.0
GLUE: Final = "glue_iceberg_rest"
#: Other ways to a catalog, and why we don't go them.
_REFUSED: Final = {
    "glue": "Snowflake's older Glue integration takes no external id of ours: each time it is made anew, the role's trust "
    "breaks; nor can a linked database be made of it",
    "tableflow": "Tableflow's own catalog wants an API key inside the statement and inside Snowflake, where no rotation "
    "reaches it",
}
_CREATE: Final = (
    "CREATE CATALOG INTEGRATION {name} CATALOG_SOURCE=ICEBERG_REST TABLE_FORMAT=ICEBERG CATALOG_NAMESPACE={namespace} "
    "REST_CONFIG=(CATALOG_URI={uri} CATALOG_API_TYPE=AWS_GLUE CATALOG_NAME={account} "
    "ACCESS_DELEGATION_MODE=EXTERNAL_VOLUME_CREDENTIALS) "
    "REST_AUTHENTICATION=(TYPE=SIGV4 SIGV4_IAM_ROLE={role} SIGV4_SIGNING_REGION={region} SIGV4_EXTERNAL_ID={external_id}) "
    "ENABLED=TRUE REFRESH_INTERVAL_SECONDS={seconds} COMMENT={comment}"
)
_ALTER: Final = "ALTER CATALOG INTEGRATION {name} SET REFRESH_INTERVAL_SECONDS={seconds}"
_SHOW: Final = "SHOW CATALOG INTEGRATIONS LIKE {pattern}"
_DROP: Final = "DROP CATALOG INTEGRATION IF EXISTS {name}"
_REGION: Final = re.compile(r"[a-z]{2}(-[a-z]+)+-\d")


@attrs.frozen
class Spec(Properties):
    role_arn: str = prop("ARN of the customer's role, which need not exist yet.")
    region: str = prop("The region of the Glue catalog.")
    account_id: str = prop("The AWS account of the Glue catalog, twelve digits.")
    namespace: str = prop("The Glue database: the Kafka cluster's id, lkc-…, unless another one was chosen.")
    source: str = prop("The way to the catalog; others than this are refused, with the reason.", default=GLUE)
    refresh_seconds: int = prop(
        "Seconds between two looks for new snapshots. Tableflow writes one every few minutes.", default=60
    )

    def problems(self) -> Iterator[tuple[str, str]]:
        if self.source != GLUE:
            yield "source", _REFUSED.get(self.source, f"{self.source!r} is not {GLUE}")
        if not _REGION.fullmatch(self.region):
            yield "region", f"{self.region!r} is not a region of AWS"
        if not re.fullmatch(r"[0-9]{12}", self.account_id):
            yield "account_id", f"{self.account_id!r} is not an AWS account id"
        if not 30 <= self.refresh_seconds <= 86400:
            yield "refresh_seconds", "must be 30 to 86400"
        yield from trust.role_problems(self.role_arn)


def create(context: Ctx, spec: Spec) -> str:
    name = sql.object_name(context)
    made = sql.statement(
        _CREATE,
        name=sql.identifier(name),
        namespace=sql.literal(spec.namespace),
        uri=sql.literal(f"https://glue.{spec.region}.amazonaws.com/iceberg"),
        account=sql.literal(spec.account_id),
        role=sql.literal(spec.role_arn),
        region=sql.literal(spec.region),
        external_id=sql.literal(sql.external_id(context)),
        seconds=sql.number(spec.refresh_seconds),
        comment=sql.ownership_comment(context),
    )
    context.vendor.run(made)
    return name


def is_ready(context: Ctx, spec: Spec, object_id: str) -> Outputs | None:
    """As soon as it can be described. Whether Snowflake gets in is asked after the role is there: see the kind trust."""
    lookup.existing(context, _show(object_id), object_id)
    side = trust.integration_side(context.vendor, object_id)
    if not side.principal:
        raise Transient(snowflake_errors.UNEXPECTED, f"catalog integration {object_id} is described without its IAM user")
    return {
        "name": object_id,
        "iam_user_arn": side.principal,
        "external_id": side.external_id or sql.external_id(context),
    }


def update(context: Ctx, spec: Spec, object_id: str) -> None:
    """The external id is compared where Snowflake tells it; not every release does."""
    lookup.existing(context, _show(object_id), object_id)
    described = trust.described_integration(context.vendor, object_id)
    side = trust.integration_side(context.vendor, object_id, described)
    if side.external_id not in ("", sql.external_id(context)) or described.get("CATALOG_NAMESPACE") != spec.namespace:
        raise ReplacementRequired(errors.OUTDATED, f"catalog integration {object_id} leads elsewhere than wanted")
    if described.get("REFRESH_INTERVAL_SECONDS") != str(spec.refresh_seconds):
        seconds = sql.number(spec.refresh_seconds)
        context.vendor.run(sql.statement(_ALTER, name=sql.identifier(object_id), seconds=seconds))


def delete(context: Ctx, spec: Spec, object_id: str) -> None:
    trust.require_unused(context.vendor, "catalog_name", object_id)
    lookup.drop(context, _show(object_id), object_id, sql.statement(_DROP, name=sql.identifier(object_id)))


REPLACE_ON: Final = ("role_arn", "region", "account_id", "namespace")


def adopt(context: Ctx, spec: Spec, known: str | None) -> list[str]:
    name = sql.object_name(context)
    return lookup.ids(context, _show(name), name)


def _show(name: str) -> Sql:
    return sql.statement(_SHOW, pattern=sql.literal(name))
