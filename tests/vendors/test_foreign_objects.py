"""Subjects in a Schema Registry that deployments share, and topics that a deployment didn't create."""

from __future__ import annotations

import pytest

from lambdas.shared.errors import Refused
from simulators.confluent.schemas import Schema
from tests.support.confluent_environment import SCHEMA, WIDER, Organization
from tests.support.confluent_lives import cluster, kafka, registry_key

SUBJECT = "orders-value"


@pytest.fixture
def org():
    org = Organization()
    yield org
    org.close()


def registry(org):
    """Return the subjects of the only environment, and the properties of a schema in it."""
    given = {**registry_key(org, cluster(org)["environment_id"]), "subject": SUBJECT, "schema": WIDER}
    (found,) = org.simulation.organization.schema_registries.values()
    return found.schemas, given


@pytest.mark.parametrize("compatibility", ["", "FULL"])
def test_an_existing_subject_is_neither_changed_nor_deleted(org, compatibility):
    schemas, given = registry(org)
    schemas.register(SUBJECT, Schema("AVRO", SCHEMA, ()))
    one = org.resource("schema", "It", compatibility=compatibility, delete_permanently="true", **given)
    with pytest.raises(Refused, match="CFL-FOREIGN-SUBJECT"):
        one.create()
    one.physical_id = "what CloudFormation makes up"
    one.delete()
    assert len(schemas.versions(SUBJECT)) == 1
    assert schemas.levels == {}


def test_a_subject_that_a_connector_registered_is_adopted_and_stays_restorable(org):
    schemas, given = registry(org)
    schemas.register(SUBJECT, Schema("AVRO", SCHEMA, ()))
    one = org.resource("schema", "It", adopt="true", delete_permanently="true", **given)
    assert one.create()["version"] == "2"
    one.delete()
    assert schemas.subjects(deleted=False) == []
    assert schemas.subjects(deleted=True) == [SUBJECT]


def test_a_subject_that_somebody_created_after_ours_was_deleted_is_kept(org):
    schemas, given = registry(org)
    one = org.resource("schema", "It", delete_permanently="true", **given)
    one.create()
    one.delete()
    schemas.register(SUBJECT, Schema("AVRO", SCHEMA, ()))
    with pytest.raises(Refused, match="CFL-FOREIGN-SUBJECT"):
        one.create()
    one.delete()
    assert len(schemas.versions(SUBJECT)) == 1


def test_an_incompatible_schema_is_refused_at_once_with_the_field(org):
    schemas, given = registry(org)
    one = org.resource("schema", "It", **given)
    one.create()
    began = org.clock.time()
    required = WIDER.replace('"n", "type": ["null", "int"], "default": null', '"fw", "type": "string"')
    with pytest.raises(
        Refused,
        match=r"CFL-SCHEMA-INCOMPATIBLE.*/fw: the reader's field has no default.*and the default null",
    ):
        one.update(schema=required)
    assert org.clock.time() - began < 60
    assert len(schemas.versions(SUBJECT)) == 1


def test_an_existing_topic_is_neither_changed_nor_deleted(org):
    where, _ = kafka(org)
    given = {**where, "topic": "orders", "partitions": 1}
    org.resource("topic", "SomebodyElses", **given).create()
    (held,) = [found_cluster.topics for found_cluster in org.simulation.organization.clusters.values()]
    one = org.resource("topic", "It", **given, config={"retention.ms": "1000"})
    with pytest.raises(Refused, match="CFL-FOREIGN-TOPIC"):
        one.create()
    one.physical_id = "what CloudFormation makes up"
    one.delete()
    assert [(name, topic.settings.get("retention.ms")) for name, topic in held.items()] == [("orders", None)]


def test_a_topic_that_somebody_created_after_a_refusal_is_kept(org):
    where, _ = kafka(org)
    given = {**where, "topic": "orders", "partitions": 1}
    one = org.resource("topic", "It", **given, config={"cleanup.policy": "nonsense"})
    with pytest.raises(Refused):
        one.create()
    org.resource("topic", "SomebodyElses", **given).create()
    one.physical_id = "what CloudFormation makes up"
    one.delete()
    (held,) = [found_cluster.topics for found_cluster in org.simulation.organization.clusters.values()]
    assert list(held) == ["orders"]


@pytest.mark.parametrize(("permanently", "restorable"), [("false", [SUBJECT]), ("true", [])])
def test_only_a_deployment_that_keeps_nothing_deletes_its_subject_permanently(org, permanently, restorable):
    schemas, given = registry(org)
    one = org.resource("schema", "It", delete_permanently=permanently, **given)
    one.create()
    one.update(schema=WIDER.replace('"n"', '"m"'))
    one.delete()
    assert schemas.subjects() == []
    assert schemas.subjects(deleted=True) == restorable


def test_versions_that_somebody_deleted_before_stay_restorable(org):
    schemas, given = registry(org)
    schemas.register(SUBJECT, Schema("AVRO", SCHEMA, ()))
    schemas.delete(SUBJECT, permanent=False)
    one = org.resource("schema", "It", delete_permanently="true", **given)
    one.create()
    one.delete()
    assert len(schemas.versions(SUBJECT, deleted=True)) == 2
