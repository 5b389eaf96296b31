"""The control plane over real HTTP: each kind's life, and what is refused."""

from __future__ import annotations

import confluent_contract
import pytest
from confluent_kit import LONG, REGION, Client, Organization, scope_of

from simulators.confluent.organization import Quotas
from simulators.confluent.server import ConfluentCloud


@pytest.fixture(scope="module")
def cloud():
    with ConfluentCloud(seed=7) as running:
        yield running


@pytest.fixture
def org(cloud):
    cloud.reset()
    return Organization(cloud)


def test_responses_are_held_against_the_vendors_files(org):
    before = Client.checked
    org.environment()
    assert Client.checked == before + 1


def test_a_response_of_the_wrong_type_breaks_the_contract():
    broken = {"api_version": "org/v2", "kind": "Environment", "id": 7, "display_name": "x"}
    with pytest.raises(confluent_contract.ContractBroken, match="id: 7 is not of type 'string'"):
        confluent_contract.check("POST", "/org/v2/environments", "", 201, "application/json", broken)
    with pytest.raises(confluent_contract.ContractBroken, match="does not declare"):
        confluent_contract.check("POST", "/org/v2/environments", "", 202, "application/json", broken)


def test_environment_lives_and_dies(org):
    first = org.environment("one")
    assert org.environment("one") != first, "names of environments needn't be unique"
    path = f"/org/v2/environments/{first}"
    assert org.control.patch(path, {"display_name": "two"})["display_name"] == "two"
    upgraded = org.control.patch(path, {"stream_governance_config": {"package": "ADVANCED"}})
    assert upgraded["stream_governance_config"]["package"] == "ADVANCED"
    org.control.patch(path, {"stream_governance_config": {"package": "ESSENTIALS"}}, 409)
    org.control.delete(path)
    org.control.get(path, 404)
    org.control.delete(path, 404)


def test_the_last_environment_stays(org):
    (only,) = org.control.get("/org/v2/environments")["data"]
    org.control.delete(f"/org/v2/environments/{only['id']}", 409)


def test_organization_is_found_without_knowing_its_id(org):
    (only,) = org.control.get("/org/v2/organizations")["data"]
    assert only["id"] == org.id
    assert only["metadata"]["resource_name"] == org.crn


@pytest.mark.parametrize(
    ("body", "pointer"),
    [
        ({}, "/display_name"),
        ({"display_name": ""}, "/display_name"),
        ({"display_name": "x", "stream_governance_config": {"package": "GOLD"}}, "/stream_governance_config/package"),
    ],
)
def test_mistakes_are_pointed_at(org, body, pointer):
    (error,) = org.control.post("/org/v2/environments", body, 422)["errors"]
    assert error["source"]["pointer"] == pointer
    assert error["status"] == "422"


def test_a_wrong_type_is_a_bad_request(org):
    org.control.post("/org/v2/environments", {"display_name": 7}, 400)
    raw = org.control.raw("POST", "/org/v2/environments", data=b"{", headers={"Content-Type": "application/json"})
    assert raw.status_code == 400


def test_lists_come_in_pages(org):
    made = {org.environment(f"e{n}") for n in range(12)}
    path, seen, pages = "/org/v2/environments?page_size=5", [], 0
    while path:
        page = org.control("GET", path, expect=200)
        seen += [each["id"] for each in page["data"]]
        path, pages = page["metadata"]["next"], pages + 1
    assert (pages, len(seen)) == (3, 13)
    assert made < set(seen)
    org.control.get("/org/v2/environments", 400, page_size=101)
    org.control.get("/org/v2/environments", 400, page_token="made-up")


def test_cluster_takes_its_time(org, cloud):
    environment = org.environment()
    made = org.control.post("/cmk/v2/clusters", org.cluster_body(environment), 202)
    path = f"/cmk/v2/clusters/{made['id']}"
    assert made["status"]["phase"] == "PROVISIONING"
    assert made["spec"]["environment"]["resource_name"].endswith(environment), "references go out filled"
    assert org.control.get("/srcm/v3/clusters", environment=environment)["data"] == []
    cloud.advance(100)
    assert org.control.get(path, environment=environment)["status"]["phase"] == "PROVISIONING"
    cloud.advance(LONG)
    ready = org.control.get(path, environment=environment)
    assert ready["status"]["phase"] == "PROVISIONED"
    assert ready["spec"]["availability"] == "LOW", "the vendor's other word for SINGLE_ZONE"
    assert ready["spec"]["endpoints"]["PUBLIC"]["http_endpoint"] == ready["spec"]["http_endpoint"]
    assert org.registry(environment)["status"]["phase"] == "PROVISIONED"
    org.control.delete(path, environment=environment)
    org.control.get(path, 403, environment=environment)
    org.control.delete(path, 403, environment=environment)


