"""Service accounts, role bindings and ACLs."""

from __future__ import annotations

import pytest
from confluent_context import ENV, IN_CLUSTER, KAFKA, LKC, NAME, ORG, SA, context, listing, spec, wrote

from lambdas.confluent.resources import acl, role_binding, service_account
from lambdas.shared.errors import BadProperties, Denied, ResourceMissing


def test_a_service_account_takes_its_role_bindings_with_it(server):
    """Also one that nobody knows of any more; those of others stay."""
    bindings, account = "/iam/v2/role-bindings", f"/iam/v2/service-accounts/{SA}"
    wanted = {"principal": f"User:{SA}", "crn_pattern": f"crn://confluent.cloud/organization={ORG}"}

    def listed(sent):
        return listing({"id": "rb-1"}, {"id": "rb-2"}) if wanted.items() <= sent.query.items() else listing({"id": "rb-others"})

    server.answers[f"GET {bindings}"] = listed
    for route in (f"{bindings}/rb-1", f"{bindings}/rb-2", account):
        server.answers[f"DELETE {route}"] = (204, None)
    service_account.delete(context(server), spec(service_account), SA)
    assert [what for what, _ in wrote(server)] == [f"DELETE {bindings}/rb-1", f"DELETE {bindings}/rb-2", f"DELETE {account}"]


def test_service_account(server):
    route = "/iam/v2/service-accounts"
    server.answers[f"POST {route}"] = (201, {"id": SA})
    account = {"id": SA, "display_name": NAME, "description": "for tests"}
    server.answers[f"GET {route}"] = lambda sent: listing(account) if sent.query["display_name"] == NAME else listing()
    server.answers[f"GET {route}/{SA}"] = (200, account)
    server.answers[f"PATCH {route}/{SA}"] = (200, {})
    wanted = spec(service_account, description="for tests")
    assert service_account.create(context(server), wanted) == SA
    assert service_account.find_existing(context(server), wanted, None) == [SA]
    assert service_account.is_ready(context(server), wanted, SA)["principal"] == f"User:{SA}"
    service_account.update(context(server), wanted, SA)
    service_account.update(context(server), spec(service_account, description="other"), SA)
    assert wrote(server) == [
        (f"POST {route}", {"display_name": NAME, "description": "for tests"}),
        (f"PATCH {route}/{SA}", {"description": "other"}),
    ]


def binding_spec(**given):
    return spec(role_binding, service_account_id=SA, role="ResourceOwner", scope="topic", name="a*", **IN_CLUSTER, **given)


def test_role_binding(server):
    crn = f"crn://confluent.cloud/organization={ORG}/environment={ENV}/cloud-cluster={LKC}/kafka={LKC}/topic=a*"
    body = {"principal": f"User:{SA}", "role_name": "ResourceOwner", "crn_pattern": crn}
    server.answers["POST /iam/v2/role-bindings"] = (201, {"id": "rb-1", **body})
    assert role_binding.create(context(server), binding_spec()) == "rb-1"
    assert wrote(server) == [("POST /iam/v2/role-bindings", body)]
    encoded = {**body, "crn_pattern": crn.replace("*", "%2A")}
    near = [{"id": "rb-2", **body, "role_name": "Other"}, {"id": "rb-3", **body, "crn_pattern": crn + "b"}]
    server.answers["GET /iam/v2/role-bindings"] = listing(*near, {"id": "rb-1", **encoded})
    assert role_binding.find_existing(context(server), binding_spec(), None) == ["rb-1"]
    assert server.sent[-1].query == {**body, "page_size": "99"}


