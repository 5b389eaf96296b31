"""Snowflake: the deployer's login, what its role may do, its warehouse and its user."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from deployments.model import Snowflake as Wanted
from lakeferry.cli.output import CommandFailed, Voice
from lakeferry.credentials import snowflake as proving
from lakeferry.credentials import store as keeping
from lakeferry.deployment.context import Ground
from lakeferry.health.model import Check, Group
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
_ADMIN: Final = "An admin of Snowflake runs"
_UNSET: Final = ("", "null")
_ALMIGHTY: Final = "ACCOUNTADMIN"
#: A role may hold roles that hold roles; deeper than this, nobody looks through it any more.
_DEPTH: Final = 4


def look(here: Ground) -> list[Check]:
    """Everything is asked with the one login; without it, nothing is."""
    given = here.deployment.snowflake
    rest = [PRIVILEGES, WAREHOUSE, USER]
    if given is None or not given.enabled:
        return GROUP.all_none([KEY, LOGIN, *rest], "not asked: the deployment file wants nothing in Snowflake")
    try:
        vendor = here.snowflake()
        pair = secret_fields.read_pair(here.secrets, given.key_secret)
    except CommandFailed as failure:
        return [GROUP.fail(KEY, failure.message, failure.hint), *GROUP.all_none([LOGIN, *rest], "not asked: there is no key")]
    key = GROUP.ok(KEY, f"{pair.fingerprint}, in {given.key_secret}")
    try:
        proving.prove(Voice(quiet=True), proving.Deployer(here, given), pair, keeping.held(here, given.key_secret))
    except CommandFailed as failure:
        told = f"{failure.message}. {failure.why}".rstrip(". ")
        fix = failure.hint.replace("then you this command again: ", "in this account: ")
        return [key, GROUP.fail(LOGIN, told, fix), *GROUP.all_none(rest, "not asked: there is no login")]
    login = GROUP.ok(LOGIN, f"{sql.named(given.user)} of {given.account}, in role {sql.named(given.role)}")
    return [key, login, *_rights(vendor, given)]


def _rights(vendor: Snowflake, given: Wanted) -> list[Check]:
    try:
        grants = list(_grants(vendor, sql.named(given.role)))
    except LakeferryError as error:
        told = f"{error.row.code}: {error.what}"
        return [GROUP.fail(PRIVILEGES, told, error.row.remedy), *GROUP.all_none([WAREHOUSE], "not asked"), user(vendor, given)]
    return [privileges(grants, given), warehouse(vendor, grants, given), user(vendor, given)]


def _grants(vendor: Snowflake, role: str, depth: int = 0) -> Iterator[Row]:
    """Of the role, and of the roles that were granted to it."""
    for row in vendor.run(sql.statement(_GRANTS, role=sql.identifier(role))):
        yield row
        if row.get("granted_on") == "ROLE" and row.get("privilege") == "USAGE" and depth < _DEPTH:
            yield from _grants(vendor, row.get("name", ""), depth + 1)


def privileges(grants: list[Row], given: Wanted) -> Check:
    role = sql.named(given.role)
    if role == _ALMIGHTY:
        return GROUP.warn(
            PRIVILEGES, f"{role} may do everything, which is more than is needed", "Use docs/how-to/prepare-snowflake.md"
        )
    held = {row.get("privilege") for row in grants if row.get("granted_on") == "ACCOUNT"}
    lacking = [name for name in contract.SNOWFLAKE_ACCOUNT_PRIVILEGES if name not in held]
    if not lacking:
        return GROUP.ok(PRIVILEGES, ", ".join(contract.SNOWFLAKE_ACCOUNT_PRIVILEGES))
    fix = f"{_ADMIN}: " + " ".join(f"GRANT {name} ON ACCOUNT TO ROLE {role};" for name in lacking)
    return GROUP.fail(PRIVILEGES, f"role {role} lacks {', '.join(lacking)}", fix)


def warehouse(vendor: Snowflake, grants: list[Row], given: Wanted) -> Check:
    name, role = sql.named(given.deployer_warehouse), sql.named(given.role)
    shown = [row for row in vendor.run(sql.statement(_WAREHOUSES, pattern=sql.literal(name))) if row.get("name") == name]
    may = any(
        row.get("granted_on") == "WAREHOUSE" and row.get("name") == name and row.get("privilege") in _USES for row in grants
    )
    if not shown or not (may or role == _ALMIGHTY):
        told = f"role {role} may not use {name}" if shown else f"there is no {name}, or role {role} may not see it"
        make = (
            "" if shown else f"CREATE WAREHOUSE IF NOT EXISTS {name} WAREHOUSE_SIZE='XSMALL' AUTO_SUSPEND=60 AUTO_RESUME=TRUE; "
        )
        return GROUP.fail(WAREHOUSE, told, f"{_ADMIN}: {make}GRANT USAGE ON WAREHOUSE {name} TO ROLE {role};")
    if shown[0].get("auto_resume", "").lower() == "false":
        fix = f"{_ADMIN}: ALTER WAREHOUSE {name} SET AUTO_RESUME=TRUE;"
        return GROUP.fail(WAREHOUSE, f"{name} doesn't start by itself, and is {shown[0].get('state')}", fix, "AUTO_RESUME=TRUE")
    return GROUP.ok(WAREHOUSE, f"{name}, {shown[0].get('size')}")


def user(vendor: Snowflake, given: Wanted) -> Check:
    """Not every user may look at itself."""
    name = sql.named(given.user)
    try:
        rows = vendor.run(sql.statement(_DESC_USER, name=sql.identifier(name)))
    except LakeferryError as error:
        return GROUP.warn(USER, f"{name} may not be looked at: {error.what}", f"{_ADMIN}: DESC USER {name};")
    told = {row.get("property", ""): row.get("value", "") for row in rows}
    kind, statements = told.get("TYPE", ""), []
    if told.get("PASSWORD", "") not in _UNSET:
        statements.append(f"ALTER USER {name} UNSET PASSWORD;")
    if kind != "SERVICE":
        statements.append(f"ALTER USER {name} SET TYPE=SERVICE;")
    if not statements:
        return GROUP.ok(USER, f"{name} is of TYPE=SERVICE, without a password")
    has = "has a password" if len(statements) > 1 or kind == "SERVICE" else "has no password"
    return GROUP.warn(
        USER, f"{name} is of TYPE={kind if kind not in _UNSET else 'PERSON'} and {has}", f"{_ADMIN}: {' '.join(statements)}"
    )
