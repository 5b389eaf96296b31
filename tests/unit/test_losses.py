"""A window is not published again without events that its published file has."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from typing import Any

import attrs
import pytest

from config.exports.contract import Deduplicate
from config.exports.windows import find_window
from glue_jobs.delivery import losses, manifest
from glue_jobs.delivery.manifest import Accepted, Fence, Manifest, WindowResult
from glue_jobs.errors import Blocked
from tests.support import samples
from tests.support.sample_rows import trade_rows

NOW = datetime(2026, 11, 10, 6, tzinfo=UTC)
RESULT = samples.trades(offsets={"0": [100, 400], "1": [7, 90]})


def published(result: WindowResult = RESULT) -> Manifest:
    """Return the second generation of a window."""
    fence = Fence(result.table.current_since, NOW, result.run_id)
    first = manifest.build_manifest(result, fence, NOW)
    return manifest.build_next_generation(first, first, NOW)


def other(**changes: Any) -> WindowResult:
    """Return a window with other content."""
    stats = attrs.evolve(RESULT.stats, content_sha256="0" * 64)
    return attrs.evolve(RESULT, **{"stats": stats} | changes)


def change_contract(**changes: Any) -> WindowResult:
    """Return one with an event less, of a contract with these changes: of a key, or of a table in it."""
    contract = RESULT.contract
    for name, value in changes.items():
        table = getattr(contract, name)
        evolved = attrs.evolve(table, **value) if isinstance(value, dict) else value
        contract = attrs.evolve(contract, **{name: evolved})
    window = find_window(RESULT.window.first_day, contract.window)
    return other(contract=contract, window=window, events=RESULT.events - 1)


def test_a_window_with_fewer_events_is_refused_unless_that_is_accepted():
    fewer = other(events=RESULT.events - 2)
    with pytest.raises(Blocked) as refused:
        losses.accept_loss(published(), fewer, accept=False)
    assert refused.value.code == "EXP-EVENTS-LOST"
    assert refused.value.what == (
        "window 2026-11-09: the table no longer has some events of published generation 2"
    )
    accepted = losses.accept_loss(published(), fewer, accept=True)
    sentence = "2 events of generation 2 are no longer in the table. That was accepted."
    assert accepted == attrs.evolve(fewer, accepted=Accepted((sentence,)))
    before = attrs.evolve(fewer, accepted=Accepted(("Another.",), ("2026-11-08",)))
    assert losses.accept_loss(published(), before, accept=True).accepted == Accepted(
        ("Another.", sentence), ("2026-11-08",)
    )


@pytest.mark.parametrize("accept", [False, True])
def test_a_window_that_lacks_nothing_is_not_changed(accept):
    first = other(events=0)
    assert losses.accept_loss(None, first, accept=accept) is first
    same_content = attrs.evolve(RESULT, events=0)
    assert losses.accept_loss(published(), same_content, accept=accept) is same_content
    more = other(events=RESULT.events + 1)
    assert losses.accept_loss(published(), more, accept=accept) is more


LATER = {"0": [101, 400], "1": [7, 90]}


@pytest.mark.parametrize(
    ("fewer", "offsets", "withheld", "loss"),
    [
        (0, RESULT.offsets, None, None),
        (-1, RESULT.offsets, None, None),
        (1, RESULT.offsets, None, "1 event of generation 2 is no longer in the table."),
        (2, RESULT.offsets, None, "2 events of generation 2 are no longer in the table."),
        (2, LATER, None, "2 events of generation 2 are no longer in the table."),
        (0, LATER, None, "Some events of generation 2 are no longer in the table."),
        (-5, LATER, None, "Some events of generation 2 are no longer in the table."),
        (1, RESULT.offsets, "why", "Some events of generation 2 are no longer in the table."),
        (2, LATER, "why", "Some events of generation 2 are no longer in the table."),
        (0, {"0": [100, 399], "1": [7, 90]}, None, "Some events of generation 2 are no longer in the table."),
        (0, {"0": [100, 400], "1": [7, 89]}, None, "Some events of generation 2 are no longer in the table."),
        (0, {"0": [100, 400]}, None, "Some events of generation 2 are no longer in the table."),
        (0, {}, None, "Some events of generation 2 are no longer in the table."),
        (0, {"0": [99, 401], "1": [6, 91], "2": [0, 0]}, None, None),
    ],
)
def test_events_are_lost_if_there_are_fewer_or_if_a_partition_lacks_an_end(fewer, offsets, withheld, loss):
    counts = RESULT.counts | {"withheld": withheld}
    present = other(events=RESULT.events - fewer, offsets=offsets, counts=counts)
    assert losses.find_loss(published(), present) == loss


def test_every_outcome_of_events_of_the_window_counts():
    counts = samples.counts(4, duplicates=3, filtered=2, null_key=1, outside_window=90, invalid_event_time=9)
    current = published(attrs.evolve(RESULT, counts=counts))
    assert losses.find_loss(current, other(events=10)) is None
    assert losses.find_loss(current, other(events=9)) is not None


KEYED = Deduplicate(key=["id"])


@pytest.mark.parametrize(
    ("changes", "is_compared"),
    [
        ({}, True),
        ({"version": 2, "title": "Another."}, True),
        ({"window": {"restate_for_days": 3}}, True),
        ({"source": {"max_invalid_percent": 50}}, True),
        ({"source": {"topic": "others"}}, False),
        ({"source": {"event_time": "settled_at"}}, False),
        ({"window": {"every": "month"}}, False),
        ({"window": {"zone": "UTC"}}, False),
        # The same start and end.
        ({"window": {"zone": "America/Toronto"}}, True),
        ({"window": {"filter_stage": "after_deduplication"}}, False),
        ({"deduplicate": KEYED}, True),
        # The window's first day is the first valid one, or the one before or after.
        ({"source": {"min_event_date": date(2026, 11, 8)}}, True),
        ({"source": {"min_event_date": date(2026, 11, 9)}}, True),
        ({"source": {"min_event_date": date(2026, 11, 10)}}, False),
    ],
)
def test_events_are_compared_while_the_same_ones_belong_to_the_window(changes, is_compared):
    present = change_contract(**changes)
    current = published()
    assert losses.can_compare(current, present.contract, present.window, present.table) == is_compared
    assert (losses.find_loss(current, present) is not None) == is_compared
    back = losses.can_compare(
        published(attrs.evolve(RESULT, contract=present.contract, window=present.window)),
        RESULT.contract,
        RESULT.window,
        RESULT.table,
    )
    after = changes.get("window", {}).get("filter_stage") == "after_deduplication"
    assert back == (is_compared and not after)


def test_a_limit_of_valid_times_in_the_window_is_compared_with_itself():
    limited = change_contract(source={"min_event_date": date(2026, 12, 1)})
    current = published(attrs.evolve(RESULT, contract=limited.contract))
    assert losses.can_compare(current, limited.contract, limited.window, limited.table)


def test_events_that_may_decrease_or_were_withheld_are_not_compared():
    fewer = other(events=RESULT.events - 1)
    upserts = attrs.evolve(fewer, table=attrs.evolve(fewer.table, upserts=True))
    assert losses.find_loss(published(), upserts) is None
    current = published()
    withheld = current | {"rows": current["rows"] | {"events": None}}
    assert losses.find_loss(withheld, fewer) is None
    of_table = change_contract(window={"filter_stage": "after_deduplication"})
    assert losses.find_loss(published(attrs.evolve(RESULT, contract=of_table.contract)), of_table) is None


def test_offsets_of_another_deduplication_key_are_not_compared_but_events_are():
    """Offsets are those of events with a key, and another key leaves other events without one."""
    keyed = attrs.evolve(RESULT, contract=attrs.evolve(RESULT.contract, deduplicate=KEYED))
    later = other(offsets=LATER)
    assert losses.find_loss(published(keyed), later) is None
    assert losses.find_loss(published(keyed), attrs.evolve(later, contract=keyed.contract)) is not None
    fewer = attrs.evolve(later, events=RESULT.events - 1)
    assert losses.find_loss(published(keyed), fewer) is not None


def test_another_window_with_the_same_name_is_not_compared():
    hour = timedelta(hours=1)
    current = published()
    for window in (
        attrs.evolve(RESULT.window, start=RESULT.window.start - hour),
        attrs.evolve(RESULT.window, end=RESULT.window.end + hour),
        attrs.evolve(RESULT.window, label="2026-W46"),
    ):
        assert not losses.can_compare(current, RESULT.contract, window, RESULT.table)
    assert losses.can_compare(current, RESULT.contract, RESULT.window, RESULT.table)
    assert len(trade_rows()) == RESULT.events
