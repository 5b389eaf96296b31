"""Windows beside published ones that a run doesn't publish again: which fit, and why the others don't."""

from __future__ import annotations

from datetime import UTC, date, datetime
from typing import Any

import attrs
import pytest

from config.exports.contract import Contract
from config.exports.windows import parse_label
from glue_jobs.borders import Border, Borders
from glue_jobs.delivery.manifest import describe_window, membership
from tests.support import samples

WEEKLY = samples.things(("id", "text"))
WEST = "America/New_York"
EAST = "Asia/Tokyo"


def edited(contract: Contract = WEEKLY, topic: str = "things", event_time: str = "at", **window) -> Contract:
    source = attrs.evolve(contract.source, topic=topic, event_time=event_time)
    rule = {"every": "iso_week", "first": date(2024, 1, 1)} | window
    return attrs.evolve(contract, source=source, window=attrs.evolve(contract.window, **rule))


def manifest(contract: Contract, label: str, **accepted: list[str]) -> dict[str, Any]:
    """Return what is read of the manifest of a window that was published with this contract."""
    return {
        "window": describe_window(parse_label(label, contract.window), contract),
        "membership": membership(contract),
        "accepted": {"sentences": [], "neighbours": []} | accepted,
    }


class Published:
    """Windows that are published, each with the contract of its time."""

    def __init__(self, **contracts: Contract) -> None:
        """Short labels: W10 is 2024-W10, Q4 is 2023-Q4, M02 is 2024-02, and D0310 is 2024-03-10."""
        self.manifests = {
            _read_label(short): manifest(contracts[short], _read_label(short)) for short in contracts
        }

    def find(self, contract: Contract, *shorts: str, accept: bool = False, has_zone: bool = True):
        """Return the neighbours that don't fit by short label of the planned window, and the sentences."""
        labels = [_read_label(short) for short in shorts]
        planned = [parse_label(label, contract.window) for label in labels]
        published = sorted(self.manifests)
        self.found = Borders(contract, planned, published, self.manifests.get, has_zone).find(accept=accept)
        return {label: [border.neighbour for border in borders] for label, borders in self.found.items()}

    @property
    def sentence(self) -> str:
        ((border,),) = self.found.values()
        return border.what


def _read_label(short: str) -> str:
    if short.startswith("W"):
        return f"2024-{short}"
    if short.startswith("Q"):
        return f"2023-{short}"
    digits = short[1:]
    return f"2024-{digits[:2]}-{digits[2:]}" if short.startswith("D") else f"2024-{digits}"


def test_windows_of_one_contract_fit():
    published = Published(W09=edited(), W10=edited(), W12=edited())
    assert published.find(edited(), "W11") == {}
    assert published.find(edited(), "W13", "W08", "W10") == {}


def test_a_gap_is_named_with_both_windows_and_the_keys_that_differ():
    published = Published(W10=edited())
    assert published.find(edited(zone=WEST), "W11") == {"2024-W11": ["2024-W10"]}
    assert published.found["2024-W11"] == [
        Border(
            "2024-W10",
            "window 2024-W11 is beside 2024-W10, which this run doesn't publish again, and the contract has "
            "changed (window.zone): events from 2024-03-11T00:00:00+00:00 to 2024-03-11T04:00:00+00:00 are in "
            "neither file",
        )
    ]


def test_an_overlap_is_named_from_its_beginning_to_its_end():
    published = Published(W10=edited())
    published.find(edited(zone=EAST), "W11")
    assert published.sentence.endswith(
        "events from 2024-03-10T15:00:00+00:00 to 2024-03-11T00:00:00+00:00 are in both files"
    )


def test_a_window_after_the_planned_one_is_a_neighbour_too():
    published = Published(W10=edited())
    assert published.find(edited(zone=EAST), "W09") == {"2024-W09": ["2024-W10"]}
    assert "from 2024-03-03T15:00:00+00:00 to 2024-03-04T00:00:00+00:00 are in neither" in published.sentence
    assert published.find(edited(zone=WEST), "W09") == {"2024-W09": ["2024-W10"]}
    assert "from 2024-03-04T00:00:00+00:00 to 2024-03-04T05:00:00+00:00 are in both" in published.sentence


def test_only_the_nearest_published_window_on_each_side_is_beside_a_window():
    published = Published(W08=edited(), W09=edited(), W11=edited(), W12=edited())
    assert published.find(edited(topic="others"), "W10") == {"2024-W10": ["2024-W09", "2024-W11"]}


def test_a_window_that_is_published_in_the_same_run_separates_its_neighbours():
    published = Published(W09=edited())
    assert published.find(edited(zone=WEST), "W11", "W10") == {"2024-W10": ["2024-W09"]}
    published = Published(W09=edited(), W12=edited())
    assert published.find(edited(zone=WEST), "W10", "W11") == {
        "2024-W10": ["2024-W09"],
        "2024-W11": ["2024-W12"],
    }


def test_windows_that_are_all_published_again_fit():
    published = Published(W10=edited(), W11=edited())
    assert published.find(edited(zone=WEST), "W11", "W10") == {}


def test_a_blocked_window_stays_as_it_is_and_may_not_fit_its_other_neighbours():
    published = Published(W09=edited(), W10=edited())
    assert published.find(edited(zone=WEST), "W12", "W11", "W10") == {
        "2024-W10": ["2024-W09"],
        "2024-W11": ["2024-W10"],
    }
    assert published.find(edited(zone=WEST), "W10", accept=True) == {"2024-W10": ["2024-W09"]}


