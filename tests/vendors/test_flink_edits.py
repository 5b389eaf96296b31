"""An edited Flink statement goes on where it stopped: whatever fails, its table has each record once.

The lifecycle and the simulator are the real ones; the simulator's queries copy records.
"""

from __future__ import annotations

import itertools
from collections import Counter

import attrs
import pytest

from lambdas.shared.errors import LakeferryError, Refused
from tests.support.confluent_environment import Organization
from tests.support.confluent_lives import EDITED_STATEMENT, IN_PLACE, LIVES, STATEMENT, edit
from tests.support.copying_engine import CopyingEngine
from tests.support.matrix import FAULTS, KILLS, OWN
from tests.support.wire import Killed

UPDATING = "UPDATE_IN_PROGRESS"
ROLLING_BACK = "UPDATE_ROLLBACK_IN_PROGRESS"
EDIT = edit(EDITED_STATEMENT)
#: Flink refuses it, because the table's column isn't in it.
BAD = {**edit("CREATE TABLE `totals` AS SELECT `nothing` AS `id` FROM `orders`"), "columns": ["id"]}


@attrs.define
class Flow:
    """A statement, the topic that it reads, and the table that it fills."""

    org: Organization
    statement: object
    made: Counter = attrs.Factory(Counter)
    numbers: object = attrs.Factory(lambda: itertools.count(1))

    @property
    def simulated(self):
        return self.org.simulation.organization

    @property
    def topics(self):
        (cluster,) = self.simulated.clusters.values()
        return cluster.topics

    def produce(self, count=2):
        for _ in range(count):
            value = str(next(self.numbers)).encode()
            self.topics["orders"].append(int(self.simulated.clock.now() * 1000), None, value)
            self.made[value] += 1
        self.org.clock.sleep(60)
        self.simulated.clock.run_due()

    def settle(self):
        self.org.settle()
        self.simulated.clock.run_due()

    def written(self):
        return Counter(message.value for message in self.topics["totals"].messages)

    def texts(self):
        """Return the texts of the statements that run."""
        return [each.sql for each in self.simulated.statements.values() if each.phase == "RUNNING"]

    def find(self, text):
        (found,) = [each for each in self.simulated.statements.values() if each.sql == text]
        return found

    def update(self, status=UPDATING, every=5, **properties):
        """Update as CloudFormation does. Lambda invokes a function that was killed again."""
        one = self.statement
        old = one.properties
        one.properties = {**old, **properties}
        self.org.invocations.stacks.status = status
        event = one.event("Update", old)
        for _ in range(9):
            try:
                return one.run(event, every=every)
            except Killed:
                self.org.wire.killed_at = 0, ""
                self.org.invocations.documents.dead = None
                self.org.clock.sleep(60)
        raise AssertionError("killed too often")

    def roll_back(self, to, every=5):
        """Return to the properties `to`, which CloudFormation had before the update that failed."""
        self.update(ROLLING_BACK, every, **to)

    def check(self, text):
        """Check that only `text` runs, and that its table has each record once."""
        self.produce()
        assert self.texts() == [text]
        assert self.written() == self.made


class Beginning:
    """What a statement needs, made once; `begin` returns to it."""

    def __init__(self):
        self.org = Organization(engine=CopyingEngine())
        self.given = LIVES["flink_statement"].properties(self.org)
        self.frozen = self.org.freeze()

    def begin(self, **given):
        """Return a flow whose statement runs."""
        self.org.thaw(self.frozen)
        flow = Flow(self.org, self.org.resource("flink_statement", "It", **{**self.given, **given}))
        self.org.invocations.stacks.status = "CREATE_IN_PROGRESS"
        flow.produce()
        flow.statement.create()
        flow.check(STATEMENT)
        return flow


@pytest.fixture(scope="module")
def beginning():
    made = Beginning()
    yield made
    made.org.close()


@pytest.fixture
def flow(beginning):
    made = beginning.begin(tableflow_topics=["totals"])
    yield made
    assert not made.org.leaks()


def properties_of(flow):
    return {name: flow.statement.properties[name] for name in EDIT}


def test_an_edit_keeps_the_table_and_reads_each_record_once(flow):
    table = flow.topics["totals"]
    first = flow.find(STATEMENT)
    flow.update(**EDIT)
    flow.check(EDIT["insert_sql"])
    second = flow.find(EDIT["insert_sql"])
    assert second.properties["sql.tables.initial-offset-from"] == first.name
    flow.update(**IN_PLACE, sql=STATEMENT)
    flow.check(IN_PLACE["insert_sql"])
    flow.update(**EDIT)
    flow.check(EDIT["insert_sql"])
    flow.update(compute_pool_id=flow.statement.properties["compute_pool_id"], keep_table="false")
    flow.check(EDIT["insert_sql"])
    assert flow.topics["totals"] is table
    flow.settle()
    assert len(flow.simulated.statements) == 1


