"""The detail of an announcement: each field from the manifest, and the limits of its lists."""

from __future__ import annotations

import json

import attrs
import pytest

from dev.docs import samples
from lambdas.notifications.announcement import describe_window
from lambdas.notifications.mail_links import Links
from lambdas.notifications.mailer import Marker
from lambdas.notifications.outcome import Facts, RunOutcome
from lambdas.shared.errors import Transient
from tests.support.notification_environment import (
    BUCKET,
    SALES,
    NotificationEnvironment,
    published,
    record,
)

RUN = "20261116T060009Z-5a0c9e12"
KEY = "notices/weekly_sales/2026-W46/events.json"
MANIFEST = samples.manifests()[0]
FILE = {"role": "data", "key": "exports/a.csv", "size": 7, "sha256": "ab"}
CHECK = {"id": "c", "severity": "warn", "message": "m", "failed": 3, "of": "rows", "passed": False}


def describe(state="complete", *, title="Sales", **changed):
    manifest = MANIFEST | changed
    news = RunOutcome("weekly_sales", "2026-W46", state, "", RUN, document=manifest)
    facts = Facts(title, "", "UTC", None, manifest=manifest)
    return describe_window("project", "stage", Links(BUCKET, "eu-west-1", "exports"), news, facts)


def test_the_id_names_deployment_export_window_generation_and_run():
    detail = describe(generation="3", run_id="a\nb")
    assert detail["id"] == "project-stage/weekly_sales/2026-W46/3/a"
    assert (detail["generation"], detail["run_id"]) == (3, "a")
    assert (detail["project"], detail["stage"], detail["version"]) == ("project", "stage", "1")


def test_the_window_is_in_its_own_time():
    window = {
        "label": '2026-"W01"',
        "start": "2026-03-28T23:00:00+00:00",
        "end": "2026-03-29T22:00:00+00:00",
        "zone": "Europe/Berlin",
    }
    assert describe(window=window)["window"] == {
        "label": "2026-'W01'",
        "start": "2026-03-29T00:00:00+01:00",
        "end": "2026-03-30T00:00:00+02:00",
        "zone": "Europe/Berlin",
    }


@pytest.mark.parametrize(
    ("rows", "number"), [({"rows": 5}, 5), ({"rows": None}, 0), ({}, 0), (None, 0), ({"rows": 0}, 0)]
)
def test_the_number_of_rows_is_a_number(rows, number):
    assert describe(rows=rows)["rows"] == number


@pytest.mark.parametrize(
    ("figure", "described"),
    [
        (
            {"column": "a", "title": 'The "A"', "unit": 'E"R', "total": "110"},
            ("The 'A'", "E'R", "110", "+10.0", "2026-'W45'"),
        ),
        (
            {"column": "a", "title": "A", "unit": None, "total": "99.96"},
            ("A", None, "99.96", "+0.0", "2026-'W45'"),
        ),
        (
            {"column": "a", "title": "A", "unit": "", "total": "99"},
            ("A", None, "99", "-1.0", "2026-'W45'"),
        ),
        ({"column": "b", "title": "B", "total": 5}, ("B", None, "5", None, None)),
    ],
)
def test_each_headline_has_its_change(figure, described):
    before = {"window": '2026-"W45"', "totals": {"a": "100"}}
    names = ("title", "unit", "total", "change_percent", "compared_with")
    (number,) = describe(headline=[figure], previous_window=before)["headline"]
    assert number == dict(zip(names, described, strict=True))


@pytest.mark.parametrize(
    ("changed", "rows"),
    [({}, 3), ({"failed": None}, 0), ({"of": "file"}, None), ({"of": None, "failed": 9}, None)],
)
def test_each_failed_check_has_its_rows(changed, rows):
    passed = [CHECK | {"passed": True}, CHECK | {"passed": None, "unknown": "why"}]
    assert describe(checks=[*passed, CHECK | changed])["checks"] == [
        {"id": "c", "severity": "warn", "message": "m", "rows": rows}
    ]


