"""A login that may not see its deployment's objects, or one of another organization: nothing is taken for
gone.
"""

from __future__ import annotations

import pytest

from lambdas.confluent.client import Confluent
from lambdas.shared.errors import LakeferryError
from lambdas.shared.http import Session
from lambdas.shared.redaction import ApiKey, Secret
from tests.support.confluent_environment import Organization
from tests.support.confluent_lives import LIVES
from tests.support.vendor_environment import STEADY


class DeployedBy(Organization):
    """An organization that a service account deploys into, which has the role OrganizationAdmin until a test
    takes it.
    """

    def __init__(self):
        self.login = None
        super().__init__()
        self.deployer = self.resource("service_account", "Deployer", "hand").create()["id"]
        self.give("OrganizationAdmin", "organization")
        secret = self.new_secret("deployer-key")
        key = {"service": "cloud", "service_account_id": self.deployer, "secret": secret}
        self.resource("api_key", "Cloud", "hand", **key).create()
        self.settle()
        fields = self.secrets.fields(secret)
        self.login = ApiKey(fields["apiKey"], Secret(fields["apiSecret"]))

    def connect(self, deadline, clock, store):
        if self.login is None:
            return super().connect(deadline, clock, store)
        return Confluent(Session(deadline, retry=STEADY, adapter=self.wire), clock, self.login, self.url)

    def give(self, role, scope, **where):
        login = self.login
        self.login = None
        given = {"service_account_id": self.deployer, "role": role, "scope": scope, **where}
        self.resource("role_binding", f"Hand{role}{len(self.objects())}", "hand", **given).create()
        self.login = login

    def take_roles(self):
        bindings = self.simulation.organization.role_bindings
        for binding in [item for item in bindings.values() if item.principal == f"User:{self.deployer}"]:
            del bindings[binding.id]

    def deployed(self, kind):
        """Create a resource. Return it, and the objects that the simulator has because of it."""
        properties = LIVES[kind].properties(self)
        before = self.objects()
        resource = self.resource(kind, "It", **properties)
        resource.create()
        self.settle()
        return resource, self.objects() - before


@pytest.fixture
def org():
    org = DeployedBy()
    yield org
    org.close()


def control(org, method, path, **document):
    answer = org._controls.request(method, f"{org.url}/_simulator{path}", json=document)
    answer.raise_for_status()
    return answer.json()


def end_roles(org):
    assert control(org, "DELETE", "/roles", principal=org.deployer)["ended"]


def own(org, kind, made):
    """Return those of the objects `made` that still exist and are of the kinds that the resource itself
    makes.
    """
    return {item for item in org.objects() & made if item[0] in LIVES[kind].shown}


#: Types that create something. What is only looked up has nothing to delete.
KINDS = [kind for kind, life in LIVES.items() if life.shown]
#: Types whose objects a service account of the deployment deletes, with a key of its own that sees them. The
#: undo of a statement also needs the names of environment and cluster, which only the deployer's key may
#: read.
OWN_KEY = ("tableflow_topic", "catalog_integration")
ROLES = {
    "none": (),
    "of another environment": (("EnvironmentAdmin", "environment"),),
}


@pytest.mark.sampled(2)
@pytest.mark.parametrize("roles", ROLES)
@pytest.mark.parametrize("kind", KINDS)
def test_a_login_without_its_role_deletes_nothing_and_never_says_deleted(org, kind, roles):
    resource, made = org.deployed(kind)
    end_roles(org)
    for role, scope in ROLES[roles]:
        other = next(iter(org.simulation.organization.environments))
        org.give(role, scope, environment_id=other)
    before = own(org, kind, made)
    assert before
    if kind in OWN_KEY:
        resource.delete()
        org.settle()
        assert own(org, kind, made) == set()
        return
    with pytest.raises(LakeferryError, match=r"CFL-(UNSEEN|AUTH-SCOPE)"):
        resource.delete()
    org.settle()
    assert own(org, kind, made) == before


@pytest.mark.sampled(1)
@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind not in OWN_KEY])
def test_with_its_role_back_the_login_deletes(org, kind):
    resource, made = org.deployed(kind)
    end_roles(org)
    with pytest.raises(LakeferryError):
        resource.delete()
    org.give("OrganizationAdmin", "organization")
    org.settle()
    resource.delete()
    org.settle()
    assert own(org, kind, made) == set()


@pytest.mark.sampled(2)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("request_type", ["update", "delete"])
def test_a_key_of_another_organization_is_refused(org, kind, request_type):
    resource, made = org.deployed(kind)
    other = control(org, "POST", "/organizations")
    org.login = ApiKey(other["cloud_api_key"], Secret(other["cloud_api_secret"]))
    org.wire.calls.clear()
    with pytest.raises(LakeferryError, match="CFL-OTHER-ORGANIZATION"):
        getattr(resource, request_type)()
    assert [call for call in org.wire.calls if call.method != "GET"] == []
    assert own(org, kind, made) == {
        made_object for made_object in made if made_object[0] in LIVES[kind].shown
    }


@pytest.mark.slow
def test_a_role_that_isn_t_effective_yet_proves_nothing(org):
    resource, made = org.deployed("kafka_cluster")
    end_roles(org)
    control_organization = org.simulation.organization
    org.give("OrganizationAdmin", "organization")
    for binding in control_organization.role_bindings.values():
        binding.effective = control_organization.clock.now() + 400
    resource.delete()
    org.settle()
    assert own(org, "kafka_cluster", made) == set()


def test_no_second_cluster_is_created_by_a_login_that_does_not_see_the_first(org):
    resource, _ = org.deployed("kafka_cluster")
    end_roles(org)
    with pytest.raises(LakeferryError, match=r"CFL-(UNSEEN|AUTH-SCOPE)"):
        resource.update(max_ecku=2)
    assert len(org.simulation.organization.clusters) == 1
