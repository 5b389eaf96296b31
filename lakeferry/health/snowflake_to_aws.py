"""How Snowflake comes into the account, hop by hop: volume, catalog integration, role, and what its tables follow."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial
from typing import Final, TypeVar

import attrs

from lakeferry.deployment.context import Ground
from lakeferry.health import glue_hops
from lakeferry.health import trust as roles
from lakeferry.health import runner as asking
from lakeferry.health import stack_outputs as parts
from lakeferry.health.model import Check, Group, followed
from lakeferry.health.trust import Comer, Role
from lakeferry.health.stack_outputs import Part
from lambdas import contract
from lambdas.shared.errors import NotFound
from lambdas.snowflake import sql, trust
from lambdas.snowflake.client import Snowflake
from lambdas.snowflake.trust import Side

GROUP: Final = Group("Snowflake → AWS")
VOLUME: Final = "external volume"
INTEGRATION: Final = "catalog integration"
ROLE: Final = roles.ROLE
OF_VOLUME: Final = "role's trust of the volume"
OF_INTEGRATION: Final = "role's trust of the catalog"
POLICY: Final = roles.POLICY
READS_BUCKET: Final = "Snowflake reaches the bucket"
READS_GLUE: Final = "Snowflake reaches Glue"
NAMESPACE: Final = "Glue database in Snowflake"
NAMES: Final = (
    VOLUME, INTEGRATION, ROLE, OF_VOLUME, OF_INTEGRATION, POLICY, READS_BUCKET, READS_GLUE, NAMESPACE,
)  # fmt: skip
_WHO: Final = "SELECT CURRENT_USER() AS RESULT"
_STATUS: Final = "SELECT SYSTEM$AUTO_REFRESH_STATUS({path}) AS RESULT"
_RUNNING: Final = "RUNNING"
_AGAIN: Final = "Run `lakeferry deploy --repair`: it creates again what is missing"
_OTHER: Final = (
    "Somebody changed or replaced it. DROP it in Snowflake, then run `lakeferry deploy --repair`, which creates it as it was"
)
_FOLLOWS: Final = "Snowflake notices within minutes"
T = TypeVar("T")

_REGION: Final = re.compile(r"https://glue\.([a-z0-9-]+)\.")


@attrs.frozen
class Hops:
    """`vendor` is None where Snowflake doesn't let us in."""

    here: Ground
    vendor: Snowflake | None
    part: Part
    bucket: str
    database: str

    def name(self, kind: str) -> str:
        return sql.plain_name(self.part.named(kind))


def look(here: Ground) -> list[Check]:
    """Raises CommandFailed where CloudFormation can't be asked."""
    names = (*NAMES, *map(_of_table, shown(here)))
    if not here.deployment.uses_snowflake:
        return GROUP.all_none(names, "not asked: the deployment file wants nothing in Snowflake")
    found = [parts.read(here, name) for name in ("snowflake", "data", "confluent")]
    for each in found:
        if isinstance(each, str):
            return GROUP.all_none(names, f"not deployed: {each}")
    own, data, confluent = (each for each in found if isinstance(each, Part))
    vendor = asking.found(GROUP, VOLUME, lambda: _entered(here))
    bucket, database = data.outputs.get("TableflowBucketName", ""), confluent.outputs.get("KafkaClusterId", "")
    hops = Hops(here, None if isinstance(vendor, Check) else vendor, own, bucket, database)
    reasons = {OF_VOLUME: (VOLUME,), OF_INTEGRATION: (INTEGRATION,)}
    seen = (READS_BUCKET, READS_GLUE, NAMESPACE, *map(_of_table, shown(here)))
    checks = _shut_out(hops, vendor) if isinstance(vendor, Check) else _all(hops, vendor)
    return followed(checks, {**reasons, **dict.fromkeys(seen, ())}, _FOLLOWS)


def shown(here: Ground) -> list[str]:
    """The tables' own names in Snowflake."""
    found = [topic.tableflow.snowflake_table for topic in here.deployment.tables_in_glue if topic.tableflow]
    return [name.upper() for name in found if name]


def _entered(here: Ground) -> Snowflake:
    vendor = here.snowflake()
    vendor.run(sql.Sql(_WHO))
    return vendor


def _shut_out(hops: Hops, why: Check) -> list[Check]:
    """What can be looked at from AWS alone."""
    rest = (READS_BUCKET, READS_GLUE, NAMESPACE, *map(_of_table, shown(hops.here)))
    told = "not asked: Snowflake doesn't let us in"
    return [why, GROUP.none(INTEGRATION, told), *_role(hops, None, None), *GROUP.all_none(rest, told)]


def _all(hops: Hops, vendor: Snowflake) -> list[Check]:
    volume, integration = hops.name("snowflake_external_volume"), hops.name("snowflake_catalog_integration")
    storage = asking.found(GROUP, VOLUME, lambda: _described(lambda: trust.volume_side(vendor, volume)))
    told = asking.found(GROUP, INTEGRATION, lambda: _described(lambda: trust.described_integration(vendor, integration)))
    catalog = trust.integration_side(vendor, integration, told) if isinstance(told, dict) else None
    side = None if isinstance(storage, Check) else storage
    return [
        storage if isinstance(storage, Check) else _volume(hops, volume, storage),
        told if isinstance(told, Check) else _integration(hops, integration, catalog, told or {}),
        *_role(hops, side, catalog),
        _tried(READS_BUCKET, side, lambda side: trust.verify_volume(vendor, volume, side)),
        _tried(READS_GLUE, catalog, lambda side: trust.verify_integration(vendor, integration, side)),
        _tried(NAMESPACE, catalog, lambda side: trust.require_namespace(vendor, integration, side, hops.database)),
        *(asking.tried(GROUP, _of_table(name), partial(_table, hops, vendor, name)) for name in shown(hops.here)),
    ]


