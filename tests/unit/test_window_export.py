"""What an export of a window writes, publishes, counts and removes. Its rows are scripted."""

from __future__ import annotations

import hashlib
from datetime import timedelta

import attrs
import pytest

from glue_jobs.borders import Border
from glue_jobs.completeness import Verdict
from glue_jobs.delivery.manifest import Fence
from glue_jobs.errors import Blocked, DataProblem, Inconsistent, StorageProblem
from glue_jobs.pseudonyms import PseudonymKey
from glue_jobs.window import WindowExport
from tests.support.run_kit import (
    DAY,
    NOW,
    THINGS,
    ScriptedCompleteness,
    ScriptedRows,
    Session,
    change_window_rule,
    leave_file_of_dead_run,
    new_record,
    new_run,
    pinned_table,
    window_of,
)

pytestmark = pytest.mark.slow
FOLDER = f"things/data/{DAY}/run-2/"
NOT_KNOWN = ScriptedCompleteness(Verdict(False, "It is not known."))


def new_export(bucket, *texts: bytes, rows=None, known=None, **changes) -> WindowExport:
    scripted = rows or ScriptedRows(list(texts))
    return WindowExport(new_run(bucket, scripted, known, **changes), window_of())


def keys(bucket) -> list[str]:
    return [key.removeprefix("things/") for key in bucket.keys("things/")]


def manifest(export) -> dict:
    return export.location.current()[0]


def test_a_published_window_has_its_file_its_descriptions_and_its_manifest(bucket):
    session = Session()
    export = new_export(bucket, b"x", b"yy", spark=lambda: session)
    inputs = export._hash_inputs()
    document = export.export()
    names = [f"{FOLDER}things_{DAY}.csv", f"{FOLDER}datapackage.json", f"{FOLDER}report.html"]
    assert sorted(keys(bucket)) == sorted(
        [f"manifests/{DAY}.json", *[name.removeprefix("things/") for name in names]]
    )
    content = b"\xef\xbb\xbfa,n\r\nx,1\r\nyy,2\r\n"
    assert bucket.read(names[0])[0] == content
    published = manifest(export)
    assert [file["key"] for file in published["files"]] == [bucket.key(name) for name in names]
    assert published["files"][0] == {
        "role": "data",
        "key": bucket.key(names[0]),
        "size": len(content),
        "sha256": hashlib.sha256(content).hexdigest(),
        "rows": 2,
    }
    assert (document["state"], document["inputs_sha256"]) == ("published", inputs)
    assert {
        name: document[name] for name in ("window", "status", "completeness", "generation", "run_id")
    } == {
        "window": DAY,
        "status": "complete",
        "completeness": "It is known.",
        "generation": 1,
        "run_id": "run-2",
    }
    assert published["source"]["offsets"] == {"0": {"min": 0, "max": 1}}
    assert published["rows"]["events"] == {
        "in_table": 100,
        "duplicates": 0,
        "outside_window": 98,
        "filtered": 0,
        "kept": 2,
        "invalid_event_time": 0,
        "null_key": 0,
    }
    run = export.run
    assert published["fence"] == Fence(run.table.current_since, NOW, "run-2").document()
    assert published["published_at"] == NOW.isoformat()
    assert (published["pseudonyms"], published["previous_window"], published["aggregate_table"]) == (
        None,
    ) * 3
    assert list(run.record.phases) == [
        "look for changes",
        "look at partitions",
        "compute",
        "verify",
        "publish",
    ]
    assert (session.cleared, export.may_be_published) == (1, True)


def test_the_same_file_again_is_unchanged_and_what_it_wrote_is_removed(bucket):
    first = new_export(bucket, b"x")
    first.export()
    before = keys(bucket)
    record = attrs.evolve(new_record(), id="run-3")
    again = new_export(bucket, b"x", record=record, table=attrs.evolve(pinned_table(), snapshot_id=7))
    document = again.export()
    assert (document["state"], document["run_id"], document["generation"]) == ("unchanged", "run-2", 1)
    assert document["inputs_sha256"] == again._hash_inputs()
    assert (keys(bucket), again.may_be_published) == (before, False)


