"""Objects of the control plane over real HTTP: one table of kinds, then the odd rules of each."""

import copy
from dataclasses import dataclass, field

import pytest

from simulators.confluent import regions
from simulators.confluent.organization import Quotas
from simulators.confluent.server import ConfluentCloud
from tests.support import confluent_contract
from tests.support.confluent_kit import LONG, REGION, Client, Organization


@dataclass
class Kind:
    """`body` creates one; paths in it are dotted. `missing`, `deleted` and `outsider` are statuses."""

    path: str
    body: dict
    created: int = 201
    #: {path: a second value}: what an update changes.
    changes: dict = field(default_factory=dict)
    #: {path: another value} that an update refuses.
    immutable: dict = field(default_factory=dict)
    #: (path, value, status): what a create refuses; None leaves the property out.
    invalid: tuple = ()
    #: A path with a value for the n-th object, where two can't be alike.
    unique: tuple = ("display_name", "n{}")
    parent: str = ""
    missing: int = 404
    deleted: int = 204
    phases: tuple = ()
    quota: str = ""
    outsider: int = 403
    #: Who has no role may still read and list.
    open_to_read: bool = False

    @property
    def where(self):
        return {"environment": "ENVIRONMENT"} if self.parent else {}


ARN = "arn:aws:iam::000000000000:role/"
ENVIRONMENT = {"id": "ENVIRONMENT"}
# fmt: off
KINDS = {
    "environment": Kind(
        "/org/v2/environments", {"display_name": "one", "stream_governance_config": {"package": "ESSENTIALS"}},
        changes={"display_name": "two", "stream_governance_config.package": "ADVANCED"}, quota="environments",
        invalid=(
            ("display_name", None, 422), ("display_name", "", 422), ("display_name", 7, 400),
            ("stream_governance_config.package", "GOLD", 422), ("stream_governance_config.package", None, 422),
            ("stream_governance_config", "ESSENTIALS", 400),
        ),
    ),
    "cluster": Kind(
        "/cmk/v2/clusters",
        {"spec": {
            "display_name": "events", "availability": "SINGLE_ZONE", "cloud": "AWS", "region": REGION,
            "config": {"kind": "Basic"}, "environment": ENVIRONMENT,
        }},
        created=202, changes={"spec.display_name": "renamed", "spec.config.kind": "Standard"},
        immutable={"spec.availability": "MULTI_ZONE", "spec.region": "us-east-1", "spec.cloud": "GCP"},
        unique=("spec.display_name", "n{}"), parent="spec.environment.id", missing=403, phases=("PROVISIONING", "PROVISIONED"),
        quota="clusters_per_environment",
        invalid=(
            ("spec.config.kind", "Enterprise", 422), ("spec.config.kind", "Huge", 422), ("spec.config", None, 422),
            ("spec.config.max_ecku", "2", 400), ("spec.cloud", "GCP", 422), ("spec.cloud", None, 422),
            ("spec.region", "xx-nowhere-1", 422), ("spec.region", None, 422), ("spec.availability", "SOMETIMES", 422),
            ("spec.availability", None, 422), ("spec.display_name", None, 422), ("spec.display_name", "x" * 65, 422),
            ("spec.deletion_protection", "yes", 400),
        ),
    ),
    "compute pool": Kind(
        "/fcpm/v2/compute-pools",
        {"spec": {"display_name": "pool", "cloud": "AWS", "region": REGION, "max_cfu": 10, "environment": ENVIRONMENT}},
        created=202, changes={"spec.display_name": "renamed", "spec.max_cfu": 20, "spec.default_pool": True},
        immutable={"spec.region": "us-east-1", "spec.cloud": "GCP"}, unique=("spec.display_name", "n{}"),
        parent="spec.environment.id", phases=("PROVISIONING", "PROVISIONED"),
        invalid=(
            ("spec.max_cfu", 7, 422), ("spec.max_cfu", "10", 400), ("spec.max_cfu", True, 400), ("spec.max_cfu", None, 422),
            ("spec.display_name", "no spaces", 422), ("spec.display_name", None, 422), ("spec.region", "ca-west-1", 422),
            ("spec.cloud", "AZURE", 422), ("spec.default_pool", "yes", 400),
        ),
    ),
    "service account": Kind(
        "/iam/v2/service-accounts", {"display_name": "runner", "description": ""},
        changes={"display_name": "renamed", "description": "d"}, missing=403, quota="service_accounts",
        invalid=(
            ("display_name", None, 422), ("display_name", "x" * 129, 422), ("description", 7, 400),
        ),
    ),
    "role binding": Kind(
        "/iam/v2/role-bindings",
        {"principal": "User:ACCOUNT", "role_name": "EnvironmentAdmin", "crn_pattern": "CRN/environment=env-1"},
        unique=("crn_pattern", "CRN/environment=env-n{}"), missing=403, deleted=200, open_to_read=True,
        invalid=(
            ("principal", None, 400), ("principal", "User:123456", 400), ("principal", "Robot:ACCOUNT", 400),
            ("role_name", None, 400), ("role_name", "Nonsense", 400), ("role_name", "CloudClusterAdmin", 400),
            ("role_name", "OrganizationAdmin", 400), ("role_name", "Assigner", 400), ("crn_pattern", None, 400),
            ("crn_pattern", "crn://confluent.cloud/organization=another/environment=env-1", 400),
        ),
    ),
    "provider integration": Kind(
        "/pim/v1/integrations",
        {
            "display_name": "lake", "provider": "aws",
            "config": {"kind": "AwsIntegrationConfig", "customer_iam_role_arn": ARN + "lake"}, "environment": ENVIRONMENT,
        },
        unique=("config.customer_iam_role_arn", ARN + "n{}"), parent="environment.id", quota="provider_integrations",
        invalid=(
            ("config.customer_iam_role_arn", ARN + "not a role", 422), ("config.customer_iam_role_arn", None, 422),
            ("config.kind", "GcpIntegrationConfig", 422), ("config.kind", None, 422), ("provider", "gcp", 422),
            ("display_name", "x" * 61, 422), ("display_name", None, 422),
        ),
    ),
    "API key": Kind(
        "/iam/v2/api-keys", {"spec": {"display_name": "k", "owner": {"id": "ACCOUNT"}}},
        created=202, changes={"spec.display_name": "renamed", "spec.description": "d"},
        immutable={"spec.owner": {"id": "sa-other"}, "spec.resource": {"id": "lkc-other"}},
        unique=("spec.display_name", "n{}"), missing=403, quota="api_keys",
        invalid=(
            ("spec.owner.id", None, 422), ("spec.owner.id", "sa-nobody", 422), ("spec.resource", {"id": "lkc-nowhere"}, 422),
            ("spec.resource", {"id": f"aws.{REGION}"}, 422),
            ("spec.resource", {"id": f"aws.{REGION}", "environment": "env-nowhere"}, 422),
            ("spec.resource", {"id": "aws.ca-west-1", "environment": "ENVIRONMENT"}, 422),
            ("spec.resource", {"id": "tableflow", "kind": "X"}, 422), ("spec.display_name", 7, 400),
        ),
    ),
}
# fmt: on


