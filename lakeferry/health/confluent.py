"""Confluent Cloud: the Cloud key, what it may do, and whether the organization has room for a deployment."""

from __future__ import annotations

from functools import partial
from typing import Any, Final

from lakeferry.credentials import confluent as credentials
from lakeferry.credentials.confluent import Owner
from lakeferry.deployment import stacks
from lakeferry.deployment.context import DeploymentContext
from lakeferry.deployment.stacks import Stack
from lakeferry.errors import CommandFailed
from lakeferry.health import runner
from lakeferry.health.model import Check, Group
from lakeferry.output import Output
from lambdas.confluent import errors as confluent_errors
from lambdas.confluent.client import CLOUD, Confluent
from lambdas.confluent.resources import existing_cluster
from lambdas.confluent.rest_client import get_text
from lambdas.shared.errors import Denied, NotFound

GROUP: Final = Group("Confluent")
KEY: Final = "Cloud key"
SCOPE: Final = "Cloud key's owner"
ENVIRONMENT: Final = "environment"
CLUSTER: Final = "Kafka cluster"
FLINK: Final = "Flink's region"
TABLEFLOW: Final = "Tableflow's region"
INTEGRATIONS: Final = "provider integrations"
QUOTAS: Final = "quotas"
#: The limit of an organization, unless Confluent raised it.
_INTEGRATIONS: Final = 100
_ANOTHER_REGION: Final = "Choose another `aws.region` in the deployment file"


def look(ctx: DeploymentContext) -> list[Check]:
    """Check everything with the Cloud key. Without it, the other checks are skipped."""
    secret = ctx.deployment.created_confluent.cloud_key_secret
    remaining = [ENVIRONMENT, CLUSTER, FLINK, TABLEFLOW, INTEGRATIONS, QUOTAS]
    try:
        vendor = ctx.confluent()
    except CommandFailed as failure:
        return [
            runner.report_failed(GROUP, KEY, failure),
            *GROUP.skip_all_unseen([SCOPE, *remaining], "not checked: no key was read"),
        ]
    accepted = GROUP.ok(KEY, f"{vendor.cloud.key.id}, in {secret}")
    try:
        owner = credentials.verify(Output(quiet=True), ctx, vendor.cloud.key, 0)
    except CommandFailed as failure:
        message = f"{failure.message}. {failure.why}".rstrip(". ")
        if failure.code == "SECRETS-SCOPE":
            skipped = GROUP.skip_all_unseen(remaining, "not checked: the key lacks permissions")
            return [accepted, GROUP.fail(SCOPE, message, failure.hint), *skipped]
        fix = f"Run `lakeferry secrets set confluent --stage {ctx.stage}` with a Cloud key that works"
        return [
            GROUP.fail(KEY, message, fix),
            *GROUP.skip_all_unseen([SCOPE, *remaining], "not checked: the key doesn't work"),
        ]
    checks = {
        ENVIRONMENT: check_environment,
        CLUSTER: check_cluster,
        FLINK: check_flink,
        TABLEFLOW: check_tableflow,
        INTEGRATIONS: check_integrations,
        QUOTAS: check_quotas,
    }
    others = [runner.attempt(GROUP, name, partial(look_at, ctx, vendor)) for name, look_at in checks.items()]
    return [accepted, _check_owner(owner), *others]


def _check_owner(owner: Owner) -> Check:
    if owner.is_person:
        fix = "Create a key of a service account: docs/how-to/prepare-confluent.md"
        return GROUP.warn(
            SCOPE, f"{owner.id} is a person, and the key is deleted with the person's account", fix
        )
    return GROUP.ok(SCOPE, f"{owner.id}: {', '.join(owner.roles)}")


def check_environment(ctx: DeploymentContext, vendor: Confluent) -> Check:
    id = ctx.deployment.created_confluent.environment_id
    wanted = ctx.deployment.created_confluent.environment_name
    if not id:
        stack = stacks.find_part(ctx, "confluent")
        own_id = stack.outputs.get("EnvironmentId", "") if isinstance(stack, Stack) else ""
        return GROUP.ok(ENVIRONMENT, f"{own_id}, created by this deployment" if own_id else "will be created")
    listed = {
        get_text(environment, "id"): environment for environment in vendor.cloud.pages("/org/v2/environments")
    }
    names = {listed_id: get_text(environment, "display_name") for listed_id, environment in listed.items()}
    fix = "Correct `confluent.environment_id` and `environment_name` in the deployment file"
    if id not in names:
        existing = ", ".join(f"{id} ({name})" for id, name in names.items())
        return GROUP.fail(ENVIRONMENT, f"the organization has no {id}; it has {existing}", fix)
    if names[id] != wanted:
        return GROUP.fail(ENVIRONMENT, f"{id} is called {names[id]}", fix, f"{wanted}, as the file says")
    if not get_text(listed[id], "stream_governance_config", "package"):
        ungoverned = f"{id} has no Stream Governance package, so it never gets a Schema Registry"
        return GROUP.fail(
            ENVIRONMENT,
            ungoverned,
            confluent_errors.NO_GOVERNANCE.remedy,
            "the package Essentials or Advanced",
        )
    return GROUP.ok(ENVIRONMENT, f"{id}, {wanted}")


