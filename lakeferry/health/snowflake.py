"""Snowflake: the deployer's login, the privileges of its role, its warehouse and its user."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from config.deployments.snowflake_model import Snowflake as Wanted
from lakeferry.credentials import snowflake as credentials
from lakeferry.credentials import store
from lakeferry.deployment.context import DeploymentContext
from lakeferry.errors import CommandFailed
from lakeferry.health import runner
from lakeferry.health.model import Check, Group
from lakeferry.output import Output
from lambdas import contract
from lambdas.shared.errors import LakeferryError
from lambdas.snowflake import secret_fields, sql
from lambdas.snowflake.client import Row, Snowflake

GROUP: Final = Group("Snowflake")
KEY: Final = "deployer's key"
LOGIN: Final = "login"
PRIVILEGES: Final = "role's privileges"
WAREHOUSE: Final = "warehouse"
USER: Final = "user"
_GRANTS: Final = "SHOW GRANTS TO ROLE {role}"
_WAREHOUSES: Final = "SHOW WAREHOUSES LIKE {pattern}"
_DESC_USER: Final = "DESC USER {name}"
_USES: Final = ("USAGE", "OPERATE", "MODIFY", "OWNERSHIP", "ALL PRIVILEGES")
NOT_USED: Final = "not checked: the deployment file uses no Snowflake"
_ADMIN: Final = "Ask a Snowflake admin to run"
_UNSET: Final = ("", "null")
_ACCOUNTADMIN: Final = "ACCOUNTADMIN"
#: Roles may be granted to roles; grants nested deeper than this are not followed.
_DEPTH: Final = 4


def look(ctx: DeploymentContext) -> list[Check]:
    """Check everything with the deployer's login. Without it, the other checks are skipped."""
    settings = ctx.deployment.snowflake
    remaining = [PRIVILEGES, WAREHOUSE, USER]
    if settings is None or not settings.enabled:
        return GROUP.skip_all([KEY, LOGIN, *remaining], NOT_USED)
    try:
        vendor = ctx.snowflake()
        pair = secret_fields.read_pair(ctx.secrets, settings.key_secret)
    except (CommandFailed, LakeferryError) as failure:
        return [
            runner.report_failed(GROUP, KEY, failure),
            *GROUP.skip_all_unseen([LOGIN, *remaining], "not checked: no key was read"),
        ]
    key = GROUP.ok(KEY, f"{pair.fingerprint}, in {settings.key_secret}")
    try:
        deployer = credentials.Deployer(ctx, settings)
        credentials.verify(Output(quiet=True), deployer, pair, store.read_value(ctx, settings.key_secret))
    except CommandFailed as failure:
        message = f"{failure.message}. {failure.why}".rstrip(". ")
        fix = f"{_ADMIN}: {failure.details['sql']}" if failure.code == "SECRETS-PUBLIC-KEY" else failure.hint
        return [
            key,
            GROUP.fail(LOGIN, message, fix),
            *GROUP.skip_all_unseen(remaining, "not checked: there is no login"),
        ]
    user = sql.to_exact_name(settings.user)
    role = sql.to_exact_name(settings.role)
    login = GROUP.ok(LOGIN, f"{user} of {settings.account}, in role {role}")
    try:
        grants = list(_read_grants(vendor, role))
    except LakeferryError as error:
        unknown = GROUP.fail(PRIVILEGES, f"{error.kind.code}: {error.what}", error.remedy)
        return [
            key,
            login,
            unknown,
            GROUP.skip_unseen(WAREHOUSE, "not checked"),
            check_user(vendor, settings),
        ]
    return [
        key,
        login,
        check_privileges(grants, settings),
        check_warehouse(vendor, grants, settings),
        check_user(vendor, settings),
    ]


def _read_grants(vendor: Snowflake, role: str, depth: int = 0) -> Iterator[Row]:
    """Yield the grants of the role, and of the roles that were granted to it."""
    for row in vendor.run(sql.statement(_GRANTS, role=sql.identifier(role))):
        yield row
        if row.get("granted_on") == "ROLE" and row.get("privilege") == "USAGE" and depth < _DEPTH:
            yield from _read_grants(vendor, row.get("name", ""), depth + 1)


