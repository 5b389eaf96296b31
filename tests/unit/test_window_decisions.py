"""Whether a window is computed at all: what has changed, what fits, and whether its events are complete."""

from __future__ import annotations

from contextlib import suppress
from datetime import timedelta

import attrs
import pytest

from glue_jobs.borders import REMEDY, Border
from glue_jobs.completeness import Verdict
from glue_jobs.delivery.manifest import Accepted
from glue_jobs.errors import BadInput, Blocked, DataProblem, ExportError, StorageProblem
from glue_jobs.pseudonyms import PseudonymKey
from glue_jobs.window import WindowExport
from tests.support import samples
from tests.support.run_kit import (
    DAY,
    NOW,
    THINGS,
    ScriptedCompleteness,
    ScriptedRows,
    Session,
    change_window_rule,
    describe_published,
    new_run,
    pinned_table,
    store_manifest,
    window_of,
)

#: Rows that nobody should compute.
NEVER = ScriptedRows(fails=AssertionError("it is computed"))
COMPUTED = StorageProblem("EXP-AGGREGATE-BUSY", "it is computed")
BORDER = Border("2026-11-08", "window 2026-11-09 is beside 2026-11-08")
NOT_KNOWN = Verdict(False, "It is not known.")


def new_export(bucket, rows=NEVER, known=None, **changes) -> WindowExport:
    return WindowExport(new_run(bucket, rows, known, **changes), window_of())


def hash_inputs(bucket, rows=NEVER, **changes) -> str:
    return new_export(bucket, rows, **changes)._hash_inputs()


def is_computed(bucket, known=None, **changes) -> bool:
    """Return whether an export gets as far as to its rows."""
    rows = ScriptedRows(fails=COMPUTED)
    with suppress(StorageProblem):
        new_export(bucket, rows, known, **changes).export()
    return rows.asked == [DAY]


def test_the_hash_of_the_inputs_changes_with_each_of_them(bucket):
    one = hash_inputs(bucket)
    assert len(one) == 64
    assert hash_inputs(bucket, clock=lambda: NOW + timedelta(minutes=1)) == one
    others = [
        hash_inputs(bucket, ScriptedRows(digested="other files")),
        hash_inputs(bucket, table=attrs.evolve(pinned_table(), uuid="another")),
        hash_inputs(bucket, contract=samples.things(("a", "text"))),
        hash_inputs(bucket, key=PseudonymKey(b"", "version-2")),
        hash_inputs(bucket, key=PseudonymKey(b"", "version-3")),
        WindowExport(new_run(bucket, NEVER), window_of("2026-11-08"))._hash_inputs(),
    ]
    assert len({one, *others}) == 7


def computed(bucket, **changes) -> dict:
    """Return what the last run said about the window if its inputs were the same."""
    known = {"inputs_sha256": hash_inputs(bucket), "run_id": "run-1", "state": "published"}
    return {DAY: known | changes}


def test_a_window_with_the_same_inputs_is_unchanged(bucket):
    made = store_manifest(bucket)
    before = computed(bucket)
    session = Session()
    export = new_export(bucket, computed=before, spark=lambda: session)
    names = ("status", "completeness", "generation", "run_id", "rows", "headline", "files", "checks", "notes")
    assert export.export() == {
        "window": DAY,
        "state": "unchanged",
        "reason": None,
        **{name: made[name] for name in names},
        "inputs_sha256": before[DAY]["inputs_sha256"],
    }
    assert list(export.run.record.phases) == ["look for changes"]
    assert (session.cleared, export.may_be_published) == (0, False)


@pytest.mark.parametrize(
    "before",
    [{"inputs_sha256": "others"}, {"run_id": "run-0"}, None],
    ids=["other inputs", "another run's document", "not computed before"],
)
def test_a_window_is_computed_if_the_last_document_is_not_about_the_visible_file(bucket, before):
    store_manifest(bucket)
    assert is_computed(bucket, computed={} if before is None else computed(bucket, **before))


def test_a_window_is_computed_again_if_a_file_is_gone(bucket):
    file = {"role": "data", "key": bucket.key(f"things/data/{DAY}/run-1/a.csv"), "size": 3}
    store_manifest(bucket, files=[file])
    assert is_computed(bucket, computed=computed(bucket))
    bucket.write(f"things/data/{DAY}/run-1/a.csv", b"abc", "text/csv")
    assert not is_computed(bucket, computed=computed(bucket))