def test_a_deleted_statement_drops_the_table_that_its_first_version_created(flow):
    flow.update(**EDIT)
    flow.org.invocations.stacks.status = "DELETE_IN_PROGRESS"
    flow.statement.delete()
    flow.settle()
    assert "totals" not in flow.topics
    assert not flow.simulated.statements


def test_a_table_that_is_kept_stays_when_an_edited_statement_is_deleted(flow):
    flow.update(keep_table="true")
    flow.update(**EDIT)
    flow.org.invocations.stacks.status = "DELETE_IN_PROGRESS"
    flow.statement.delete()
    flow.settle()
    assert flow.written() == flow.made
    assert not flow.simulated.statements


def test_an_edit_that_flink_refuses_changes_nothing(flow):
    before = properties_of(flow)
    first = flow.find(STATEMENT)
    with pytest.raises(LakeferryError, match=r"CFL-FLINK-FAILED.*nothing.*goes on"):
        flow.update(**BAD)
    flow.check(STATEMENT)
    flow.roll_back(before)
    flow.check(STATEMENT)
    assert flow.find(STATEMENT) is first
    flow.update(**EDIT)
    flow.check(EDIT["insert_sql"])


def test_a_rollback_after_the_edit_ran_reads_no_record_again(flow):
    before = properties_of(flow)
    flow.update(**EDIT)
    flow.produce()
    flow.roll_back(before)
    flow.check(IN_PLACE["insert_sql"])


@pytest.mark.parametrize("is_running", [True, False])
def test_a_rollback_of_an_edit_that_did_not_end_goes_on_from_whichever_read(flow, is_running):
    """CloudFormation stops to wait while the new statement still starts, or just runs."""
    before = properties_of(flow)
    one = flow.statement
    one.properties = {**one.properties, **EDIT}
    event = one.event("Update", {**one.properties, **before})
    known = {**event, **flow.org.invocations.on_event(event)}
    while "next" not in str(flow.org.invocations.documents.rows) or not _successor(flow):
        flow.org.invocations.is_complete(known)
        flow.org.clock.sleep(5)
    if is_running:
        flow.produce()
        assert flow.texts() == [EDIT["insert_sql"]]
    flow.roll_back(before)
    flow.check(IN_PLACE["insert_sql"] if is_running else STATEMENT)


def _successor(flow):
    return [each for each in flow.simulated.statements.values() if each.sql == EDIT["insert_sql"]]


def test_a_request_that_arrives_after_the_rollback_began_starts_nothing(flow):
    """The answer to the request was lost, and so was its effect for the time being."""
    before = properties_of(flow)
    flow.org.disturb(fault="reset", method="POST", path="/statements", times=1)
    one = flow.statement
    one.properties = {**one.properties, **EDIT}
    event = one.event("Update", {**one.properties, **before})
    known = {**event, **flow.org.invocations.on_event(event)}
    while '\\"next\\"' not in str(flow.org.invocations.documents.rows).replace('"next"', '\\"next\\"'):
        flow.org.invocations.is_complete(known)
        flow.org.clock.sleep(5)
    flow.org.disturb()
    flow.roll_back(before)
    flow.check(STATEMENT)
    flow.update(**EDIT)
    flow.check(EDIT["insert_sql"])


def test_another_statement_that_waits_for_the_same_offsets_is_removed_before_the_statement_stops(flow):
    first = flow.find(STATEMENT)
    stray = attrs.evolve(
        first,
        name=first.name[:-8] + "0a0b0c0d",
        sql="INSERT INTO `totals` (`id`) SELECT `id` FROM `orders`",
        properties={**first.properties, "sql.tables.initial-offset-from": first.name},
        phase="PENDING",
        run=None,
        created=flow.simulated.clock.now(),
    )
    flow.simulated.statements[first.environment, stray.name] = stray
    flow.update(**EDIT)
    flow.check(EDIT["insert_sql"])
    flow.settle()
    assert len(flow.simulated.statements) == 1


@pytest.mark.parametrize("moved", [True, False])
def test_a_new_statement_that_fails_while_it_runs(flow, moved):
    """Its offsets are not known to be final if it has read records: then nothing is read again, and nothing
    goes on.
    """
    before = properties_of(flow)
    flow.update(**EDIT)
    if moved:
        flow.produce()
    new = flow.find(EDIT["insert_sql"])
    new.phase, new.detail = "FAILED", "a record can't be read"
    flow.roll_back(before)
    flow.produce()
    assert flow.texts() == []
    assert not flow.written() - flow.made
    assert max(flow.written().values()) == 1
    with pytest.raises(Refused, match="CFL-FLINK-NO-OFFSETS"):
        flow.update(**edit(EDITED_STATEMENT.replace("UPPER", "LOWER")))


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        ({"insert_sql": ""}, "not proved to be stateless"),
        ({"columns": ["id", "more"]}, r"its columns change \(more\)"),
        ({"reads": ["orders", "returns"]}, r"reads other tables \(returns\)"),
        ({"head": "CREATE TABLE `totals` DISTRIBUTED INTO 9 BUCKETS"}, "the text before its query changes"),
    ],
)
def test_what_cant_be_edited_in_place_is_refused_before_anything_happens(flow, changed, reason):
    before = properties_of(flow)
    flow.org.wire.calls.clear()
    with pytest.raises(Refused, match=f"CFL-FLINK-NOT-IN-PLACE.*{reason}"):
        flow.update(**{**EDIT, **changed})
    assert not [call for call in flow.org.wire.calls if not call.reads]
    flow.roll_back(before)
    flow.check(STATEMENT)


