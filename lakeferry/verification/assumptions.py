"""Ask the real services what the stand-ins assume of them, by calls that only read."""

from __future__ import annotations

import functools
import re
import tomllib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import attrs
from botocore.exceptions import ClientError

from lakeferry.deployment import stacks
from lakeferry.deployment.context import DeploymentContext
from lakeferry.error_translation import is_aws_denial
from lakeferry.errors import CommandFailed
from lakeferry.verification.claims import explain_no_confluent, explain_no_snowflake, explain_no_table_in_glue
from lakeferry.verification.evidence import Answer, Asked, Finding
from lakeferry.verification.tables import find_database
from lambdas.shared.errors import LakeferryError, NotFound
from lambdas.snowflake import sql

LIST: Final = Path(__file__).with_name("assumptions.toml")
#: The name of what doesn't exist.
_NOTHING: Final = "lakeferry-asks-for-what-does-not-exist"
_REGION: Final = re.compile(r"(?:[A-Z0-9]+\.)?AWS_[A-Z]{2}(?:_[A-Z]+)+_[0-9]")


@attrs.frozen
class Assumption:
    """`stand_in` is what the stand-in answers to `call`; `source` is a URL."""

    id: str
    assumed: str
    call: str
    stand_in: str
    source: str


@functools.cache
def load_assumptions() -> tuple[Assumption, ...]:
    listed = tomllib.loads(LIST.read_text(encoding="utf-8"))["assumption"]
    return tuple(Assumption(**entry) for entry in listed)


def check_assumptions(ctx: DeploymentContext, assumptions: Sequence[Assumption]) -> list[Finding]:
    """Return a finding for each assumption: it fails if the service answers otherwise than the stand-in."""
    findings = []
    for assumption in assumptions:
        asked = Asked(assumption.assumed, assumption.id, assumption.call)
        if why := _explain_not_asked(ctx, assumption.id):
            findings.append(asked.not_asked(why))
        else:
            findings.append(asked.look(functools.partial(_compare, ctx, assumption)))
    return findings


def _explain_not_asked(ctx: DeploymentContext, name: str) -> str:
    if name.startswith("confluent-"):
        return explain_no_confluent(ctx.deployment)
    if name.startswith("snowflake-"):
        return explain_no_snowflake(ctx.deployment)
    return explain_no_table_in_glue(ctx.deployment) if name.startswith("glue-table-") else ""


def _compare(ctx: DeploymentContext, assumption: Assumption) -> Answer:
    live = CALLS[assumption.id](ctx)
    is_same = live == assumption.stand_in
    return Answer(is_same, f"live: {live}" + ("" if is_same else f"; the simulator: {assumption.stand_in}"))


def _read_refusal(call: Callable[..., Any], /, **parameters: Any) -> str:
    """Return the code with which AWS refuses the call. Raises ClientError if it denies it."""
    try:
        call(**parameters)
    except ClientError as error:
        if is_aws_denial(error):
            raise
        return str(error.response["Error"]["Code"])
    return "no error"


def _ask_for_table(ctx: DeploymentContext) -> str:
    return _read_refusal(ctx.client("glue").get_table, DatabaseName=_find_any_database(ctx), Name=_NOTHING)


def _find_any_database(ctx: DeploymentContext) -> str:
    return find_database(ctx) if ctx.deployment.tables_in_glue else "default"


def _ask_for_object(ctx: DeploymentContext) -> str:
    bucket = stacks.require_output(ctx, "data", "LakeBucketName")
    return _read_refusal(ctx.client("s3").get_object, Bucket=bucket, Key=_NOTHING)


def _ask_for_secret(ctx: DeploymentContext) -> str:
    return _read_refusal(ctx.client("secretsmanager").describe_secret, SecretId=_NOTHING)


def _ask_for_stack(ctx: DeploymentContext) -> str:
    try:
        ctx.client("cloudformation").describe_stacks(StackName=_NOTHING)
    except ClientError as error:
        if is_aws_denial(error):
            raise
        answer = error.response["Error"]
        says = "does not exist" if "does not exist" in answer["Message"] else "other words"
        return f"{answer['Code']}: {says}"
    return "no error"


def _ask_for_role(ctx: DeploymentContext) -> str:
    return _read_refusal(ctx.client("iam").get_role, RoleName=_NOTHING)


def _ask_for_log_group(ctx: DeploymentContext) -> str:
    return _read_refusal(ctx.client("logs").describe_log_streams, logGroupName=f"/{_NOTHING}")


def _ask_for_schedule(ctx: DeploymentContext) -> str:
    return _read_refusal(ctx.client("scheduler").get_schedule, Name=_NOTHING)


def _read_entry(ctx: DeploymentContext) -> dict[str, Any]:
    """Return the entry of the file's first table in Glue."""
    topic = ctx.deployment.tables_in_glue[0]
    found = ctx.client("glue").get_table(DatabaseName=find_database(ctx), Name=topic.table)
    return dict(found["Table"])


def _ask_for_parameters(ctx: DeploymentContext) -> str:
    parameters = _read_entry(ctx).get("Parameters", {})
    location = str(parameters.get("metadata_location", ""))
    shape = "*.metadata.json" if location.endswith(".metadata.json") else location or "none"
    return f"table_type {parameters.get('table_type', 'none').upper()}, metadata_location {shape}"


def _ask_for_columns(ctx: DeploymentContext) -> str:
    described = _read_entry(ctx).get("StorageDescriptor", {})
    return "columns" if described.get("Columns") else "no columns"


def _ask_for_environment(ctx: DeploymentContext) -> str:
    found = ctx.confluent().cloud.read("/org/v2/environments/env-000000")
    return "absent" if found is None else "present"


def _ask_for_cluster(ctx: DeploymentContext) -> str:
    confluent = ctx.deployment.confluent
    chosen = confluent.environment_id if confluent else None
    environment = chosen or stacks.require_output(ctx, "confluent", "EnvironmentId")
    found = ctx.confluent().cloud.read("/cmk/v2/clusters/lkc-000000", environment=environment)
    return "absent" if found is None else "present"


def _ask_for_volume(ctx: DeploymentContext) -> str:
    name = sql.identifier(_NOTHING.upper().replace("-", "_"))
    try:
        ctx.snowflake().run(sql.statement("DESC EXTERNAL VOLUME {name}", name=name))
    except NotFound as absent:
        return absent.kind.code
    except LakeferryError as error:
        return error.kind.code
    return "no error"


def _ask_for_region(ctx: DeploymentContext) -> str:
    rows = ctx.snowflake().run(sql.statement("SELECT CURRENT_REGION() AS REGION"))
    region = next(iter(rows), {}).get("region", "")
    if not region:
        raise CommandFailed("INCOMPLETE", "Snowflake says no region")
    return "AWS_<REGION>" if _REGION.fullmatch(region) else region


#: By the id of the assumption.
CALLS: Final[Mapping[str, Callable[[DeploymentContext], str]]] = {
    "glue-missing-table": _ask_for_table,
    "s3-missing-object": _ask_for_object,
    "secret-missing": _ask_for_secret,
    "stack-missing": _ask_for_stack,
    "role-missing": _ask_for_role,
    "log-group-missing": _ask_for_log_group,
    "schedule-missing": _ask_for_schedule,
    "glue-table-parameters": _ask_for_parameters,
    "glue-table-columns": _ask_for_columns,
    "confluent-missing-environment": _ask_for_environment,
    "confluent-missing-cluster": _ask_for_cluster,
    "snowflake-missing-volume": _ask_for_volume,
    "snowflake-region": _ask_for_region,
}
