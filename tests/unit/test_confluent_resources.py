"""Confluent's resource types beyond the simulator's lives: values set by hand, failures, similar objects,
refusals.
"""

from __future__ import annotations

import attrs
import pytest

from lambdas.confluent.resources import (
    acl,
    connector,
    environment,
    flink_compute_pool,
    kafka_cluster,
    provider_integration,
    role_binding,
    schema,
    service_account,
    topic,
)
from lambdas.shared.errors import (
    BadProperties,
    Conflict,
    Denied,
    InProgress,
    NeedsReplacement,
    ParentMissing,
    Refused,
    ResourceFailed,
    ResourceMissing,
    Transient,
)
from tests.support.confluent_context import (
    AVRO,
    CLUSTER,
    CONNECTORS,
    ENV,
    IN_CLUSTER,
    IN_ENV,
    KAFKA,
    LKC,
    NAME,
    ORG,
    SA,
    context,
    listing,
    spec,
    wrote,
)
from tests.support.resource_environment import NO_PRINCIPALS

ENVIRONMENT = {
    "id": ENV,
    "display_name": NAME,
    "metadata": {"resource_name": "crn://e"},
    "stream_governance_config": {"package": "ESSENTIALS"},
}
VENDOR_ROLE = "arn:aws:iam::999988887777:role/vendor-1"
POOL = "/fcpm/v2/compute-pools/lfcp-1"


def cluster_spec(**given):
    return spec(kafka_cluster, environment_id=ENV, region="eu-west-1", **given)


def pool_spec(**given):
    return spec(flink_compute_pool, region="eu-west-1", **IN_ENV, **given)


def integration_spec():
    return spec(provider_integration, role_arn="arn:aws:iam::111122223333:role/r", **IN_ENV)


def binding_spec(**given):
    return spec(
        role_binding,
        service_account_id=SA,
        role="ResourceOwner",
        scope="topic",
        name="a*",
        **IN_CLUSTER,
        **given,
    )


def acl_spec(**given):
    entry = {"resource_type": "TOPIC", "resource_name": "a", "operation": "READ", **given}
    return spec(acl, credentials="kafka", service_account_id=SA, **IN_CLUSTER, **entry)


def topic_spec(**given):
    return spec(topic, credentials="kafka", topic="trades", **IN_CLUSTER, **given)


def schema_spec(**given):
    return spec(
        schema, environment_id=ENV, credentials="sr", subject="orders-value", **{"schema": AVRO, **given}
    )


def connector_spec(**given):
    return spec(
        connector,
        service_account_id=SA,
        **IN_CLUSTER,
        **{"topic": "trades", "quickstart": "STOCK_TRADES", **given},
    )


# --- outputs, found objects, and objects or containers that are gone


def test_outputs(server):
    server.answers[f"GET /org/v2/environments/{ENV}"] = (200, ENVIRONMENT)
    assert environment.is_ready(context(server), spec(environment), ENV) == {
        "id": ENV,
        "name": NAME,
        "resource_name": "crn://e",
        "organization_id": ORG,
        "stream_governance": "ESSENTIALS",
    }
    cluster = kafka_cluster.is_ready(context(server), cluster_spec(), LKC)
    assert cluster["bootstrap_servers"] == "broker:9092"
    assert cluster["rest_endpoint"] == cluster["schema_registry_endpoint"] == server.url
    assert (
        cluster["rbac_resource_name"]
        == f"crn://confluent.cloud/organization={ORG}/environment={ENV}/cloud-cluster={LKC}"
    )
    assert set(cluster) == set(kafka_cluster.PROPERTIES.OUTPUTS._fields)
    pool = {
        "spec": {"display_name": NAME},
        "metadata": {"resource_name": "crn://p"},
        "status": {"phase": "PROVISIONED"},
    }
    server.answers[f"GET {POOL}"] = (200, pool)
    assert flink_compute_pool.is_ready(context(server), pool_spec(), "lfcp-1") == {
        "id": "lfcp-1",
        "name": NAME,
        "resource_name": "crn://p",
        "rest_endpoint": server.url,
    }
    config = {"iam_role_arn": VENDOR_ROLE, "external_id": "uuid"}
    server.answers["GET /pim/v1/integrations/cspi-1"] = (200, {"display_name": NAME, "config": config})
    outputs = provider_integration.is_ready(context(server), integration_spec(), "cspi-1")
    assert outputs == {"id": "cspi-1", "name": NAME, "confluent_role_arn": VENDOR_ROLE, "external_id": "uuid"}
    server.answers[f"GET /iam/v2/service-accounts/{SA}"] = (200, {"display_name": NAME})
    outputs = service_account.is_ready(context(server), spec(service_account), SA)
    assert outputs == {"id": SA, "name": NAME, "principal": f"User:{SA}"}


