"""Clients of Confluent's APIs: errors, missing objects, pages, and the hosts that receive credentials."""

from __future__ import annotations

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lambdas.confluent import crn
from lambdas.confluent.client import Confluent
from lambdas.confluent.errors import build_error, read_detail
from lambdas.confluent.rest_client import (
    MAX_PAGES,
    RestClient,
    build_path,
    get_objects,
    get_path,
    get_text,
    require_text,
)
from lambdas.shared.errors import (
    Conflict,
    Denied,
    InProgress,
    LakeferryError,
    NotFound,
    ParentMissing,
    RateLimited,
    Refused,
    ResourceFailed,
    Transient,
)
from lambdas.shared.http import Response
from lambdas.shared.redaction import ApiKey, Secret
from tests.support.confluent_context import ENV, LKC, ORG, cloud, give_role, listing

THING = "GET /things/1"
ERRORS = {
    "errors": [
        {"status": "403", "detail": "no role", "source": {"pointer": "/spec/region"}},
        {"title": "and this"},
    ]
}


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (ERRORS, "no role (/spec/region); and this"),
        ({"error_code": 40301, "message": "not allowed"}, "not allowed"),
        ({"error": {"code": 401, "message": "not known"}}, "not known"),
        ({"code": 400, "message": "bad name"}, "bad name"),
        ({"error_code": 404, "message": "no connector"}, "no connector"),
        ("<html><body>denied</body></html>", ""),
        ("plain words", "plain words"),
        (None, ""),
        ({}, ""),
        ({"errors": ["text"]}, "text"),
        ({"errors": [None, 1, {"source": "x"}]}, "None; 1"),
        ([1], ""),
    ],
)
def test_error_messages_are_read_in_each_form(body, message):
    assert read_detail(body) == message


def test_a_long_message_is_truncated():
    assert len(read_detail({"message": "x" * 5000})) == 300


@pytest.mark.parametrize(
    ("status", "kind", "code"),
    [
        (400, Refused, "CFL-INVALID"),
        (401, Denied, "CFL-AUTH"),
        (402, Refused, "CFL-QUOTA"),
        (403, Denied, "CFL-AUTH-SCOPE"),
        (404, NotFound, "CFL-NOT-FOUND"),
        (409, Conflict, "CFL-CONFLICT"),
        (422, Refused, "CFL-INVALID"),
        (429, RateLimited, "CFL-RATE"),
        (451, Refused, "CFL-UNEXPECTED"),
        (499, Refused, "CFL-UNEXPECTED"),
        (500, Transient, "CFL-UNAVAILABLE"),
        (502, Transient, "CFL-UNAVAILABLE"),
        (503, Transient, "CFL-UNAVAILABLE"),
        (501, Refused, "CFL-UNEXPECTED"),
        (302, Refused, "CFL-UNEXPECTED"),
    ],
)
def test_each_status_has_its_error(status, kind, code, server):
    vendor = cloud(server)
    error = build_error(Response(status, {"X-Request-Id": "req-9"}, ERRORS), "GET /x", vendor.clock, 77.0)
    assert type(error) is kind
    assert error.kind.code == code
    assert f"GET /x: HTTP {status}, no role" in error.what
    assert "request id req-9" in error.what
    assert not isinstance(error, Denied) or error.patience == 77.0


def test_a_429_has_the_seconds_to_wait(server):
    clock = cloud(server).clock
    assert build_error(Response(429, {"Retry-After": "33"}, None), "x", clock, 0).wait == 33
    assert build_error(Response(429, {}, None), "x", clock, 0).wait == 10


def test_404_means_gone(server):
    assert cloud(server).cloud.read("/things/1") is None
    assert server.routes == [THING]


def test_403_that_names_the_key_never_means_gone(server):
    server.answers[THING] = (403, {"errors": [{"detail": "Invalid API Key"}]})
    give_role(server)
    with pytest.raises(Denied):
        cloud(server).cloud.read("/things/1")
    assert server.routes == [THING]