def test_an_older_run_publishes_nothing_over_a_newer_one(bucket):
    new_export(bucket, b"x").export()
    before = keys(bucket)
    older = attrs.evolve(pinned_table(), current_since=pinned_table().current_since - timedelta(hours=1))
    record = attrs.evolve(new_record(), id="run-1")
    document = new_export(bucket, b"y", b"z", record=record, table=older).export()
    assert (document["state"], document["run_id"], "inputs_sha256" in document) == (
        "superseded",
        "run-2",
        False,
    )
    assert keys(bucket) == before


def test_a_published_file_is_compared_with_the_window_before(bucket):
    """It names it, and what was hashed with which key."""
    earlier = WindowExport(new_run(bucket, ScriptedRows([b"w"])), window_of("2026-11-08"))
    earlier.export()
    export = new_export(bucket, b"x", key=PseudonymKey(b"", "version-3"))
    export.export()
    assert manifest(export)["previous_window"]["window"] == "2026-11-08"
    assert manifest(export)["pseudonyms"] == {"key_version": "version-3"}


def test_a_compressed_file_has_the_ending_of_one(bucket):
    packed = attrs.evolve(THINGS, delivery=attrs.evolve(THINGS.delivery, gzip=True))
    export = new_export(bucket, b"x", contract=packed)
    export.export()
    assert manifest(export)["files"][0]["key"] == bucket.key(f"{FOLDER}things_{DAY}.csv.gz")


def test_other_formats_are_written_in_a_phase_of_their_own(bucket):
    both = attrs.evolve(THINGS, delivery=attrs.evolve(THINGS.delivery, also=["jsonl"]))
    export = new_export(bucket, b"x", contract=both)
    export.export()
    assert [file["role"] for file in manifest(export)["files"]] == ["data", "jsonl", "datapackage", "report"]
    assert "write other formats" in export.run.record.phases


def test_uploads_that_s3_began_twice_are_aborted_in_the_runs_folder_only(bucket):
    begun = [
        f"{FOLDER}things_{DAY}.csv",
        f"things/data/{DAY}/run-20/a.csv",
        "things/data/2026-11-08/run-2/a.csv",
    ]
    export = new_export(bucket, b"x")
    for key in begun:
        bucket.s3.create_multipart_upload(Bucket=bucket.name, Key=bucket.key(key))
    export.export()
    assert sorted(key for key, _ in bucket.uploads("things/")) == sorted(begun[1:])


def test_an_empty_window_is_published_fails_or_is_skipped(bucket):
    failing = new_export(bucket, contract=change_window_rule(on_empty="fail"))
    with pytest.raises(DataProblem) as failed:
        failing.export()
    assert failed.value.code == "EXP-EMPTY"
    assert failed.value.what == f'window {DAY} has no rows, and on_empty is "fail"'
    assert keys(bucket) == []
    skipping = new_export(bucket, contract=change_window_rule(on_empty="skip"))
    document = skipping.export()
    assert (document["state"], document["status"], document["rows"]["rows"]) == ("skipped", "empty", 0)
    assert document["inputs_sha256"] == skipping._hash_inputs()
    assert keys(bucket) == [f"skipped/{DAY}.json"]
    shown = new_export(bucket, contract=change_window_rule(on_empty="publish"))
    assert (shown.export()["state"], manifest(shown)["status"]) == ("published", "empty")
    assert f"skipped/{DAY}.json" not in keys(bucket)


def test_a_published_window_that_becomes_empty_is_not_skipped(bucket):
    new_export(bucket, b"x").export()
    table = attrs.evolve(pinned_table(), current_since=pinned_table().current_since + timedelta(hours=1))
    record = attrs.evolve(new_record(), id="run-3")
    changes = {"table": table, "record": record, "accept_fewer_events": True}
    export = new_export(bucket, contract=change_window_rule(on_empty="skip"), **changes)
    document = export.export()
    assert (document["state"], document["status"], document["generation"]) == ("published", "empty", 2)
    lost = "1 event of generation 1 is no longer in the table. That was accepted."
    assert manifest(export)["accepted"]["sentences"] == [lost]
    assert manifest(export)["notes"][-1] == lost