def test_without_stream_governance_no_schema_registry(org):
    environment = org.control.post("/org/v2/environments", {"display_name": "bare"}, 201)["id"]
    org.cluster(environment)
    assert org.control.get("/srcm/v3/clusters", environment=environment)["data"] == []


@pytest.mark.parametrize(
    ("changed", "pointer"),
    [
        ({"config": {"kind": "Enterprise"}}, "/spec/config/kind"),
        ({"cloud": "GCP"}, "/spec/cloud"),
        ({"region": "xx-nowhere-1"}, "/spec/region"),
        ({"availability": "SOMETIMES"}, "/spec/availability"),
        ({"display_name": None}, "/spec/display_name"),
    ],
)
def test_clusters_that_cant_be(org, changed, pointer):
    (error,) = org.control.post("/cmk/v2/clusters", org.cluster_body(org.environment(), **changed), 422)["errors"]
    assert error["source"]["pointer"] == pointer


def test_what_a_cluster_keeps(org):
    environment = org.environment()
    cluster = org.cluster(environment)
    path = f"/cmk/v2/clusters/{cluster['id']}"
    same = {"environment": {"id": environment}}
    renamed = {"spec": same | {"display_name": "renamed", "availability": "SINGLE_ZONE", "deletion_protection": True}}
    assert org.control.patch(path, renamed)["spec"]["display_name"] == "renamed"
    for change in ({"availability": "MULTI_ZONE"}, {"region": "us-east-1"}, {"cloud": "GCP"}):
        org.control.patch(path, {"spec": same | change}, 400)
    org.control.patch(path, {"spec": same | {"config": {"kind": "Basic"}}}, 409)
    org.control.patch(path, {"spec": {"display_name": "no environment"}}, 422)
    org.control.delete(path, 409, environment=environment)
    org.control.patch(path, {"spec": same | {"deletion_protection": False}})
    org.control.delete(path, environment=environment)


def test_service_account_names_are_unique(org):
    account = org.account("runner")
    result = org.control.post("/iam/v2/service-accounts", {"display_name": "runner"}, 409)
    assert result["errors"][0]["detail"] == "Service name is already in use"
    (found,) = org.control.get("/iam/v2/service-accounts", display_name="runner")["data"]
    assert found["id"] == account
    path = f"/iam/v2/service-accounts/{account}"
    assert org.control.patch(path, {"description": "d"})["description"] == "d"
    org.control.delete(path)
    org.control.get(path, 403)


def test_a_keys_secret_goes_out_once(org, cloud):
    account = org.account("owner")
    body = {"spec": {"display_name": "k", "owner": {"id": account, "kind": "ServiceAccount"}}}
    made = org.control.post("/iam/v2/api-keys", body, 202)
    path = f"/iam/v2/api-keys/{made['id']}"
    assert made["spec"]["secret"]
    assert "secret" not in org.control.get(path)["spec"]
    (listed,) = org.control.get("/iam/v2/api-keys", spec__owner=account)["data"]
    assert "secret" not in listed["spec"]
    assert "secret" not in org.control.patch(path, {"spec": {"description": "d"}})["spec"]
    org.control.patch(path, {"spec": {"owner": {"id": org.account("other")}}}, 400)
    assert made["spec"]["secret"] not in str(cloud.objects())
    org.control.delete(path)
    org.control.get(path, 403)


def test_a_key_works_after_a_while_and_only_where_it_should(org, cloud):
    account = org.account("owner")
    org.bind(account, "OrganizationAdmin", org.crn)
    made = org.control.post("/iam/v2/api-keys", {"spec": {"owner": {"id": account}}}, 202)
    fresh = Client(cloud.url, made["id"], made["spec"]["secret"])
    fresh.get("/org/v2/environments", 401)
    cloud.advance(LONG)
    fresh.get("/org/v2/environments")
    fresh.get("/tableflow/v1/regions", 401)
    Client(cloud.url, made["id"], "wrong").get("/org/v2/environments", 401)
    Client(cloud.url).get("/org/v2/environments", 401)
    org.control.delete(f"/iam/v2/service-accounts/{account}")
    fresh.get("/org/v2/environments", 401)


def test_keys_for_things_that_are_not_there(org):
    account = org.account("owner")
    for resource in (
        {"id": "lkc-nowhere"},
        {"id": f"aws.{REGION}", "environment": "env-nowhere"},
        {"id": "tableflow", "kind": "X"},
    ):
        org.control.post("/iam/v2/api-keys", {"spec": {"owner": {"id": account}, "resource": resource}}, 422)
    org.control.post("/iam/v2/api-keys", {"spec": {"owner": {"id": "sa-nobody"}}}, 422)