@pytest.mark.parametrize("arn", NO_PRINCIPALS)
def test_a_principal_that_is_not_one_role_or_user_gets_into_no_trust_policy(server, arn):
    config = {"iam_role_arn": arn, "external_id": "uuid"}
    server.answers["GET /pim/v1/integrations/cspi-1"] = (200, {"display_name": NAME, "config": config})
    with pytest.raises(Refused) as raised:
        provider_integration.is_ready(context(server), integration_spec(), "cspi-1")
    assert raised.value.kind.code == "LF-PRINCIPAL"


def test_an_answer_that_is_not_a_cluster_s_id_gets_into_no_policy(server):
    """Policies allow the Glue database with the cluster's id: to Tableflow, to Snowflake, and to what drops
    it on destroy.
    """
    for wrong in ("*", "lkc-*", "lkc-1/x", "lkc-?"):
        with pytest.raises(Refused):
            kafka_cluster.is_ready(context(server), cluster_spec(), wrong)


def test_an_object_is_found_by_its_whole_name_and_by_the_known_id(server):
    environments = [
        {"id": "env-2", "display_name": NAME + "x"},
        {"id": "env-3", "display_name": NAME},
        ENVIRONMENT,
    ]
    server.answers["GET /org/v2/environments"] = listing(*environments)
    server.answers["GET /org/v2/environments/env-9"] = (200, {"id": "env-9"})
    for known_id, ids in ((None, []), ("env-9", ["env-9"]), ("env-gone", [])):
        assert environment.find_existing(context(server), spec(environment), known_id) == [*ids, "env-3", ENV]


def test_an_object_that_is_gone_is_reported_as_missing(server):
    for verb in (environment.is_ready, environment.update):
        with pytest.raises(ResourceMissing):
            verb(context(server), spec(environment), ENV)


def test_objects_are_gone_with_their_environment(server):
    server.answers["GET /cmk/v2/clusters"] = (403, {"message": "no"})
    assert kafka_cluster.find_existing(context(server, deleting=True), cluster_spec(), None) == []
    with pytest.raises(Denied):
        kafka_cluster.find_existing(context(server), cluster_spec(), None)
    server.answers[f"GET /org/v2/environments/{ENV}"] = (200, ENVIRONMENT)
    with pytest.raises(Denied):
        kafka_cluster.find_existing(context(server, deleting=True), cluster_spec(), None)


@pytest.mark.parametrize("gone", [f"/iam/v2/service-accounts/{SA}", f"/org/v2/environments/{ENV}"])
def test_a_role_binding_is_gone_with_its_account_or_environment(server, gone):
    server.answers["GET /iam/v2/role-bindings"] = (403, {"error_code": 40301, "message": "no"})
    server.answers |= {
        f"GET /iam/v2/service-accounts/{SA}": (200, {}),
        f"GET /org/v2/environments/{ENV}": (200, {}),
    }
    with pytest.raises(Denied):
        role_binding.find_existing(context(server, deleting=True), binding_spec(), None)
    server.answers[f"GET {gone}"] = (404, {})
    assert role_binding.find_existing(context(server, deleting=True), binding_spec(), None) == []


def test_a_topic_is_gone_with_its_cluster(server):
    server.answers[f"GET {CLUSTER}"] = (404, {})
    assert topic.find_existing(context(server, deleting=True), topic_spec(), "trades") == []
    with pytest.raises(ParentMissing):
        topic.is_ready(context(server), topic_spec(), "trades")


