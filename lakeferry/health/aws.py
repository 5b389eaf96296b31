"""AWS: who we are there, and whether the region is ready for CDK."""

from __future__ import annotations

import os
import sys
from typing import Any, Final

import boto3
from botocore.exceptions import ClientError

from lakeferry.deployment.context import Ground
from lakeferry.health.model import Check, Group
from lambdas.shared.aws import error_code

GROUP: Final = Group("AWS")
#: What a deployment can't do without, of the services that some regions lack.
_SERVICES: Final = ("glue", "athena", "lambda", "stepfunctions", "scheduler")
#: Where CDK's bootstrap notes its version, and the oldest that does. A test holds it against the templates.
BOOTSTRAP_PARAMETER: Final = "/cdk-bootstrap/hnb659fds/version"
BOOTSTRAP: Final = 6


def identity(here: Ground) -> list[Check]:
    """Raises CommandFailed where nobody is logged in, or to another account than the file's."""
    account, arn = here.account, str(here.client("sts").get_caller_identity()["Arn"])
    named = (
        "which the file names" if here.deployment.aws.account else "whatever account you are logged in to: the file names none"
    )
    return [GROUP.ok("identity", arn), GROUP.ok("account", f"{account}, {named}")]


def region(here: Ground) -> list[Check]:
    """As the SDK knows regions: it may be older than the newest of them."""
    session = boto3.session.Session()
    lacking = [
        name for name in _SERVICES if not any(here.region in _regions(session, name, each) for each in _partitions(session))
    ]
    if not lacking:
        return [GROUP.ok("region", here.region)]
    told = f"{here.region}: the SDK knows no {', '.join(lacking)} there"
    return [
        GROUP.warn("region", told, "Check `aws.region` in the deployment file; a region that is new may be there all the same")
    ]


def bootstrap(here: Ground) -> list[Check]:
    """By the parameter that the templates themselves look at. Raises ClientError."""
    fix = f"Run `{cdk()} bootstrap aws://{here.account}/{here.region}`"
    try:
        version = int(here.client("ssm").get_parameter(Name=BOOTSTRAP_PARAMETER)["Parameter"]["Value"])
    except ClientError as error:
        if error_code(error) != "ParameterNotFound":
            raise
        return [GROUP.fail("bootstrap", f"{here.region} is not bootstrapped for CDK", fix)]
    if version < BOOTSTRAP:
        return [GROUP.fail("bootstrap", f"CDK's bootstrap is of version {version}", fix, f"{BOOTSTRAP} at least")]
    return [GROUP.ok("bootstrap", f"version {version}")]


def cdk() -> str:
    """How the pinned command line is called from here."""
    return f"{min(sys.executable, os.path.relpath(sys.executable), key=len)} -m lakeferry.deployment.cdk"


def _partitions(session: Any) -> list[str]:
    return list(session.get_available_partitions())


def _regions(session: Any, service: str, partition: str) -> list[str]:
    return list(session.get_available_regions(service, partition))
