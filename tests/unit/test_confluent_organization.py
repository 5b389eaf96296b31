"""Confluent's organization: who the login is, what its owner sees, and the addresses of the data planes."""

from __future__ import annotations

from datetime import UTC, datetime
from types import SimpleNamespace

import pytest

from lambdas.confluent import errors as confluent_errors
from lambdas.confluent.client import Confluent, read_bootstrap_servers
from lambdas.confluent.errors import build_error, mentions, read_detail
from lambdas.shared.errors import (
    Denied,
    InProgress,
    LakeferryError,
    NotFound,
    ParentMissing,
    Refused,
    ResourceFailed,
)
from lambdas.shared.http import Response
from lambdas.shared.redaction import ApiKey, Secret
from tests.support.confluent_context import CLUSTER, ENV, LKC, ORG, SA, cloud, give_role, listing

KEY = ApiKey("k", Secret("canary"))
AT_ENV = f"/environment={ENV}"
AT_ACCOUNT = f"/service-account={SA}"


# --- the login


def test_who_the_login_is(server):
    server.answers["GET /org/v2/organizations"] = listing({"id": ORG}, {"id": "other"})
    vendor = cloud(server)
    assert (vendor.tenant, vendor.principal, vendor.creator) == (ORG, "CLOUD", "")
    assert vendor.NAMES_ARE_UNIQUE is False
    message = f"it is in organization org-2, and Cloud key CLOUD is of organization {ORG}"
    assert vendor.wrong_tenant("org-2").what == message
    unseen = vendor.unseen("no role")
    assert (unseen.kind.code, unseen.patience) == ("CFL-UNSEEN", 120.0)
    assert unseen.what == "whether it still exists can't be told: no role"


def test_a_login_without_an_organization_is_waited_for(server):
    server.answers["GET /org/v2/organizations"] = listing()
    with pytest.raises(InProgress, match="CFL-UNEXPECTED  Confluent lists no organization"):
        _ = cloud(server).organization_id


@pytest.mark.parametrize(
    ("written", "read"),
    [("SASL_SSL://pkc-1:9092", "pkc-1:9092"), ("pkc-1:9092", "pkc-1:9092"), (None, "")],
)
def test_bootstrap_servers_are_read_without_their_scheme(written, read):
    assert read_bootstrap_servers({"spec": {"kafka_bootstrap_endpoint": written}}) == read


# --- what the login sees


def described(kind, **given):
    return SimpleNamespace(TYPE=kind, **given)


IN_ACCOUNT = [
    described("api_key", service_account_id=SA, environment_id=ENV),
    described("role_binding", scope="service_account", name=SA, environment_id=""),
]
IN_ENVIRONMENT = [
    described("role_binding", scope="environment", name="", environment_id=ENV),
    described("acl", environment_id=ENV, service_account_id=SA),
    described("role_binding", scope="topic", name=SA, environment_id=ENV),
    described("topic", environment_id=ENV, service_account_id=SA),
]
IN_ORGANIZATION = [
    described("environment", environment_id=ENV),
    described("service_account", service_account_id=SA),
    described("role_binding", scope="organization", name="", environment_id=""),
]


@pytest.mark.parametrize(
    ("role", "where", "seen"),
    [
        ("OrganizationAdmin", "", IN_ACCOUNT + IN_ENVIRONMENT + IN_ORGANIZATION),
        ("EnvironmentAdmin", AT_ENV, IN_ENVIRONMENT),
        ("ResourceOwner", AT_ACCOUNT, IN_ACCOUNT),
        ("ResourceOwner", "/service-account=sa-2", []),
        ("EnvironmentAdmin", AT_ACCOUNT, []),
    ],
)
def test_who_sees_objects_of_the_organization_an_environment_and_an_account(server, role, where, seen):
    give_role(server, role, where)
    vendor = cloud(server)

    def sees(require, *given):
        try:
            require(*given)
        except Denied as denied:
            return denied.kind.code != "CFL-UNSEEN"
        return True

    for spec in IN_ACCOUNT + IN_ENVIRONMENT + IN_ORGANIZATION:
        assert sees(vendor.require_sight, spec) is (spec in seen), spec
    assert sees(vendor.require_sight_of_all) is (IN_ORGANIZATION[0] in seen)
    assert sees(vendor.require_sight_of_environment, ENV) is (IN_ENVIRONMENT[0] in seen)
    assert sees(vendor.require_sight_of_account, SA) is (IN_ACCOUNT[0] in seen)


