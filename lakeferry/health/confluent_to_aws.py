"""The trust chain from Confluent to AWS: provider integration, IAM role, bucket, Tableflow's key and tables,
Glue.
"""

from __future__ import annotations

from functools import partial
from typing import Any, Final

import attrs

from lakeferry.deployment import stacks
from lakeferry.deployment.context import DeploymentContext
from lakeferry.deployment.stacks import Stack
from lakeferry.errors import CommandFailed
from lakeferry.health import runner, storage, trust
from lakeferry.health.model import Check, Group, mark_consequences
from lakeferry.health.tableflow import CatalogIntegration, Tableflow, TableflowTopic
from lakeferry.health.trust import Principal, Role
from lambdas import contract
from lambdas.confluent import iceberg_catalog
from lambdas.confluent.rest_client import RestClient, get_text
from lambdas.shared.errors import Denied, NotFound
from lambdas.shared.http import Session

GROUP: Final = Group("Confluent → AWS")
INTEGRATION: Final = "provider integration"
ROLE: Final = trust.ROLE
TRUST: Final = "role's trust"
TAGS: Final = "role's trust of tags"
POLICY: Final = trust.POLICY
BUCKET: Final = storage.BUCKET
KEY: Final = "Tableflow key"
CATALOG: Final = "catalog integration"
NAMES: Final = (INTEGRATION, ROLE, TRUST, TAGS, POLICY, BUCKET, KEY, CATALOG)
_REPAIR: Final = "Run `lakeferry deploy --repair`: it creates again what is missing"
_REPLACED: Final = (
    "Somebody changed or replaced it. Delete it, then run `lakeferry deploy --repair`: it creates it as "
    "the stack wants it"
)
_RESUME: Final = "Resume it then in Confluent's console, under Tableflow"
_FIX_AND_RESUME: Final = f"Fix that. {_RESUME}"
_WAIT: Final = "Wait; a table takes some ten minutes"


@attrs.frozen
class _Chain:
    """`bucket` is the one that Tableflow writes into, if it writes tables there.

    `cluster` is the Kafka cluster's id, `database` the Glue database of its tables.
    """

    ctx: DeploymentContext
    stack: Stack
    bucket: str

    @property
    def cluster(self) -> str:
        return self.stack.outputs.get("KafkaClusterId", "")

    @property
    def database(self) -> str:
        return self.ctx.deployment.existing_glue_database or self.cluster

    @property
    def needs(self) -> dict[str, tuple[str, ...]]:
        """Return what the role needs. An integration with Glue that exists has a role of its own."""
        if self.ctx.deployment.existing_glue_database:
            return {**contract.TABLEFLOW_NEEDS, "tables": ()}
        return contract.TABLEFLOW_NEEDS

    @property
    def integration(self) -> str:
        return stacks.find_object_name(self.ctx, self.stack, "provider_integration")


def look(ctx: DeploymentContext) -> list[Check]:
    """Raises CommandFailed if CloudFormation can't be read."""
    tables = (
        *_name_topic_checks(ctx),
        *storage.name_glue_table_checks(ctx),
        *_name_managed_table_checks(ctx),
    )
    confluent = stacks.find_part(ctx, "confluent")
    data = stacks.find_part(ctx, "data")
    if isinstance(confluent, str) or isinstance(data, str):
        why = confluent if isinstance(confluent, str) else str(data)
        return GROUP.skip_all_unseen((*NAMES, *tables), f"not deployed: {why}")
    chain = _Chain(ctx, confluent, data.outputs.get("TableflowBucketName", ""))
    checks = [
        *_check_integration_and_role(chain),
        *_check_tableflow(chain),
        *storage.check_glue_tables(ctx, GROUP, chain.database, chain.bucket),
        *_check_managed_tables(chain),
    ]
    return mark_consequences(checks, dict.fromkeys((CATALOG, *tables), ()), _RESUME)


def _name_topic_checks(ctx: DeploymentContext) -> list[str]:
    return [f"Tableflow of {topic.name}" for topic in ctx.deployment.tables]


def _name_managed_table_checks(ctx: DeploymentContext) -> list[str]:
    return [f"table of {topic.name} in Confluent's storage" for topic in ctx.deployment.managed_tables]


