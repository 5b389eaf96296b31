"""The AWS account: who is logged in, whether the region is ready for CDK, and quotas that a deployment can
run into.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping, Sequence
from typing import Any, Final

import boto3
from botocore.exceptions import BotoCoreError, ClientError

from lakeferry.deployment.context import DeploymentContext
from lakeferry.health.model import Check, Group
from lakeferry.inventory.aws_listing import list_pages
from lakeferry.local.bootstrap import ROOT
from lambdas.custom_resources.cleanup import gives_all_to_iam
from lambdas.shared.aws import answer_to, read_error_code
from lambdas.shared.redaction import redact

GROUP: Final = Group("AWS")
#: Services that a deployment needs and that some regions lack.
_SERVICES: Final = ("glue", "athena", "lambda", "stepfunctions", "scheduler")
#: The parameter with the version of CDK's bootstrap stack, and the oldest version that the templates accept.
#: A test compares both with the templates.
#: CDK's own qualifier, which a deployment has unless its file names another one.
DEFAULT_QUALIFIER: Final = "hnb659fds"
BOOTSTRAP_PARAMETER: Final = f"/cdk-bootstrap/{DEFAULT_QUALIFIER}/version"
#: In cdk.json, where an organization may have its own qualifier for all of its apps.
_CONTEXT_KEY: Final = "@aws-cdk/core:bootstrapQualifier"
LAKE_FORMATION: Final = "Lake Formation"
BOOTSTRAP: Final = 6
#: A deployment creates more than ten custom resources in parallel. For each, a function of CDK's framework
#: invokes a function of Lakeferry, and fails the resource if Lambda throttles that invocation. The quota of a
#: new account may be ten.
_EXECUTIONS: Final = 50
LAMBDA_QUOTA: Final = "Lambda concurrent executions"
_DPU: Final = {"G.1X": 1, "G.2X": 2, "G.4X": 4}
_RUNS: Final = "concurrent job runs per account"
_DPUS: Final = "task dpus per account"
_RAISE: Final = "Request an increase in Service Quotas, AWS {service}"


def check_identity(ctx: DeploymentContext) -> list[Check]:
    """Raises CommandFailed without credentials, or if they are for another account than the deployment
    file's.
    """
    account = ctx.account
    arn = str(ctx.client("sts").get_caller_identity()["Arn"])
    origin = (
        "which the file names"
        if ctx.deployment.aws.account
        else "the account that you are logged in to; the file names none"
    )
    return [GROUP.ok("identity", arn), GROUP.ok("account", f"{account}, {origin}")]


def check_region(ctx: DeploymentContext) -> list[Check]:
    """Check the region with the SDK's list of regions, which may lack the newest ones."""
    session = boto3.session.Session()
    lacking = []
    for service in _SERVICES:
        partitions = session.get_available_partitions()
        regions = [session.get_available_regions(service, partition) for partition in partitions]
        if not any(ctx.region in names_of_partition for names_of_partition in regions):
            lacking.append(service)
    if not lacking:
        return [GROUP.ok("region", ctx.region)]
    fix = "Check `aws.region` in the deployment file; a new region may have them nevertheless"
    return [GROUP.warn("region", f"{ctx.region}: the SDK knows no {', '.join(lacking)} there", fix)]


def check_bootstrap(ctx: DeploymentContext) -> list[Check]:
    """Check the version in the SSM parameter that the templates read, too. Raises ClientError."""
    qualifier = find_bootstrap_qualifier(ctx)
    own = ""
    if qualifier != DEFAULT_QUALIFIER:
        own = f" --qualifier {qualifier} --toolkit-stack-name CDKToolkit-{qualifier}"
    fix = f"Run `{write_cdk_command()} bootstrap{own} aws://{ctx.account}/{ctx.region}`"
    parameter = BOOTSTRAP_PARAMETER.replace(DEFAULT_QUALIFIER, qualifier)
    try:
        version = int(ctx.client("ssm").get_parameter(Name=parameter)["Parameter"]["Value"])
    except ClientError as error:
        if read_error_code(error) != "ParameterNotFound":
            raise
        absent = f"{ctx.region} is not bootstrapped for CDK"
        if own:
            absent += f" with qualifier {qualifier}"
        else:
            fix += (
                "; if your organization bootstraps with a qualifier of its own, set "
                "`aws.bootstrap_qualifier` instead"
            )
        return [GROUP.fail("bootstrap", absent, fix)]
    if version < BOOTSTRAP:
        return [
            GROUP.fail("bootstrap", f"CDK's bootstrap has version {version}", fix, f"{BOOTSTRAP} at least")
        ]
    return [GROUP.ok("bootstrap", f"version {version}")]


def find_bootstrap_qualifier(ctx: DeploymentContext) -> str:
    """Return the qualifier that the templates use: the deployment file's, that of cdk.json, or CDK's own."""
    context = json.loads((ROOT / "cdk.json").read_text(encoding="utf-8")).get("context") or {}
    return ctx.deployment.aws.bootstrap_qualifier or str(context.get(_CONTEXT_KEY) or DEFAULT_QUALIFIER)