def bindings(*ages, clock):
    """Return bindings of an administrator, one for each age in seconds; None for one without a time."""
    everywhere = {
        "role_name": "OrganizationAdmin",
        "crn_pattern": f"crn://confluent.cloud/organization={ORG}",
    }
    items = []
    for number, age in enumerate(ages):
        created = None if age is None else datetime.fromtimestamp(clock.time() - age, UTC).isoformat()
        items.append({"id": f"rb-{number}", **everywhere, "metadata": {"created_at": created}})
    return listing(*items)


@pytest.mark.parametrize(
    ("ages", "shown"), [((10,), "10"), ((10, 599, 20), "599"), ((10, 600), None), ((10, None), None)]
)
def test_the_oldest_role_counts(server, ages, shown):
    give_role(server)
    vendor = cloud(server)
    server.answers["GET /iam/v2/role-bindings"] = bindings(*ages, clock=vendor.clock)
    if shown is None:
        vendor.require_sight_of_all()
        return
    message = f"the role of sa-deployer, who owns key CLOUD, is {shown} s old, and counts after 600 s"
    with pytest.raises(InProgress, match=message):
        vendor.require_sight_of_all()


@pytest.mark.parametrize("metadata", [None, [], {}, {"created_at": ""}, {"created_at": "yesterday"}])
def test_a_role_that_does_not_say_how_old_it_is_is_old(server, metadata):
    give_role(server)
    binding = {"role_name": "OrganizationAdmin", "crn_pattern": f"crn://confluent.cloud/organization={ORG}"}
    server.answers["GET /iam/v2/role-bindings"] = listing({**binding, "metadata": metadata})
    cloud(server).require_sight_of_all()


def test_the_missing_roles_are_named(server):
    give_role(server, "Operator")
    message = "sa-deployer, who owns key CLOUD, is not OrganizationAdmin or ResourceOwner of what contains it"
    with pytest.raises(Denied, match=message) as denied:
        cloud(server).require_sight_of_account(SA)
    assert denied.value.patience == 120.0


def test_roles_are_those_of_the_owner_in_the_whole_organization(server):
    give_role(server)
    assert [binding["id"] for binding in cloud(server).role_bindings("u-1")] == []
    assert [binding["id"] for binding in cloud(server).role_bindings("sa-deployer")] == ["rb-owner"]
    assert server.sent[-1].query == {
        "page_size": "99",
        "principal": "User:sa-deployer",
        "crn_pattern": f"crn://confluent.cloud/organization={ORG}",
    }


@pytest.mark.parametrize(
    ("failures", "owner"), [(0, ""), (2, ""), (3, "sa-deployer")], ids=["seen", "seen late", "not seen"]
)
def test_an_administrator_is_ruled_out_after_three_reads(server, failures, owner):
    give_role(server)
    vendor = cloud(server)
    seen = bindings(None, clock=vendor.clock)
    new = bindings(1, clock=vendor.clock)
    server.answers["GET /iam/v2/role-bindings"] = [[listing(), new][at % 2] for at in range(failures)] + [
        seen
    ]
    assert vendor.find_new_owner() == owner
    assert server.routes.count("GET /iam/v2/role-bindings") == min(failures + 1, 3)


def test_the_owner_of_a_key_is_read_once(server):
    give_role(server, owner="u-1")
    vendor = cloud(server)
    assert vendor.find_key_owner(KEY) == vendor.find_key_owner(KEY) == "u-1"
    assert server.routes == ["GET /iam/v2/api-keys/k"]


@pytest.mark.parametrize(("status", "is_gone"), [(200, False), (404, True), (403, True)])
def test_an_environment_or_account_that_is_not_there_is_gone(server, status, is_gone):
    give_role(server)
    server.answers[f"GET /org/v2/environments/{ENV}"] = (status, {"id": ENV})
    server.answers[f"GET /iam/v2/service-accounts/{SA}"] = (status, {"id": SA})
    assert cloud(server).is_environment_gone(ENV) is is_gone
    assert cloud(server).is_service_account_gone(SA) is is_gone


def test_an_account_that_is_refused_is_gone_for_its_owner_and_an_environment_is_not(server):
    give_role(server, "ResourceOwner", AT_ACCOUNT)
    server.answers[f"GET /org/v2/environments/{ENV}"] = (403, {})
    server.answers[f"GET /iam/v2/service-accounts/{SA}"] = (403, {})
    assert cloud(server).is_service_account_gone(SA)
    with pytest.raises(Denied):
        cloud(server).is_environment_gone(ENV)


# --- the data planes


def test_a_cluster_is_read_in_its_environment(server):
    server.answers[f"GET {CLUSTER}"] = (200, {"id": LKC})
    assert cloud(server).cluster(ENV, LKC) == {"id": LKC}
    assert server.sent[-1].query == {"environment": ENV}
    with pytest.raises(ParentMissing, match="LF-VANISHED  Kafka cluster lkc-2 is gone"):
        cloud(server).kafka(ENV, "lkc-2", KEY)