def check_privileges(grants: list[Row], settings: Wanted) -> Check:
    role = sql.to_exact_name(settings.role)
    if role == _ACCOUNTADMIN:
        fix = "Use docs/how-to/prepare-snowflake.md"
        return GROUP.warn(PRIVILEGES, f"{role} may do everything, which is more than is needed", fix)
    privileges = {row.get("privilege") for row in grants if row.get("granted_on") == "ACCOUNT"}
    lacking = [name for name in contract.SNOWFLAKE_ACCOUNT_PRIVILEGES if name not in privileges]
    if not lacking:
        return GROUP.ok(PRIVILEGES, ", ".join(contract.SNOWFLAKE_ACCOUNT_PRIVILEGES))
    fix = f"{_ADMIN}: " + " ".join(f"GRANT {name} ON ACCOUNT TO ROLE {role};" for name in lacking)
    return GROUP.fail(PRIVILEGES, f"role {role} lacks {', '.join(lacking)}", fix)


def check_warehouse(vendor: Snowflake, grants: list[Row], settings: Wanted) -> Check:
    name = sql.to_exact_name(settings.deployer_warehouse)
    role = sql.to_exact_name(settings.role)
    rows = [
        row
        for row in vendor.run(sql.statement(_WAREHOUSES, pattern=sql.literal(name)))
        if row.get("name") == name
    ]
    usable = role == _ACCOUNTADMIN or any(
        row.get("granted_on") == "WAREHOUSE" and row.get("name") == name and row.get("privilege") in _USES
        for row in grants
    )
    grant = f"GRANT USAGE ON WAREHOUSE {name} TO ROLE {role};"
    if not rows:
        create = (
            f"CREATE WAREHOUSE IF NOT EXISTS {name} WAREHOUSE_SIZE='XSMALL' AUTO_SUSPEND=60 AUTO_RESUME=TRUE;"
        )
        return GROUP.fail(
            WAREHOUSE, f"there is no {name}, or role {role} may not see it", f"{_ADMIN}: {create} {grant}"
        )
    if not usable:
        return GROUP.fail(WAREHOUSE, f"role {role} may not use {name}", f"{_ADMIN}: {grant}")
    if rows[0].get("auto_resume", "").lower() == "false":
        fix = f"{_ADMIN}: ALTER WAREHOUSE {name} SET AUTO_RESUME=TRUE;"
        return GROUP.fail(
            WAREHOUSE,
            f"{name} doesn't start by itself, and is {rows[0].get('state')}",
            fix,
            "AUTO_RESUME=TRUE",
        )
    return GROUP.ok(WAREHOUSE, f"{name}, {rows[0].get('size')}")


def check_user(vendor: Snowflake, settings: Wanted) -> Check:
    """Check the deployer's user. Not every user may describe itself."""
    name = sql.to_exact_name(settings.user)
    try:
        rows = vendor.run(sql.statement(_DESC_USER, name=sql.identifier(name)))
    except LakeferryError as error:
        return GROUP.warn_unseen(
            USER, f"{name} can't be described: {error.what}", f"{_ADMIN}: DESC USER {name};"
        )
    properties = {row.get("property", ""): row.get("value", "") for row in rows}
    type_ = properties.get("TYPE", "")
    has_password = properties.get("PASSWORD", "") not in _UNSET
    statements = []
    if has_password:
        statements.append(f"ALTER USER {name} UNSET PASSWORD;")
    if type_ != "SERVICE":
        statements.append(f"ALTER USER {name} SET TYPE=SERVICE;")
    if not statements:
        return GROUP.ok(USER, f"{name} is of TYPE=SERVICE, without a password")
    shown_type = "PERSON" if type_ in _UNSET else type_
    password = "a password" if has_password else "no password"
    user = f"{name} is of TYPE={shown_type} and has {password}"
    return GROUP.warn(USER, user, f"{_ADMIN}: {' '.join(statements)}")