@pytest.mark.parametrize(("count", "shown"), [(0, 0), (20, 20), (21, 20)])
def test_twenty_checks_and_twenty_notes_are_announced(count, shown):
    detail = describe(
        checks=[CHECK | {"id": str(number)} for number in range(count)],
        notes=[str(number) for number in range(count)],
    )
    assert [check["id"] for check in detail["checks"]] == [str(number) for number in range(shown)]
    assert detail["notes"] == [str(number) for number in range(shown)]


@pytest.mark.parametrize(("count", "shown", "left_out"), [(0, 0, 0), (50, 50, 0), (51, 50, 1)])
def test_fifty_files_are_announced(count, shown, left_out):
    files = [FILE | {"key": f"exports/{number}.csv"} for number in range(count)]
    detail = describe(files=[*files, FILE | {"role": "manifest"}])
    assert [file["key"] for file in detail["files"]] == [f"exports/{number}.csv" for number in range(shown)]
    assert detail["files_left_out"] == left_out


@pytest.mark.parametrize("missing", [None, "left out"])
def test_a_manifest_without_optional_parts_is_announced(missing):
    optional = ("headline", "checks", "notes", "published_at", "rows")
    window = {name: value for name, value in MANIFEST.items() if name not in optional}
    if missing is None:
        window |= dict.fromkeys(optional)
    file = {"role": "data", "key": "exports/a.csv", **({} if missing else {"size": None, "sha256": None})}
    news = RunOutcome("e", "2026-W46", "complete", "", RUN, document={"files": [file]})
    facts = Facts('a "title"', "", "UTC", None, manifest=window | {"files": [file]})
    detail = describe_window("p", "s", Links(BUCKET, "eu-west-1", "exports"), news, facts)
    assert (detail["headline"], detail["checks"], detail["notes"]) == ([], [], [])
    assert (detail["published_at"], detail["rows"], detail["title"]) == (None, 0, "a 'title'")
    assert detail["text"] == "The file is ready. 0 rows."
    (file,) = detail["files"]
    assert (file["size"], file["sha256"], file["bucket"]) == (0, None, BUCKET)


def test_the_text_has_one_full_stop_after_each_sentence():
    detail = describe(headline=[], checks=[CHECK | {"message": "m."}], notes=["n.", 'o "p"\\'])
    assert detail["text"] == "The file is ready. 15,249 rows. Check: m. (3 rows). Note: n. Note: o 'p'/."


# --- markers and logs


def deliver(env):
    env.publish(MANIFEST)
    env.run(record(published()))
    env.deliver()


def list_log(env):
    return [json.loads(line) for line in env.log.getvalue().splitlines()]


def test_an_announcement_leaves_a_marker_and_a_line_in_the_log():
    env = NotificationEnvironment()
    deliver(env)
    assert json.loads(env.bucket.objects[KEY][0]) == attrs.asdict(Marker(RUN, "", ["published-1"]))
    identity = f"lakeferry-dev/weekly_sales/2026-W46/1/{RUN}"
    assert list_log(env)[-1] == {"level": "INFO", "message": "announced", "marker": KEY, "id": identity}


def test_a_replaced_generation_leaves_a_line_in_the_log_and_no_marker():
    env = NotificationEnvironment()
    env.publish(MANIFEST | {"generation": 2})
    env.run(record(published()))
    env.deliver()
    assert KEY not in env.bucket.objects
    assert list_log(env)[-1] == {
        "level": "INFO",
        "message": "not announced: the manifest has another generation",
        "marker": KEY,
        "run": RUN,
    }


@pytest.mark.parametrize("generation", [0, None])
def test_a_window_without_a_generation_needs_no_look_at_the_bucket(generation):
    env = NotificationEnvironment()
    news = RunOutcome("weekly_sales", "2026-W46", "complete", "i", RUN, document={"generation": generation})
    env.announcer().announce(SALES, news)
    assert env.wire.calls == 0


def test_an_event_that_was_not_accepted_is_an_error_that_passes():
    env = NotificationEnvironment()
    env.bus.code = "InternalFailure"
    with pytest.raises(Transient) as raised:
        deliver(env)
    assert raised.value.kind.code == "MAIL-EVENT-NOT-SENT"
    assert KEY not in env.bucket.objects
