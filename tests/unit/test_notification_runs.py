"""From runs to news: windows in order, events that were lost or overtaken, runs of others, and events that aren't ours."""

from __future__ import annotations

import attrs
import pytest
from notification_world import ENGINEERS, SALES, Killed, World, blocked, failed, late, published, record

from lambdas.notifications import errors as notification_errors
from lambdas.notifications import outcome
from lambdas.notifications.mailer import CLAIM_SECONDS
from lambdas.shared import errors
from lambdas.shared.errors import LakeferryError
from tools.docs import documents

#: What of a record is told, by its state; a state that the job adds must be put here or is no news.
JOB_STATES = {"published", "unchanged", "superseded", "skipped", "dry_run", "late", "blocked", "failed"}


def places(world):
    return [subject.split("] ")[1].split(",")[0] for subject in world.topics.subjects()]


def _first_publish():
    """The number of the call that sends the mail of a run with one window."""
    world = World()
    world.run(record(published("2026-W46")))
    world.tell()
    return world.wire.names.index("Publish")


def test_n2_weeks_that_were_missed_are_told_in_their_order_each_once():
    world = World()
    world.run(record(*(published(f"2026-W{week}") for week in (44, 45, 46))))
    for _ in range(2):
        world.tell()
    assert places(world) == ["2026-W44", "2026-W45", "2026-W46"]


def test_n3_what_no_event_told_is_told_by_the_schedule_once():
    world = World()
    world.run(record(published("2026-W46")))
    world.notifier.of_late()
    world.notifier.of_late()
    world.tell()
    assert places(world) == ["2026-W46"]


def test_n3_a_mail_that_waits_goes_out_with_the_schedule_though_its_run_is_long_over():
    world = World()
    world.run(record(published("2026-W46")))
    world.wire.faults = {_first_publish(): "refused"}
    with pytest.raises(LakeferryError):
        world.tell()
    assert world.topics.mails == []
    world.wire.faults = {}
    world.clock.sleep(2 * 24 * 3600)
    del world.bucket.objects["exports/weekly_sales/runs/20261116T060009Z-5a0c9e12.json"]
    world.notifier.of_late()
    assert places(world) == ["2026-W46"]


def test_n3_one_export_whose_records_cannot_be_read_keeps_no_other_back():
    other = attrs.evolve(SALES, name="another", job="another")
    world = World((other, SALES))
    world.run(record(published("2026-W46")))
    world.bucket.objects["exports/another/runs/20261116T060009Z-5a0c9e12.json"] = (b"[", '"x"')
    with pytest.raises(LakeferryError) as told:
        world.notifier.of_late()
    assert told.value.row is errors.DOCUMENT
    assert places(world) == ["2026-W46"]


def test_the_schedule_tells_of_a_run_that_died_once_its_time_is_over_and_not_before():
    world = World()
    world.run(record(state="running"))
    world.notifier.of_late()
    assert world.topics.mails == []
    world.clock.sleep(3600)
    world.notifier.of_late()
    assert world.topics.subjects()[0].endswith("- failed")
    assert len(world.topics.subjects(ENGINEERS)) == 1


def test_n1_news_that_come_after_a_later_runs_are_not_told_any_more():
    world = World()
    world.run(record(blocked("2026-W46")), 1)
    world.run(record(published("2026-W46"), weeks=1), 2)
    world.tell(2)
    world.tell(1, "FAILED")
    assert [subject.rsplit(" ", 1)[1] for subject in world.topics.subjects()] == ["complete"]


def test_the_same_trouble_in_several_runs_is_told_once_and_again_after_it_was_over():
    world = World()
    runs = [blocked(), blocked(), published(), published(state="unchanged"), blocked(), published(generation=2)]
    for number, window in enumerate(runs):
        world.run(record(window, weeks=number), number)
        world.tell(number, "FAILED")
    ends = [subject.rsplit(" ", 1)[1] for subject in world.topics.subjects()]
    assert ends == ["blocked", "recovered", "blocked", "recovered"]


def test_other_trouble_of_the_same_window_is_told_too():
    world = World()
    for number, window in enumerate([late(), blocked(), failed(), late(), published()]):
        world.run(record(window, weeks=number), number)
        world.tell(number, "FAILED")
    ends = [subject.rsplit(" ", 1)[1] for subject in world.topics.subjects()]
    assert ends == ["late", "blocked", "failed", "recovered"]


def test_each_run_that_fails_is_told_and_the_first_that_does_not_ends_it():
    world = World()
    wrong = {"state": "failed", "reason": "EXP-AWS-DENIED  reading failed. Allow it"}
    for number, run in enumerate([record(**wrong), record(weeks=1, **wrong), record(weeks=2), record(weeks=3)]):
        world.run(run, number)
        world.tell(number, "FAILED")
    ends = [subject.rsplit(" ", 1)[1] for subject in world.topics.subjects()]
    assert ends == ["failed", "failed", "recovered"]


def test_a_run_that_wrote_no_record_is_told_as_failed_once():
    world = World()
    world.run(record())
    world.bucket.objects.clear()
    for state in ("FAILED", "FAILED", "TIMEOUT"):
        world.tell(state=state)
    assert len(world.topics.subjects()) == 1
    assert world.topics.subjects()[0].endswith("- failed")


def test_a_run_that_succeeded_without_a_record_is_a_mistake_of_ours():
    world = World()
    world.run(record())
    world.bucket.objects.clear()
    with pytest.raises(LakeferryError) as told:
        world.tell()
    assert told.value.row is notification_errors.NO_RECORD


def test_a_run_of_somebody_elses_at_the_same_time_is_not_taken_for_the_jobs():
    world = World()
    world.run(record(published("2026-W46")))
    laptop = record(failed("2026-W40"), mark="1aptop00") | {"as_of": "2026-10-05T06:00:00+00:00"}
    world.bucket.put("exports/weekly_sales/runs/20261116T060009Z-1aptop00.json", laptop)
    world.bucket.put(
        "exports/weekly_sales/runs/20261116T090009Z-later000.json",
        record(failed("2026-W41"), mark="later000") | {"started_at": "2026-11-16T09:00:09+00:00"},
    )
    world.tell()
    assert places(world) == ["2026-W46"]


def test_a_job_that_is_not_ours_is_refused():
    world = World()
    with pytest.raises(LakeferryError) as told:
        world.notifier.of_job("somebody-elses", "jr_1", "FAILED")
    assert told.value.row is notification_errors.EVENT
    assert world.wire.calls == 0


def test_a_mail_under_way_in_another_invocation_is_left_to_it_and_comes_after_that_one_died():
    world = World()
    world.run(record(published("2026-W46")))
    world.wire.faults = {_first_publish(): "killed before"}
    with pytest.raises(Killed):
        world.tell()
    with pytest.raises(LakeferryError) as told:
        world.tell()
    assert told.value.row is notification_errors.BUSY
    world.clock.sleep(CLAIM_SECONDS + 1)
    world.tell()
    assert places(world) == ["2026-W46"]


@pytest.mark.parametrize("state", sorted(JOB_STATES))
def test_every_state_of_a_window_is_news_or_said_not_to_be(state):
    window = published() if state in ("published", "unchanged", "superseded", "skipped", "dry_run") else blocked()
    found = outcome.of_record(record(window | {"state": state}))
    assert len(found) == (1 if state == "dry_run" else 2)


def test_the_jobs_states_are_the_ones_that_are_known_here():
    """Read from the reference, which a test holds against the job's code."""
    told = documents._RUN["windows[].state"]
    assert {word.strip("`:;.,") for word in told.split() if word.startswith("`")} == JOB_STATES
