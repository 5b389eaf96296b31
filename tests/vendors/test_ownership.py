"""An object whose name the user chose belongs to a deployment only if a create of the deployment may have made it."""

from __future__ import annotations

import attrs
import pytest
from confluent_environment import ROLE, SCHEMA, WIDER, Organization
from confluent_lives import cluster, kafka, registry_key, tableflow

from lambdas.shared.errors import LakeferryError, Refused
from simulators.confluent.schemas import Schema
from simulators.confluent.simulation import REGION


@pytest.fixture
def org():
    org = Organization()
    yield org
    org.close()


@attrs.frozen
class Contested:
    """A resource, the dictionary of the simulator that holds its object, the object's key, and the code of the refusal."""

    resource: object
    held: dict
    name: object
    code: str

    def appear(self, theirs):
        self.held[self.name] = theirs

    def is_untouched(self, theirs):
        """Return whether their object is still there. Of a subject, the first version is theirs."""
        first = theirs[0] if isinstance(theirs, list) else None
        return self.held.get(self.name) is theirs and not _is_deleted(first or theirs)

    def is_deleted(self):
        found = self.held.get(self.name)
        return found is None or _is_deleted(found[0] if isinstance(found, list) else found)


def _is_deleted(found):
    return getattr(found, "deleted", False) or getattr(found, "deleting", False)


def contested_topic(org):
    where, _ = kafka(org)
    given = {**where, "topic": "orders", "partitions": 1}
    org.resource("topic", "SomebodyElses", **given).create()
    (held,) = [found.topics for found in org.simulation.organization.clusters.values()]
    return Contested(org.resource("topic", "It", **given), held, "orders", "CFL-FOREIGN-TOPIC")


def contested_table(org):
    given = {**tableflow(org), "topic": "orders"}
    theirs = org.resource("tableflow_topic", "SomebodyElses", bucket="theirs", **given)
    theirs.create()
    held = org.simulation.organization.tableflow_topics
    (name,) = held
    return Contested(org.resource("tableflow_topic", "It", bucket="ours", **given), held, name, "CFL-FOREIGN-TABLEFLOW")


def contested_subject(org):
    given = {**registry_key(org, cluster(org)["environment_id"]), "subject": "orders-value", "schema": WIDER}
    (registry,) = org.simulation.organization.schema_registries.values()
    registry.schemas.register("orders-value", Schema("AVRO", SCHEMA, ()))
    one = org.resource("schema", "It", delete_permanently="true", **given)
    return Contested(one, registry.schemas._versions, "orders-value", "CFL-FOREIGN-SUBJECT")


KINDS = {
    "topic": (contested_topic, "POST", "/kafka/v3/clusters/*/topics"),
    "tableflow_topic": (contested_table, "POST", "/tableflow/v1/tableflow-topics"),
    "schema": (contested_subject, "POST", "/subjects/*/versions"),
}


def on_first(org, method, path, act):
    """Call `act` just before the first such call reaches the vendor, and before the fault injector answers it."""
    inner, pending = org.wire.app, [act]

    async def application(scope, receive, send):
        last = scope["path"].rpartition("/")[2]
        if pending and scope["method"] == method and last == path.rpartition("/")[2]:
            pending.pop()()
        await inner(scope, receive, send)

    org.wire.app = application


def delete_after(contested, org):
    """Delete the resource as CloudFormation does after a create that failed."""
    contested.resource.physical_id = contested.resource.physical_id or "what CloudFormation makes up"
    org.invocations.stacks.status = "ROLLBACK_IN_PROGRESS"
    contested.resource.delete()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("refusal", [0, 400, 401, 403, 409, 422, 429])
def test_an_object_that_appears_while_our_create_is_refused_is_not_ours(org, kind, refusal):
    """With 0 the vendor answers itself: the object appears between our search and our create."""
    build, method, path = KINDS[kind]
    contested = build(org)
    theirs = contested.held.pop(contested.name)
    on_first(org, method, path, lambda: contested.appear(theirs))
    if refusal:
        org.disturb(fault="error", method=method, path=path, status=refusal, reply_headers={"Retry-After": "120"})
    with pytest.raises(LakeferryError):
        contested.resource.create()
    org.disturb()
    delete_after(contested, org)
    assert contested.is_untouched(theirs)
    if refusal in (0, 403, 429):
        contested.resource.physical_id = ""
        org.invocations.stacks.status = "CREATE_IN_PROGRESS"
        with pytest.raises(Refused, match=contested.code):
            contested.resource.create()


@pytest.mark.parametrize("kind", KINDS)
def test_an_object_that_exists_is_neither_changed_nor_deleted(org, kind):
    contested = KINDS[kind][0](org)
    theirs = contested.held[contested.name]
    org.wire.calls.clear()
    with pytest.raises(Refused, match=contested.code):
        contested.resource.create()
    delete_after(contested, org)
    assert contested.is_untouched(theirs)
    assert [call for call in org.wire.calls if not call.reads] == []


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("fault", ["effect_then_error", "effect_then_reset"])
def test_an_object_whose_create_got_no_answer_is_ours(org, kind, fault):
    build, method, path = KINDS[kind]
    contested = build(org)
    del contested.held[contested.name]
    org.disturb(fault=fault, method=method, path=path, status=503)
    contested.resource.create()
    delete_after(contested, org)
    assert contested.is_deleted()


@pytest.mark.parametrize("kind", KINDS)
def test_a_read_that_gets_no_answer_before_the_create_is_no_create(org, kind):
    """The search finds nothing, the next read gets no answer, and then the object appears: no create was sent."""
    build, _, _ = KINDS[kind]
    contested = build(org)
    theirs = contested.held.pop(contested.name)
    org.disturb(fault="error", method="GET", path="/*", status=503, nth=1, times=0)
    event = contested.resource.event("Create")
    event |= org.invocations.on_event(event)
    org.invocations.is_complete(event)
    org.disturb()
    contested.appear(theirs)
    with pytest.raises(Refused, match=contested.code):
        contested.resource.create()
    assert contested.is_untouched(theirs)


@pytest.mark.parametrize("kind", KINDS)
def test_an_object_that_the_file_adopts_is_ours(org, kind):
    contested = KINDS[kind][0](org)
    contested.resource.properties["adopt"] = "true"
    contested.resource.create()
    delete_after(contested, org)
    assert contested.is_deleted()
    assert (contested.name in contested.held) is (kind != "tableflow_topic"), "a subject can be restored; Kafka deletes later"


def _with_cluster(org, environment_id):
    org.make("kafka_cluster", "TheirCluster", region=REGION, environment_id=environment_id)


def _with_pool(org, environment_id):
    org.make("flink_compute_pool", "TheirPool", region=REGION, environment_id=environment_id)


def _with_integration(org, environment_id):
    org.make("provider_integration", "TheirIntegration", role_arn=ROLE, environment_id=environment_id)


@pytest.mark.parametrize("fill", [_with_cluster, _with_pool, _with_integration])
@pytest.mark.parametrize("status", ["DELETE_IN_PROGRESS", "UPDATE_COMPLETE_CLEANUP_IN_PROGRESS", "ROLLBACK_IN_PROGRESS"])
def test_an_environment_that_holds_anything_is_not_deleted(org, fill, status):
    environment = org.resource("environment", "Environment")
    fill(org, environment.create()["id"])
    org.invocations.stacks.status = status
    with pytest.raises(LakeferryError, match="CFL-ENVIRONMENT-NOT-EMPTY"):
        environment.delete()
    assert environment.outputs["id"] in org.simulation.organization.environments
    assert not [call for call in org.wire.calls if call.method == "DELETE"]