def test_windows_that_are_accepted_are_published_and_block_nobody():
    published = Published(W09=edited(), W10=edited())
    found = published.find(edited(zone=WEST), "W11", "W10", accept=True)
    assert found == {"2024-W10": ["2024-W09"]}


@pytest.mark.parametrize(
    ("changes", "key"),
    [
        ({"topic": "others"}, "source.topic"),
        ({"event_time": "other"}, "source.event_time"),
        ({"filter_stage": "after_deduplication"}, "window.filter_stage"),
    ],
)
def test_windows_that_meet_do_not_fit_if_other_events_belong_to_them(changes, key):
    published = Published(W10=edited())
    published.find(edited(**changes), "W11")
    assert published.sentence.endswith(
        f"the contract has changed ({key}): an event may be in both files, or in neither"
    )


def test_all_keys_that_differ_are_named():
    published = Published(W10=edited(zone=WEST))
    published.find(edited(event_time="other"), "W11")
    assert "changed (source.event_time, window.zone)" in published.sentence


def test_another_name_of_a_zone_moves_nothing():
    assert Published(W10=edited()).find(edited(zone="Etc/UTC"), "W11") == {}


def test_windows_with_others_between_them_have_no_gap():
    """The window between them was left out, or failed."""
    published = Published(W10=edited())
    assert published.find(edited(zone=WEST), "W12") == {}
    assert published.find(edited(zone=WEST), "W08") == {}
    assert published.find(edited(topic="others"), "W12") == {"2024-W12": ["2024-W10"]}


def test_a_window_without_a_manifest_has_no_border():
    published = Published(W10=edited())
    published.manifests["2024-W10"] = None
    assert published.find(edited(zone=WEST), "W11") == {}


def test_windows_of_another_length_fit_if_they_meet():
    daily = edited(every="day")
    assert Published(D0303=daily, D0311=daily).find(edited(), "W10") == {}


def test_of_windows_of_another_length_inside_a_window_the_first_and_the_last_are_named():
    daily = edited(every="day")
    published = Published(D0305=daily, D0306=daily, D0309=daily, D0311=daily)
    assert published.find(edited(), "W10") == {"2024-W10": ["2024-03-05", "2024-03-09"]}
    assert published.found["2024-W10"][0].what == (
        "window 2024-W10 is beside 2024-03-05, which this run doesn't publish again, and the contract has "
        "changed (window.every): events from 2024-03-05T00:00:00+00:00 to 2024-03-06T00:00:00+00:00 are in "
        "both files"
    )
    assert Published(D0304=daily).find(edited(), "W10") == {"2024-W10": ["2024-03-04"]}
    assert Published(D0310=daily).find(edited(), "W10") == {"2024-W10": ["2024-03-10"]}


def test_a_first_window_must_follow_windows_of_another_length_without_a_gap():
    monthly = edited(every="month")
    daily = edited(every="day")
    published = Published(D0130=daily)
    assert published.find(monthly, "M02") == {"2024-02": ["2024-01-30"]}
    assert "2024-01-31T00:00:00+00:00 to 2024-02-01T00:00:00+00:00 are in neither" in published.sentence
    assert Published(D0131=daily).find(monthly, "M02") == {}
    quarterly = edited(every="quarter")
    for published in (Published(D0130=daily, M02=monthly), Published(D0130=daily, Q4=quarterly)):
        assert published.find(monthly, "M02") == {"2024-02": ["2024-01-30"]}
    assert Published(D0130=daily, M01=monthly).find(monthly, "M02") == {}


def test_a_window_that_ended_longer_ago_than_the_longest_window_is_not_near():
    monthly = edited(every="month")
    assert Published(D0131=edited(every="day")).find(monthly, "M03") == {"2024-03": ["2024-01-31"]}
    assert Published(D0130=edited(every="day")).find(monthly, "M03") == {"2024-03": ["2024-01-30"]}
    assert Published(D0129=edited(every="day")).find(monthly, "M03") == {}


def test_local_times_and_dates_belong_to_days_in_any_zone():
    published = Published(W10=edited())
    assert published.find(edited(zone=EAST), "W11", has_zone=False) == {}
    assert published.find(edited(zone=EAST), "W11") == {"2024-W11": ["2024-W10"]}
    daily = Published(D0310=edited(every="day"))
    daily.find(edited(zone=EAST), "W10", has_zone=False)
    assert daily.sentence.endswith("events from 2024-03-10 to 2024-03-11 are in both files")
    gap = Published(D0130=edited(every="day"))
    gap.find(edited(every="month"), "M02", has_zone=False)
    assert gap.sentence.endswith("events from 2024-01-31 to 2024-02-01 are in neither file")


def test_an_accepted_border_stays_accepted_as_long_as_the_same_events_belong_to_the_window():
    changed = edited(zone=WEST)
    published = Published(W10=edited(), W11=changed, W12=edited())
    published.manifests["2024-W11"] = manifest(changed, "2024-W11", neighbours=["2024-W10"])
    assert published.find(changed, "W11") == {"2024-W11": ["2024-W12"]}
    other = edited(zone="America/Chicago")
    assert published.find(other, "W11") == {"2024-W11": ["2024-W10", "2024-W12"]}


def test_windows_that_do_not_meet_although_the_contract_is_the_same_are_named():
    """The rules of a zone changed, with a new version of the tz database."""
    published = Published(W10=edited())
    end = datetime(2024, 3, 10, 23, tzinfo=UTC).isoformat()
    published.manifests["2024-W10"]["window"]["end"] = end
    published.find(edited(), "W11")
    assert "and they don't meet: events from 2024-03-10T23:00:00+00:00 to" in published.sentence
