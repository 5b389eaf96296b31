"""An object whose name the user chose belongs to a deployment only if a create of the deployment may have
made it.
"""

from __future__ import annotations

import attrs
import pytest

from lambdas.custom_resources.registry import RESOURCE_TYPES
from lambdas.shared.clock import Deadline
from lambdas.shared.errors import LakeferryError, Refused
from simulators.confluent.schemas import Schema
from simulators.confluent.simulation import REGION
from tests.support.confluent_environment import ROLE, SCHEMA, WIDER, Organization
from tests.support.confluent_lives import (
    LIVES,
    OTHER_STATEMENT,
    STATEMENT,
    cluster,
    kafka,
    registry_key,
    tableflow,
)


@pytest.fixture
def org():
    org = Organization()
    yield org
    org.close()


@attrs.frozen
class Contested:
    """A resource, the dictionary of the simulator that holds its object, the object's key, and the code of
    the refusal.
    """

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
    (held,) = [found_cluster.topics for found_cluster in org.simulation.organization.clusters.values()]
    return Contested(org.resource("topic", "It", **given), held, "orders", "CFL-FOREIGN-TOPIC")


def contested_table(org):
    given = {**tableflow(org), "topic": "orders"}
    theirs = org.resource("tableflow_topic", "SomebodyElses", bucket="theirs", **given)
    theirs.create()
    held = org.simulation.organization.tableflow_topics
    (name,) = held
    return Contested(
        org.resource("tableflow_topic", "It", bucket="ours", **given), held, name, "CFL-FOREIGN-TABLEFLOW"
    )


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
    """Call `act` just before the first such call reaches the vendor, and before the fault injector answers
    it.
    """
    inner = org.wire.app
    pending = [act]

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


@pytest.mark.sampled(3)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("refusal", [0, 400, 401, 403, 409, 422, 429])
def test_an_object_that_appears_while_our_create_is_refused_is_not_ours(org, kind, refusal):
    """With 0 the vendor answers itself: the object appears between our search and our create."""
    build, method, path = KINDS[kind]
    contested = build(org)
    theirs = contested.held.pop(contested.name)
    on_first(org, method, path, lambda: contested.appear(theirs))
    if refusal:
        org.disturb(
            fault="error", method=method, path=path, status=refusal, reply_headers={"Retry-After": "120"}
        )
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


@pytest.mark.parametrize("status", [403, 404, 500])
def test_a_subject_is_ours_although_the_read_after_its_create_is_refused(org, status):
    contested = contested_subject(org)
    del contested.held[contested.name]
    org.disturb(fault="error", method="GET", path="/subjects/*/versions", status=status)
    contested.resource.create()
    delete_after(contested, org)
    assert contested.is_deleted()


@pytest.mark.parametrize("kind", KINDS)
def test_a_read_that_gets_no_answer_before_the_create_is_no_create(org, kind):
    """The search finds nothing, the next read gets no answer, and then the object appears: no create was
    sent.
    """
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
    assert (contested.name in contested.held) is (kind != "tableflow_topic"), (
        "a subject can be restored; Kafka deletes later"
    )


def _add_cluster(org, environment_id):
    org.make("kafka_cluster", "TheirCluster", region=REGION, environment_id=environment_id)


def _add_pool(org, environment_id):
    org.make("flink_compute_pool", "TheirPool", region=REGION, environment_id=environment_id)


def _add_integration(org, environment_id):
    org.make("provider_integration", "TheirIntegration", role_arn=ROLE, environment_id=environment_id)


def _post(org, path, body):
    org.connect(Deadline(org.clock, org.clock.time() + 60), org.clock, None).cloud.post(path, body)


def _add_network(org, environment_id):
    spec = {"cloud": "AWS", "display_name": "theirs", "environment": {"id": environment_id}}
    _post(org, "/networking/v1/networks", {"spec": spec})


def _add_private_link(org, environment_id):
    spec = {"cloud": "AWS", "display_name": "theirs", "environment": {"id": environment_id}}
    _post(org, "/networking/v1/private-link-attachments", {"spec": spec})


def _add_integration_of_second_version(org, environment_id):
    body = {"provider": "GCP", "display_name": "theirs", "environment": {"id": environment_id}}
    _post(org, "/pim/v2/integrations", body)


_FILLERS = (
    _add_cluster,
    _add_pool,
    _add_integration,
    _add_integration_of_second_version,
    _add_network,
    _add_private_link,
)


