"""Whether windows of a run fit the published windows beside them that the run doesn't publish again.

If an edit of the contract moves events between windows, as another time zone moves instants, an event near
the border to such a window can be in no file or in two. Both files look complete, so the run doesn't publish
the window unless somebody accepts that.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import timedelta

import attrs

from config.exports.contract import Contract
from config.exports.windows import (
    Window,
    find_days,
    find_kind,
    find_next_window,
    longest_days,
    parse_label,
)
from glue_jobs.delivery.manifest import Manifest, membership, read_accepted

#: What to do about a border.
REMEDY = (
    "Publish the older windows again: in a deployment, name them and this one in `lakeferry export restate`; "
    "elsewhere, raise window.restate_for_days. If they begin before window.from (or first_day of the "
    "deployment file), set an earlier day. Or accept it: run once with --accept-window-change true"
)

#: Keys that only move the bounds of windows. If those meet all the same, as with another name of a time zone,
#: no event moves.
_BOUNDS = frozenset({"window.every", "window.zone"})


@attrs.frozen
class Border:
    """Two windows that don't fit. `neighbour` is published, and `what` is a sentence without a full stop."""

    neighbour: str
    what: str


@attrs.frozen
class Borders:
    """`planned` are the windows of the run, `published` the labels of visible ones.

    `read` returns a window's manifest. Event times without a zone, which are local times and dates, belong to
    the days of a window in any zone, and other event times to the instants between its start and its end.
    """

    contract: Contract
    planned: list[Window]
    published: list[str]
    read: Callable[[str], Manifest | None]
    has_zone: bool

    def find(self, *, accept: bool) -> dict[str, list[Border]]:
        """Return the borders that don't fit, by the label of the planned window.

        A window that is blocked for its border stays as it is, so that its other neighbour may not fit
        either. If they are accepted, all planned windows are published.
        """
        found: dict[str, list[Border]] = {}
        while True:
            frozen = set(self.published) - {
                window.label for window in self.planned if accept or window.label not in found
            }
            waiting = [window for window in self.planned if window.label not in found]
            new = {
                window.label: borders
                for window in waiting
                if (borders := list(self._list_borders(window, frozen)))
            }
            found |= new
            if not new or accept:
                return found

    def _list_borders(self, window: Window, frozen: set[str]) -> Iterator[Border]:
        candidates = [*self._list_neighbours(window, frozen), *self._list_other_kinds(window, frozen)]
        borders = [border for label in candidates if (border := self._find_border(window, label))]
        if borders:
            accepted = read_accepted(self.read(window.label), self.contract).neighbours
            borders = [border for border in borders if border.neighbour not in accepted]
        yield from borders

    def _list_neighbours(self, window: Window, frozen: set[str]) -> Iterator[str]:
        """Yield the frozen windows of the same kind beside this one, unless one that is published in this run
        is between them.
        """
        going = {planned.label for planned in self.planned} - frozen
        same = sorted(label for label in frozen | going if find_kind(label) == find_kind(window.label))
        earlier = [label for label in same if label < window.label][-1:]
        later = [label for label in same if label > window.label][:1]
        yield from (label for label in (*earlier, *later) if label in frozen)

    def _list_other_kinds(self, window: Window, frozen: set[str]) -> Iterator[str]:
        """Yield the first and the last window of another kind that overlaps this one, and one that ends
        shortly before it.
        """
        others = [
            parse_label(label, self.contract.window)
            for label in frozen
            if find_kind(label) != find_kind(window.label)
        ]
        near = timedelta(days=longest_days(self.contract.window.every))
        is_first = not any(
            label < window.label for label in self.published if find_kind(label) == find_kind(window.label)
        )
        start = window.start - near if is_first else window.start
        overlapping = sorted(
            published for published in others if published.start < window.end and start < published.end
        )
        yield from dict.fromkeys(published.label for published in (*overlapping[:1], *overlapping[-1:]))

    def _find_border(self, window: Window, label: str) -> Border | None:
        manifest = self.read(label)
        if manifest is None:
            return None
        changed = _find_changed_keys(manifest, self.contract)
        gap = self._describe_gap(window, manifest["window"])
        if not gap and _BOUNDS.issuperset(changed):
            return None
        keys = f"the contract has changed ({', '.join(changed)})" if changed else "they don't meet"
        effect = gap or "an event may be in both files, or in neither"
        what = (
            f"window {window.label} is beside {label}, which this run doesn't publish again, and {keys}: "
            f"{effect}"
        )
        return Border(label, what)

    def _describe_gap(self, window: Window, other: dict[str, str]) -> str:
        """Return what happens to events between the two windows, or "" if the windows meet, or others are
        between them.
        """
        start, end = self._find_bounds(window)
        other_start, other_end = self._read_bounds(other)
        if other_start < end and start < other_end:
            both = max(start, other_start), min(end, other_end)
            return f"events from {both[0]} to {both[1]} are in both files"
        first, second = sorted([(start, end), (other_start, other_end)])
        are_neighbours = self._are_neighbours(window, other)
        return (
            f"events from {first[1]} to {second[0]} are in neither file"
            if first[1] < second[0] and are_neighbours
            else ""
        )

    def _find_bounds(self, window: Window) -> tuple[str, str]:
        """Return the start and the end (exclusive) of a window as event times have them."""
        if self.has_zone:
            return window.start.isoformat(), window.end.isoformat()
        first_day, end = find_days(window, find_kind(window.label))
        return first_day.isoformat(), end.isoformat()

    def _read_bounds(self, published: dict[str, str]) -> tuple[str, str]:
        """Return the same of the window in a manifest."""
        if self.has_zone:
            return published["start"], published["end"]
        return self._find_bounds(parse_label(published["label"], self.contract.window))

    def _are_neighbours(self, window: Window, other: dict[str, str]) -> bool:
        rule = self.contract.window
        if other["every"] != rule.every:
            return True
        beside = parse_label(other["label"], rule)
        return (
            find_next_window(beside, rule).label == window.label
            or find_next_window(window, rule).label == beside.label
        )


def _find_changed_keys(manifest: Manifest, contract: Contract) -> list[str]:
    """Return the keys of the contract that decide to which window an event belongs, and that differ."""
    before = manifest["membership"]
    return [name for name, value in membership(contract).items() if before[name] != value]