def check_cluster(ctx: DeploymentContext, vendor: Confluent) -> Check:
    """Check a cluster that the file names. The deployment's own one is a part of the deployment."""
    confluent = ctx.deployment.created_confluent
    if not confluent.cluster_id or not confluent.environment_id:
        return GROUP.ok(CLUSTER, "the deployment creates it")
    fix = "Correct `confluent.cluster_id` in the deployment file"
    cluster = vendor.cluster(confluent.environment_id, confluent.cluster_id)
    if cluster is None:
        listed = vendor.cloud.pages("/cmk/v2/clusters", environment=confluent.environment_id)
        existing = ", ".join(
            f"{get_text(item, 'id')} ({get_text(item, 'spec', 'display_name')})" for item in listed
        )
        return GROUP.fail(
            CLUSTER,
            f"{confluent.environment_id} has no {confluent.cluster_id}; it has {existing or 'none'}",
            fix,
        )
    if problem := existing_cluster.find_problem(cluster, ctx.region):
        remedy = confluent_errors.UNFIT_CLUSTER.remedy
        return GROUP.fail(CLUSTER, f"{confluent.cluster_id} {problem}", remedy)
    name = get_text(cluster, "spec", "display_name")
    return GROUP.ok(CLUSTER, f"{confluent.cluster_id} ({name}), which is not changed")


def check_flink(ctx: DeploymentContext, vendor: Confluent) -> Check:
    try:
        return GROUP.ok(FLINK, get_text(vendor.flink_region(ctx.region), "id"))
    except NotFound:
        return GROUP.fail(FLINK, f"Confluent has no Flink in {CLOUD} {ctx.region}", _ANOTHER_REGION)


def check_tableflow(ctx: DeploymentContext, vendor: Confluent) -> Check:
    """Tableflow has its own keys.

    The deployment creates one; before that, Confluent may refuse the Cloud key.
    """
    try:
        plane = vendor.tableflow(ctx.secrets.read_key(ctx.confluent_secret("tableflow")))
    except NotFound:
        plane = vendor.tableflow(vendor.cloud.key)
    try:
        regions = {get_text(region, "region") for region in plane.pages("/tableflow/v1/regions", cloud=CLOUD)}
    except Denied:
        return GROUP.skip_unseen(
            TABLEFLOW, "not checked: it needs a Tableflow key, which the deployment creates"
        )
    if ctx.region in regions:
        return GROUP.ok(TABLEFLOW, ctx.region)
    return GROUP.fail(
        TABLEFLOW, f"Tableflow isn't in {ctx.region}; it is in {', '.join(sorted(regions))}", _ANOTHER_REGION
    )


def check_integrations(ctx: DeploymentContext, vendor: Confluent) -> Check:
    """Count the integrations of all environments. Confluent's list of quotas has no code for their limit."""
    environments = [get_text(environment, "id") for environment in vendor.cloud.pages("/org/v2/environments")]
    existing: list[Any] = []
    for id in environments:
        existing += vendor.cloud.pages("/pim/v1/integrations", environment=id)
    count = f"{len(existing)} of {_INTEGRATIONS}, unless Confluent raised it"
    role = ctx.role_arn("tableflow")
    roles = [get_text(integration, "config", "customer_iam_role_arn") for integration in existing]
    if len(existing) < _INTEGRATIONS or role in roles:
        return GROUP.ok(INTEGRATIONS, count)
    return GROUP.warn(INTEGRATIONS, count, "Remove integrations that nobody uses, or ask Confluent for more")


def check_quotas(ctx: DeploymentContext, vendor: Confluent) -> Check:
    """Name the quotas of the organization that are used up.

    Source: Confluent's documentation, "Service Quotas API": the applied limit, and for many quotas the usage.
    """
    try:
        applied = vendor.cloud.pages("/service-quota/v1/applied-quotas", scope="organization")
    except (Denied, NotFound):
        return GROUP.skip_unseen(QUOTAS, "not checked: Confluent doesn't show them to this key")
    used_up = [
        quota for quota in applied if _read_number(quota, "usage") >= _read_number(quota, "applied_limit") > 0
    ]
    if not used_up:
        return GROUP.ok(QUOTAS, f"none of {len(applied)} of the organization is used up")
    summary = "; ".join(
        f"{get_text(quota, 'display_name') or get_text(quota, 'id')}: {get_text(quota, 'usage')} of "
        f"{get_text(quota, 'applied_limit')}"
        for quota in used_up
    )
    fix = "If the next deployment creates such objects, delete what isn't needed or ask Confluent for more"
    return GROUP.warn(QUOTAS, f"used up: {summary}", fix)


def _read_number(quota: dict[str, Any], field: str) -> int:
    """Return a field of a quota, -1 if Confluent doesn't show it."""
    text = get_text(quota, field)
    return int(text) if text.isdigit() else -1