# --- environments, clusters, pools, provider integrations


@pytest.mark.parametrize(
    ("now", "sent"),
    [
        ({"stream_governance_config": {"package": "ADVANCED"}}, None),
        ({"display_name": "by hand"}, {"display_name": NAME}),
    ],
)
def test_an_environment_gets_its_name_back_and_is_never_downgraded(server, now, sent):
    server.answers[f"GET /org/v2/environments/{ENV}"] = (200, {**ENVIRONMENT, **now})
    server.answers[f"PATCH /org/v2/environments/{ENV}"] = (200, {})
    environment.update(context(server), spec(environment), ENV)
    assert wrote(server) == ([(f"PATCH /org/v2/environments/{ENV}", sent)] if sent else [])


@pytest.mark.parametrize("kind", ["Enterprise", "Dedicated", "Freight", "standard"])
def test_cluster_types_without_public_topics_are_refused_with_the_reason(kind):
    with pytest.raises(BadProperties, match="private network"):
        cluster_spec(type=kind)


def test_a_cluster_is_not_ready_before_its_schema_registry(server):
    result = context(server)
    server.answers["GET /srcm/v3/clusters"] = listing()
    with pytest.raises(InProgress):
        kafka_cluster.is_ready(result, cluster_spec(), LKC)
    for phase in ("PROVISIONING", "SOMETHING_NEW"):
        server.answers[f"GET {CLUSTER}"] = (200, {"status": {"phase": phase}, "spec": {"http_endpoint": "x"}})
        assert kafka_cluster.is_ready(result, cluster_spec(), LKC) is None
    server.answers[f"GET {CLUSTER}"] = (200, {"status": {"phase": "FAILED"}})
    with pytest.raises(ResourceFailed):
        kafka_cluster.is_ready(result, cluster_spec(), LKC)


@pytest.mark.parametrize(
    ("now", "wanted", "sent"),
    [
        ({"display_name": "by hand"}, {}, {"display_name": NAME}),
        ({"availability": "LOW"}, {}, None),
        ({}, {"deletion_protection": "true"}, {"deletion_protection": True}),
        ({"config": {"kind": "Standard"}}, {"type": "Basic"}, None),
        ({}, {"max_ecku": "4", "type": "Basic"}, {"config": {"kind": "Standard", "max_ecku": 4}}),
    ],
)
def test_a_cluster_is_updated_and_one_that_was_upgraded_stays_standard(server, now, wanted, sent):
    server.answers[f"GET {CLUSTER}"] = (
        200,
        {"spec": {"display_name": NAME, "config": {"kind": "Standard"}, **now}},
    )
    server.answers[f"PATCH {CLUSTER}"] = (200, {})
    kafka_cluster.update(context(server), cluster_spec(**wanted), LKC)
    body = {"spec": {**sent, "environment": {"id": ENV}}} if sent else None
    assert wrote(server) == ([(f"PATCH {CLUSTER}", body)] if sent else [])


CANT_CHANGE = [
    ({"type": "Standard"}, {"type": "Basic"}, "is Standard, and Confluent can't make it Basic"),
    (
        {"max_ecku": "4"},
        {},
        "max_ecku of Kafka cluster lkc-1 is 4, and Confluent's API has no value that removes it",
    ),
    ({"max_ecku": "4"}, {"deletion_protection": "true"}, "max_ecku of Kafka cluster lkc-1 is 4"),
]


@pytest.mark.parametrize(("before", "after", "message"), CANT_CHANGE)
def test_a_change_of_a_cluster_that_confluent_can_not_make_is_refused_before_anything_is_written(
    server, before, after, message
):
    config = {"kind": "Standard", "max_ecku": 4}
    server.answers[f"GET {CLUSTER}"] = (200, {"spec": {"display_name": NAME, "config": config}})
    server.answers[f"PATCH {CLUSTER}"] = (200, {})
    with pytest.raises(Refused, match=message) as refused:
        kafka_cluster.update(context(server, previous=cluster_spec(**before)), cluster_spec(**after), LKC)
    assert refused.value.kind.code == "CFL-CANT-CHANGE"
    assert wrote(server) == []