@pytest.mark.parametrize("fill", _FILLERS)
@pytest.mark.parametrize(
    "status", ["DELETE_IN_PROGRESS", "UPDATE_COMPLETE_CLEANUP_IN_PROGRESS", "ROLLBACK_IN_PROGRESS"]
)
def test_an_environment_that_holds_anything_is_not_deleted(org, fill, status):
    environment = org.resource("environment", "Environment")
    fill(org, environment.create()["id"])
    org.invocations.stacks.status = status
    with pytest.raises(LakeferryError, match="CFL-ENVIRONMENT-NOT-EMPTY"):
        environment.delete()
    assert environment.outputs["id"] in org.simulation.organization.environments
    assert not [call for call in org.wire.calls if call.method == "DELETE"]


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("/networking/v1/networks", 403),
        ("/pim/v2/integrations", 403),
        *((path, status) for path in ("/cmk/v2/clusters", "/fcpm/v2/compute-pools") for status in (403, 404)),
    ],
)
def test_an_environment_is_not_deleted_while_a_list_is_refused_or_hidden(org, path, status):
    environment = org.resource("environment", "Environment")
    environment.create()
    org.disturb(fault="error", status=status, method="GET", path=path, times=0)
    with pytest.raises(LakeferryError, match=r"CFL-ENVIRONMENT-NOT-EMPTY.*can't be told"):
        environment.delete()
    assert environment.outputs["id"] in org.simulation.organization.environments


@pytest.mark.parametrize("path", ["/networking/v1/networks", "/pim/v2/integrations"])
def test_an_api_that_the_organization_does_not_have_holds_nothing(org, path):
    environment = org.resource("environment", "Environment")
    environment_id = environment.create()["id"]
    org.disturb(fault="error", status=404, method="GET", path=path, times=0)
    environment.delete()
    assert environment_id not in org.simulation.organization.environments


# --- the table of a Flink statement

LENIENT = STATEMENT.replace("CREATE TABLE", "CREATE TABLE IF NOT EXISTS")


@attrs.frozen
class Table:
    """A statement that creates the table `totals`, and what the simulator has of the table."""

    org: Organization
    statement: object
    topics: dict
    subjects: dict

    def names(self):
        existing = [name for name, topic in self.topics.items() if not topic.deleting]
        return "totals" in existing, any(
            not version.deleted for version in self.subjects.get("totals-value", [])
        )

    def delete(self, status="DELETE_IN_PROGRESS"):
        self.statement.physical_id = self.statement.physical_id or "what CloudFormation makes up"
        self.org.invocations.stacks.status = status
        self.statement.delete()


@pytest.fixture
def table(org):
    given = LIVES["flink_statement"].properties(org)
    (topics,) = [found_cluster.topics for found_cluster in org.simulation.organization.clusters.values()]
    (registry,) = org.simulation.organization.schema_registries.values()
    return Table(org, org.resource("flink_statement", "It", **given), topics, registry.schemas._versions)


def _theirs(table, org):
    """Make a topic and a subject of somebody else, and take them away again."""
    registry = next(iter(org.simulation.organization.schema_registries.values()))
    registry.schemas.register("totals-value", Schema("AVRO", SCHEMA, ()))
    given = {name: table.statement.properties[name] for name in ("environment_id", "cluster_id")}
    org.resource("topic", "Theirs", topic="totals", credentials="kafka-key", **given).create()
    return table.topics.pop("totals"), table.subjects.pop("totals-value")


@pytest.mark.sampled(2)
@pytest.mark.parametrize("sql", [STATEMENT, LENIENT])
@pytest.mark.parametrize(("topic", "subject"), [(True, True), (True, False), (False, True)])
def test_a_table_that_exists_is_neither_filled_nor_dropped(org, table, sql, topic, subject):
    their_topic, their_subject = _theirs(table, org)
    if topic:
        table.topics["totals"] = their_topic
    if subject:
        table.subjects["totals-value"] = their_subject
    table.statement.properties["sql"] = sql
    with pytest.raises(Refused, match="CFL-FOREIGN-TOPIC" if topic else "CFL-FOREIGN-SUBJECT"):
        table.statement.create()
    table.delete("ROLLBACK_IN_PROGRESS")
    assert table.names() == (topic, subject)
    assert len(their_subject) == 1


@pytest.mark.parametrize("sql", [STATEMENT, LENIENT])
def test_a_table_that_appears_while_the_statement_starts_is_not_dropped(org, table, sql):
    their_topic, their_subject = _theirs(table, org)

    def appear():
        table.topics["totals"], table.subjects["totals-value"] = their_topic, their_subject

    on_first(org, "POST", "/statements", appear)
    table.statement.properties["sql"] = sql
    with pytest.raises(Refused, match="CFL-FOREIGN-TOPIC"):
        table.statement.create()
    table.delete("ROLLBACK_IN_PROGRESS")
    assert table.names() == (True, True)
    assert not org.simulation.organization.statements


def test_a_table_of_ones_own_goes_with_its_statement(org, table):
    table.statement.create()
    table.statement.update(sql=OTHER_STATEMENT, drop_on_edit="true")
    assert table.names() == (True, True)
    table.delete()
    assert table.names() == (False, False)


def test_a_statement_whose_state_was_lost_keeps_its_table_unless_the_file_adopts_it(org, table):
    for adopt, kept in ((False, True), (True, False)):
        table.statement.create()
        org.invocations.documents.rows.clear()
        table.statement.properties["adopt"] = str(adopt).lower()
        table.statement.create()
        if not adopt:
            with pytest.raises(Refused, match="CFL-FOREIGN-TOPIC"):
                table.statement.update(sql=OTHER_STATEMENT, drop_on_edit="true")
            table.statement.properties["sql"] = STATEMENT
        table.delete()
        assert table.names() == (kept, kept)
        org.invocations.stacks.status = "UPDATE_IN_PROGRESS"
        table.topics.pop("totals", None)
        table.subjects.pop("totals-value", None)


