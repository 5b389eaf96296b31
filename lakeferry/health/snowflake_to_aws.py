"""The trust chain from Snowflake to AWS: external volume, catalog integration, IAM role, bucket, Glue, and
tables.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import partial
from typing import Final, TypeVar

import attrs

from lakeferry.deployment import stacks
from lakeferry.deployment.context import DeploymentContext
from lakeferry.deployment.stacks import Stack
from lakeferry.health import runner
from lakeferry.health import trust as iam
from lakeferry.health.model import Check, Group, mark_consequences
from lakeferry.health.snowflake import NOT_USED
from lakeferry.health.trust import Principal, Role
from lambdas import contract
from lambdas.custom_resources import request
from lambdas.monitoring.measurements import read_auto_refresh
from lambdas.shared.errors import NotFound
from lambdas.snowflake import sql
from lambdas.snowflake.client import Snowflake
from lambdas.snowflake.resources import trust
from lambdas.snowflake.resources.trust import Side

GROUP: Final = Group("Snowflake → AWS")
VOLUME: Final = "external volume"
INTEGRATION: Final = "catalog integration"
ROLE: Final = iam.ROLE
OF_VOLUME: Final = "role's trust of the volume"
OF_INTEGRATION: Final = "role's trust of the catalog"
POLICY: Final = iam.POLICY
READS_BUCKET: Final = "Snowflake reaches the bucket"
READS_GLUE: Final = "Snowflake reaches Glue"
NAMESPACE: Final = "Glue database in Snowflake"
NAMES: Final = (
    VOLUME, INTEGRATION, ROLE, OF_VOLUME, OF_INTEGRATION, POLICY, READS_BUCKET, READS_GLUE, NAMESPACE,
)  # fmt: skip
_WHO: Final = "SELECT CURRENT_USER() AS RESULT"
_REPAIR: Final = "Run `lakeferry deploy --repair`: it creates again what is missing"
_REPLACED: Final = (
    "Somebody changed or replaced it. DROP it in Snowflake, then run `lakeferry deploy --repair`, which "
    "creates it as it was"
)
_RECOVERY: Final = "Snowflake notices within minutes"
_REGION: Final = re.compile(r"https://glue\.([a-z0-9-]+)\.")
_VOLUME_KIND: Final = "snowflake_external_volume"
#: The logical id of the volume with the aggregates.
_AGGREGATES_VOLUME: Final = "AggregatesVolume"
_INTEGRATION_KIND: Final = "snowflake_catalog_integration"
T = TypeVar("T")


@attrs.frozen
class _Checks:
    """The names of the checks of one external volume."""

    volume: str
    trust: str
    reads: str
    namespace: str


_OF_TABLES: Final = _Checks(VOLUME, OF_VOLUME, READS_BUCKET, NAMESPACE)
_OF_AGGREGATES: Final = _Checks(
    "external volume of aggregates",
    "role's trust of the aggregates' volume",
    "Snowflake reaches the aggregates",
    "Glue database of aggregates in Snowflake",
)


@attrs.frozen
class _Files:
    """The files that one external volume shows: its logical id, bucket and folder, and the Glue database of
    the tables. The folder ends in a slash, or is "".
    """

    checks: _Checks
    logical_id: str
    bucket: str
    folder: str
    database: str

    @property
    def location(self) -> str:
        return f"s3://{self.bucket}/{self.folder}"


@attrs.frozen
class _Chain:
    """`tables` are in Tableflow's bucket, in a Glue database whose name is the Kafka cluster's id.

    `files` has them too, and the aggregates if Snowflake shows them.
    """

    ctx: DeploymentContext
    stack: Stack
    tables: _Files
    files: tuple[_Files, ...]

    def find_volume(self, files: _Files) -> str:
        name = stacks.find_object_name(self.ctx, self.stack, _VOLUME_KIND, files.logical_id)
        return sql.to_plain_name(name)

    @property
    def has_aggregates(self) -> bool:
        return len(self.files) > 1

    @property
    def integration(self) -> str:
        return sql.to_plain_name(stacks.find_object_name(self.ctx, self.stack, _INTEGRATION_KIND))

    def external_id(self, kind: str, logical_id: str = "") -> str:
        """Return the external id that Lakeferry chose for the stack's object of this kind."""
        identity = self.stack.identity(kind, logical_id)
        return sql.build_external_id(
            request.compute_resource_uid(self.stack.id, identity.logical_id) if identity else ""
        )