@pytest.mark.parametrize(("failed", "before"), [(failed, before) for failed, before, _ in CANT_CHANGE])
def test_a_rolled_back_update_of_a_cluster_does_not_fail(server, failed, before):
    """The failed update made it Standard, or set max_ecku; the cluster keeps that."""
    config = {"kind": "Standard", "max_ecku": 4}
    server.answers[f"GET {CLUSTER}"] = (
        200,
        {"spec": {"display_name": NAME, "config": config, "deletion_protection": True}},
    )
    server.answers[f"PATCH {CLUSTER}"] = (200, {})
    back = attrs.evolve(context(server, previous=cluster_spec(**failed)), rolling_back=lambda: True)
    kafka_cluster.update(back, cluster_spec(**before), LKC)
    assert all("config" not in body["spec"] for _, body in wrote(server))


def test_a_removed_limit_that_the_cluster_does_not_have_is_not_refused(server):
    server.answers[f"GET {CLUSTER}"] = (200, {"spec": {"display_name": NAME, "config": {"kind": "Standard"}}})
    kafka_cluster.update(context(server, previous=cluster_spec(max_ecku="4")), cluster_spec(), LKC)
    assert wrote(server) == []


def test_a_pools_size_is_one_that_confluent_offers():
    with pytest.raises(BadProperties):
        pool_spec(max_cfu="7")


def test_a_provider_integration_that_is_in_use_is_not_deleted(server):
    server.answers["GET /pim/v1/integrations/cspi-1"] = (200, {"id": "cspi-1", "usages": ["crn://x"]})
    with pytest.raises(InProgress, match="crn://x"):
        provider_integration.delete(context(server), integration_spec(), "cspi-1")
    assert wrote(server) == []


# --- service accounts, role bindings, ACLs


def test_a_service_account_takes_its_role_bindings_with_it(server):
    """Delete its role bindings even if no resource knows them, and keep those of others."""
    bindings = "/iam/v2/role-bindings"
    account = f"/iam/v2/service-accounts/{SA}"
    query = {"principal": f"User:{SA}", "crn_pattern": f"crn://confluent.cloud/organization={ORG}"}

    def listed(sent):
        return (
            listing({"id": "rb-1"}, {"id": "rb-2"})
            if query.items() <= sent.query.items()
            else listing({"id": "rb-others"})
        )

    server.answers[f"GET {bindings}"] = listed
    for route in (f"{bindings}/rb-1", f"{bindings}/rb-2", account):
        server.answers[f"DELETE {route}"] = (204, None)
    service_account.delete(context(server), spec(service_account), SA)
    assert [request for request, _ in wrote(server)] == [
        f"DELETE {bindings}/rb-1",
        f"DELETE {bindings}/rb-2",
        f"DELETE {account}",
    ]


def test_a_role_binding_is_distinguished_from_similar_ones(server):
    crn = (
        f"crn://confluent.cloud/organization={ORG}/environment={ENV}/cloud-cluster={LKC}/kafka={LKC}/topic=a*"
    )
    body = {"principal": f"User:{SA}", "role_name": "ResourceOwner", "crn_pattern": crn}
    encoded = {**body, "crn_pattern": crn.replace("*", "%2A")}
    near = [{"id": "rb-2", **body, "role_name": "Other"}, {"id": "rb-3", **body, "crn_pattern": crn + "b"}]
    server.answers["GET /iam/v2/role-bindings"] = listing(*near, {"id": "rb-1", **encoded})
    assert role_binding.find_existing(context(server), binding_spec(), None) == ["rb-1"]
    assert server.sent[-1].query == {**body, "page_size": "99"}


def test_a_role_binding_that_may_not_be_created_yet_is_tried_for_ten_minutes(server):
    """Confluent's Terraform provider says to repeat it after a few minutes. Reading is tried for two."""
    refusal = (403, {"error_code": 40301, "message": "User is denied operation Alter"})
    server.answers["POST /iam/v2/role-bindings"] = server.answers["GET /iam/v2/role-bindings"] = refusal
    with pytest.raises(Denied) as creating:
        role_binding.create(context(server), binding_spec())
    with pytest.raises(Denied) as searching:
        role_binding.find_existing(context(server), binding_spec(), None)
    assert (creating.value.patience, searching.value.patience) == (600, 120)