def _check_managed_tables(chain: _Chain) -> list[Check]:
    """Read the tables in Confluent's storage with the key of the exports."""
    ctx = chain.ctx
    secret = ctx.confluent_secret("tableflow/table_reader")
    return [
        runner.attempt(GROUP, name, partial(_check_managed_table, ctx, name, topic.name, secret))
        for name, topic in zip(_name_managed_table_checks(ctx), ctx.deployment.managed_tables, strict=True)
    ]


def _check_managed_table(ctx: DeploymentContext, name: str, topic: str, secret: str) -> Check:
    session = Session(ctx.deadline, trust_environment=True)
    catalog = iceberg_catalog.connect(session, ctx.clock, ctx.secrets, secret)
    try:
        metadata = catalog.load_metadata(topic)
    except NotFound:
        fix = (
            f"{_WAIT}. After that, the account table_reader lacks the role DeveloperRead on the topic: "
            "`lakeferry deploy --repair` binds it again"
        )
        return GROUP.fail(name, f"Tableflow's catalog doesn't show {topic} to the key in {secret}", fix)
    if metadata.get("current-snapshot-id") is None:
        return GROUP.warn_unseen(name, "has no snapshot yet", _WAIT)
    return GROUP.ok(name, f"readable with the key in {secret}")


def _check_integration_and_role(chain: _Chain) -> list[Check]:
    ctx = chain.ctx
    if not ctx.deployment.uses_own_bucket:
        unused = (INTEGRATION, ROLE, TRUST, TAGS, POLICY, BUCKET)
        return GROUP.skip_all(unused, "not checked: no table is in the deployment's bucket")
    restore = trust.restore_command(chain.ctx, "confluent")
    integration = runner.attempt(GROUP, INTEGRATION, lambda: _read_integration(chain))
    check, role = trust.check_role(ctx, GROUP, ctx.role_name("tableflow"), restore)
    checks = [
        integration if isinstance(integration, Check) else _check_integration(chain, integration),
        check,
    ]
    if role and isinstance(integration, dict):
        checks += _check_trust(role, integration, restore)
    else:
        checks += GROUP.skip_all_unseen((TRUST, TAGS), "not checked: one side isn't known")
    if role:
        needs = trust.list_needed_actions(ctx, chain.needs, chain.bucket, chain.database)
        checks.append(
            runner.attempt(GROUP, POLICY, lambda: trust.check_permissions(ctx, GROUP, role, needs, restore))
        )
    else:
        checks.append(GROUP.skip_unseen(POLICY, "not checked: the role isn't known"))
    return [*checks, runner.attempt(GROUP, BUCKET, lambda: storage.check_bucket(ctx, GROUP, chain.bucket))]


def _read_integration(chain: _Chain) -> dict[str, Any] | None:
    listed = chain.ctx.confluent().cloud.pages(
        "/pim/v1/integrations", environment=chain.stack.outputs.get("EnvironmentId", "")
    )
    return next(
        (integration for integration in listed if get_text(integration, "display_name") == chain.integration),
        None,
    )


def _check_integration(chain: _Chain, document: dict[str, Any] | None) -> Check:
    expected_role = chain.ctx.role_arn("tableflow")
    if document is None:
        return GROUP.fail(INTEGRATION, f"{chain.integration} doesn't exist", _REPAIR)
    role = get_text(document, "config", "customer_iam_role_arn")
    if role != expected_role:
        return GROUP.fail(
            INTEGRATION,
            f"{get_text(document, 'id')} assumes role {role or '(none)'}",
            _REPLACED,
            expected_role,
        )
    principal = get_text(document, "config", "iam_role_arn")
    external_id = get_text(document, "config", "external_id")
    return GROUP.ok(
        INTEGRATION, f"{get_text(document, 'id')} connects as {principal} with external id {external_id}"
    )


def _check_trust(role: Role, integration: dict[str, Any], restore: str) -> list[Check]:
    arn = get_text(integration, "config", "iam_role_arn")
    external_id = get_text(integration, "config", "external_id")
    principals = [
        Principal(TRUST, "sts:AssumeRole", arn, external_id),
        Principal(TAGS, "sts:TagSession", arn),
    ]
    return [trust.check_trust(GROUP, role, principal, restore) for principal in principals]