def test_a_window_that_lost_events_is_blocked_and_its_file_is_removed(bucket):
    new_export(bucket, b"x", b"y").export()
    before = keys(bucket)
    record = attrs.evolve(new_record(), id="run-3")
    export = new_export(bucket, b"x", record=record)
    with pytest.raises(Blocked) as refused:
        export.export()
    assert (refused.value.code, keys(bucket)) == ("EXP-EVENTS-LOST", before)


def test_an_empty_window_that_is_incomplete_is_not_skipped_for_good(bucket):
    rule = change_window_rule(on_empty="skip", on_incomplete_source="publish")
    document = new_export(bucket, known=NOT_KNOWN, contract=rule).export()
    assert document == {"window": DAY, "state": "incomplete", "reason": "It is not known."}
    assert keys(bucket) == []


def test_an_incomplete_window_is_published_as_incomplete(bucket):
    rule = change_window_rule(on_incomplete_source="publish")
    export = new_export(bucket, b"x", known=NOT_KNOWN, contract=rule)
    assert export.export()["status"] == "incomplete"
    assert (manifest(export)["status"], manifest(export)["completeness"]) == (
        "incomplete",
        "It is not known.",
    )


def test_a_trial_says_what_would_be_published_and_leaves_nothing(bucket):
    export = new_export(bucket, b"x", b"y", dry_run=True)
    document = export.export()
    assert (document["state"], document["status"], document["rows"]["rows"]) == ("dry_run", "complete", 2)
    assert ("inputs_sha256" in document, keys(bucket), export.may_be_published) == (False, [], False)
    empty = new_export(bucket, contract=change_window_rule(on_empty="skip"), dry_run=True).export()
    assert (empty["state"], keys(bucket)) == ("dry_run", [])


def test_counts_that_differ_publish_nothing(bucket):
    rows = ScriptedRows([b"x"], counts={"inside": 2})
    with pytest.raises(Inconsistent, match="events read and events with an outcome differ: 2 and 1"):
        new_export(bucket, rows=rows).export()
    assert keys(bucket) == []


def test_events_of_the_whole_table_are_counted_once(bucket):
    """With a window that is applied after deduplication, all of the table's events are read."""
    rows = ScriptedRows([b"x"], event_count=1, counts={"in_window": 1, "null_key_in_window": 0})
    export = new_export(bucket, rows=rows, contract=change_window_rule(filter_stage="after_deduplication"))
    assert export.export()["rows"]["events"]["outside_window"] == 0


def test_too_many_invalid_events_block_a_window(bucket):
    rows = ScriptedRows([b"x"], counts={"invalid_time": 1, "invalid_time_received": 1})
    with pytest.raises(Blocked) as refused:
        new_export(bucket, rows=rows).export()
    assert (refused.value.code, keys(bucket)) == ("EXP-INVALID-EVENTS", [])


def test_personal_data_blocks_a_window(bucket):
    with pytest.raises(Blocked) as refused:
        new_export(bucket, b"ada@example.org").export()
    assert (refused.value.code, keys(bucket)) == ("EXP-PERSONAL-DATA", [])


def test_a_file_that_excel_cannot_show_blocks_nothing_else(bucket):
    export = new_export(bucket, b"x" * 40_000)
    export.export()
    assert "1 text was longer than an Excel cell" in " ".join(manifest(export)["notes"])


@pytest.mark.parametrize(
    "texts",
    [(b"x" * 33_000, b"y", b"x" * 34_000), (b"\xff", b"y", b"\xfe")],
    ids=["cut", "not UTF-8"],
)
def test_texts_that_become_equal_are_found_wherever_they_are(bucket, texts):
    with pytest.raises(Blocked) as refused:
        new_export(bucket, *texts, contract=attrs.evolve(THINGS, unique=["a"])).export()
    assert refused.value.code == "EXP-CHECK-BLOCKED"


