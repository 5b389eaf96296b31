"""All groups of checks in the order in which `lakeferry doctor` shows them."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Final

from lakeferry.deployment.context import DeploymentContext
from lakeferry.errors import CommandFailed
from lakeferry.health import (
    aws,
    confluent,
    confluent_to_aws,
    keys,
    mail,
    network,
    registered_schemas,
    snowflake,
    snowflake_to_aws,
    source,
    storage,
    tenants,
    tools,
)
from lakeferry.health.model import Check, Group
from lakeferry.health.runner import Probe

#: (group, name of the check that fails if the service doesn't answer, function that makes the checks)
_OF_DEPLOYMENT: Final[tuple[tuple[Group, str, Callable[[DeploymentContext], list[Check]]], ...]] = (
    (tools.FILE, "deployment file", lambda ctx: tools.check_file(ctx.loaded)),
    (aws.GROUP, "identity", aws.check_identity),
    (aws.GROUP, "region", aws.check_region),
    (aws.GROUP, "bootstrap", aws.check_bootstrap),
    (aws.GROUP, aws.LAKE_FORMATION, aws.check_lake_formation),
    (aws.GROUP, aws.LAMBDA_QUOTA, aws.check_lambda_quota),
    (aws.GROUP, "Glue: quotas", aws.check_glue_quotas),
    (network.GROUP, network.SUBNETS, network.look),
    (keys.GROUP, keys.NAME, keys.look),
    (mail.GROUP, mail.IDENTITY, mail.look),
    (storage.GROUP, "buckets", storage.check_chosen_buckets),
    (source.GROUP, source.DATABASE, source.look),
    (registered_schemas.GROUP, registered_schemas.KEY, registered_schemas.look),
    (confluent.GROUP, confluent.KEY, confluent.look),
    (
        confluent.GROUP,
        tenants.ORGANIZATION,
        lambda ctx: tenants.look(ctx, confluent.GROUP, tenants.ORGANIZATION, "confluent"),
    ),
    (snowflake.GROUP, snowflake.KEY, snowflake.look),
    (
        snowflake.GROUP,
        tenants.ACCOUNT,
        lambda ctx: (
            tenants.look(ctx, snowflake.GROUP, tenants.ACCOUNT, "snowflake")
            if ctx.deployment.uses_snowflake
            else [snowflake.GROUP.skip(tenants.ACCOUNT, snowflake.NOT_USED)]
        ),
    ),
    (confluent_to_aws.GROUP, confluent_to_aws.INTEGRATION, confluent_to_aws.look),
    (snowflake_to_aws.GROUP, snowflake_to_aws.VOLUME, snowflake_to_aws.look),
)
#: Groups that a deployment with `[source]` has no use for.
_WITHOUT_CONFLUENT: Final = (confluent.GROUP, confluent_to_aws.GROUP, snowflake.GROUP, snowflake_to_aws.GROUP)
#: Checks that are made without a login to the deployment's account. "identity" says what is wrong with the
#: login.
_WITHOUT_LOGIN: Final = ("deployment file", "identity", "region")


def list_probes(ctx: DeploymentContext) -> list[Probe]:
    def checks(group: Group, name: str, look: Callable[[DeploymentContext], list[Check]]) -> list[Check]:
        if name not in _WITHOUT_LOGIN and (why := _login_problem(ctx)):
            return [group.skip_unseen(name, f"not checked: {why}")]
        return look(ctx)

    absent = set(_WITHOUT_CONFLUENT if ctx.deployment.confluent is None else ())
    if not registered_schemas.has_registry(ctx.deployment):
        absent.add(registered_schemas.GROUP)
    if ctx.deployment.mail is None:
        absent.add(mail.GROUP)
    return [
        *list_machine_probes(),
        *(
            Probe(group, name, partial(checks, group, name, look))
            for group, name, look in _OF_DEPLOYMENT
            if group not in absent
        ),
    ]


def _login_problem(ctx: DeploymentContext) -> str:
    try:
        _ = ctx.account
    except CommandFailed as failure:
        return {
            "AWS-CREDENTIALS": "nobody is logged in to AWS",
            "AWS-ACCOUNT": "logged in to another AWS account",
        }.get(failure.code, "")
    return ""


def list_machine_probes() -> list[Probe]:
    """Return the probes that don't need a valid deployment file."""
    return [Probe(tools.GROUP, "tools", tools.check_machine)]
