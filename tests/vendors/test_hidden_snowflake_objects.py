"""Snowflake objects that belong to another role now, were renamed, or are in another account: nothing is
taken for gone.
"""

from __future__ import annotations

import pytest

from lambdas.shared.errors import LakeferryError
from simulators.snowflake.account import Account as SimulatedAccount
from simulators.snowflake.model import Domain, Grant, SnowflakeObject
from tests.support.snowflake_environment import DEPLOYER, Account
from tests.support.snowflake_lives import LAKESIDE, LIVES

OTHER = "SYSADMIN"
KINDS = [kind for kind in LIVES if kind not in LAKESIDE]
#: A grant is listed with its role, and belongs to nobody.
OWNED = [kind for kind in KINDS if kind != "snowflake_grant"]


@pytest.fixture
def account():
    account = Account()
    yield account
    account.close()


def deployed(account, kind):
    """Create a resource. Return it, and the objects of its own that the simulator has."""
    properties = LIVES[kind].properties(account)
    before = account.objects()
    resource = account.resource(kind, "It", **properties)
    resource.create()
    return resource, {item for item in account.objects() - before if item[0] in LIVES[kind].shown}


def give_away(account, made):
    """Move the ownership of the objects to another role, as GRANT OWNERSHIP … REVOKE CURRENT GRANTS does."""
    simulated: SimulatedAccount = account.account
    names = {(kind, tuple(name.split("."))) for kind, name in made}
    moved = [item for item in simulated.all(SnowflakeObject) if (item.domain.value, item.name) in names]
    assert moved
    for moved_object in moved:
        moved_object.owner = OTHER
    keys = {moved_object.key for moved_object in moved}
    simulated.grants = [grant for grant in simulated.grants if grant.on not in keys]


def manage_grants(account):
    simulated = account.account
    simulated.grants.append(Grant("MANAGE GRANTS", simulated.root.key, DEPLOYER, False, "ACCOUNTADMIN", 0))


def control(account, **document):
    account._controls.put(account.url + "/_simulator/account", json=document).raise_for_status()


@pytest.mark.sampled(1)
@pytest.mark.parametrize("kind", OWNED)
def test_an_object_that_belongs_to_another_role_is_unknown_not_dropped(account, kind):
    resource, made = deployed(account, kind)
    give_away(account, made)
    with pytest.raises(LakeferryError, match="SNF-UNSEEN"):
        resource.delete()
    assert made <= account.objects()


@pytest.mark.sampled(2)
@pytest.mark.parametrize("kind", OWNED)
@pytest.mark.parametrize("is_dropped", [True, False])
def test_with_manage_grants_what_was_dropped_is_gone(account, kind, is_dropped):
    resource, made = deployed(account, kind)
    if is_dropped:
        simulated = account.account
        for domain, name in made:
            simulated.remove(simulated.find(Domain(domain), tuple(name.split("."))))
    manage_grants(account)
    resource.delete()
    assert not made & account.objects()


@pytest.mark.sampled(1)
@pytest.mark.parametrize("kind", OWNED)
def test_an_object_that_somebody_dropped_blocks_a_delete_until_it_is_forgotten(account, kind):
    resource, made = deployed(account, kind)
    simulated = account.account
    for domain, name in made:
        simulated.remove(simulated.find(Domain(domain), tuple(name.split("."))))
    with pytest.raises(LakeferryError, match=r"SNF-UNSEEN.*lakeferry forget"):
        resource.delete()


@pytest.mark.parametrize("kind", OWNED)
def test_an_object_that_was_dropped_is_created_again(account, kind):
    resource, made = deployed(account, kind)
    simulated = account.account
    for domain, name in made:
        simulated.remove(simulated.find(Domain(domain), tuple(name.split("."))))
    resource.update()
    assert made <= account.objects()


@pytest.mark.sampled(2)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("request_type", ["update", "delete"])
def test_a_login_of_another_account_is_refused(account, kind, request_type):
    resource, _ = deployed(account, kind)
    before = account.objects()
    control(account, locator="XY98765")
    with pytest.raises(LakeferryError, match="SNF-OTHER-ACCOUNT"):
        getattr(resource, request_type)()
    assert account.objects() == before


@pytest.mark.sampled(1)
@pytest.mark.parametrize("kind", KINDS)
def test_an_account_that_was_renamed_is_the_same_one(account, kind):
    resource, made = deployed(account, kind)
    control(account, name="RENAMED")
    resource.update()
    resource.delete()
    assert not made & account.objects()


@pytest.mark.sampled(1)
@pytest.mark.parametrize("sees_all", [True, False])
@pytest.mark.parametrize("request_type", ["update", "delete"])
@pytest.mark.parametrize(
    "kind", ["snowflake_warehouse", "snowflake_role", "snowflake_schema", "snowflake_external_volume"]
)
def test_a_renamed_object_is_neither_gone_nor_made_anew(account, kind, request_type, sees_all):
    resource, made = deployed(account, kind)
    if sees_all:
        manage_grants(account)
    simulated = account.account
    ((domain, name),) = made
    *containers, _ = name.split(".")
    renamed = simulated.find(Domain(domain), tuple(name.split(".")))
    simulated.rename(renamed, (*containers, "KEPT"))
    before = account.objects()
    with pytest.raises(LakeferryError, match=r"SNF-RENAMED.* was renamed to KEPT"):
        getattr(resource, request_type)()
    assert account.objects() == before
    simulated.rename(renamed, tuple(name.split(".")))
    resource.delete()
    assert not made & account.objects()