def look(ctx: DeploymentContext) -> list[Check]:
    """Raises CommandFailed if CloudFormation can't be read."""
    tables = _list_tables(ctx, aggregates=ctx.deployment.shows_aggregates)
    of_aggregates = attrs.astuple(_OF_AGGREGATES) if ctx.deployment.shows_aggregates else ()
    names = (*NAMES, *of_aggregates, *map(_name_table_check, tables))
    if not ctx.deployment.uses_snowflake:
        return GROUP.skip_all(names, NOT_USED)
    parts = [stacks.find_part(ctx, part) for part in ("snowflake", "data", "confluent")]
    for part in parts:
        if isinstance(part, str):
            return GROUP.skip_all_unseen(names, f"not deployed: {part}")
    own, data, confluent = (part for part in parts if isinstance(part, Stack))
    chain = _find_chain(ctx, own, data, confluent)
    vendor = runner.attempt(GROUP, VOLUME, lambda: _log_in(ctx))
    checks = _from_aws_alone(chain, vendor) if isinstance(vendor, Check) else _run_checks(chain, vendor)
    causes: dict[str, tuple[str, ...]] = {OF_INTEGRATION: (INTEGRATION,), READS_GLUE: ()}
    for files in chain.files:
        causes |= {files.checks.trust: (files.checks.volume,), files.checks.reads: ()}
        causes[files.checks.namespace] = ()
    causes |= dict.fromkeys(map(_name_table_check, tables), ())
    if not chain.has_aggregates:
        checks += GROUP.skip_all_unseen(of_aggregates, "not deployed yet: run `lakeferry deploy`")
    return mark_consequences(checks, causes, _RECOVERY)


def _find_chain(ctx: DeploymentContext, own: Stack, data: Stack, confluent: Stack) -> _Chain:
    bucket = data.outputs.get("TableflowBucketName", "")
    tables = _Files(_OF_TABLES, "Volume", bucket, "", confluent.outputs.get("KafkaClusterId", ""))
    if not own.identity(_VOLUME_KIND, _AGGREGATES_VOLUME):
        return _Chain(ctx, own, tables, (tables,))
    folder = f"{ctx.deployment.lake_root}{contract.WAREHOUSE}/"
    aggregates = _Files(
        _OF_AGGREGATES,
        _AGGREGATES_VOLUME,
        data.outputs.get("LakeBucketName", ""),
        folder,
        data.outputs.get("AggregatesDatabase", ""),
    )
    return _Chain(ctx, own, tables, (tables, aggregates))


def _list_tables(ctx: DeploymentContext, *, aggregates: bool) -> list[str]:
    """Return the tables' names in Snowflake, without database and schema, with those of aggregates or without
    them.
    """
    names = [topic.tableflow.snowflake_table for topic in ctx.deployment.tables_in_glue if topic.tableflow]
    if aggregates:
        contracts = (ctx.loaded.sources.plain_contract(export.contract) for export in ctx.deployment.exports)
        names += [contract.name for contract in contracts if contract and contract.keeps_table]
    return [name.upper() for name in names if name]


def _name_table_check(name: str) -> str:
    return f"table {name}"


def _log_in(ctx: DeploymentContext) -> Snowflake:
    vendor = ctx.snowflake()
    vendor.run(sql.Sql(_WHO))
    return vendor


def _from_aws_alone(chain: _Chain, login: Check) -> list[Check]:
    why = "not checked: there is no login"
    of_aggregates: list[str] = []
    for files in chain.files[1:]:
        of_aggregates += [files.checks.volume, files.checks.reads, files.checks.namespace]
    remaining = (
        READS_BUCKET,
        READS_GLUE,
        NAMESPACE,
        *of_aggregates,
        *map(_name_table_check, _list_tables(chain.ctx, aggregates=chain.has_aggregates)),
    )
    return [
        login,
        GROUP.skip_unseen(INTEGRATION, why),
        *_check_role(chain, {}, None),
        *GROUP.skip_all_unseen(remaining, why),
    ]