def test_what_an_error_left_is_removed_and_the_first_error_is_told(bucket):
    stopped = StorageProblem("EXP-AGGREGATE-BUSY", "the first error")
    session = Session()
    export = new_export(bucket, rows=ScriptedRows(fails=stopped), spark=lambda: session)
    bucket.write(f"{FOLDER}a.csv", b"x", "text/csv")
    with pytest.raises(StorageProblem, match="the first error"):
        export.export()
    assert (keys(bucket), session.cleared) == ([], 1)


def test_an_interrupt_removes_the_files_too(bucket):
    export = new_export(bucket, rows=ScriptedRows(fails=KeyboardInterrupt()))
    bucket.write(f"{FOLDER}a.csv", b"x", "text/csv")
    with pytest.raises(KeyboardInterrupt):
        export.export()
    assert keys(bucket) == []


def test_a_run_whose_time_is_over_as_it_publishes_publishes_nothing(bucket):
    times = iter([NOW, NOW])
    export = new_export(bucket, b"x", clock=lambda: next(times, NOW + timedelta(hours=1)))
    with pytest.raises(Exception, match="EXP-TIME-LIMIT"):
        export.export()
    assert keys(bucket) == []


class Aggregates:
    """A table of aggregates that notes what is written, and may fail."""

    name = "aggregates.things"

    def __init__(self, fails=None):
        self.fails = fails
        self.written = []

    def published_runs(self, _labels):
        return {}

    def write(self, location, window, visible, groups):
        self.written.append((location.window, window.label, visible["run_id"], groups))
        if self.fails:
            raise self.fails


def aggregated(bucket, aggregates, *texts, groups="groups", run="run-2", **changes):
    rows = ScriptedRows(list(texts), groups=groups)
    record = attrs.evolve(new_record(), id=run)
    return new_export(bucket, rows=rows, aggregates=aggregates, record=record, **changes)


def test_groups_are_kept_after_the_window_is_published_and_when_it_is_unchanged(bucket):
    aggregates = Aggregates()
    export = aggregated(bucket, aggregates, b"x")
    assert export.export()["state"] == "published"
    assert manifest(export)["aggregate_table"] == "aggregates.things"
    assert list(export.run.record.phases)[-1] == "keep aggregate"
    again = aggregated(bucket, aggregates, b"x", run="run-3")
    assert (again.export()["state"], again.may_be_published) == ("unchanged", False)
    assert aggregates.written == [(DAY, DAY, "run-2", "groups")] * 2


def test_lines_and_superseded_groups_are_not_kept(bucket):
    aggregates = Aggregates()
    aggregated(bucket, aggregates, b"x", groups=None).export()
    older = attrs.evolve(pinned_table(), current_since=pinned_table().current_since - timedelta(hours=1))
    late = aggregated(bucket, aggregates, b"y", b"z", run="run-1", table=older)
    assert late.export()["state"] == "superseded"
    assert aggregates.written == []


def test_a_window_whose_groups_could_not_be_kept_must_be_looked_at_again(bucket):
    busy = Aggregates(StorageProblem("EXP-AGGREGATE-BUSY", "the table is busy"))
    aggregated(bucket, Aggregates(), b"x").export()
    before = keys(bucket)
    export = aggregated(bucket, busy, b"x", run="run-3")
    assert not export.may_be_published
    with pytest.raises(StorageProblem, match="the table is busy"):
        export.export()
    assert (export.may_be_published, keys(bucket)) == (True, before)


def test_what_the_published_run_replaces_is_cleaned_up(bucket):
    """A file of a dead run stays until a manifest shows that its run can't publish it any more."""
    left = leave_file_of_dead_run(bucket)
    export = new_export(bucket, b"x")
    assert export.export()["state"] == "published"
    assert left not in list(bucket.keys("things/data/"))


def test_an_accepted_border_is_in_the_manifest_and_in_the_notes(bucket):
    export = new_export(bucket, b"x", accept_window_change=True)
    vars(export.run)["borders"] = {DAY: [Border("2026-11-08", "window 2026-11-09 overlaps 2026-11-08")]}
    export.export()
    sentence = "Window 2026-11-09 overlaps 2026-11-08. That was accepted."
    assert manifest(export)["accepted"] == {"sentences": [sentence], "neighbours": ["2026-11-08"]}
    assert manifest(export)["notes"][-1] == sentence