def test_401_never_means_gone(server):
    server.answers[THING] = (401, b"<html>unauthorized</html>")
    give_role(server)
    with pytest.raises(Denied) as denied:
        cloud(server).cloud.read("/things/1")
    assert "canary" not in str(denied.value)


def test_kafka_has_no_403_that_means_gone(server):
    server.answers[f"GET /cmk/v2/clusters/{LKC}"] = (200, {"spec": {"http_endpoint": server.url}})
    server.answers[THING] = (403, {"message": "no"})
    plane = cloud(server).kafka(ENV, LKC, ApiKey("k", Secret("canary")))
    with pytest.raises(Denied) as denied:
        plane.read("/things/1")
    assert denied.value.patience == 1200


def test_deleting_a_missing_object_succeeds_and_a_denied_delete_fails(server):
    assert cloud(server).cloud.delete("/things/1") is None
    server.answers["DELETE /things/1"] = (403, {})
    with pytest.raises(Denied):
        cloud(server).cloud.delete("/things/1")


def test_all_pages_are_read_each_object_once(server):
    def page(sent):
        token = sent.query.get("page_token", "")
        assert sent.query["page_size"] == "99"
        pages = {
            "": ([{"id": "a"}, {"id": "b"}], "https://elsewhere.example/things?page_token=two"),
            "two": ([{"id": "b"}, {"name": "c"}, {"owner": "e"}, {"owner": "f"}], "/things?page_token=three"),
            "three": ([{"spec": {"display_name": "d"}}, "not an object"], None),
        }
        items, following = pages[token]
        return listing(*items, following=following)

    server.answers["GET /things"] = page
    assert cloud(server).cloud.pages("/things") == [
        {"id": "a"},
        {"id": "b"},
        {"name": "c"},
        {"owner": "e"},
        {"owner": "f"},
        {"spec": {"display_name": "d"}},
    ]


def test_only_a_call_that_changes_nothing_twice_is_repeated(server):
    rest = cloud(server).cloud
    server.answers["POST /things"] = [(500, {}), (200, {"id": "a"})]
    assert rest.post("/things", {}, repeatable=True) == {"id": "a"}
    server.answers["PATCH /things"] = [(500, {}), (200, {"id": "a"})]
    with pytest.raises(Transient):
        rest.patch("/things", {}, repeatable=False)


@pytest.mark.parametrize(
    ("next_of", "calls"),
    [({"": "one", "one": "two", "two": "one"}.get, 3), (lambda token: str(int(token or 0) + 1), MAX_PAGES)],
)
def test_a_list_without_an_end_is_an_error_not_a_short_list(server, next_of, calls):
    server.answers["GET /things"] = lambda sent: listing(
        {"id": sent.query.get("page_token", "")},
        following="/x?page_token=" + next_of(sent.query.get("page_token", "")),
    )
    with pytest.raises(Transient, match="GET /things: the list"):
        cloud(server).cloud.pages("/things")
    assert len(server.sent) == calls


@pytest.mark.parametrize(
    "body", [None, [], b"[1, 2]", {"data": None}, {"data": {"id": 1}}, {"metadata": [], "data": [7]}]
)
def test_a_malformed_list_is_an_error_of_ours(server, body):
    server.answers["GET /things"] = (200, body)
    try:
        found = cloud(server).cloud.pages("/things")
    except Transient:
        found = []
    assert found == []


NAMES = st.sampled_from(["id", "data", "spec", "phase", "a", "b"])


@given(
    st.recursive(
        st.none() | st.integers() | st.text(),
        lambda children: st.lists(children) | st.dictionaries(NAMES, children),
        max_leaves=6,
    )
)
def test_any_error_body_can_be_read(body):
    assert isinstance(get_text(body, "spec", "phase"), str)
    assert all(isinstance(item, dict) for item in get_objects(body, "data"))
    get_path(body, "a", "b")
    with contextlib.suppress(Transient):
        assert require_text(body, "id")


