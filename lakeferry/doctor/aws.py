"""AWS: who we are there, and whether the region is ready for CDK."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from typing import Any, Final

import boto3
from botocore.exceptions import ClientError

from lakeferry.doctor.checks import Check, Group
from lakeferry.ground import Ground
from lakeferry.inventory.stacks import TOOLKIT
from lambdas.core.aws import error_code

GROUP: Final = Group("AWS")
#: What a deployment can't do without, of the services that some regions lack.
_SERVICES: Final = ("glue", "athena", "lambda", "stepfunctions", "scheduler")
#: CDK's own stack has this version at least: what the templates ask of it, and the role that looks things up.
BOOTSTRAP: Final = 8
_VERSION: Final = "BootstrapVersion"


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
    place = f"aws://{here.account}/{here.region}"
    fix = f"Run `{cdk()} bootstrap {place}`"
    try:
        found: Mapping[str, Any] = here.client("cloudformation").describe_stacks(StackName=TOOLKIT)["Stacks"][0]
    except ClientError as error:
        if error_code(error) != "ValidationError":
            raise
        return [GROUP.fail("bootstrap", f"there is no stack {TOOLKIT} in {here.region}", fix)]
    return [_standing(str(found["StackStatus"]), _version(found), fix)]


def cdk() -> str:
    """How the pinned command line is called from here."""
    return f"{min(sys.executable, os.path.relpath(sys.executable), key=len)} -m lakeferry.cdk"


def _standing(status: str, version: int, fix: str) -> Check:
    if not status.endswith("_COMPLETE") or status in ("ROLLBACK_COMPLETE", "DELETE_COMPLETE"):
        return GROUP.fail("bootstrap", f"stack {TOOLKIT} is {status}", fix)
    if version < BOOTSTRAP:
        return GROUP.fail("bootstrap", f"version {version}" if version else "no version is told", fix, f"{BOOTSTRAP} at least")
    return GROUP.ok("bootstrap", f"version {version}")


def _version(stack: Mapping[str, Any]) -> int:
    told = {output["OutputKey"]: output["OutputValue"] for output in stack.get("Outputs", [])}
    return int(told[_VERSION]) if str(told.get(_VERSION, "")).isdigit() else 0


def _partitions(session: Any) -> list[str]:
    return list(session.get_available_partitions())


def _regions(session: Any, service: str, partition: str) -> list[str]:
    return list(session.get_available_regions(service, partition))