@pytest.mark.parametrize(
    ("scope", "missing"), [("topic", {"name"}), ("subject", {"schema_registry_id", "name"})]
)
def test_a_role_binding_requires_the_values_of_its_scope(scope, missing):
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


def test_an_acl_is_distinguished_from_similar_ones(server):
    server.answers[f"GET {KAFKA}/acls"] = listing({**ACL, "operation": "WRITE"})
    assert acl.find_existing(context(server), acl_spec(), None) == []
    acl.delete(context(server), acl_spec(), "x")
    (delete,) = server.writes()
    assert delete.query == ACL, "a looser filter would remove entries of others"


def test_an_acl_is_recognized_although_confluent_names_its_account_by_a_number(server):
    """Confluent filters by the account's id, and its answer has the account's number instead."""
    server.answers[f"GET {KAFKA}/acls"] = listing({**ACL, "principal": "User:12345"})
    (object_id,) = acl.find_existing(context(server), acl_spec(), None)
    assert server.sent[-1].query == ACL, "a looser filter would find entries of other accounts"
    assert acl.is_ready(context(server), acl_spec(), object_id) == {"id": object_id}
    acl.update(context(server), acl_spec(), object_id)
    assert wrote(server) == []


def test_acls_of_several_names_follow_the_names(server):
    """Send one call for all missing ACLs, and one for each to delete. ACLs of others stay."""
    both = acl_spec(resource_names=["a", "b"])
    foreign = {**ACL, "resource_name": "foreign"}
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


@pytest.mark.parametrize("wide", [{"operation": "ANY"}, {"resource_type": "ANY"}, {"pattern_type": "MATCH"}])
def test_acl_values_that_are_for_filters_only_are_refused(wide):
    with pytest.raises(BadProperties):
        acl_spec(**wide)


# --- topics and schemas


@pytest.mark.parametrize(
    ("message", "error"),
    [
        ("Topic 'trades' already exists.", Conflict),
        ("Topic 'trades' is marked for deletion.", InProgress),
        ("Bad name", Refused),
    ],
)
def test_creating_a_topic_distinguishes_errors_with_status_400(server, message, error):
    server.answers[f"POST {KAFKA}/topics"] = (400, {"error_code": 40002, "message": message})
    with pytest.raises(error) as raised:
        topic.create(context(server), topic_spec())
    assert type(raised.value) is error


def test_a_topic_loses_no_partitions_and_a_default_is_not_reset(server):
    server.answers[f"GET {KAFKA}/topics/trades"] = (200, {"partitions_count": 3})
    default = {"name": "cleanup.policy", "value": "delete", "is_default": True}
    server.answers[f"GET {KAFKA}/topics/trades/configs"] = listing(default)
    before = topic_spec(partitions="2", config={"cleanup.policy": "delete"})
    topic.update(context(server, previous=before), topic_spec(partitions="2"), "trades")
    assert wrote(server) == []


def test_a_lowered_number_of_partitions_is_refused_before_anything_is_written(server):
    server.answers[f"GET {KAFKA}/topics/trades"] = (200, {"partitions_count": 12})
    server.answers[f"GET {KAFKA}/topics/trades/configs"] = listing()
    server.answers[f"POST {KAFKA}/topics/trades/configs:alter"] = (204, None)
    before = topic_spec(partitions="12")
    after = topic_spec(partitions="6", config={"cleanup.policy": "compact"})
    with pytest.raises(
        Refused, match="topic trades has 12 partitions, and Kafka can't lower that to 6"
    ) as refused:
        topic.update(context(server, previous=before), after, "trades")
    assert refused.value.kind.code == "CFL-CANT-CHANGE"
    assert wrote(server) == []