@pytest.mark.parametrize(
    "endpoint",
    [
        "https://127.0.0.1.evil.example",
        "http://api.confluent.cloud",
        "https://confluent.cloud.evil.example",
        "https://evilconfluent.cloud",
        "https://10.0.0.1",
    ],
)
def test_no_credential_is_sent_to_a_host_named_in_a_response(server, endpoint):
    server.answers[f"GET /cmk/v2/clusters/{LKC}"] = (200, {"spec": {"http_endpoint": endpoint}})
    with pytest.raises(LakeferryError) as refused:
        cloud(server).kafka(ENV, LKC, ApiKey("k", Secret("canary")))
    assert refused.value.kind.code == "NET-ADDRESS"


@pytest.mark.parametrize(
    ("endpoint", "trusted"),
    [
        ("https://pkc-1.eu-west-1.aws.confluent.cloud:443", True),
        ("https://pkc-1.eu-west-1.aws.confluent.cloud.example", False),
        ("http://pkc-1.eu-west-1.aws.confluent.cloud", False),
        ("http://127.0.0.1:9", False),
    ],
)
def test_of_the_real_vendor_only_its_own_hosts_are_trusted(endpoint, trusted):
    class Session:
        """Serves the vendor's host, of which only the cluster's response is needed."""

        def call(self, method, url, **given):
            assert url.startswith("https://api.confluent.cloud/cmk/")
            return Response(200, {}, {"spec": {"http_endpoint": endpoint}})

    vendor = Confluent(Session(), None, ApiKey("k", Secret("canary")))
    if trusted:
        assert isinstance(vendor.kafka(ENV, LKC, ApiKey("k", Secret("s"))), RestClient)
    else:
        with pytest.raises(LakeferryError):
            vendor.kafka(ENV, LKC, ApiKey("k", Secret("s")))


@pytest.mark.parametrize("url", ["http://api.confluent.cloud", "http://10.0.0.1:80", "file:///etc"])
def test_an_unsafe_control_plane_is_refused(url):
    with pytest.raises(LakeferryError):
        Confluent(None, None, ApiKey("k", Secret("canary")), url)


def test_the_organization_is_read_once(server):
    server.answers["GET /org/v2/organizations"] = listing({"id": ORG})
    vendor = cloud(server)
    assert vendor.organization_id == vendor.organization_id == ORG
    assert len(server.sent) == 1


@pytest.mark.parametrize(
    ("governance", "code"),
    [({}, "CFL-NO-GOVERNANCE"), ({"stream_governance_config": {"package": "ESSENTIALS"}}, "LF-WAITING")],
)
def test_an_environment_without_governance_never_gets_a_schema_registry(server, governance, code):
    server.answers["GET /srcm/v3/clusters"] = listing()
    server.answers[f"GET /org/v2/environments/{ENV}"] = (200, {"id": ENV, **governance})
    with pytest.raises(LakeferryError) as failed:
        cloud(server).schema_registry(ENV)
    assert failed.value.kind.code == code
    assert failed.value.patience <= 120


@pytest.mark.parametrize("status", [401, 403])
@pytest.mark.parametrize(
    ("said", "row"),
    [
        ("Request denied by IP filter ipf-1", "CFL-IP-FILTER"),
        ("Source IP address 203.0.113.7 is not allowed", "CFL-IP-FILTER"),
        ("Access is denied", "CFL-AUTH"),
        ("Forbidden for principal of description", "CFL-AUTH"),
    ],
)
def test_an_ip_filter_is_told_from_a_missing_role(server, status, said, row):
    server.answers["GET /x"] = (status, {"errors": [{"detail": said}]})
    with pytest.raises(LakeferryError) as failed:
        cloud(server).cloud.get("/x")
    assert failed.value.kind.code.startswith(row)