@pytest.mark.parametrize(
    ("registry", "phase"),
    [
        ({}, ""),
        ({"status": {"phase": "DEGRADED"}}, "DEGRADED"),
        ({"status": {"phase": "PROVISIONING"}, "spec": {"http_endpoint": "x"}}, "PROVISIONING"),
        ({"status": {"phase": "PROVISIONED"}}, "PROVISIONED"),
        ({"status": {"phase": "PROVISIONED"}, "spec": {"http_endpoint": ""}}, "PROVISIONED"),
        ({"status": {"phase": "NEW_WORD"}, "spec": {"http_endpoint": "x"}}, "NEW_WORD"),
        (None, "PROVISIONING"),
    ],
)
def test_a_schema_registry_that_is_not_ready_is_waited_for(server, registry, phase):
    server.answers["GET /srcm/v3/clusters"] = listing(
        *([] if registry is None else [{"id": "a", **registry}])
    )
    with pytest.raises(InProgress, match="LF-WAITING") as waiting:
        cloud(server).schema_registry(ENV)
    assert waiting.value.what == f"the Schema Registry of {ENV} is {phase}"


def test_a_schema_registry_that_failed_or_never_comes_is_no_reason_to_wait_long(server):
    server.answers["GET /srcm/v3/clusters"] = listing({"status": {"phase": "FAILED"}})
    with pytest.raises(ResourceFailed, match=f"CFL-CLUSTER-FAILED  the Schema Registry of {ENV} has failed"):
        cloud(server).schema_registry(ENV)
    server.answers["GET /srcm/v3/clusters"] = listing()
    server.answers[f"GET /org/v2/environments/{ENV}"] = (200, {"id": ENV})
    message = f"environment {ENV} has no Stream Governance package, so no Schema Registry"
    with pytest.raises(ResourceFailed, match=message) as failed:
        cloud(server).schema_registry(ENV)
    assert failed.value.patience == 120.0


def test_the_first_schema_registry_and_region_are_taken(server):
    registry = {"id": "lsrc-1", "status": {"phase": "PROVISIONED"}, "spec": {"http_endpoint": server.url}}
    server.answers["GET /srcm/v3/clusters"] = listing(registry, {"id": "lsrc-2"})
    assert cloud(server).schema_registry(ENV) == registry
    assert server.sent[-1].query == {"page_size": "99", "environment": ENV}
    server.answers["GET /fcpm/v2/regions"] = listing({"id": "a"}, {"id": "b"})
    assert cloud(server).flink_region("eu-west-1") == {"id": "a"}
    assert server.sent[-1].query == {"page_size": "99", "cloud": "AWS", "region_name": "eu-west-1"}


def test_a_region_without_flink_is_named(server):
    server.answers["GET /fcpm/v2/regions"] = listing()
    with pytest.raises(NotFound, match="CFL-INVALID  Confluent has no Flink in AWS region x") as missing:
        cloud(server).flink_region("x")
    assert missing.value.patience == 120.0


def test_each_data_plane_has_its_address_and_waits_for_new_keys(server):
    server.answers |= {
        f"GET {CLUSTER}": (200, {"spec": {"http_endpoint": f"{server.url}/kafka"}}),
        "GET /srcm/v3/clusters": listing(
            {"status": {"phase": "PROVISIONED"}, "spec": {"http_endpoint": f"{server.url}/sr"}}
        ),
        "GET /fcpm/v2/regions": listing({"http_endpoint": f"{server.url}/flink"}),
    }
    vendor = cloud(server)
    planes = [
        vendor.kafka(ENV, LKC, KEY),
        vendor.registry(ENV, KEY),
        vendor.flink("r", KEY),
        vendor.tableflow(KEY),
    ]
    assert [plane.url.removeprefix(server.url) for plane in planes] == ["/kafka", "/sr", "/flink", ""]
    assert {(plane.denied_patience, plane.key) for plane in planes} == {(1200.0, KEY)}
    assert [plane.probe for plane in planes] == ["", "", "", "/tableflow/v1/regions"]
    assert [plane.require_sight is None for plane in planes] == [True, True, True, False]
    assert (vendor.cloud.url, vendor.cloud.denied_patience) == (server.url, 120.0)


def test_a_data_plane_without_an_address_is_waited_for_by_name(server):
    server.answers |= {
        f"GET {CLUSTER}": (200, {"spec": {"http_endpoint": ""}}),
        "GET /fcpm/v2/regions": listing({"id": "a"}),
    }
    with pytest.raises(InProgress, match=f"CFL-NO-ENDPOINT  Kafka cluster {LKC} has no address"):
        cloud(server).kafka(ENV, LKC, KEY)
    with pytest.raises(InProgress, match="Flink in eu-west-1 has no address"):
        cloud(server).flink("eu-west-1", KEY)