def pairs(attribute):
    """(kind, item) of each item of the attribute, with readable names."""
    items = [(name, kind, item) for name, kind in KINDS.items() for item in _items(getattr(kind, attribute))]
    return [
        pytest.param(kind, item, id=f"{name} {item[0]} {str(item[1])[:40]}") for name, kind, item in items
    ]


def _items(values):
    return values.items() if isinstance(values, dict) else values


def each_kind(**conditions):
    chosen = [
        (n, k)
        for n, k in KINDS.items()
        if all(bool(getattr(k, a)) is value for a, value in conditions.items())
    ]
    return pytest.mark.parametrize("kind", [kind for _, kind in chosen], ids=[name for name, _ in chosen])


def put(body, path, value):
    """A copy of the body with the value there; None takes the property out."""
    body = copy.deepcopy(body)
    *objects, name = path.split(".")
    inner = body
    for found_object in objects:
        inner = inner.setdefault(found_object, {})
    inner.pop(name, None)
    if value is not None:
        inner[name] = value
    return body


def value_at(body, path):
    for part in path.split("."):
        body = body[part]
    return body


class Setup(Organization):
    """An organization with an environment and an account, whose ids stand in a body for the words in
    capitals.
    """

    def __init__(self, cloud):
        super().__init__(cloud)
        self.words = {"ENVIRONMENT": self.environment(), "ACCOUNT": self.account("owner"), "CRN": self.crn}

    def filled(self, body):
        if isinstance(body, dict):
            return {name: self.filled(value) for name, value in body.items()}
        for word, meant in self.words.items():
            body = body.replace(word, meant) if isinstance(body, str) else body
        return body

    def create(self, kind, body=None, expect=None, client=None):
        return (client or self.control).post(
            kind.path, self.filled(body or kind.body), expect or kind.created
        )

    def one(self, kind):
        return f"{kind.path}/{self.create(kind)['id']}", self.filled(kind.where)

    def patch(self, kind, path, value):
        body = put({}, path, value)
        return self.filled(put(body, kind.parent, "ENVIRONMENT") if kind.parent else body)


