"""The handshake between Snowflake and AWS through our own kinds, with IAM enforced: it closes in one deploy, and each thing
that can be wrong with it has a message of its own, which says whose side it is on and which value that side has."""

from __future__ import annotations

import pytest
from lake_environment import NAMESPACE, Lakeside

from lambdas.shared.errors import LakeferryError
from simulators.snowflake.model import Domain

FOREIGN = "arn:aws:iam::000000000000:user/vendor/somebody"


@pytest.fixture(scope="module")
def prepared():
    lakeside = Lakeside()
    lakeside.aws.iam.create_user(UserName="somebody", Path="/vendor/")
    yield lakeside, lakeside.freeze()
    lakeside.close()


@pytest.fixture
def account(prepared):
    lakeside, frozen = prepared
    lakeside.thaw(frozen)
    yield lakeside
    lakeside.remove_roles()


def test_the_circle_closes_and_tables_follow(account):
    circle = account.circle()
    account.make("snowflake_trust", "Trust", **circle, namespace=NAMESPACE)
    account.make("snowflake_database", "Database", name="LAKE")
    account.make("snowflake_schema", "Schema", database="LAKE", name="RAW")
    where = {"database": "LAKE", "schema": "RAW", "volume": circle["volume"], "integration": circle["integration"]}
    made = account.make("snowflake_iceberg_table", "Table", name="THINGS", table="things", **where)
    assert made == {"name": "THINGS", "full_name": "LAKE.RAW.THINGS"}


def test_the_external_ids_are_ours_and_differ(account):
    circle = account.circle()
    assert circle["volume_external_id"] != circle["integration_external_id"]
    for what in ("volume", "integration"):
        assert circle[f"{what}_external_id"].startswith("lakeferry-")


def test_a_replaced_volume_presents_the_external_id_that_the_role_trusts(account):
    """Another stack's never does."""
    given = {"base_url": account.base, "role_arn": account.arn("volume")}
    ours, other = (account.resource("snowflake_external_volume", "Volume", stack, **given) for stack in ("lake", "other"))

    def external_ids():
        volumes = (each for each in account.account._objects.values() if each.domain is Domain.VOLUME)
        return {volume.label: volume.locations[0].external_id for volume in volumes}

    ours.create()
    first = external_ids()
    ours.update(base_url=account.base + "other/")
    second = external_ids()
    assert first.keys() != second.keys()
    assert [*first.values()] == [*second.values()]
    other.create()
    assert len({*external_ids().values()}) == 2


def handshake(account, circle, **more):
    """The error of a trust that waits in vain."""
    trust = account.resource("snowflake_trust", "Trust", **{**circle, "namespace": NAMESPACE, **more})
    with pytest.raises(LakeferryError) as failed:
        trust.run(trust.event("Create"), every=200)
    return failed.value


@pytest.mark.parametrize("what", ["volume", "integration"])
def test_a_wrong_external_id(account, what):
    error = handshake(account, account.circle(**{f"{what}_external_id": "of-another-stack"}))
    assert error.row.code == "SNF-TRUST-EXTERNAL-ID"
    assert what in str(error)
    assert "of-another-stack" in str(error)
    assert "lakeferry-" in str(error)


@pytest.mark.parametrize("what", ["volume", "integration"])
def test_a_wrong_principal(account, what):
    error = handshake(account, account.circle(**{f"{what}_principal": FOREIGN}))
    assert error.row.code == "SNF-TRUST-PRINCIPAL"
    assert what in str(error)
    assert FOREIGN in str(error)


@pytest.mark.parametrize("what", ["volume", "integration"])
def test_a_role_whose_trust_somebody_changed(account, what):
    """The stack's own values are right, and IAM's are not: what Snowflake presents is told, to compare."""
    circle = account.circle(**{f"{what}_external_id": "changed-by-hand"})
    right = account.made["Volume" if what == "volume" else "Catalog"]
    error = handshake(account, {**circle, f"{what}_external_id": right["external_id"]})
    assert error.row.code == "SNF-TRUST-ROLE"
    assert right["external_id"] in str(error)
    assert right["iam_user_arn"] in str(error)


def test_a_role_that_is_missing(account):
    circle = account.circle()
    account.remove_roles()
    error = handshake(account, circle)
    assert error.row.code == "SNF-TRUST-ROLE"
    assert account.arn("volume") in str(error)


@pytest.mark.parametrize(
    ("action", "code"),
    [
        ("s3:GetBucketLocation", "SNF-TRUST-STORAGE"),
        ("s3:ListBucket", "SNF-TRUST-STORAGE"),
        ("glue:GetCatalog", "SNF-TRUST-CATALOG"),
    ],
)
def test_a_permission_that_is_missing(account, action, code):
    error = handshake(account, account.circle(without=[action]))
    assert error.row.code == code
    assert action.partition(":")[2].lower() in str(error).lower()


def test_a_wrong_region(account):
    error = handshake(account, account.circle(place={"region": "us-west-2"}))
    assert error.row.code in ("SNF-TRUST-REGION", "SNF-TRUST-CATALOG")
    assert "us-west-2" in str(error)


def test_a_wrong_namespace(account):
    error = handshake(account, account.circle(), namespace="lkc-another")
    assert error.row.code == "SNF-TRUST-NAMESPACE"
    assert NAMESPACE in str(error)


def test_what_is_mended_while_the_deploy_waits_is_enough(account):
    """A role that comes late, as IAM's do."""
    circle = account.circle()
    account.remove_roles()
    trust = account.resource("snowflake_trust", "Trust", **circle, namespace=NAMESPACE)
    event = trust.event("Create")
    known = {**event, **account.invocations.on_event(event)}
    assert not account.invocations.is_complete(known)["IsComplete"]
    for what, (actions, resources) in account._needs().items():
        account._role(what, circle[f"{what}_principal"], circle[f"{what}_external_id"], actions, resources)
    account.clock.sleep(10)
    assert account.invocations.is_complete(known)["IsComplete"]