def _check_tableflow(chain: _Chain) -> list[Check]:
    """Check with the deployment's Tableflow key: Tableflow accepts no other."""
    ctx = chain.ctx
    names = _name_topic_checks(chain.ctx)
    secret = ctx.confluent_secret("tableflow")
    reader = Tableflow(ctx, chain.stack.outputs)
    plane = runner.attempt(GROUP, KEY, lambda: _require_key(reader, secret))
    if isinstance(plane, Check):
        return [plane, *GROUP.skip_all_unseen((CATALOG, *names), "not checked: no key for Tableflow works")]
    checks = [
        GROUP.ok(KEY, f"{plane.key.id}, in {secret}"),
        runner.attempt(GROUP, CATALOG, lambda: _check_catalog(chain, reader)),
    ]
    topics = runner.attempt(GROUP, names[0] if names else CATALOG, lambda: reader.topics)
    if isinstance(topics, Check):
        return [*checks, topics]
    tables = zip(names, ctx.deployment.tables, strict=True)
    return [*checks, *(_check_topic(name, topic.name, topics.get(topic.name)) for name, topic in tables)]


def _require_key(reader: Tableflow, secret: str) -> RestClient:
    """Return the client for Tableflow. Raises CommandFailed if Tableflow refuses the key."""
    plane = reader.plane
    try:
        plane.get(plane.probe)
    except Denied as denied:
        hint = f"Replace it: `lakeferry rotate {secret} --now --stage {reader.ctx.stage}`"
        if secret in reader.ctx.deployment.created_confluent.manual_secrets:
            hint = (
                f"Store a Tableflow key that works in the secret {secret}: nobody rotates keys that you bring"
            )
        raise CommandFailed(denied.kind.code, f"{denied.what}, with the key in {secret}", hint) from None
    return plane


def _check_catalog(chain: _Chain, reader: Tableflow) -> Check:
    if not chain.ctx.deployment.tables_in_glue:
        return GROUP.skip(CATALOG, "not checked: the deployment file wants no table in Glue")
    is_somebody_elses = chain.ctx.deployment.existing_glue_database is not None
    try:
        integrations = reader.catalog_integrations()
    except Denied:
        if not is_somebody_elses:
            raise
        integrations = []  # only administrators of the cluster may list them
    if not integrations and is_somebody_elses:
        return GROUP.skip_unseen(
            CATALOG, "not checked: somebody else created it, and this key may not see it"
        )
    if not integrations:
        return GROUP.fail(CATALOG, f"cluster {chain.cluster} has none", _REPAIR)
    return _check_catalog_integration(chain, integrations[0])


def _check_catalog_integration(chain: _Chain, catalog: CatalogIntegration) -> Check:
    shown_in = catalog.database or chain.cluster
    if shown_in != chain.database:
        fix = f"Set its database back to {chain.database} in Confluent's console"
        if chain.ctx.deployment.existing_glue_database:
            fix = f'Set `confluent.glue_database = "{shown_in}"` in the deployment file, and deploy'
        return GROUP.fail(
            CATALOG, f"{catalog.id} shows tables in Glue database {shown_in}", fix, chain.database
        )
    if catalog.phase == "FAILED" or catalog.suspended:
        state = "FAILED" if catalog.phase == "FAILED" else "suspended"
        return GROUP.fail(CATALOG, f"{catalog.id} is {state}: {catalog.reason}", _FIX_AND_RESUME)
    if catalog.phase == "PENDING":
        return GROUP.warn_unseen(CATALOG, f"{catalog.id} is PENDING until the first table is written", _WAIT)
    return GROUP.ok(CATALOG, f"{catalog.id} is {catalog.phase}")


def _check_topic(name: str, topic: str, table: TableflowTopic | None) -> Check:
    if table is None:
        return GROUP.fail(name, f"Tableflow of topic {topic} is off", _REPAIR)
    if table.suspended:
        return GROUP.fail(name, f"suspended: {table.reason}", _FIX_AND_RESUME)
    if table.phase == "FAILED":
        return GROUP.fail(name, f"FAILED: {table.reason}", _FIX_AND_RESUME)
    if table.catalog:
        status, reason = table.catalog
        return GROUP.fail(name, f"{table.phase}, and its catalog {status}: {reason}", _FIX_AND_RESUME)
    return (
        GROUP.ok(name, table.phase)
        if table.phase == "RUNNING"
        else GROUP.warn_unseen(name, table.phase, _WAIT)
    )
