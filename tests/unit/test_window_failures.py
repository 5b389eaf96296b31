"""An export of a window whose requests fail: which error is told, and which files stay."""

from __future__ import annotations

from contextlib import contextmanager

import pytest
from botocore.exceptions import EndpointConnectionError

from glue_jobs.errors import ExportError, StorageProblem
from glue_jobs.window import WindowExport
from tests.support.run_kit import DAY, ScriptedRows, leave_file_of_dead_run, new_run, window_of

FIRST = StorageProblem("EXP-AGGREGATE-BUSY", "the first error")
FOLDER = f"things/data/{DAY}/run-2/"


@contextmanager
def failing(bucket, call, key=""):
    """Let S3 be unreachable for a call, or only for those of a key."""
    events = bucket.s3.meta.events

    def fail(params, **_):
        if key in f"{params['url_path']} {params['body']}":
            raise EndpointConnectionError(endpoint_url="https://s3")

    events.register(f"before-call.s3.{call}", fail)
    try:
        yield
    finally:
        events.unregister(f"before-call.s3.{call}", fail)


def new_export(bucket, *texts, **changes):
    fails = None if texts else FIRST
    return WindowExport(new_run(bucket, ScriptedRows(list(texts), fails=fails), **changes), window_of())


def files(bucket):
    return [key.rpartition("/")[2] for key in bucket.keys(FOLDER)]


def raise_lost_session():
    raise RuntimeError("the session is gone")


def test_an_error_of_the_tidying_up_does_not_hide_the_first_one(bucket):
    bucket.write(f"{FOLDER}a.csv", b"x", "text/csv")
    with failing(bucket, "DeleteObjects"), pytest.raises(StorageProblem, match="the first error"):
        new_export(bucket).export()
    assert files(bucket) == ["a.csv"]

    with pytest.raises(StorageProblem, match="the first error"):
        new_export(bucket, spark=raise_lost_session).export()
    assert files(bucket) == []


def test_a_session_that_is_gone_after_publishing_is_no_error(bucket):
    assert new_export(bucket, b"x", spark=raise_lost_session).export()["state"] == "published"


def test_files_stay_as_long_as_the_manifest_may_become_visible(bucket):
    export = new_export(bucket, b"x")
    with failing(bucket, "PutObject", "manifests/"), pytest.raises(ExportError):
        export.export()
    assert sorted(files(bucket)) == ["datapackage.json", "report.html", f"things_{DAY}.csv"]
    assert export.may_be_published


def test_a_file_that_cannot_be_read_back_is_named_and_removed(bucket):
    export = new_export(bucket, b"x")
    with failing(bucket, "GetObject", f"things_{DAY}.csv"), pytest.raises(StorageProblem) as failed:
        export.export()
    where = f"s3://{bucket.name}/{bucket.key(FOLDER)}things_{DAY}.csv"
    assert failed.value.what.startswith(f"reading back {where}")
    assert (files(bucket), export.may_be_published) == ([], False)


def test_a_window_is_published_although_older_files_could_not_be_removed(bucket):
    """They are those of a run that ended before this one published the window."""
    left = leave_file_of_dead_run(bucket)
    export = new_export(bucket, b"x")
    with failing(bucket, "DeleteObjects", "run-0"):
        assert export.export()["state"] == "published"
    assert left in list(bucket.keys("things/data/"))