def test_a_weak_owner_is_refused(org, cloud):
    weak = Client(cloud.url, *org.key(org.account("weak")))
    weak.post("/iam/v2/service-accounts", {"display_name": "x"}, 403)
    weak.post("/org/v2/environments", {"display_name": "x"}, 403)
    environment = org.environment()
    weak.post("/cmk/v2/clusters", org.cluster_body(environment), 403)
    body = {"principal": f"User:{org.account('p')}", "role_name": "OrganizationAdmin", "crn_pattern": org.crn}
    assert weak.post("/iam/v2/role-bindings", body, 403)["error_code"] == 40301


def test_role_binding_is_effective_late_and_never_changes(org, cloud):
    account, environment = org.account("env-admin"), org.environment()
    client = Client(cloud.url, *org.key(account))
    binding = org.bind(account, "EnvironmentAdmin", f"{org.crn}/environment={environment}")
    path = f"/org/v2/environments/{environment}"
    client.get(path, 403)
    cloud.advance(LONG)
    client.get(path)
    again = {
        "principal": f"User:{account}",
        "role_name": "EnvironmentAdmin",
        "crn_pattern": f"{org.crn}/environment={environment}",
    }
    org.control.post("/iam/v2/role-bindings", again, 409)
    (found,) = org.control.get("/iam/v2/role-bindings", crn_pattern=org.crn, principal=f"User:{account}")["data"]
    assert found["id"] == binding
    org.control("PATCH", f"/org/v2/environments/{environment}", expect=200, json={"display_name": "still"})
    org.control.delete(f"/iam/v2/role-bindings/{binding}", 200)
    assert org.control.get(f"/iam/v2/role-bindings/{binding}", 403)["error_code"] == 40301
    org.control.delete(f"/iam/v2/role-bindings/{binding}", 403)
    org.control.post("/iam/v2/role-bindings", {"principal": f"User:{account}"}, 400)
    client.get(path, 403)
    org.control.get("/iam/v2/role-bindings", 400)


@pytest.mark.parametrize(
    ("role", "tail"),
    [
        ("CloudClusterAdmin", ""),
        ("Nonsense", ""),
        ("OrganizationAdmin", "/environment=env-x"),
        ("Assigner", "/environment=env-x"),
    ],
)
def test_roles_are_bound_only_at_their_scopes(org, role, tail):
    body = {"principal": f"User:{org.account('x')}", "role_name": role, "crn_pattern": org.crn + tail}
    org.control.post("/iam/v2/role-bindings", body, 400)


def test_role_bindings_name_accounts_by_id(org):
    body = {"principal": "User:123456", "role_name": "MetricsViewer", "crn_pattern": org.crn}
    org.control.post("/iam/v2/role-bindings", body, 400)


def pool_body(environment, **changed):
    spec = {"display_name": "pool", "cloud": "AWS", "region": REGION, "max_cfu": 10, "environment": {"id": environment}}
    return {"spec": spec | changed}


def test_compute_pool(org, cloud):
    environment = org.environment()
    made = org.control.post("/fcpm/v2/compute-pools", pool_body(environment), 202)
    path = f"/fcpm/v2/compute-pools/{made['id']}"
    assert made["status"] == {"phase": "PROVISIONING", "current_cfu": 0}
    cloud.advance(LONG)
    assert org.control.get(path, environment=environment)["status"]["phase"] == "PROVISIONED"
    same = {"environment": {"id": environment}}
    assert org.control.patch(path, {"spec": same | {"max_cfu": 20}})["spec"]["max_cfu"] == 20
    org.control.patch(path, {"spec": same | {"max_cfu": 5}}, 409)
    org.control.patch(path, {"spec": same | {"region": "us-east-1"}}, 400)
    for change in ({"max_cfu": 7}, {"display_name": "no spaces"}, {"region": "ca-west-1"}):
        org.control.post("/fcpm/v2/compute-pools", pool_body(environment, **change), 422)
    org.control.delete(path, environment=environment)
    org.control.get(path, 404, environment=environment)


def test_one_default_pool(org):
    environment = org.environment()
    org.control.post("/fcpm/v2/compute-pools", pool_body(environment, default_pool=True), 202)
    org.control.post("/fcpm/v2/compute-pools", pool_body(environment, default_pool=True), 409)


def test_flink_region_tells_its_address(org, cloud):
    (region,) = org.control.get("/fcpm/v2/regions", cloud="AWS", region_name=REGION)["data"]
    assert region["id"] == f"aws.{REGION}"
    assert region["http_endpoint"] not in ("", cloud.url)
    assert org.control.get("/fcpm/v2/regions", cloud="AWS", region_name="ca-west-1")["data"] == []
    assert org.control.get("/fcpm/v2/regions", cloud="AWS", region_name="eu-central-1")["data"][0]["id"] == "aws.eu-central-1"