def _described(look: Callable[[], T]) -> T | None:
    """None where there is no such object."""
    try:
        return look()
    except NotFound:
        return None


def _volume(hops: Hops, name: str, side: Side | None) -> Check:
    if side is None:
        return GROUP.fail(VOLUME, f"{name} is not there", _AGAIN)
    wanted = {"leads to": f"s3://{hops.bucket}/", "comes by role": parts.role_arn(hops.here, "snowflake")}
    seen = {"leads to": side.place, "comes by role": side.role_arn}
    return _compared(VOLUME, side, seen, wanted) or _own_id(hops, VOLUME, "snowflake_external_volume", side)


def _integration(hops: Hops, name: str, side: Side | None, told: dict[str, str]) -> Check:
    if side is None:
        return GROUP.fail(INTEGRATION, f"{name} is not there", _AGAIN)
    region = _REGION.search(told.get("REST_CONFIG", ""))
    wanted = {
        "comes by role": parts.role_arn(hops.here, "snowflake"),
        "asks Glue in": hops.here.region,
        "shows namespace": hops.database,
        "is enabled": "true",
    }
    seen = {
        "comes by role": side.role_arn,
        "asks Glue in": region[1] if region else "",
        "shows namespace": told.get("CATALOG_NAMESPACE", ""),
        "is enabled": told.get("ENABLED", "").lower(),
    }
    return _compared(INTEGRATION, side, seen, wanted) or _own_id(hops, INTEGRATION, "snowflake_catalog_integration", side)


def _compared(name: str, side: Side, seen: dict[str, str], wanted: dict[str, str]) -> Check | None:
    """None where nothing differs."""
    for what, value in wanted.items():
        if seen[what] != value:
            return GROUP.fail(name, f"{side.what} {what} {seen[what] or '(none)'}", _OTHER, value)
    return None


def _own_id(hops: Hops, name: str, kind: str, side: Side) -> Check:
    """We choose external ids: another one shows that somebody made the object anew. Not every release tells it."""
    wanted = sql.external_id_of(hops.part.origin(kind))
    if side.external_id not in ("", wanted):
        told = f"{side.what} says external id {side.external_id}: somebody made it anew"
        return GROUP.fail(name, told, _OTHER, f"{wanted}, which the role asks for")
    known = side.what.rpartition(" ")[2]
    return GROUP.ok(name, f"{known} comes as {side.principal} with external id {side.external_id or wanted}")


def _role(hops: Hops, storage: Side | None, catalog: Side | None) -> list[Check]:
    """Where a side doesn't tell its external id, ours is what the role must ask for."""
    restore = roles.restored(hops.here, "snowflake")
    there, role = roles.there(hops.here, GROUP, parts.role_name(hops.here, "snowflake"), restore)
    if role is None:
        return [there, *GROUP.all_none((OF_VOLUME, OF_INTEGRATION, POLICY), "not asked: the role isn't known")]
    sides = {OF_VOLUME: (storage, "snowflake_external_volume"), OF_INTEGRATION: (catalog, "snowflake_catalog_integration")}
    trusts = [_trusts(hops, name, role, side, kind) for name, (side, kind) in sides.items()]
    needs = glue_hops.needs(hops.here, contract.SNOWFLAKE_NEEDS, hops.bucket, hops.database)
    return [there, *trusts, asking.tried(GROUP, POLICY, lambda: roles.may(hops.here, GROUP, role, needs, restore))]


def _trusts(hops: Hops, name: str, role: Role, side: Side | None, kind: str) -> Check:
    if side is None:
        return GROUP.none(name, "not asked: the other side isn't known")
    external_id = side.external_id or sql.external_id_of(hops.part.origin(kind))
    comer = Comer(name, "sts:AssumeRole", side.principal, external_id)
    return roles.trusts(GROUP, role, comer, roles.restored(hops.here, "snowflake"))


def _tried(name: str, side: Side | None, attempt: Callable[[Side], None]) -> Check:
    if side is None:
        return GROUP.none(name, "not asked: there is nothing to ask it of")

    def look() -> Check:
        attempt(side)
        return GROUP.ok(name, side.place)

    return asking.tried(GROUP, name, look)


def _table(hops: Hops, vendor: Snowflake, name: str) -> Check:
    """Whether it follows its source, as Snowflake tells it."""
    label, path = _of_table(name), [*sql.split(hops.part.outputs.get("SchemaName", "")), name]
    status, table = vendor.document(sql.statement(_STATUS, path=sql.reference(*path))), sql.dotted(path)
    if not isinstance(status, dict):
        fix = f"Set it going: ALTER ICEBERG TABLE {table} SET AUTO_REFRESH=TRUE;"
        return GROUP.fail(label, f"{table} is frozen: AUTO_REFRESH is off", fix)
    state, reason = status.get("executionState"), status.get("invalidExecutionStateReason") or "no reason given"
    if state == _RUNNING:
        return GROUP.ok(label, f"{table} follows its source")
    fix = f"Mend that, then: ALTER ICEBERG TABLE {table} SET AUTO_REFRESH=FALSE; and TRUE again"
    return GROUP.fail(label, f"{table} is {state}: {reason}", fix)


def _of_table(name: str) -> str:
    return f"table {name}"