class Aggregates:
    name = "aggregates.things"

    def __init__(self, run_id=None):
        self.run_id = run_id

    def published_runs(self, _labels):
        return {DAY: self.run_id} if self.run_id else {}


def test_a_window_is_computed_again_if_its_rows_are_not_in_the_table_of_aggregates(bucket):
    store_manifest(bucket)
    before = computed(bucket)
    assert not is_computed(bucket, computed=before, aggregates=Aggregates("run-1"))
    assert is_computed(bucket, computed=before, aggregates=Aggregates("run-0"))
    assert is_computed(bucket, computed=before, aggregates=Aggregates())


def test_a_skipped_window_stays_skipped_as_long_as_it_is_marked(bucket):
    before = computed(bucket, state="skipped", status="empty")
    assert is_computed(bucket, computed=before)
    WindowExport(new_run(bucket, NEVER), window_of()).location.mark_skipped("run-1")
    assert new_export(bucket, computed=before).export() == before[DAY]
    assert is_computed(bucket, computed=computed(bucket, status="empty"))


def test_borders_that_do_not_fit_block_a_window_even_if_it_is_up_to_date(bucket):
    store_manifest(bucket)
    before = computed(bucket)
    export = new_export(bucket, computed=before)
    vars(export.run)["borders"] = {DAY: [BORDER, Border("2026-11-10", "it overlaps 2026-11-10")]}
    with pytest.raises(Blocked) as refused:
        export.export()
    assert refused.value.code == "EXP-WINDOW-CHANGED"
    assert refused.value.what == f"{BORDER.what}; it overlaps 2026-11-10"
    assert refused.value.remedy == REMEDY


def test_a_window_whose_borders_are_accepted_is_computed_and_says_so(bucket):
    store_manifest(bucket)
    rows = ScriptedRows(fails=COMPUTED)
    export = new_export(bucket, rows, computed=computed(bucket), accept_window_change=True)
    vars(export.run)["borders"] = {DAY: [BORDER], "2026-11-08": [Border("x", "y")]}
    with pytest.raises(StorageProblem, match="it is computed"):
        export.export()
    before = {"sentences": ["Earlier."], "neighbours": ["2026-11-10"]}
    sentence = "Window 2026-11-09 is beside 2026-11-08. That was accepted."
    accepted = export._find_accepted(describe_published(accepted=before))
    assert accepted == Accepted(("Earlier.", sentence), ("2026-11-10", "2026-11-08"))
    assert export._find_accepted(None) == Accepted((sentence,), ("2026-11-08",))
    assert new_export(bucket)._find_accepted(None) == Accepted()


def test_a_newer_contract_is_not_replaced(bucket):
    store_manifest(bucket, contract=attrs.evolve(THINGS, version=2))
    with pytest.raises(BadInput) as refused:
        new_export(bucket, computed=computed(bucket)).export()
    assert refused.value.code == "EXP-CONTRACT-OLDER"


def test_a_run_without_time_looks_at_nothing(bucket):
    export = new_export(bucket, clock=lambda: NOW + timedelta(hours=1))
    with pytest.raises(ExportError) as stopped:
        export.export()
    assert (stopped.value.code, export.run.record.phases) == ("EXP-TIME-LIMIT", {})


def test_what_dead_runs_left_is_removed_once(bucket):
    left = f"things/data/{DAY}/run-0/a.csv"
    bucket.write(left, b"x", "text/csv")
    bucket.s3.create_multipart_upload(Bucket=bucket.name, Key=bucket.key(f"{left}.gz"))
    store_manifest(bucket)
    export = new_export(bucket, computed=computed(bucket))
    assert export.export()["state"] == "unchanged"
    assert list(bucket.keys("things/data/")) == list(bucket.uploads("things/data/")) == []
    bucket.write(left, b"x", "text/csv")
    assert export.export()["state"] == "unchanged"
    assert list(bucket.keys("things/data/")) == [left]


INCOMPLETE = {"status": "incomplete", "completeness": "It was not known."}


@pytest.mark.parametrize("rule", ["publish", "wait", "fail"])
def test_an_incomplete_window_that_has_not_changed_stays_until_it_is_complete(bucket, rule):
    contract = change_window_rule(on_incomplete_source=rule)
    store_manifest(bucket, contract=contract, **INCOMPLETE)
    before = {"computed": computed(bucket), "contract": contract}
    known = ScriptedCompleteness(NOT_KNOWN)
    document = new_export(bucket, known=known, **before).export()
    assert (document["state"], document["status"], known.asked) == ("unchanged", "incomplete", [DAY])
    assert is_computed(bucket, ScriptedCompleteness(), **before)