def integration_body(environment, role="lake", name="lake"):
    config = {"kind": "AwsIntegrationConfig", "customer_iam_role_arn": f"arn:aws:iam::000000000000:role/{role}"}
    return {"display_name": name, "provider": "aws", "config": config, "environment": {"id": environment}}


def test_provider_integration(org):
    environment = org.environment()
    made = org.control.post("/pim/v1/integrations", integration_body(environment), 201)
    assert made["config"]["iam_role_arn"].startswith("arn:aws:iam::")
    assert made["config"]["external_id"]
    assert made["usages"] == []
    org.control.post("/pim/v1/integrations", integration_body(environment, name="same role"), 409)
    org.control.post("/pim/v1/integrations", integration_body(environment, "not a role"), 422)
    path = f"/pim/v1/integrations/{made['id']}"
    (listed,) = org.control.get("/pim/v1/integrations", environment=environment)["data"]
    assert listed == org.control.get(path, environment=environment) == made
    org.control.delete(path, environment=environment)
    again = org.control.post("/pim/v1/integrations", integration_body(environment), 201)
    assert again["config"]["external_id"] != made["config"]["external_id"]


def test_deleting_an_environment_takes_what_is_in_it(org, cloud):
    environment = org.environment()
    org.cluster(environment)
    org.control.post("/fcpm/v2/compute-pools", pool_body(environment), 202)
    org.control.post("/pim/v1/integrations", integration_body(environment), 201)
    org.control.delete(f"/org/v2/environments/{environment}")
    left = cloud.objects()
    assert not any(left[kind] for kind in ("clusters", "compute_pools", "provider_integrations", "schema_registries"))
    org.control.get("/cmk/v2/clusters", 403, environment=environment)


def test_quotas():
    with ConfluentCloud(quotas=Quotas(environments=2, service_accounts=0, clusters_per_environment=0)) as small:
        org = Organization(small)
        environment = org.environment()
        for path, body in (
            ("/org/v2/environments", {"display_name": "x"}),
            ("/iam/v2/service-accounts", {"display_name": "x"}),
            ("/cmk/v2/clusters", org.cluster_body(environment)),
        ):
            (error,) = org.control.post(path, body, 402)["errors"]
            assert error["code"] == "quota_exceeded"


def test_rate_limit_tells_when_to_come_back(org, cloud):
    cloud.limit(calls=2, seconds=60)
    answers = [org.control.raw("GET", "/org/v2/environments") for _ in range(3)]
    assert [each.status_code for each in answers] == [200, 200, 429]
    assert [each.headers["X-RateLimit-Remaining"] for each in answers] == ["1", "0", "0"]
    assert 1 <= int(answers[2].headers["Retry-After"]) <= 61
    assert answers[2].content == b""
    cloud.advance(int(answers[2].headers["Retry-After"]))
    org.control.get("/org/v2/environments")


def test_rate_limit_without_headers(org, cloud):
    cloud.limit(calls=1, headers=False)
    org.control.get("/org/v2/environments")
    limited = org.control.raw("GET", "/org/v2/environments")
    assert limited.status_code == 429
    assert not {"Retry-After", "X-RateLimit-Reset"} & set(limited.headers)


def test_a_plane_answers_only_its_own_routes(org, cloud):
    cluster = org.cluster(org.environment())
    elsewhere = Client(cluster["spec"]["http_endpoint"], *org.key(org.administrator(cluster)))
    assert elsewhere._session.get(elsewhere.url + "/org/v2/environments").status_code == 404
    assert scope_of(cluster).endswith(cluster["id"])


def test_every_answer_has_a_request_id(org):
    answers = [org.control.raw("GET", "/org/v2/environments"), org.control.raw("GET", "/org/v2/environments/env-none")]
    ids = {each.headers["X-Request-Id"] for each in answers}
    assert len(ids) == 2


def test_one_seed_makes_the_same_ids():
    def ids():
        with ConfluentCloud(seed=3, start=1e9) as running:
            Organization(running).environment()
            return running.objects()

    assert ids() == ids()


def test_faults_strike_here_too(org, cloud):
    cloud.faults.rule(
        {"fault": "effect_then_error", "method": "POST", "path": "/org/v2/environments", "status": 500, "body": "{}"}
    )
    raw = org.control._session.post(cloud.url + "/org/v2/environments", json={"display_name": "kept"})
    cloud.faults.clear()
    assert raw.status_code == 500
    names = [each["display_name"] for each in org.control.get("/org/v2/environments")["data"]]
    assert "kept" in names