@pytest.fixture
def org(org):
    return Setup(org.cloud)


def listed(org, kind, **query):
    required = {"crn_pattern": org.crn} if "role-bindings" in kind.path else {}
    return org.control.get(kind.path, **org.filled(kind.where), **required, **query)


@each_kind()
def test_created_read_listed_and_deleted(org, cloud, kind):
    made = org.create(kind)
    path = f"{kind.path}/{made['id']}"
    where = org.filled(kind.where)
    if kind.phases:
        assert made["status"]["phase"] == kind.phases[0]
        cloud.advance(LONG)
    found = org.control.get(path, **where)
    assert found.get("status", {}).get("phase", "") == (kind.phases[-1] if kind.phases else "")
    assert found in listed(org, kind)["data"]
    org.control.delete(path, kind.deleted, **where)
    org.control.get(path, kind.missing, **where)
    org.control.delete(path, kind.missing, **where)
    assert made["id"] not in [item["id"] for item in listed(org, kind)["data"]]


@pytest.mark.parametrize(("kind", "change"), pairs("changes"))
def test_updated(org, kind, change):
    path, where = org.one(kind)
    changed = org.control.patch(path, org.patch(kind, *change))
    assert value_at(changed, change[0]) == change[1]
    assert org.control.get(path, **where) == changed


@pytest.mark.parametrize(("kind", "change"), pairs("changes"))
def test_an_update_leaves_the_rest(org, kind, change):
    made = org.create(kind)
    changed = org.control.patch(f"{kind.path}/{made['id']}", org.patch(kind, *change))
    for item in kind.changes.keys() - {change[0]}:
        if item != "spec.default_pool":
            assert value_at(changed, item) == (value_at(made, item) or "")


@pytest.mark.parametrize(("kind", "change"), pairs("immutable"))
def test_immutable(org, kind, change):
    path, _ = org.one(kind)
    error = org.control.patch(path, org.patch(kind, *change), 400)["errors"][0]
    assert "immutable" in error["detail"]
    assert error["source"]["pointer"].startswith("/" + change[0].replace(".", "/"))


@pytest.mark.parametrize(("kind", "wrong"), pairs("invalid"))
def test_invalid(org, kind, wrong):
    path, value, status = wrong
    (error,) = org.create(kind, put(kind.body, path, value), status)["errors"]
    pointer = "/" + path.replace(".", "/")
    assert (
        pointer.startswith(error["source"]["pointer"])
        or error["source"]["pointer"].startswith(pointer)
        or "role" in path
    )
    assert error["status"] == str(status)