def test_the_cluster_of_a_client_may_be_missing_pending_or_failed(server):
    vendor = cloud(server)
    with pytest.raises(ParentMissing):
        vendor.kafka(ENV, LKC, ApiKey("k", Secret("s")))
    server.answers["GET /srcm/v3/clusters"] = listing()
    with pytest.raises(InProgress):
        vendor.schema_registry(ENV)
    server.answers["GET /srcm/v3/clusters"] = listing({"status": {"phase": "FAILED"}})
    with pytest.raises(ResourceFailed) as failed:
        vendor.schema_registry(ENV)
    assert failed.value.patience == 300
    server.answers["GET /fcpm/v2/regions"] = listing()
    with pytest.raises(LakeferryError, match="no Flink in AWS region nowhere"):
        vendor.flink_region("nowhere")
    server.answers[f"GET /cmk/v2/clusters/{LKC}"] = (200, {"spec": {}})
    with pytest.raises(InProgress, match="has no address"):
        vendor.kafka(ENV, LKC, ApiKey("k", Secret("s")))


def test_the_catalog_s_address_is_the_vendor_s_documented_one_unless_set(server):
    server.answers["GET /org/v2/organizations"] = listing({"id": ORG})
    place = f"/iceberg/catalog/organizations/{ORG}/environments/{ENV}"
    assert (
        cloud(server).catalog_url("eu-west-1", ENV)
        == f"https://tableflow.eu-west-1.aws.confluent.cloud{place}"
    )
    key = ApiKey("k", Secret("s"))
    set_by_hand = Confluent(
        cloud(server).cloud.session, cloud(server).clock, key, server.url, "http://127.0.0.1:7/x/"
    )
    assert set_by_hand.catalog_url("eu-west-1", ENV) == f"http://127.0.0.1:7/x{place}"


@pytest.mark.parametrize(
    ("segments", "written"),
    [(("a", "b/c"), "/a/b%2Fc"), (("a b", "ü"), "/a%20b/%C3%BC"), (("configs:alter",), "/configs:alter")],
)
def test_a_segment_stays_one_segment(segments, written):
    assert build_path(*segments) == written


@pytest.mark.parametrize("segment", ["", ".", ".."])
def test_a_segment_that_changes_the_path_is_refused(segment):
    with pytest.raises(LakeferryError):
        build_path("org", "v2", "environments", segment)


PLACE = crn.CrnScope(ORG, ENV, LKC, "lsrc-1", "x")
ORG_CRN = f"crn://confluent.cloud/organization={ORG}"
CLUSTER_CRN = f"{ORG_CRN}/environment={ENV}/cloud-cluster={LKC}"


@pytest.mark.parametrize(
    ("scope", "written"),
    [
        ("organization", ORG_CRN),
        ("environment", f"{ORG_CRN}/environment={ENV}"),
        ("cluster", CLUSTER_CRN),
        ("service_account", f"{ORG_CRN}/service-account=x"),
        ("topic", f"{CLUSTER_CRN}/kafka={LKC}/topic=x"),
        ("group", f"{CLUSTER_CRN}/kafka={LKC}/group=x"),
        ("transactional_id", f"{CLUSTER_CRN}/kafka={LKC}/transactional-id=x"),
        ("connector", f"{CLUSTER_CRN}/connector=x"),
        ("subject", f"{ORG_CRN}/environment={ENV}/schema-registry=lsrc-1/subject=x"),
        ("provider_integration", f"{ORG_CRN}/environment={ENV}/provider-integration=x"),
    ],
)
def test_resource_names(scope, written):
    assert crn.SCOPES[scope](PLACE) == written


def test_every_scope_uses_exactly_the_values_that_it_requires():
    assert crn.SCOPES.keys() == crn.NEEDS.keys()
    for scope, needs in crn.NEEDS.items():
        marked = crn.CrnScope("org", **{name: f"<{name}>" for name in needs})
        assert all(f"<{name}>" in crn.SCOPES[scope](marked) for name in needs), scope