def test_acls_of_several_names_follow_the_names(server):
    """One call for all that are missing, one for each that goes; what others have stays."""
    both, foreign = acl_spec(resource_names=["a", "b"]), {**ACL, "resource_name": "foreign"}
    server.answers[f"POST {KAFKA}/acls:batch"] = (201, None)
    server.answers[f"POST {KAFKA}/acls"] = (201, None)
    server.answers[f"DELETE {KAFKA}/acls"] = (200, {"data": []})
    server.answers[f"GET {KAFKA}/acls"] = listing(foreign)
    assert acl.find_existing(context(server), both, None) == []
    object_id = acl.create(context(server), both)
    assert [entry["resource_name"] for entry in server.writes()[-1].body["data"]] == ["a", "b"]
    with pytest.raises(ResourceMissing):
        acl.is_ready(context(server), both, object_id)
    one = {**ACL, "resource_name": "a"}
    server.answers[f"GET {KAFKA}/acls"] = listing(foreign, one)
    assert acl.find_existing(context(server), both, None) == [object_id]
    assert acl.is_ready(context(server), both, object_id) is None
    assert server.writes()[-1].body["resource_name"] == "b"
    server.answers[f"GET {KAFKA}/acls"] = listing(foreign, one, {**ACL, "resource_name": "b"})
    assert acl.is_ready(context(server), both, object_id) == {"id": object_id}
    acl.update(context(server, previous=both), acl_spec(resource_names=["b", "c"]), object_id)
    added, removed = server.writes()[-2:]
    assert (added.body["resource_name"], removed.query["resource_name"]) == ("c", "a")
    before = len(server.writes())
    acl.delete(context(server), both, object_id)
    assert [sent.query["resource_name"] for sent in server.writes()[before:]] == ["a", "b"]


@pytest.mark.parametrize("gone", [f"/iam/v2/service-accounts/{SA}", f"/org/v2/environments/{ENV}"])
def test_role_binding_of_an_account_or_in_an_environment_that_is_gone(server, gone):
    server.answers["GET /iam/v2/role-bindings"] = (403, {"error_code": 40301, "message": "no"})
    server.answers |= {f"GET /iam/v2/service-accounts/{SA}": (200, {}), f"GET /org/v2/environments/{ENV}": (200, {})}
    with pytest.raises(Denied):
        role_binding.find_existing(context(server, deleting=True), binding_spec(), None)
    server.answers[f"GET {gone}"] = (404, {})
    assert role_binding.find_existing(context(server, deleting=True), binding_spec(), None) == []


@pytest.mark.parametrize(("scope", "missing"), [("topic", {"name"}), ("subject", {"schema_registry_id", "name"})])
def test_role_binding_wants_what_its_scope_needs(scope, missing):
    with pytest.raises(BadProperties) as bad:
        spec(role_binding, service_account_id=SA, role="x", scope=scope, **IN_CLUSTER)
    assert {name for name, _ in bad.value.problems} == missing


ACL = {
    "resource_type": "TOPIC",
    "resource_name": "a",
    "pattern_type": "LITERAL",
    "principal": f"User:{SA}",
    "host": "*",
    "operation": "READ",
    "permission": "ALLOW",
}


def acl_spec(**given):
    entry = {"resource_type": "TOPIC", "resource_name": "a", "operation": "READ", **given}
    return spec(acl, credentials="kafka", service_account_id=SA, **IN_CLUSTER, **entry)


def test_acl(server):
    server.answers[f"POST {KAFKA}/acls"] = (201, None)
    server.answers[f"DELETE {KAFKA}/acls"] = (200, {"data": []})
    server.answers[f"GET {KAFKA}/acls"] = listing({**ACL, "operation": "WRITE"})
    assert acl.find_existing(context(server), acl_spec(), None) == []
    object_id = acl.create(context(server), acl_spec())
    server.answers[f"GET {KAFKA}/acls"] = listing({**ACL, "operation": "WRITE"}, ACL)
    assert acl.find_existing(context(server), acl_spec(), None) == [object_id]
    assert acl.is_ready(context(server), acl_spec(), object_id) == {"id": object_id}
    acl.update(context(server), acl_spec(), object_id)
    acl.delete(context(server), acl_spec(), object_id)
    post, delete = server.writes()
    assert post.body == ACL
    assert delete.query == ACL, "a looser filter would remove entries of others"


@pytest.mark.parametrize(
    "wide", [{"operation": "ANY"}, {"resource_type": "ANY"}, {"pattern_type": "MATCH"}, {"permission": "ANY"}]
)
def test_acl_words_that_only_filters_know_are_refused(wide):
    with pytest.raises(BadProperties):
        acl_spec(**wide)