def test_a_statement_that_an_earlier_release_deployed_is_deployed_once_before_it_is_edited(beginning):
    flow = beginning.begin(insert_sql="", head="", columns=[], reads=[])
    old = flow.statement.properties
    with pytest.raises(Refused, match="deployed by an earlier release"):
        flow.update(**EDIT)
    flow.statement.properties = old
    flow.update(**IN_PLACE)
    flow.update(**EDIT)
    flow.check(EDIT["insert_sql"])


@pytest.mark.parametrize("phase", ["FAILED", "COMPLETED", "gone"])
def test_nothing_goes_on_from_a_statement_whose_offsets_are_not_known(flow, phase):
    first = flow.find(STATEMENT)
    first.phase = phase
    if phase == "gone":
        flow.simulated.statements.clear()
    with pytest.raises(LakeferryError, match=f"CFL-FLINK-NO-OFFSETS.* is {phase}"):
        flow.update(**EDIT)
    assert flow.texts() == []
    assert flow.written() == flow.made


def test_the_word_in_the_file_drops_the_table_and_reads_again(flow):
    flow.update(tableflow_topics=[])
    flow.update(drop_on_edit="true", **EDIT)
    flow.check(EDITED_STATEMENT)
    flow.update(drop_on_edit="false")
    before = {**properties_of(flow), "drop_on_edit": "false"}
    flow.update(drop_on_edit="true", **IN_PLACE, sql=STATEMENT)
    flow.roll_back(before)
    flow.check(EDITED_STATEMENT)


def test_a_rollback_of_an_edit_in_place_drops_nothing_though_the_file_before_had_the_word(flow):
    flow.update(tableflow_topics=[], drop_on_edit="true")
    before = {**properties_of(flow), "drop_on_edit": "true"}
    table = flow.topics["totals"]
    flow.update(drop_on_edit="false", **EDIT)
    flow.roll_back(before)
    flow.check(IN_PLACE["insert_sql"])
    assert flow.topics["totals"] is table


def test_a_topic_with_tableflow_is_not_dropped_even_with_the_word(flow):
    with pytest.raises(Refused, match="CFL-FLINK-TABLEFLOW"):
        flow.update(drop_on_edit="true", **EDIT)
    flow.check(STATEMENT)


ALL_FAULTS = {**FAULTS, **OWN["confluent"]}


def story(flow, fault="", call=0):
    """Edit, roll back, edit to something that Flink refuses, roll back, and edit again, with one fault."""
    flow.org.wire.calls.clear()
    if fault in KILLS:
        flow.org.wire.killed_at = call, KILLS[fault]
    elif fault:
        flow.org.disturb(**ALL_FAULTS[fault], nth=call)
    before = properties_of(flow)
    flow.update(every=60, **EDIT)
    flow.produce()
    flow.roll_back(before, every=60)
    flow.produce()
    with pytest.raises(LakeferryError, match="goes on"):
        flow.update(every=60, **BAD)
    flow.roll_back(before, every=60)
    flow.produce()
    flow.update(every=60, **EDIT)
    flow.org.disturb()
    flow.check(EDIT["insert_sql"])
    flow.settle()
    assert len(flow.simulated.statements) == 1
    return list(flow.org.wire.calls)


@pytest.mark.sampled(1)
@pytest.mark.parametrize("fault", [*ALL_FAULTS, *KILLS])
def test_each_record_is_in_the_table_once_whichever_call_fails(beginning, fault):
    """Of calls that are alike, the first and the last fail."""
    alike = {}
    for number, call in enumerate(story(beginning.begin()), start=1):
        if fault != "stale read" or call.reads:
            alike.setdefault(call.sort, []).append(number)
    numbers = sorted({number for those in alike.values() for number in (those[0], those[-1])})
    wrong = {}
    for number in numbers:
        try:
            story(beginning.begin(), fault, number)
        except Exception as error:
            wrong[number] = f"{type(error).__name__}: {error}"[:300]
    assert not wrong, f"{len(wrong)} of {len(numbers)}: {list(wrong.items())[:5]}"
