"""Check prerequisites before anything is deployed. All missing prerequisites are reported together."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from typing import Final

import attrs
from botocore.exceptions import ClientError

from lakeferry.deployment import cdk, node, stacks
from lakeferry.deployment.cdk import NoCommandLine
from lakeferry.deployment.context import DeploymentContext
from lakeferry.deployment.node import NoNode
from lakeferry.error_translation import translate_aws_errors
from lakeferry.errors import CommandFailed
from lakeferry.health import aws, doctor, runner
from lakeferry.health.runner import Probe
from lambdas.shared.aws import read_error_code
from lambdas.shared.secrets import CURRENT

#: Groups of `lakeferry doctor` in which every check must pass. Otherwise the deployment would fail only after
#: some minutes.
_GROUPS: Final = ("network", "KMS keys", "storage", "Confluent", "Snowflake")
_ABSENT: Final = ("ParameterNotFound", "ResourceNotFoundException")


@attrs.frozen
class Missing:
    what: str
    fix: str


def require(ctx: DeploymentContext) -> None:
    """Raise CommandFailed if prerequisites are missing, or if CloudFormation is already working on a
    stack.
    """
    missing = [*_find_missing_tools(), *_find_missing_in_aws(ctx)]
    if not missing:
        probes = [probe for probe in doctor.list_probes(ctx) if probe.group.name in _GROUPS]
        missing = list(_find_failed_checks(probes))
    if missing:
        message = "; ".join(problem.what for problem in missing)
        hint = "; ".join(dict.fromkeys(problem.fix for problem in missing))
        details = [attrs.asdict(problem) for problem in missing]
        raise CommandFailed("DEPLOY-NOT-READY", f"not ready: {message}", hint, details)
    require_idle(ctx)


def require_idle(ctx: DeploymentContext) -> None:
    """Raise CommandFailed if CloudFormation is working on a stack: what it will have at the end is not
    known.
    """
    if busy := [stack for stack in stacks.read(ctx).values() if stack.is_in_progress]:
        message = ", ".join(f"{stack.name} is {stack.status}" for stack in busy)
        raise CommandFailed("STACK-BUSY", message)


def _find_missing_tools() -> Iterator[Missing]:
    try:
        cdk.ensure_command_line(node.find())
    except (NoNode, NoCommandLine) as missing:
        yield Missing(str(missing), "`make setup`")


def _find_missing_in_aws(ctx: DeploymentContext) -> Iterator[Missing]:
    try:
        _ = ctx.account
    except CommandFailed as failure:
        yield Missing(failure.message, failure.hint)
        return
    # Only the first deployment needs a high Lambda quota: it creates most resources at the same time.
    names = ["bootstrap", aws.LAKE_FORMATION]
    if not stacks.read(ctx):
        names.append(aws.LAMBDA_QUOTA)
    yield from _find_failed_checks(probe for probe in doctor.list_probes(ctx) if probe.name in names)
    for name, fix in _list_manual_secrets(ctx):
        yield from _find_missing_secret(ctx, name, fix)


def _find_failed_checks(probes: Iterable[Probe]) -> Iterator[Missing]:
    """Yield the failed checks that no other check caused.

    Checks whose result is unknown don't block the deployment.
    """
    for check in runner.run(list(probes)):
        if check.is_root:
            needed = f" (needed: {check.needed})" if check.needed else ""
            yield Missing(f"{check.group}: {check.name}: {check.message}{needed}", check.fix)


def _list_manual_secrets(ctx: DeploymentContext) -> Iterator[tuple[str, str]]:
    """Yield the names of the secrets that people fill, each with how to do it."""
    deployment = ctx.deployment
    if deployment.confluent:
        yield deployment.confluent.cloud_key_secret, f"`lakeferry secrets set confluent --stage {ctx.stage}`"
        for service, name in deployment.confluent.brought_keys.items():
            yield (
                name,
                f"store the {service.replace('_', ' ')} key that you bring: `aws secretsmanager "
                f"create-secret --name {name} --secret-string file://key.json`",
            )
    if deployment.source:
        for service, name in deployment.source.brought_keys.items():
            yield (
                name,
                f"store the {service} key, as JSON with apiKey and apiSecret: `aws secretsmanager "
                f"create-secret --name {name} --secret-string file://key.json`",
            )
    if deployment.snowflake and deployment.uses_snowflake:
        yield deployment.snowflake.key_secret, f"`lakeferry secrets set snowflake --stage {ctx.stage}`"
    if deployment.aws.pseudonym_secret:
        yield (
            deployment.aws.pseudonym_secret,
            "restore that secret, or remove aws.pseudonym_secret from the deployment file",
        )


def _find_missing_secret(ctx: DeploymentContext, name: str, fix: str) -> Iterator[Missing]:
    with translate_aws_errors(f"reading secret {name}"):
        try:
            secret = ctx.client("secretsmanager").describe_secret(SecretId=name)
        except ClientError as error:
            if read_error_code(error) not in _ABSENT:
                raise
            secret = {}
    labels_by_version = secret.get("VersionIdsToStages") or {}
    labels = list(itertools.chain.from_iterable(labels_by_version.values()))
    if secret.get("DeletedDate"):
        yield Missing(
            f"secret {name} is about to be deleted", f"`aws secretsmanager restore-secret --secret-id {name}`"
        )
    elif CURRENT not in labels:
        yield Missing(f"there is no key in secret {name}" if secret else f"there is no secret {name}", fix)
