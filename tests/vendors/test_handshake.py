"""The handshake between Snowflake and AWS through our resource types, with IAM enforced.

One deployment completes it. Each mistake has an error of its own that names the side and the value to
correct.
"""

from __future__ import annotations

import pytest

from lambdas.shared.errors import LakeferryError
from simulators.snowflake.model import Domain
from tests.support.lake_environment import NAMESPACE, Lakeside

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


def test_the_external_ids_are_ours_and_differ(account):
    properties = account.trust_properties()
    assert properties["volume_external_id"] != properties["integration_external_id"]
    for subject in ("volume", "integration"):
        assert properties[f"{subject}_external_id"].startswith("lakeferry-")


def test_a_replaced_volume_presents_the_external_id_that_the_role_trusts(account):
    """A volume of another stack never presents it."""
    given = {"base_url": account.base, "role_arn": account.arn("volume")}
    ours, other = (
        account.resource("snowflake_external_volume", "Volume", stack, **given) for stack in ("lake", "other")
    )

    def external_ids():
        volumes = (item for item in account.account._objects.values() if item.domain is Domain.VOLUME)
        return {volume.label: volume.locations[0].external_id for volume in volumes}

    ours.create()
    first = external_ids()
    ours.update(base_url=account.base + "other/")
    second = external_ids()
    assert first.keys() != second.keys()
    assert [*first.values()] == [*second.values()]
    other.create()
    assert len({*external_ids().values()}) == 2


def handshake(account, properties, **more):
    """Create a trust that never becomes ready, and return its error."""
    trust = account.resource("snowflake_trust", "Trust", **{**properties, "namespace": NAMESPACE, **more})
    with pytest.raises(LakeferryError) as failed:
        trust.run(trust.event("Create"), every=200)
    return failed.value


@pytest.mark.parametrize("what", ["volume", "integration"])
def test_a_wrong_external_id(account, what):
    error = handshake(account, account.trust_properties(**{f"{what}_external_id": "of-another-stack"}))
    assert error.kind.code == "SNF-TRUST-EXTERNAL-ID"
    assert what in str(error)
    assert "of-another-stack" in str(error)
    assert "lakeferry-" in str(error)


@pytest.mark.parametrize("what", ["volume", "integration"])
def test_a_wrong_principal(account, what):
    error = handshake(account, account.trust_properties(**{f"{what}_principal": FOREIGN}))
    assert error.kind.code == "SNF-TRUST-PRINCIPAL"
    assert what in str(error)
    assert FOREIGN in str(error)


@pytest.mark.parametrize("what", ["volume", "integration"])
def test_a_role_whose_trust_somebody_changed(account, what):
    """The stack's values are right and IAM's are not. The error has what Snowflake presents, to compare."""
    properties = account.trust_properties(**{f"{what}_external_id": "changed-by-hand"})
    right = account.made["Volume" if what == "volume" else "Catalog"]
    error = handshake(account, {**properties, f"{what}_external_id": right["external_id"]})
    assert error.kind.code == "SNF-TRUST-ROLE"
    assert right["external_id"] in str(error)
    assert right["iam_user_arn"] in str(error)


def test_a_role_that_is_missing(account):
    properties = account.trust_properties()
    account.remove_roles()
    error = handshake(account, properties)
    assert error.kind.code == "SNF-TRUST-ROLE"
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
    error = handshake(account, account.trust_properties(without=[action]))
    assert error.kind.code == code
    assert action.partition(":")[2].lower() in str(error).lower()


def test_a_wrong_region(account):
    error = handshake(account, account.trust_properties(location={"region": "us-west-2"}))
    assert error.kind.code in ("SNF-TRUST-REGION", "SNF-TRUST-CATALOG")
    assert "us-west-2" in str(error)


@pytest.mark.slow
def test_a_wrong_namespace(account):
    error = handshake(account, account.trust_properties(), namespace="lkc-another")
    assert error.kind.code == "SNF-TRUST-NAMESPACE"
    assert NAMESPACE in str(error)


def test_a_repair_during_the_deployment_is_enough(account):
    """The role is created late, as IAM's eventual consistency can make it appear."""
    properties = account.trust_properties()
    account.remove_roles()
    trust = account.resource("snowflake_trust", "Trust", **properties, namespace=NAMESPACE)
    event = trust.event("Create")
    known = {**event, **account.invocations.on_event(event)}
    assert not account.invocations.is_complete(known)["IsComplete"]
    for name, (actions, resources) in account._needs().items():
        account._role(
            name, properties[f"{name}_principal"], properties[f"{name}_external_id"], actions, resources
        )
    account.clock.sleep(10)
    assert account.invocations.is_complete(known)["IsComplete"]