def _run_checks(chain: _Chain, vendor: Snowflake) -> list[Check]:
    integration = chain.integration
    volumes: list[Check] = []
    sides: dict[str, Side] = {}
    for files in chain.files:
        check, side = _look_at_volume(chain, vendor, files)
        volumes.append(check)
        if side:
            sides[files.logical_id] = side
    description = runner.attempt(
        GROUP, INTEGRATION, lambda: _read_if_exists(lambda: trust.describe_integration(vendor, integration))
    )
    catalog = (
        trust.read_integration_side(vendor, integration, description)
        if isinstance(description, dict)
        else None
    )
    return [
        *volumes,
        description
        if isinstance(description, Check)
        else _check_integration(chain, catalog, description or {}),
        *_check_role(chain, sides, catalog),
        *(
            _verify_side(
                files.checks.reads,
                sides.get(files.logical_id),
                partial(trust.verify_volume, vendor, chain.find_volume(files)),
            )
            for files in chain.files
        ),
        _verify_side(READS_GLUE, catalog, lambda side: trust.verify_integration(vendor, integration, side)),
        *(
            _verify_side(
                files.checks.namespace, catalog, partial(_require_namespace, vendor, integration, files)
            )
            for files in chain.files
        ),
        *(
            runner.attempt(GROUP, _name_table_check(name), partial(_check_table, chain, vendor, name))
            for name in _list_tables(chain.ctx, aggregates=chain.has_aggregates)
        ),
    ]


def _look_at_volume(chain: _Chain, vendor: Snowflake, files: _Files) -> tuple[Check, Side | None]:
    """Return the check of the volume, and what the volume presents to AWS if that is known."""
    name = chain.find_volume(files)
    side = runner.attempt(
        GROUP, files.checks.volume, lambda: _read_if_exists(lambda: trust.read_volume_side(vendor, name))
    )
    if isinstance(side, Check):
        return side, None
    return _check_volume(chain, files, side), side


def _require_namespace(vendor: Snowflake, integration: str, files: _Files, side: Side) -> None:
    trust.require_namespace(vendor, integration, side, files.database)


def _read_if_exists(read: Callable[[], T]) -> T | None:
    try:
        return read()
    except NotFound:
        return None


def _check_volume(chain: _Chain, files: _Files, side: Side | None) -> Check:
    name = files.checks.volume
    if side is None:
        return GROUP.fail(name, f"{chain.find_volume(files)} doesn't exist", _REPAIR)
    expected = {"leads to": files.location, "assumes role": chain.ctx.role_arn("snowflake")}
    actual = {"leads to": side.location, "assumes role": side.role_arn}
    return _compare_values(name, side, actual, expected) or _check_external_id(
        name, side, chain.external_id(_VOLUME_KIND, files.logical_id)
    )


def _check_integration(chain: _Chain, side: Side | None, description: dict[str, str]) -> Check:
    if side is None:
        return GROUP.fail(INTEGRATION, f"{chain.integration} doesn't exist", _REPAIR)
    region = _REGION.search(description.get("REST_CONFIG", ""))
    expected = {
        "assumes role": chain.ctx.role_arn("snowflake"),
        "asks Glue in": chain.ctx.region,
        "shows namespace": chain.tables.database,
        "is enabled": "true",
    }
    actual = {
        "assumes role": side.role_arn,
        "asks Glue in": region[1] if region else "",
        "shows namespace": description.get("CATALOG_NAMESPACE", ""),
        "is enabled": description.get("ENABLED", "").lower(),
    }
    return _compare_values(INTEGRATION, side, actual, expected) or _check_external_id(
        INTEGRATION, side, chain.external_id(_INTEGRATION_KIND)
    )