@pytest.mark.parametrize(
    ("control_plane", "endpoint", "is_trusted"),
    [
        ("https://confluent.box", "https://confluent.box:8443/kafka", True),
        ("https://confluent.box", "https://pkc-1.eu-west-1.aws.confluent.cloud", True),
        ("https://confluent.box", "https://pkc-1.confluent.box", False),
        ("https://confluent.box", "https://127.0.0.1", False),
        ("https://api.confluent.cloud", "https://pkc-1.notconfluent.cloud", False),
        ("http://127.0.0.1:8080", "http://127.0.0.2:9090", True),
        ("http://127.0.0.1:8080", "https://pkc-1.eu-west-1.aws.confluent.cloud", False),
    ],
)
def test_a_control_plane_is_trusted_with_its_own_host(control_plane, endpoint, is_trusted):
    class Session:
        def call(self, method, url, **given):
            return Response(200, {}, {"spec": {"http_endpoint": endpoint}})

    vendor = Confluent(Session(), None, KEY, f"{control_plane}/")
    assert vendor.cloud.url == vendor.url == control_plane
    if is_trusted:
        assert vendor.kafka(ENV, LKC, KEY).url == endpoint
    else:
        host = endpoint.removeprefix("https://")
        message = f"NET-ADDRESS  Confluent names the host {host}, which is not one of its own"
        with pytest.raises(LakeferryError, match=message):
            vendor.kafka(ENV, LKC, KEY)


# --- errors


@pytest.mark.parametrize(
    ("headers", "body", "what"),
    [
        ({}, None, "GET /x: HTTP 500 (request id not given)"),
        ({"X-Request-Id": "a", "X-Amzn-RequestId": "b"}, {}, "GET /x: HTTP 500 (request id a)"),
        ({"X-Amzn-RequestId": "b"}, {"message": "no"}, "GET /x: HTTP 500, no (request id b)"),
    ],
)
def test_an_error_has_the_message_and_the_id_of_the_request(server, headers, body, what):
    assert build_error(Response(500, headers, body), "GET /x", cloud(server).clock, 0).what == what


@pytest.mark.parametrize(
    ("error", "message"),
    [
        ({"detail": "d", "title": "t", "message": "m"}, "d"),
        ({"detail": "", "title": "t", "message": "m"}, "t"),
        ({"message": "m", "source": {"pointer": "/a", "parameter": "b"}}, "m (/a)"),
        ({"message": "m", "source": {"parameter": "b"}}, "m (b)"),
        ({"source": {"parameter": "b"}}, " (b)"),
        ({"message": 7, "source": []}, "7"),
    ],
)
def test_the_most_precise_part_of_an_error_is_read(error, message):
    assert read_detail({"errors": [error]}) == message
    assert read_detail({"error": error}) == message
    assert read_detail({"error": "text", **error}) == message


def test_words_are_read_without_their_margins_and_pages_are_not():
    assert read_detail("  words \n") == "words"
    assert read_detail("words <br>") == ""


@pytest.mark.parametrize(("wait", "seconds"), [("0", 0), ("0.5", 0.5), ("x", 10)])
def test_a_429_may_ask_for_no_wait_at_all(server, wait, seconds):
    clock = cloud(server).clock
    assert build_error(Response(429, {"X-RateLimit-Reset": wait}, None), "x", clock, 0).wait == seconds


@pytest.mark.parametrize(
    ("said", "is_filter"),
    [
        ("ipfilter", True),
        ("IP-FILTER", True),
        ("ip_filter", True),
        ("IP  filter", False),
        ("IP address " + "1" * 58 + " not permitted", True),
        ("IP address" + "1" * 61 + "not authorized", False),
        ("IP address\nnot allowed", False),
        ("IP address is allowed", False),
    ],
)
def test_what_an_ip_filter_says(server, said, is_filter):
    for status, code in ((401, "CFL-AUTH"), (403, "CFL-AUTH-SCOPE")):
        error = build_error(Response(status, {}, said), "x", cloud(server).clock, 5)
        assert error.kind.code == ("CFL-IP-FILTER" if is_filter else code)
        assert isinstance(error, Denied) is not is_filter
    assert build_error(Response(400, {}, said), "x", cloud(server).clock, 5).kind.code == "CFL-INVALID"


def test_phrases_of_an_error_are_found_in_any_case():
    error = Refused(confluent_errors.INVALID, "The Topic Exists")
    assert mentions(error, "gone", "topic EXISTS")
    assert not mentions(error, "gone", "topics")
    assert not mentions(error)