def check_lake_formation(ctx: DeploymentContext) -> list[Check]:
    """Look up who decides about new Glue databases and tables. Raises ClientError.

    Source: Lake Formation's developer guide, "Changing the default settings for your data lake": if the
    defaults don't give all permissions to IAMAllowedPrincipals, IAM's permissions alone let nobody read new
    databases and tables.
    """
    settings = ctx.client("lakeformation").get_data_lake_settings(CatalogId=ctx.account)["DataLakeSettings"]
    governed = [
        kind
        for kind, key in (
            ("databases", "CreateDatabaseDefaultPermissions"),
            ("tables", "CreateTableDefaultPermissions"),
        )
        if not gives_all_to_iam(settings.get(key) or [])
    ]
    if ctx.deployment.aws.lake_formation:
        return [_check_administrator(ctx, settings.get("DataLakeAdmins") or [])]
    if not governed:
        return [GROUP.ok(LAKE_FORMATION, "IAM decides about new databases and tables")]
    message = f"it decides about new {' and '.join(governed)} of Glue, beside IAM"
    fix = "Set `aws.lake_formation = true` in the deployment file: each role then gets what it needs"
    return [GROUP.warn(LAKE_FORMATION, message, fix)]


def _check_administrator(ctx: DeploymentContext, administrators: Sequence[Mapping[str, Any]]) -> Check:
    """Check that the role with which CloudFormation deploys may grant permissions. Only data lake
    administrators may, on databases that others have created.
    """
    role = (
        f"arn:aws:iam::{ctx.account}:role/cdk-{find_bootstrap_qualifier(ctx)}-cfn-exec-role-"
        f"{ctx.account}-{ctx.region}"
    )
    if role in [administrator.get("DataLakePrincipalIdentifier") for administrator in administrators]:
        return GROUP.ok(LAKE_FORMATION, f"{role} may grant permissions")
    return GROUP.fail(
        LAKE_FORMATION,
        "the role with which CloudFormation deploys is not a data lake administrator, so it can't grant what "
        "the deployment's roles need",
        "Ask a data lake administrator to add it in Lake Formation, under Administrative roles and tasks. If "
        "Lake Formation doesn't govern the catalog, remove `aws.lake_formation`",
        role,
    )


def write_cdk_command() -> str:
    """Return the command that runs the pinned CDK command line from the current folder."""
    return f"{min(sys.executable, os.path.relpath(sys.executable), key=len)} -m lakeferry.deployment.cdk"


def check_lambda_quota(ctx: DeploymentContext) -> list[Check]:
    limit = int(ctx.client("lambda").get_account_settings()["AccountLimit"]["ConcurrentExecutions"])
    if limit >= _EXECUTIONS:
        return [GROUP.ok(LAMBDA_QUOTA, str(limit))]
    too_few = (
        f"{limit}, for all functions of the account together: a deployment can fail because Lambda "
        "throttles its functions"
    )
    return [GROUP.fail(LAMBDA_QUOTA, too_few, _RAISE.format(service="Lambda"), f"{_EXECUTIONS} or more")]


def check_glue_quotas(ctx: DeploymentContext) -> list[Check]:
    """Check that every export can have a run at the same time, each with all its workers."""
    exports = max(1, len(ctx.deployment.exports))
    aws = ctx.deployment.aws
    dpus = aws.glue_workers * _DPU[aws.glue_worker_type]
    try:
        limits = _read_glue_limits(ctx)
    except (ClientError, BotoCoreError) as error:
        reason = redact(answer_to(error)) if isinstance(error, ClientError) else type(error).__name__
        why = f"Service Quotas can't be read: {reason}"
        fix = "Look at them in the console of Service Quotas"
        return [GROUP.warn_unseen(f"Glue: {name}", why, fix) for name in ("concurrent runs", "DPUs")]
    return [
        _check_limit("Glue: concurrent runs", limits.get(_RUNS), 1, exports),
        _check_limit("Glue: DPUs", limits.get(_DPUS), dpus, exports * dpus),
    ]


def _read_glue_limits(ctx: DeploymentContext) -> dict[str, float]:
    """Return quotas by the last words of their names, in lower case, because the first words differ between
    accounts.
    """
    limits = {}
    for page in list_pages(ctx, "service-quotas", "list_service_quotas", ServiceCode="glue"):
        for quota in page["Quotas"]:
            name = quota["QuotaName"].lower()
            for end in (_RUNS, _DPUS):
                if name.endswith(end):
                    limits[end] = float(quota["Value"])
    return limits


def _check_limit(name: str, limit: float | None, least: int, all_at_once: int) -> Check:
    if limit is None:
        return GROUP.warn_unseen(
            name, "Service Quotas doesn't list it", "Look at it in the console of Service Quotas"
        )
    fix = _RAISE.format(service="Glue")
    if limit < least:
        return GROUP.fail(name, f"{limit:g}", fix, f"{least} for one export")
    if limit < all_at_once:
        waits = f"{limit:g}; exports that start together wait or fail"
        return GROUP.warn(name, waits, fix, f"{all_at_once} for all exports at once")
    return GROUP.ok(name, f"{limit:g}, for {all_at_once} at most")