@pytest.mark.parametrize("now", [6, 12])
def test_a_rolled_back_update_keeps_the_partitions_that_it_added(server, now):
    """With 6, the update failed before it added any."""
    server.answers[f"GET {KAFKA}/topics/trades"] = (200, {"partitions_count": now})
    server.answers[f"GET {KAFKA}/topics/trades/configs"] = listing()
    back = attrs.evolve(context(server, previous=topic_spec(partitions="12")), rolling_back=lambda: True)
    topic.update(back, topic_spec(partitions="6"), "trades")
    assert wrote(server) == []


def test_a_removed_setting_is_reset_although_the_list_of_settings_lacks_it(server):
    server.answers[f"GET {KAFKA}/topics/trades"] = (200, {"partitions_count": 3})
    server.answers[f"GET {KAFKA}/topics/trades/configs"] = listing()
    before = topic_spec(config={"cleanup.policy": "compact"})
    server.answers[f"POST {KAFKA}/topics/trades/configs:alter"] = (204, None)
    topic.update(context(server, previous=before), topic_spec(partitions="3"), "trades")
    assert server.writes()[-1].body == {"data": [{"name": "cleanup.policy", "operation": "DELETE"}]}


@pytest.mark.parametrize(
    ("now", "wanted", "writes"),
    [
        ({"schema": AVRO.replace(" ", "")}, {}, 0),
        ({"schema": '{"fields":[],"name":"O","type":"record"}'}, {}, 0),
        ({"schema": AVRO.replace("O", "P")}, {}, 1),
        ({"schema": AVRO, "schemaType": "JSON"}, {}, 1),
        (
            {"schema": "message A {\n}", "schemaType": "PROTOBUF"},
            {"schema": "message A { }", "schema_type": "PROTOBUF"},
            0,
        ),
        ({"schema": AVRO}, {"compatibility": "FULL"}, 0),
        ({"schema": AVRO}, {"compatibility": "NONE"}, 1),
    ],
)
def test_a_schema_is_registered_where_its_content_differs(server, now, wanted, writes):
    server.answers["GET /subjects/orders-value/versions/latest"] = (200, {"id": 7, "version": 2, **now})
    server.answers["GET /config/orders-value"] = (200, {"compatibilityLevel": "FULL"})
    server.answers["PUT /config/orders-value"] = server.answers["POST /subjects/orders-value/versions"] = (
        200,
        {},
    )
    schema.update(context(server), schema_spec(**wanted), "orders-value")
    assert len(server.writes()) == writes
    outputs = schema.is_ready(context(server), schema_spec(**wanted), "orders-value")
    assert outputs == {"subject": "orders-value", "schema_id": "7", "version": "2"}


def test_a_soft_deleted_subject_is_still_to_be_deleted(server):
    server.answers["GET /subjects"] = (200, [])  # the list leaves out what the key's owner may not see
    server.answers["GET /subjects/orders-value/versions"] = lambda sent: (
        (200, [1])
        if sent.query["deleted"] == "true"
        else (404, {"error_code": 40401, "message": "Subject not found."})
    )
    result = context(server, deleting=True, notes={"subject": "new"}, owned=True)
    assert schema.find_existing(result, schema_spec(delete_permanently="true"), None) == ["orders-value"]
    assert schema.find_existing(result, schema_spec(), None) == []
    assert schema.find_existing(context(server), schema_spec(), None) == []


def test_a_schema_that_is_not_json_is_refused_before_anything_is_created():
    with pytest.raises(BadProperties, match="is not JSON"):
        schema_spec(schema="message A {}")


# --- connectors

VALIDATE = f"PUT {CONNECTORS.removesuffix('connectors')}connector-plugins/DatagenSource/config/validate"


def expanded(server, state="RUNNING", tasks=("RUNNING",), trace="", **config):
    status = {
        "connector": {"state": state, "trace": trace},
        "tasks": [{"state": task, "msg": trace} for task in tasks],
    }
    found = {"id": {"id": "lcc-1"}, "info": {"config": config}, "status": status}
    server.answers[f"GET {CONNECTORS}"] = (200, {"other": {}, NAME: found})


