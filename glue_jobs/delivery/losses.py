"""Whether a window would be published again without events of its published file, because the table no longer
has them.
"""

from __future__ import annotations

import attrs

from config.exports.contract import Contract
from config.exports.windows import Window
from glue_jobs.delivery.manifest import (
    OF_WINDOW,
    Manifest,
    WindowResult,
    deduplicate_key,
    describe_window,
    membership,
)
from glue_jobs.delivery.notes import count_noun
from glue_jobs.errors import Blocked
from glue_jobs.source import PinnedTable


def accept_loss(current: Manifest | None, result: WindowResult, *, accept: bool) -> WindowResult:
    """Return the result, with a sentence if it lacks events and that is accepted.

    Raises Blocked if it isn't.
    """
    if current is None or current["content_sha256"] == result.stats.content_sha256:
        return result
    loss = find_loss(current, result)
    if not loss:
        return result
    if not accept:
        raise Blocked(
            "EXP-EVENTS-LOST",
            f"window {result.window.label}: the table no longer has some events of published generation "
            f"{current['generation']}",
        )
    return attrs.evolve(result, accepted=result.accepted.with_loss(f"{loss} That was accepted."))


def find_loss(current: Manifest, result: WindowResult) -> str | None:
    """Return a sentence if events that the published generation counted are no longer in the table, or None.

    In a table that only grows, a window never has fewer events than before, its first offset in a partition
    never increases, and its last one never decreases. Offsets are those of events with a key, so they need
    the same deduplication key.
    """
    contract = result.contract
    if not can_compare(current, contract, result.window, result.table):
        return None
    before = current["rows"]["events"]
    fewer = sum(before[name] for name in OF_WINDOW) - result.events
    same_key = current["deduplicate_key"] == deduplicate_key(contract)
    lacks_ends = same_key and any(
        not _covers(result.offsets.get(partition), ends)
        for partition, ends in current["source"]["offsets"].items()
    )
    if fewer <= 0 and not lacks_ends:
        return None
    # The number of events of a group that is too small to be shown could be computed from the number of lost
    # ones.
    is_known = fewer > 0 and not result.counts["withheld"]
    amount = count_noun(fewer, "event", "events") if is_known else "Some events"
    verb = "is" if is_known and fewer == 1 else "are"
    return f"{amount} of generation {current['generation']} {verb} no longer in the table."


def can_compare(current: Manifest, contract: Contract, window: Window, table: PinnedTable) -> bool:
    """Return whether events of the window can be compared with those that the published generation counted.

    They can't if rows are replaced by key, if the counts were withheld, or if other events belong to the
    window now. Nor can they if the window is applied after deduplication: the counts are then of the whole
    table, from which retention may remove events of other windows.
    """
    is_of_window = contract.window.filter_stage != "after_deduplication"
    is_counted = current["rows"]["events"] is not None
    return is_counted and is_of_window and not table.upserts and _has_same_rules(current, contract, window)


def _covers(offsets: list[int] | None, before: dict[str, int]) -> bool:
    """Return whether the offsets of a partition still include the lowest and the highest one from before."""
    return offsets is not None and offsets[0] <= before["min"] and offsets[1] >= before["max"]


def _has_same_rules(current: Manifest, contract: Contract, window: Window) -> bool:
    """Return whether the same events of the table belong to the window as when `current` was published."""
    described = describe_window(window, contract)
    if any(current["window"][name] != described[name] for name in ("label", "start", "end")):
        return False
    before = current["membership"]
    now = membership(contract)
    first_day = min(window.first_day, window.start.date()).isoformat()
    first_valid = {rules.get("source.min_event_date") or "" for rules in (before, now)}
    if len(first_valid) > 1 and max(first_valid) > first_day:
        return False
    # Zones in which the window has the same start and end give it the same events.
    decided: dict[str, None] = {"source.min_event_date": None, "window.zone": None}
    return bool(before | decided == now | decided)