@each_kind(parent=True)
def test_in_an_environment(org, kind):
    org.create(kind, put(kind.body, kind.parent, "env-none"), 400)
    org.create(kind, put(kind.body, kind.parent.removesuffix(".id"), None), 422)
    org.control.get(kind.path, 403, environment="env-none")
    org.control.get(kind.path, 400)
    path, _ = org.one(kind)
    other = org.environment("other")
    org.control.get(path, kind.missing, environment=other)
    assert org.control.get(kind.path, environment=other)["data"] == []
    if kind.changes:
        field, value = next(iter(kind.changes.items()))
        org.control.patch(path, put({}, field, value), 422)
        org.control.patch(path, put(put({}, field, value), kind.parent, other), kind.missing)


@each_kind()
def test_pages(org, kind):
    made = {
        org.create(kind, put(kind.body, kind.unique[0], kind.unique[1].format(n)))["id"] for n in range(3)
    }
    page = listed(org, kind, page_size=2)
    ids = []
    pages = 1
    total = page["metadata"]["total_size"]
    while True:
        ids += [item["id"] for item in page["data"]]
        if not page["metadata"]["next"]:
            break
        page = org.control("GET", page["metadata"]["next"], expect=200)
        pages = pages + 1
    assert made <= set(ids)
    assert (len(ids), pages) == (total, -(-total // 2))
    for wrong in ({"page_size": 101}, {"page_size": 0}, {"page_size": "x"}, {"page_token": "made-up"}):
        required = {"crn_pattern": org.crn} if "role-bindings" in kind.path else {}
        org.control.get(kind.path, 400, **org.filled(kind.where), **required, **wrong)


@each_kind(quota=True)
def test_quota(kind):
    with ConfluentCloud() as free:
        org = Setup(free)
        free._simulation.organization.quotas = Quotas(**{kind.quota: 0})
        (error,) = org.create(kind, expect=402)["errors"]
    assert error["code"] == "quota_exceeded"


@each_kind()
def test_without_a_role(org, cloud, kind):
    path, where = org.one(kind)
    weak = Client(cloud.url, *org.key(org.account("weak")))
    other = put(kind.body, kind.unique[0], kind.unique[1].format(2))
    org.create(kind, other, kind.outsider, client=weak)
    if kind.open_to_read:
        weak.get(path, **where)
    else:
        weak.get(path, 403, **where)
    if kind.changes:
        weak.patch(path, org.patch(kind, *next(iter(kind.changes.items()))), 403)
    weak.delete(path, 403, **where)
    if kind.path == "/org/v2/environments":
        assert weak.get(kind.path)["data"] == []


def test_an_account_without_a_role_manages_its_own_api_keys_only(org, cloud):
    id, secret = org.key(org.account("weak"))
    org.key(org.account("other"))
    weak = Client(cloud.url, id, secret)
    assert [item["id"] for item in weak.get("/iam/v2/api-keys")["data"]] == [id]
    weak.delete(f"/iam/v2/api-keys/{id}", 204)


@pytest.mark.parametrize("region", [*regions.AWS[-3:], "cn-north-1", "eu-west-9", "westeurope"])
def test_clusters_are_in_any_region_of_aws(org, region):
    body = put(KINDS["cluster"].body, "spec.region", region)
    org.create(KINDS["cluster"], body, 202 if region in regions.AWS else 422)


# Odd rules, one by one.


def test_a_response_of_the_wrong_type_breaks_the_contract(org):
    before = Client.checked
    org.environment()
    assert Client.checked == before + 1
    broken = {"api_version": "org/v2", "kind": "Environment", "id": 7, "display_name": "x"}
    with pytest.raises(confluent_contract.ContractBroken, match="id: 7 is not of type 'string'"):
        confluent_contract.check("POST", "/org/v2/environments", "", 201, "application/json", broken)
    with pytest.raises(confluent_contract.ContractBroken, match="does not declare"):
        confluent_contract.check("POST", "/org/v2/environments", "", 202, "application/json", broken)


def test_a_body_that_is_no_json(org):
    for data, kind in ((b"{", "application/json"), (b"[]", "application/json"), (b"{}", "text/plain")):
        assert (
            org.control.raw(
                "POST", "/org/v2/environments", data=data, headers={"Content-Type": kind}
            ).status_code
            == 400
        )


def test_environments(org, cloud):
    assert org.environment("one") != org.environment("one"), "names needn't be unique"
    path, _ = org.one(KINDS["environment"])
    org.control.patch(path, {"stream_governance_config": {"package": "ADVANCED"}})
    org.control.patch(path, {"stream_governance_config": {"package": "ESSENTIALS"}}, 409)
    cloud.reset()
    org = Organization(cloud)
    (last,) = org.control.get("/org/v2/environments")["data"]
    org.control.delete(f"/org/v2/environments/{last['id']}", 409)


def test_deleting_an_environment_deletes_what_is_in_it(org, cloud):
    for name in ("cluster", "compute pool", "provider integration"):
        org.create(KINDS[name])
    cloud.advance(LONG)
    org.control.delete(f"/org/v2/environments/{org.words['ENVIRONMENT']}")
    remaining = cloud.objects()
    assert not any(
        remaining[kind]
        for kind in ("clusters", "compute_pools", "provider_integrations", "schema_registries")
    )
    org.control.get("/cmk/v2/clusters", 403, environment=org.words["ENVIRONMENT"])


def test_the_organization(org):
    (only,) = org.control.get("/org/v2/organizations")["data"]
    assert (only["id"], only["metadata"]["resource_name"]) == (org.id, org.crn)
    org.control.get(f"/org/v2/organizations/{org.id}")
    org.control.get("/org/v2/organizations/another", 404)


def test_clusters(org, cloud):
    environment = org.words["ENVIRONMENT"]
    made = org.create(
        KINDS["cluster"], put(KINDS["cluster"].body, "spec.config", {"kind": "Standard", "max_ecku": 2})
    )
    path = f"/cmk/v2/clusters/{made['id']}"
    assert made["spec"]["environment"]["resource_name"].endswith(environment), "references are complete"
    assert org.control.get("/srcm/v3/clusters", environment=environment)["data"] == []
    cloud.advance(100)
    early = org.control.get(path, environment=environment)
    assert (early["status"]["phase"], "http_endpoint" in early["spec"]) == ("PROVISIONING", False)
    cloud.advance(LONG)
    ready = org.control.get(path, environment=environment)["spec"]
    assert ready["availability"] == "LOW", "the vendor's other word for SINGLE_ZONE"
    assert ready["endpoints"]["PUBLIC"]["http_endpoint"] == ready["http_endpoint"]
    assert ready["config"] == {"kind": "Standard", "max_ecku": 2}
    same = {"environment": {"id": environment}}
    org.control.patch(
        path, {"spec": same | {"availability": "SINGLE_ZONE", "cloud": "AWS", "region": REGION}}
    )
    org.control.patch(path, {"spec": same | {"config": {"kind": "Basic"}}}, 409)
    org.control.patch(path, {"spec": same | {"config": {"max_ecku": 4}}}, 422)
    org.control.patch(path, {"spec": same | {"deletion_protection": True}})
    org.control.delete(path, 409, environment=environment)
    org.control.patch(path, {"spec": same | {"deletion_protection": False}})
    org.control.delete(path, environment=environment)
    org.control.get(path, 403, environment=environment)
    assert cloud.objects()["clusters"] == [made["id"]], "it is deleted a while later"
    cloud.advance(LONG)
    assert cloud.objects()["clusters"] == []


def test_schema_registries(org):
    environment = org.words["ENVIRONMENT"]
    org.cluster(environment)
    org.cluster(environment)
    registry = org.registry(environment)
    assert (registry["status"]["phase"], registry["spec"]["region"]) == ("PROVISIONED", REGION)
    path = f"/srcm/v3/clusters/{registry['id']}"
    assert org.control.get(path, environment=environment) == registry
    org.control.get(path, 404, environment=org.environment("other"))
    bare = org.control.post("/org/v2/environments", {"display_name": "bare"}, 201)["id"]
    org.cluster(bare)
    assert org.control.get("/srcm/v3/clusters", environment=bare)["data"] == [], (
        "none without Stream Governance"
    )


def test_compute_pools(org):
    kind = KINDS["compute pool"]
    environment = org.words["ENVIRONMENT"]
    path, _ = org.one(kind)
    org.control.patch(path, org.patch(kind, "spec.max_cfu", 5), 409)
    default = put(kind.body, "spec.default_pool", True)
    first = org.create(kind, default)["id"]
    org.create(kind, default, 409)
    org.control.patch(path, org.patch(kind, "spec.default_pool", True), 409)
    org.control.patch(f"{kind.path}/{first}", org.patch(kind, "spec.default_pool", True))
    org.create(kind, put(default, "spec.region", "us-east-1"))
    assert len(org.control.get(kind.path, environment=environment, spec__region="us-east-1")["data"]) == 1


def test_regions(org, cloud):
    (region,) = org.control.get("/fcpm/v2/regions", cloud="AWS", region_name=REGION)["data"]
    assert region["id"] == f"aws.{REGION}"
    assert region["http_endpoint"] not in ("", cloud.url)
    assert org.control.get("/fcpm/v2/regions", region_name="ca-west-1")["data"] == []
    assert org.control.get("/fcpm/v2/regions", cloud="GCP")["data"] == []
    assert org.control.get("/fcpm/v2/regions", page_size=100)["metadata"]["total_size"] == len(regions.FLINK)


def test_service_accounts(org, cloud):
    kind = KINDS["service account"]
    account = org.words["ACCOUNT"]
    result = org.create(kind, {"display_name": "owner"}, 409)
    assert result["errors"][0]["detail"] == "Service name is already in use"
    path, _ = org.one(kind)
    org.control.patch(path, {"display_name": "owner"}, 409)
    org.control.patch(path, {"display_name": "runner"})
    (found,) = org.control.get(kind.path, display_name="owner")["data"]
    assert found["id"] == account
    org.bind(account, "OrganizationAdmin", org.crn)
    client = Client(cloud.url, *org.key(account))
    client.get("/org/v2/environments")
    org.control.delete(f"{kind.path}/{account}")
    client.get("/org/v2/environments", 401), "its keys are deleted with it"


def test_a_role_binding_is_effective_late(org, cloud):
    account = org.words["ACCOUNT"]
    environment = org.words["ENVIRONMENT"]
    client = Client(cloud.url, *org.key(account))
    path = f"/org/v2/environments/{environment}"
    pattern = f"{org.crn}/environment={environment}"
    binding = org.bind(account, "EnvironmentAdmin", pattern)
    client.get(path, 403)
    cloud.advance(LONG)
    client.get(path)
    again = {"principal": f"User:{account}", "role_name": "EnvironmentAdmin", "crn_pattern": pattern}
    org.control.post("/iam/v2/role-bindings", again, 409)
    (found,) = org.control.get("/iam/v2/role-bindings", crn_pattern=org.crn, principal=f"User:{account}")[
        "data"
    ]
    assert found["id"] == binding
    assert (
        org.control.get("/iam/v2/role-bindings", crn_pattern=org.crn, role_name="MetricsViewer")["data"] == []
    )
    org.control.get("/iam/v2/role-bindings", 400)
    org.control.delete(f"/iam/v2/role-bindings/{binding}", 200)
    assert org.control.get(f"/iam/v2/role-bindings/{binding}", 403)["error_code"] == 40301
    client.get(path, 403)


def test_provider_integrations(org):
    kind = KINDS["provider integration"]
    environment = org.words["ENVIRONMENT"]
    made = org.create(kind)
    assert made["config"]["iam_role_arn"].startswith("arn:aws:iam::")
    assert (made["provider"], made["usages"]) == ("AWS", [])
    org.create(kind, put(kind.body, "display_name", "same role"), 409)
    assert org.control.get(kind.path, environment=environment, provider="GCP")["data"] == []
    org.control.delete(f"{kind.path}/{made['id']}", environment=environment)
    assert org.create(kind)["config"]["external_id"] != made["config"]["external_id"]


def test_a_keys_secret_is_sent_once(org, cloud):
    kind = KINDS["API key"]
    made = org.create(kind)
    path = f"{kind.path}/{made['id']}"
    secret = made["spec"]["secret"]
    (listed_key,) = org.control.get(kind.path, spec__owner=org.words["ACCOUNT"])["data"]
    for answer in (
        org.control.get(path),
        listed_key,
        org.control.patch(path, {"spec": {"description": "d"}}),
        cloud.objects(),
    ):
        assert secret not in str(answer)


def test_a_key_works_after_a_while_and_only_where_it_should(org, cloud):
    account = org.words["ACCOUNT"]
    org.bind(account, "OrganizationAdmin", org.crn)
    made = org.create(KINDS["API key"])
    fresh = Client(cloud.url, made["id"], made["spec"]["secret"])
    fresh.get("/org/v2/environments", 401)
    cloud.advance(LONG)
    fresh.get("/org/v2/environments")
    fresh.get("/tableflow/v1/regions", 401)
    Client(cloud.url, made["id"], "wrong").get("/org/v2/environments", 401)
    Client(cloud.url).get("/org/v2/environments", 401)


def test_an_owner_creates_keys_for_itself(org, cloud):
    weak = Client(cloud.url, *org.key(org.words["ACCOUNT"]))
    org.create(KINDS["API key"], client=weak)


def test_rate_limit(org, cloud):
    cloud.limit(calls=2, seconds=60)
    answers = [org.control.raw("GET", "/org/v2/environments") for _ in range(3)]
    assert [answer.status_code for answer in answers] == [200, 200, 429]
    assert [answer.headers["X-RateLimit-Remaining"] for answer in answers] == ["1", "0", "0"]
    assert 1 <= int(answers[2].headers["Retry-After"]) <= 61
    assert answers[2].content == b""
    cloud.advance(int(answers[2].headers["Retry-After"]))
    org.control.get("/org/v2/environments")
    cloud.limit(calls=1, headers=False)
    org.control.get("/org/v2/environments")
    limited = org.control.raw("GET", "/org/v2/environments")
    assert limited.status_code == 429
    assert not {"Retry-After", "X-RateLimit-Reset"} & set(limited.headers)


def test_a_plane_answers_only_its_own_routes(org):
    cluster = org.cluster(org.words["ENVIRONMENT"])
    other = Client(cluster["spec"]["http_endpoint"], *org.key(org.administrator(cluster)))
    assert other._session.get(other.url + "/org/v2/environments").status_code == 404


def test_every_answer_has_a_request_id(org):
    answers = [
        org.control.raw("GET", "/org/v2/environments"),
        org.control.raw("GET", "/org/v2/environments/env-none"),
    ]
    assert len({answer.headers["X-Request-Id"] for answer in answers}) == 2


def test_one_seed_makes_the_same_ids():
    def ids():
        with ConfluentCloud(seed=3, start=1e9) as running:
            Organization(running).environment()
            return running.objects()

    assert ids() == ids()