def test_a_connector_has_a_schema_of_the_user_s_own(server):
    server.answers[VALIDATE] = server.answers[f"POST {CONNECTORS}"] = (200, {})
    own = {"quickstart": "", "schema": AVRO, "schema_key_field": "id"}
    connector.create(context(server), connector_spec(**own))
    sent = wrote(server)[-1][1]["config"]
    assert "quickstart" not in sent
    assert (sent["schema.string"], sent["schema.keyfield"]) == (AVRO, "id")


def test_a_connector_s_invalid_configuration_is_reported_setting_by_setting(server):
    wrong = {"value": {"name": "quickstart", "errors": ["no such data"]}}
    server.answers[VALIDATE] = (
        200,
        {"error_count": 1, "configs": [wrong, {"value": {"name": "ok", "errors": []}}]},
    )
    with pytest.raises(Refused, match="quickstart: no such data") as refused:
        connector.create(context(server), connector_spec())
    assert refused.value.kind.code == "CFL-CONNECTOR-CONFIG"
    assert len(server.writes()) == 1


@pytest.mark.parametrize("given", [{"quickstart": ""}, {"schema": "{}"}, {"secret_config": {"a": "b#c"}}])
def test_connector_properties_that_contradict_each_other(given):
    with pytest.raises(BadProperties):
        connector_spec(**given)


def test_connector_states(server):
    expanded(server)
    assert connector.is_ready(context(server), connector_spec(), NAME) == {"name": NAME, "id": "lcc-1"}
    for state in ("NONE", "PROVISIONING", "DEGRADED", "NEW_WORD"):
        expanded(server, state=state)
        assert connector.is_ready(context(server), connector_spec(), NAME) is None
    for status in ({"state": "FAILED"}, {"tasks": ("RUNNING", "FAILED")}):
        expanded(server, trace="no ACL", **status)
        with pytest.raises(NeedsReplacement, match="no ACL"):
            connector.is_ready(context(server), connector_spec(), NAME)
    assert wrote(server) == []
    expanded(server, state="PAUSED")
    server.answers[f"PUT {CONNECTORS}/{NAME}/resume"] = (202, None)
    assert connector.is_ready(context(server), connector_spec(), NAME) is None
    assert len(server.writes()) == 1
    server.answers[f"GET {CONNECTORS}"] = (200, {})
    with pytest.raises(ResourceMissing):
        connector.is_ready(context(server), connector_spec(), NAME)


def test_a_masked_value_of_a_connector_counts_as_unchanged(server):
    own = {"quickstart": "", "schema": AVRO}
    server.answers[VALIDATE] = server.answers[f"POST {CONNECTORS}"] = (200, {})
    connector.create(context(server), connector_spec(**own))
    config = wrote(server)[-1][1]["config"]
    masked = {
        "cloud.provider": "aws",
        "kafka.service.account.id": "*" * 16,
        "schema.string": AVRO.replace(" ", ""),
    }
    expanded(server, **{**config, **masked})
    before = len(server.writes())
    connector.update(context(server), connector_spec(**own), NAME)
    assert len(server.writes()) == before


def test_a_setting_of_a_connector_that_its_properties_no_longer_have_is_removed(server):
    own = {"quickstart": "", "schema": AVRO}
    before = connector_spec(**own, schema_key_field="id", max_interval_ms="500")
    server.answers[VALIDATE] = server.answers[f"POST {CONNECTORS}"] = (200, {})
    server.answers[f"PUT {CONNECTORS}/{NAME}/config"] = (200, {})
    connector.create(context(server), before)
    expanded(server, **wrote(server)[-1][1]["config"])
    connector.update(context(server, previous=before), connector_spec(**own), NAME)
    route, sent = wrote(server)[-1]
    assert route == f"PUT {CONNECTORS}/{NAME}/config"
    assert {"schema.keyfield", "max.interval"} & set(sent) == set()


def test_the_result_of_deleting_a_connector_is_in_the_body(server):
    server.answers[f"DELETE {CONNECTORS}/{NAME}"] = [
        (200, {"error": {"message": "busy"}}),
        (200, {"error": None}),
    ]
    with pytest.raises(Transient, match="busy"):
        connector.delete(context(server), connector_spec(), NAME)
    connector.delete(context(server), connector_spec(), NAME)