@pytest.mark.parametrize("ending", ["stopped", "by hand"])
def test_a_statement_that_is_gone_is_not_sent_again_while_its_table_is_there(org, table, ending):
    table.statement.create()
    (statement,) = org.simulation.organization.statements.values()
    if ending == "stopped":
        statement.phase = "STOPPED"
        statement.updated = org.clock.now - 31 * 86400
    else:
        org.simulation.organization.statements.clear()
    org.wire.calls.clear()
    with pytest.raises(LakeferryError, match="CFL-FLINK-ENDED"):
        table.statement.update(tableflow_topics=["totals"])
    assert not [call for call in org.wire.calls if not call.reads]
    org.invocations.stacks.status = "UPDATE_ROLLBACK_IN_PROGRESS"
    table.statement.properties.pop("tableflow_topics")
    table.statement.update(tableflow_topics=[])
    table.delete()
    assert table.names() == (False, False)


def test_a_statement_is_not_replaced_because_environment_or_cluster_has_another_name(org, table):
    table.statement.create()
    before = set(org.simulation.organization.statements)
    for found_cluster in (
        *org.simulation.organization.environments.values(),
        *org.simulation.organization.clusters.values(),
    ):
        found_cluster.name = f"renamed-{found_cluster.name}"
    table.statement.update(catalog="renamed", database="renamed-too", tableflow_topics=["totals"])
    assert set(org.simulation.organization.statements) == before
    table.statement.update(catalog="renamed-again", tableflow_topics=[])
    assert set(org.simulation.organization.statements) == before
    table.delete()
    assert table.names() == (False, False)


# --- records that are protected, or kept


@pytest.fixture
def protected(org, table):
    table.statement.create()
    for found_cluster in org.simulation.organization.clusters.values():
        found_cluster.protected = True
    return table


@pytest.mark.parametrize("status", ["DELETE_IN_PROGRESS", "UPDATE_COMPLETE_CLEANUP_IN_PROGRESS"])
def test_a_protected_cluster_keeps_the_records_of_its_topics(org, protected, status):
    given = {name: protected.statement.properties[name] for name in ("environment_id", "cluster_id")}
    topic = org.resource("topic", "Own", topic="own", credentials="kafka-key", **given)
    topic.create()
    with pytest.raises(LakeferryError, match="CFL-DELETION-PROTECTED"):
        protected.delete(status)
    with pytest.raises(LakeferryError, match="CFL-DELETION-PROTECTED"):
        topic.delete()
    assert protected.names() == (True, True)
    assert not protected.topics["own"].deleting
    protected.delete("UPDATE_ROLLBACK_IN_PROGRESS")
    topic.delete()
    assert protected.names() == (False, False)
    assert protected.topics["own"].deleting


def test_the_owner_who_protects_a_shared_cluster_does_not_protect_what_others_created_in_it(org, protected):
    given = {name: protected.statement.properties[name] for name in ("environment_id", "cluster_id")}
    topic = org.resource("topic", "Own", topic="own", credentials="kafka-key", shared_cluster="true", **given)
    topic.create()
    topic.delete()
    protected.statement.update(shared_cluster="true")
    protected.delete("DELETE_IN_PROGRESS")
    assert protected.names() == (False, False)
    assert "own" not in protected.topics


def test_a_deployment_that_keeps_its_data_keeps_the_table(org, table):
    table.statement.properties["keep_table"] = "true"
    table.statement.create()
    table.delete()
    assert table.names() == (True, True)
    assert not org.simulation.organization.statements


def test_every_type_says_whose_an_object_is():
    """Those whose objects anybody may have created are the ones that can be adopted, and are all tried
    here.
    """
    adoptable = {
        name for name, kind in RESOURCE_TYPES.items() if "adopt" in attrs.fields_dict(kind.handler.PROPERTIES)
    }
    assert adoptable == {*KINDS, "flink_statement"}
    assert adoptable == {name for name, kind in RESOURCE_TYPES.items() if "`adopt`" in kind.ownership.proof}
    by_comment = {name for name, kind in RESOURCE_TYPES.items() if "comment" in kind.ownership.proof}
    assert by_comment == {name for name in RESOURCE_TYPES if name.startswith("snowflake_")} - {
        "snowflake_grant",
        "snowflake_trust",
    }


def test_an_integration_with_glue_of_somebody_else_is_named_at_once(org):
    given = tableflow(org)
    org.resource("catalog_integration", "Theirs", **given).create()
    (theirs,) = org.simulation.organization.catalog_integrations
    began = org.clock.now
    ours = org.resource("catalog_integration", "It", **given)
    with pytest.raises(Refused, match=f"CFL-FOREIGN-CATALOG.*{theirs}"):
        ours.create()
    assert org.clock.now - began < 60
    ours.physical_id = "what CloudFormation makes up"
    ours.delete()
    assert list(org.simulation.organization.catalog_integrations) == [theirs]