def _compare_values(name: str, side: Side, actual: dict[str, str], expected: dict[str, str]) -> Check | None:
    """Return a failed check for the first difference, None if nothing differs."""
    for setting, value in expected.items():
        if actual[setting] != value:
            return GROUP.fail(name, f"{side.what} {setting} {actual[setting] or '(none)'}", _REPLACED, value)
    return None


def _check_external_id(name: str, side: Side, expected: str) -> Check:
    """Compare external ids. Lakeferry chooses them, so a different one shows that somebody replaced the
    object.

    Not every release of Snowflake reports the external id.
    """
    if side.external_id not in ("", expected):
        replaced = f"{side.what} says external id {side.external_id}: somebody replaced it"
        return GROUP.fail(name, replaced, _REPLACED, f"{expected}, which the role asks for")
    object_name = side.what.rpartition(" ")[2]
    return GROUP.ok(
        name, f"{object_name} connects as {side.principal} with external id {side.external_id or expected}"
    )


def _check_role(chain: _Chain, volumes: Mapping[str, Side], catalog: Side | None) -> list[Check]:
    """Check the role. `volumes` has what each volume presents to AWS, by logical id.

    If Snowflake doesn't report an external id, the role must require the one that Lakeferry chose.
    """
    ctx = chain.ctx
    restore = iam.restore_command(chain.ctx, "snowflake")
    check, role = iam.check_role(ctx, GROUP, ctx.role_name("snowflake"), restore)
    if role is None:
        unknown = (*(files.checks.trust for files in chain.files), OF_INTEGRATION, POLICY)
        return [check, *GROUP.skip_all_unseen(unknown, "not checked: the role isn't known")]
    needs: dict[str, tuple[str, ...]] = {}
    trusted = []
    for files in chain.files:
        needs |= iam.list_needed_actions(
            ctx, contract.SNOWFLAKE_NEEDS, files.bucket, files.database, folder=files.folder
        )
        side = volumes.get(files.logical_id)
        external_id = chain.external_id(_VOLUME_KIND, files.logical_id)
        trusted.append(_check_trust(chain, files.checks.trust, role, side, external_id))
    return [
        check,
        *trusted,
        _check_trust(chain, OF_INTEGRATION, role, catalog, chain.external_id(_INTEGRATION_KIND)),
        runner.attempt(GROUP, POLICY, lambda: iam.check_permissions(ctx, GROUP, role, needs, restore)),
    ]


def _check_trust(chain: _Chain, name: str, role: Role, side: Side | None, external_id: str) -> Check:
    if side is None:
        return GROUP.skip_unseen(name, "not checked: the other side isn't known")
    principal = Principal(name, "sts:AssumeRole", side.principal, side.external_id or external_id)
    return iam.check_trust(GROUP, role, principal, iam.restore_command(chain.ctx, "snowflake"))


def _verify_side(name: str, side: Side | None, verify: Callable[[Side], None]) -> Check:
    if side is None:
        return GROUP.skip_unseen(name, "not checked: the object isn't known")

    def look() -> Check:
        verify(side)
        return GROUP.ok(name, side.location)

    return runner.attempt(GROUP, name, look)


def _check_table(chain: _Chain, vendor: Snowflake, name: str) -> Check:
    """Check that Snowflake refreshes the table automatically."""
    check = _name_table_check(name)
    path = [*sql.split(chain.stack.outputs.get("SchemaName", "")), name]
    refresh = read_auto_refresh(vendor, path)
    table = sql.format_dotted(path)
    if not refresh.state:
        fix = f"Turn it on: ALTER ICEBERG TABLE {table} SET AUTO_REFRESH=TRUE;"
        return GROUP.fail(check, f"{table} is frozen: AUTO_REFRESH is off", fix)
    if refresh.is_running:
        return GROUP.ok(check, f"{table} follows its source")
    fix = f"Fix that, then: ALTER ICEBERG TABLE {table} SET AUTO_REFRESH=FALSE; and TRUE again"
    return GROUP.fail(check, f"{table} is {refresh.state}: {refresh.reason}", fix)
