"""What has to be there before anything is deployed. All that is missing is told at once."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import attrs
from botocore.exceptions import ClientError

from lakeferry import cdk, deployed, node
from lakeferry.cdk import NoCommandLine
from lakeferry.console import LATER, NOT_SET_UP, CommandFailed
from lakeferry.ground import Ground, aws_told
from lakeferry.node import NoNode
from lambdas.core.aws import error_code

#: Where CDK's bootstrap notes its version, and the oldest that does. A test holds it against the templates.
BOOTSTRAP: Final = "/cdk-bootstrap/hnb659fds/version"
BOOTSTRAP_VERSION: Final = 6
_ABSENT: Final = ("ParameterNotFound", "ResourceNotFoundException")
_CURRENT: Final = "AWSCURRENT"


@attrs.frozen
class Missing:
    what: str
    fix: str


def require(here: Ground) -> None:
    """Raises CommandFailed with all that is missing, or where CloudFormation is at work already."""
    missing = [*_tools(), *_of_aws(here)]
    if missing:
        told = "; ".join(one.what for one in missing)
        hint = "; ".join(dict.fromkeys(one.fix for one in missing))
        details = [attrs.asdict(one) for one in missing]
        raise CommandFailed(NOT_SET_UP, "DEPLOY-NOT-READY", f"not ready: {told}", hint, details)
    if busy := [stack for stack in deployed.read(here).values() if stack.is_busy]:
        told = ", ".join(f"{stack.name} is {stack.status}" for stack in busy)
        raise CommandFailed(LATER, "STACK-BUSY", told, "Wait until it is done, or cancel it, then run the command again")


def _tools() -> Iterator[Missing]:
    try:
        cdk.command_line(node.find())
    except (NoNode, NoCommandLine) as missing:
        yield Missing(str(missing), "`make setup`")


def _of_aws(here: Ground) -> Iterator[Missing]:
    try:
        _ = here.account
    except CommandFailed as failure:
        yield Missing(failure.message, failure.hint)
        return
    yield from _bootstrap(here)
    for name, fix in _secrets(here):
        yield from _secret(here, name, fix)


def _bootstrap(here: Ground) -> Iterator[Missing]:
    """Who may not ask is left to CDK, which asks with a role of its own."""
    fix = f"`python -m lakeferry.cdk bootstrap aws://{here.account}/{here.region}`"
    with aws_told("looking for CDK's bootstrap"):
        try:
            found = int(here.client("ssm").get_parameter(Name=BOOTSTRAP)["Parameter"]["Value"])
        except ClientError as error:
            if error_code(error) in _ABSENT:
                yield Missing(f"{here.region} is not bootstrapped for CDK", fix)
            elif "AccessDenied" not in error_code(error):
                raise
        else:
            if found < BOOTSTRAP_VERSION:
                yield Missing(f"CDK's bootstrap is of version {found}, and {BOOTSTRAP_VERSION} is needed", fix)


def _secrets(here: Ground) -> Iterator[tuple[str, str]]:
    """Names of those that people fill, and what does."""
    told = here.deployment
    yield told.confluent.cloud_key_secret, f"`lakeferry secrets set confluent --stage {here.stage}`"
    if told.snowflake and told.uses_snowflake:
        yield told.snowflake.key_secret, f"`lakeferry secrets set snowflake --stage {here.stage}`"
    if told.aws.pseudonym_secret:
        yield told.aws.pseudonym_secret, "restore that secret, or take aws.pseudonym_secret out of the deployment file"


def _secret(here: Ground, name: str, fix: str) -> Iterator[Missing]:
    with aws_told(f"looking at secret {name}"):
        try:
            found = here.client("secretsmanager").describe_secret(SecretId=name)
        except ClientError as error:
            if error_code(error) not in _ABSENT:
                raise
            found = {}
    labels = [label for each in (found.get("VersionIdsToStages") or {}).values() for label in each]
    if found.get("DeletedDate"):
        yield Missing(f"secret {name} is about to be deleted", f"`aws secretsmanager restore-secret --secret-id {name}`")
    elif _CURRENT not in labels:
        yield Missing(f"there is no key in secret {name}" if found else f"there is no secret {name}", fix)
