"""Future grants: what a new thing is granted the moment it is made."""

from __future__ import annotations

from simulators.snowflake.account import Account, FutureGrant, Grant
from simulators.snowflake.model import Domain, SnowflakeObject


def apply_to(account: Account, thing: SnowflakeObject) -> None:
    """Those of the schema; where it has none for such things, those of the database."""
    found = [each for each in account.future if each.domain is thing.domain]
    of_schema = [each for each in found if _holds(each, Domain.SCHEMA, thing)]
    for each in of_schema or [each for each in found if _holds(each, Domain.DATABASE, thing)]:
        by = account.find(each.container.domain, each.container.name).owner
        account.grants.append(Grant(each.privilege, thing.key, each.to, each.option, by, thing.created))


def _holds(grant: FutureGrant, domain: Domain, thing: SnowflakeObject) -> bool:
    container = grant.container
    return container.domain is domain and thing.name[: len(container.name)] == container.name
