"""What a run sees in the bucket when it begins, where a window's documents are, and what is removed."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta

import attrs
import pytest

from glue_jobs import runs
from glue_jobs.delivery import cleanup
from glue_jobs.delivery.publish import (
    PUBLISHED,
    SKIPPED,
    SUPERSEDED,
    UNCHANGED,
    Leftovers,
    Listing,
    Publication,
    WindowLocation,
    require_no_newer_contract,
)
from glue_jobs.errors import BadInput
from glue_jobs.store import Bucket

T0 = datetime(2026, 11, 16, 6, tzinfo=UTC)
HOUR = timedelta(hours=1)
KEYS = {
    "things/manifests/2026-W45.json": 10,
    "things/manifests/2026-W46.json": 11,
    "things/runs/run-1.json": 12,
    "things/skipped/2026-W44.json": 13,
    "things/data/2026-W45/run-1/a.csv": 1,
    "things/data/2026-W45/run-1/b/c.csv": 2,
    "things/data/2026-W46/run-1/a.csv": 3,
    "things/data/2026-W46/run-10/a.csv": 4,
    "things/data/2026-W46x/run-1/a.csv": 5,
    "things_of_others/data/2026-W46/run-1/a.csv": 6,
}
UPLOADS = ["things/data/2026-W46/run-1/b.csv", "things/data/2026-W47/run-2/a.csv"]


def listing(bucket: Bucket) -> Listing:
    """Return the listing of a bucket with these objects and uploads."""
    for key, size in KEYS.items():
        bucket.write(key, b"x" * size, "text/plain")
    for key in UPLOADS:
        bucket.s3.create_multipart_upload(Bucket=bucket.name, Key=bucket.key(key))
    return Listing.read(bucket, "things")


def test_a_listing_has_the_objects_and_uploads_of_its_export(bucket):
    found = listing(bucket)
    assert found.sizes == {key: size for key, size in KEYS.items() if not key.startswith("things_of")}
    assert [key for key, _ in found.uploads] == UPLOADS
    assert {folder: found.labels(folder) for folder in ("manifests", "skipped", "runs", "none")} == {
        "manifests": ["2026-W45", "2026-W46"],
        "skipped": ["2026-W44"],
        "runs": ["run-1"],
        "none": [],
    }


def test_leftovers_are_those_of_each_run_in_one_window(bucket):
    found = listing(bucket)
    ids = dict(found.uploads)
    assert found.leftovers("2026-W46") == {
        "run-1": Leftovers(["things/data/2026-W46/run-1/a.csv"], [(UPLOADS[0], ids[UPLOADS[0]])]),
        "run-10": Leftovers(["things/data/2026-W46/run-10/a.csv"], []),
    }
    assert found.leftovers("2026-W45") == {
        "run-1": Leftovers(["things/data/2026-W45/run-1/a.csv", "things/data/2026-W45/run-1/b/c.csv"], [])
    }
    assert found.leftovers("2026-W47") == {"run-2": Leftovers([], [(UPLOADS[1], ids[UPLOADS[1]])])}
    assert found.leftovers("2026-W48") == {}


def test_a_run_left_something_where_it_has_objects_or_uploads(bucket):
    found = listing(bucket)
    assert found.windows_of("run-1") == ["2026-W45", "2026-W46", "2026-W46x"]
    assert found.windows_of("run-2") == ["2026-W47"]
    assert found.windows_of("run-10") == ["2026-W46"]
    assert found.windows_of("run") == []


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ({}, True),
        ({"things/data/2026-W46/run-1/a.csv": 3, "things/data/2026-W46/run-10/a.csv": 4}, True),
        ({"things/data/2026-W46/run-1/a.csv": 4}, False),
        ({"things/data/2026-W46/run-1/a.csv": 3, "things/data/2026-W46/run-1/gone.csv": 4}, False),
    ],
)
def test_files_of_a_manifest_are_there_with_their_sizes(bucket, files, expected):
    named = [{"key": bucket.key(key), "size": size} for key, size in files.items()]
    assert listing(bucket).has_files({"files": named}) is expected


def test_a_window_has_its_place(bucket):
    location = WindowLocation(bucket, "things", "2026-W46")
    assert location.manifest_key == "things/manifests/2026-W46.json"
    assert location.data == "things/data/2026-W46/"
    assert location.run_folder("run-1") == "things/data/2026-W46/run-1/"
    assert location.current() is None
    bucket.write(location.manifest_key, b'{"run_id": "run-1"}', "application/json")
    head = bucket.s3.head_object(Bucket=bucket.name, Key=bucket.key(location.manifest_key))
    assert location.current() == ({"run_id": "run-1"}, head["ETag"])


def test_a_window_is_marked_as_skipped_until_it_is_not(bucket):
    location = WindowLocation(bucket, "things", "2026-W46")
    location.unmark_skipped()
    location.mark_skipped("run-1")
    key = "things/skipped/2026-W46.json"
    assert json.loads(bucket.read(key)[0]) == {"run_id": "run-1"}
    head = bucket.s3.head_object(Bucket=bucket.name, Key=bucket.key(key))
    assert head["ContentType"] == "application/json"
    location.unmark_skipped()
    assert bucket.read(key) is None


@pytest.mark.parametrize("version", [2, 3])
def test_a_contract_may_replace_a_file_of_its_own_version_or_a_lower_one(version):
    require_no_newer_contract({"contract": {"version": 2}}, version)
    require_no_newer_contract(None, version)


def test_an_older_contract_is_refused_with_both_versions():
    current = {"contract": {"version": 2}, "window": {"label": "2026-W46"}}
    with pytest.raises(BadInput) as refused:
        require_no_newer_contract(current, 1)
    assert refused.value.code == "EXP-CONTRACT-OLDER"
    assert refused.value.what == (
        "window 2026-W46 was published with version 2 of the contract, and this run has version 1"
    )


def record(bucket: Bucket, run_id: str, **changes) -> None:
    known = runs.RunRecord(run_id, "things", T0, T0, T0 + HOUR, host="elsewhere")
    attrs.evolve(known, **changes).save(bucket)


def test_what_runs_left_is_removed_but_that_of_generations_and_of_the_run_itself(bucket):
    found = listing(bucket)
    location = WindowLocation(bucket, "things", "2026-W46")
    left = {
        run_id: Leftovers([f"{location.run_folder(run_id)}a.csv"]) for run_id in ("run-9", "run-10", "run-1")
    }
    generations = {"run_id": "run-2", "generations": [{"run_id": "run-1"}, {"run_id": "run-2"}]}
    assert cleanup.clean_window(location, generations, left, "run-9", T0) == ["run-10"]
    present = set(Listing.read(bucket, "things").sizes)
    assert set(found.sizes) - present == {"things/data/2026-W46/run-10/a.csv"}


def test_the_publication_of_another_run_proves_nothing_about_the_end_of_a_run(bucket):
    """Only the run that publishes now knows that what was written before is refused."""
    location = WindowLocation(bucket, "things", "2026-W46")
    record(bucket, "dead", state="failed", ended_at=T0 - HOUR / 60, working_on="2026-W46")
    left = {"dead": Leftovers([f"{location.run_folder('dead')}a.csv"])}

    def published(run_id: str) -> dict:
        return {
            "run_id": run_id,
            "published_at": T0.isoformat(),
            "generations": [{"run_id": run_id}],
        }

    assert cleanup.clean_window(location, None, left, "own", T0) == []
    assert cleanup.clean_window(location, published("other"), left, "own", T0) == []
    assert cleanup.clean_window(location, published("own"), left, "own", T0) == ["dead"]


@pytest.mark.parametrize("state", ["running", "failed"])
def test_files_that_a_generation_has_stay_although_their_run_died(bucket, state):
    """It published the window and could not say so."""
    location = WindowLocation(bucket, "things", "2026-W46")
    for run_id in ("dead", "own"):
        bucket.write(f"{location.run_folder(run_id)}a.csv", b"a", "text/csv")
    ended_at = None if state == "running" else T0 - 2 * HOUR
    record(
        bucket,
        "dead",
        state=state,
        ended_at=ended_at,
        expires_at=T0 - HOUR,
        working_on=location.window,
        started_at=T0 - 3 * HOUR,
    )
    earlier = runs.load_recent(bucket, "things", ["dead"])
    manifest = {"run_id": "dead", "generations": [{"run_id": "dead"}]}
    bucket.write(location.manifest_key, json.dumps(manifest).encode(), "application/json")
    cleanup.clean_up_dead_runs(Listing.read(bucket, "things"), "own", earlier, T0)
    assert Listing.read(bucket, "things").leftovers(location.window).keys() == {"dead", "own"}
    bucket.delete([location.manifest_key])
    cleanup.clean_up_dead_runs(Listing.read(bucket, "things"), "own", earlier, T0 + HOUR)
    assert Listing.read(bucket, "things").leftovers(location.window).keys() == {"own"}
    assert bucket.read_json("things/runs/dead.json")[0]["state"] == "failed"


def test_a_run_discards_its_files_unless_a_generation_has_them(bucket):
    listing(bucket)
    location = WindowLocation(bucket, "things", "2026-W46")
    bucket.write(location.manifest_key, b'{"generations": [{"run_id": "run-1"}]}', "application/json")
    cleanup.discard_files(location, "run-1")
    cleanup.discard_files(location, "run-10")
    found = Listing.read(bucket, "things")
    assert list(found.leftovers("2026-W46")) == ["run-1"]
    assert [key for key, _ in found.uploads] == UPLOADS
    bucket.delete([location.manifest_key])
    cleanup.discard_files(location, "run-1")
    found = Listing.read(bucket, "things")
    assert found.leftovers("2026-W46") == {}
    assert [key for key, _ in found.uploads] == UPLOADS[1:]


def test_what_became_of_a_window_is_a_word_that_records_keep():
    words = (PUBLISHED, UNCHANGED, SUPERSEDED, SKIPPED)
    assert words == ("published", "unchanged", "superseded", "skipped")


def test_nothing_of_a_publication_is_visible_before_it_is_written(bucket):
    run = runs.RunRecord("r", "things", T0, T0, T0 + HOUR)
    begun = WindowLocation(bucket, "things", "2026-W46"), run, lambda: T0
    assert Publication(*begun).may_be_visible is False
    for state in ({"may_be_visible": True}, {"replaced": "etag"}):
        with pytest.raises(TypeError):
            Publication(*begun, **state)
