"""Roles. What a dropped role owned goes to the role that dropped it."""

from __future__ import annotations

from typing import Any, Final

from simulators.snowflake.account import Account
from simulators.snowflake.errors import denied, invalid_property, not_simulated
from simulators.snowflake.grammar import Cursor
from simulators.snowflake.kinds.common import (
    Kind,
    Making,
    altering,
    created,
    dropped,
    dropping,
    free,
    freely,
    listing,
    set_options,
    unset_names,
)
from simulators.snowflake.model import Domain, Role, SnowflakeObject
from simulators.snowflake.options import Options
from simulators.snowflake.results import Result, records, status
from simulators.snowflake.session import Session, inherited

_LABEL: Final = "ROLE"
_SHOWN: Final = (
    "created_on name is_default is_current is_inherited assigned_to_users granted_to_roles granted_roles owner comment "
    "owner_role_type"
)


def create(session: Session, cursor: Cursor, making: Making) -> Result:
    name = cursor.name()
    options = Options(_LABEL, cursor.options(), "COMMENT")
    cursor.end()
    if there := free(session, Domain.ROLE, name, "CREATE ROLE", making, freely):
        return there
    role = Role(name=name, owner=session.role, created=session.account.clock.now(), comment=options.string("COMMENT"))
    return created(session, role, "Role")


def alter(session: Session, cursor: Cursor) -> Result:
    role = altering(session, cursor, Domain.ROLE)
    if role is None:
        return status()
    if cursor.at("RENAME"):
        raise not_simulated("ALTER ROLE … RENAME")
    if cursor.take("UNSET"):
        if (names := unset_names(cursor)) != ["COMMENT"]:
            raise invalid_property(names[0], _LABEL)
        comment = ""
    else:
        cursor.expect("SET")
        comment = set_options(cursor, _LABEL, "COMMENT").string("COMMENT")
    session.require("OWNERSHIP", role)
    role.comment = comment
    return status()


def drop(session: Session, cursor: Cursor) -> Result:
    found = dropping(session, cursor, Domain.ROLE)
    if found.thing is None:
        return found.absent
    if found.thing.label == session.role:
        raise denied(_LABEL, found.thing.name)
    for each in session.account.all(SnowflakeObject):
        if each.owner == found.thing.label:
            each.owner = session.role
    return dropped(session, found.thing)


def show(session: Session, cursor: Cursor) -> Result:
    wanted = listing(session, cursor, Domain.ROLE)
    return records(_SHOWN, (_row(session, each) for each in wanted.of(session, Role)))


def _row(session: Session, role: Role) -> dict[str, Any]:
    account: Account = session.account
    holders = [each.to.domain for each in account.memberships if each.role == role.label]
    return {
        "created_on": role.created,
        "name": role.label,
        "is_default": "Y" if role.label == session.user.default_role else "N",
        "is_current": "Y" if role.label == session.role else "N",
        "is_inherited": "Y" if role.label in inherited(account, [session.role]) - {session.role} else "N",
        "assigned_to_users": holders.count(Domain.USER),
        "granted_to_roles": holders.count(Domain.ROLE),
        "granted_roles": sum(each.to == role.key for each in account.memberships),
        "owner": role.owner,
        "comment": role.comment,
        "owner_role_type": "ROLE" if role.owner else "",
    }


KIND: Final = Kind(_LABEL, "ROLES", create, alter, drop, show, None)
