"""A Cloud key of an EnvironmentAdmin is enough on an existing cluster: for accounts, roles, keys and
tables.
"""

from __future__ import annotations

import pytest

from lambdas.confluent.client import Confluent
from lambdas.shared.errors import LakeferryError
from lambdas.shared.http import Session
from lambdas.shared.redaction import ApiKey, Secret
from simulators.confluent import team
from tests.support.confluent_environment import ROLE, Organization
from tests.support.vendor_environment import STEADY

TOPIC = "Sales.Trades"


class Administered(Organization):
    """An organization with another team's cluster, of whose environment the login is an administrator."""

    def __init__(self):
        super().__init__()
        self.team = team.create(self.simulation.organization)
        # A role counts as effective everywhere ten minutes after it was bound.
        self.clock.sleep(900)
        self.before = self.objects()

    def connect(self, deadline, clock, store):
        key_id, _, secret = self.team.deployer_key.partition(":")
        session = Session(deadline, retry=STEADY, adapter=self.wire)
        return Confluent(session, clock, ApiKey(key_id, Secret(secret)), self.url)


@pytest.fixture
def org():
    org = Administered()
    yield org
    org.close()


def list_resources(org):
    """Yield the resources of a table, each after those that it needs."""
    where = {"environment_id": org.team.environment_id, "cluster_id": org.team.cluster_id}
    region = org.simulation.organization.region
    cluster = org.resource("existing_cluster", "KafkaCluster", region=region, **where)
    yield cluster
    account = org.resource("service_account", "Manager")
    yield account
    owner = {"service_account_id": account.outputs["id"]}
    integration = org.resource(
        "provider_integration", "Aws", environment_id=where["environment_id"], role_arn=ROLE
    )
    yield integration
    roles = [
        ("ResourceOwner", "topic", {**where, "name": TOPIC}),
        (
            "ResourceOwner",
            "provider_integration",
            {"environment_id": where["environment_id"], "name": integration.outputs["id"]},
        ),
        (
            "DeveloperRead",
            "subject",
            {
                "environment_id": where["environment_id"],
                "schema_registry_id": cluster.outputs["schema_registry_id"],
                "name": f"{TOPIC}-value",
            },
        ),
        ("Assigner", "service_account", {"name": account.outputs["id"]}),
    ]
    for role, scope, of in roles:
        name = f"{role}{scope}".replace("_", "")
        yield org.resource("role_binding", name, role=role, scope=scope, **owner, **of)
    secret = org.new_secret("tableflow-key")
    yield org.resource("api_key", "Key", service="tableflow", secret=secret, region=region, **owner, **where)
    yield org.resource(
        "tableflow_topic", "Table", topic=TOPIC, credentials=secret, bucket="lake",
        provider_integration_id=integration.outputs["id"], **where,
    )  # fmt: skip


def deploy(org):
    made = []
    for resource in list_resources(org):
        resource.create()
        made.append(resource)
    return made


def test_everything_is_created_updated_and_deleted(org):
    made = deploy(org)
    for resource in made:
        resource.update()
    org.clock.sleep(900)
    for resource in reversed(made):
        resource.delete()
    org.settle()
    assert org.objects() == org.before


def test_the_login_owns_the_accounts_that_it_created(org):
    deploy(org)
    organization = org.simulation.organization
    key_id = org.team.deployer_key.partition(":")[0]
    deployer = organization.api_keys[key_id].owner
    (account,) = [item for item in organization.service_accounts.values() if "manager" in item.name]
    owners = [
        binding.principal
        for binding in organization.role_bindings.values()
        if binding.pattern == account.crn and binding.role == "ResourceOwner"
    ]
    assert owners == [f"User:{deployer}"]


@pytest.mark.parametrize("fault", ["error", "effect_then_error"])
def test_a_create_of_an_account_without_an_answer_is_repeated(org, fault):
    org.disturb(fault=fault, status=503, method="POST", path="/iam/v2/service-accounts", nth=1)
    account = org.resource("service_account", "Manager")
    account.create()
    org.clock.sleep(900)
    account.delete()
    org.settle()
    assert org.objects() == org.before


@pytest.mark.slow
def test_an_account_that_is_hidden_is_never_said_to_be_gone(org):
    account = org.resource("service_account", "Manager")
    account.create()
    organization = org.simulation.organization
    created = {
        kind_and_id for kind_and_id in org.objects() - org.before if kind_and_id[0] == "service_accounts"
    }
    for binding in list(organization.role_bindings.values()):
        if binding.pattern.endswith(account.outputs["id"]):
            del organization.role_bindings[binding.id]
    with pytest.raises(LakeferryError, match=r"CFL-(UNSEEN|AUTH-SCOPE)"):
        account.delete()
    assert created <= org.objects()


@pytest.mark.slow
def test_a_new_account_is_waited_for_until_the_role_of_its_owner_is_effective(org):
    org.disturb(fault="error", status=403, method="GET", path="/iam/v2/service-accounts/sa-*", times=60)
    account = org.resource("service_account", "Manager")
    began = org.clock.time()
    assert account.create()["id"].startswith("sa-")
    assert org.clock.time() - began > 120  # a key that may not read it is reported after two minutes