def test_an_incomplete_window_waits_fails_or_is_published(bucket):
    known = ScriptedCompleteness(NOT_KNOWN)
    waiting = {"window": DAY, "state": "incomplete", "reason": "It is not known."}
    assert (
        new_export(bucket, known=known, contract=change_window_rule(on_incomplete_source="wait")).export()
        == waiting
    )
    with pytest.raises(DataProblem) as failed:
        new_export(bucket, known=known, contract=change_window_rule(on_incomplete_source="fail")).export()
    assert failed.value.code == "EXP-SOURCE-INCOMPLETE"
    assert failed.value.what == f"window {DAY}: It is not known."
    assert is_computed(bucket, known, contract=change_window_rule(on_incomplete_source="publish"))


def judged(bucket, current=None, known=None, **changes) -> Verdict:
    return new_export(bucket, known=known or ScriptedCompleteness(), **changes)._judge_completeness(current)


def test_what_was_known_when_a_window_was_published_is_still_known(bucket):
    doubtful = ScriptedCompleteness(NOT_KNOWN)
    assert judged(bucket, describe_published(), doubtful) == Verdict(True, "It was known.")
    assert doubtful.asked == []
    assert judged(bucket, describe_published(**INCOMPLETE), doubtful) == NOT_KNOWN
    assert judged(bucket, None, doubtful) == NOT_KNOWN


def test_a_new_table_has_all_events_only_if_that_is_proved_or_stated(bucket):
    late = ScriptedCompleteness(missing="The table begins too late.")
    waiting = change_window_rule(on_incomplete_source="wait")
    with pytest.raises(DataProblem) as failed:
        judged(bucket, None, late, contract=waiting)
    assert failed.value.code == "EXP-TABLE-REPLACED"
    assert failed.value.what == f"window {DAY}: The table begins too late."
    shown = judged(bucket, None, late, contract=change_window_rule(on_incomplete_source="publish"))
    assert shown == Verdict(False, "The table begins too late.")
    known = Verdict(True, "It is known.")
    assert judged(bucket, None, attrs.evolve(late, stated=True), contract=waiting) == known
    assert judged(bucket, None, attrs.evolve(late, verdict=NOT_KNOWN), contract=waiting) == NOT_KNOWN
    assert judged(bucket, None, ScriptedCompleteness(), contract=waiting) == known


def test_the_phases_of_a_window_are_told_in_their_order(bucket):
    told = []
    rows = ScriptedRows(fails=COMPUTED)
    export = new_export(bucket, rows, on_phase=lambda window, phase: told.append((window, phase)))
    with pytest.raises(StorageProblem):
        export.export()
    assert told == [(DAY, "look for changes"), (DAY, "look at partitions"), (DAY, "compute")]


def earlier(bucket, **changes) -> list[str]:
    found = new_export(bucket, **changes)._read_earlier_manifests()
    return [manifest["window"]["label"] for manifest in found]


COMPARED = """
[[check]]
id = "usual"
severity = "warn"
message = "M."
compare = "rows"
at_most_percent = 50
with_windows = 2
"""


def test_the_latest_published_windows_before_a_window_are_those_to_compare_with(bucket):
    assert earlier(bucket) == []
    for label in ("2026-11-02", "2026-11-05", "2026-11-07", DAY, "2026-11-10"):
        store_manifest(bucket, label)
    monthly = attrs.evolve(THINGS, window=attrs.evolve(THINGS.window, every="month"))
    store_manifest(bucket, "2026-11", contract=monthly)
    assert earlier(bucket) == ["2026-11-07"]
    compared = samples.things(("a", "text"), more=COMPARED)
    assert earlier(bucket, contract=compared) == ["2026-11-07", "2026-11-05"]


def test_a_window_that_this_run_published_is_compared_with(bucket):
    export = new_export(bucket)
    export.run.record.windows += [
        {"window": "2026-11-08", "state": "published"},
        {"window": "2026-11-07", "state": "unchanged"},
    ]
    assert export._read_earlier_manifests() == []
    store_manifest(bucket, "2026-11-07")
    assert export._read_earlier_manifests() == []
    store_manifest(bucket, "2026-11-08")
    assert [manifest["window"]["label"] for manifest in export._read_earlier_manifests()] == ["2026-11-08"]
