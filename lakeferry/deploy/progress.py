"""Show the progress of a deployment: a line for each stack and each slow resource, and a warning if nothing
changes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Final

import attrs

from lakeferry.deployment.stacks import Event
from lakeferry.output import Reporter, format_duration
from lakeferry.plan.durations import ESTIMATES, Phase
from lakeferry.plan.templates import read_resource_of_event

#: Minutes. Resources that may take at least this long are shown when they begin.
_SLOW: Final = 5
#: Seconds. Other resources with an estimate are shown when they are done if they took at least this long.
_LONG: Final = 10.0
#: After this many seconds without an event, the user is told which resources are in progress.
QUIET: Final = 300.0
_CLEANUP: Final = "_CLEANUP_IN_PROGRESS"
_REVIEW: Final = "REVIEW_IN_PROGRESS"
_ROLLBACK: Final = "ROLLBACK"
_MAX_NAMES: Final = 3


@attrs.define
class Stack:
    """The progress of a stack.

    `under_way` has the first event of each resource in progress, by logical id.
    """

    began: float
    under_way: dict[str, Event] = attrs.field(factory=dict)
    done: int = 0
    is_over: bool = False


@attrs.define
class Progress:
    """`say` prints a line that stays, `report` updates the progress. `stacks` has all stacks in the order of
    deployment.

    `now` returns seconds since 1970, like the times of events.
    """

    stacks: list[str]
    phases: Mapping[str, Phase]
    say: Reporter
    report: Reporter
    now: Callable[[], float]
    seen: list[Event] = attrs.field(factory=list)
    known: dict[str, Stack] = attrs.field(factory=dict)
    _last: float = attrs.field(init=False)
    _warned: int = 0

    def __attrs_post_init__(self) -> None:
        self._last = self.now()

    @property
    def under_way(self) -> list[str]:
        """Return the stacks in progress, according to the events so far."""
        return [name for name, stack in self.known.items() if not stack.is_over]

    def feed(self, events: Iterable[Event]) -> None:
        """Process new events, the oldest first."""
        for event in events:
            self.seen.append(event)
            if event.status == _REVIEW:  # a change set begins; the stack itself begins with the next event
                continue
            self._last = self.now()
            self._warned = 0
            stack = self.known.setdefault(event.stack, Stack(event.at))
            if event.is_of_stack:
                self._show_stack_event(event, stack)
            else:
                self._show_resource_event(event, stack)

    def tick(self) -> None:
        """Report the progress, and print a warning for every QUIET seconds without an event."""
        for name in self.under_way[-1:]:
            stack = self.known[name]
            slowest = sorted(stack.under_way.values(), key=lambda event: event.at)
            names = ", ".join(event.logical_id for event in slowest[:_MAX_NAMES])
            self.report(
                f"{self._number_stack(name)} {format_duration(self.now() - stack.began)}, {stack.done} done: "
                f"{names or 'finishing'}"
            )
        quiet = int((self.now() - self._last) // QUIET)
        if quiet > self._warned and self.under_way:
            self._warned = quiet
            self._warn(quiet * QUIET)

    def _show_stack_event(self, event: Event, stack: Stack) -> None:
        if event.status.endswith(_CLEANUP):
            return
        took = format_duration(event.at - stack.began)
        if event.has_begun and _ROLLBACK in event.status:
            self.say(f"{self._number_stack(event.stack)} failed after {took}; CloudFormation rolls it back")
        elif event.has_begun:
            stack.began = event.at
            stack.is_over = False
            stack.done = 0
            phase = self.phases.get(event.stack)
            expected = f" ({phase})" if phase else ""
            self.say(f"{self._number_stack(event.stack)} …{expected}")
        elif not stack.is_over:
            stack.is_over = True
            self.say(f"{self._number_stack(event.stack)} {_ENDED.get(event.status, event.status)}, {took}")

    def _show_resource_event(self, event: Event, stack: Stack) -> None:
        longest = ESTIMATES.get(read_resource_of_event(event).kind, (0, 0))[1]
        what = f"        {read_resource_of_event(event).what} {event.logical_id}"
        begun = stack.under_way.get(event.logical_id)
        if event.has_begun:
            stack.under_way.setdefault(event.logical_id, event)
            if begun is None and longest >= _SLOW and event.status != "DELETE_IN_PROGRESS":
                self.say(f"{what} …{_estimate(event)}")
            return
        stack.done += 1
        stack.under_way.pop(event.logical_id, None)
        if event.has_failed:
            self.say(f"{what} {event.status}")
        elif begun and (longest >= _SLOW or (longest and event.at - begun.at >= _LONG)):
            self.say(f"{what} done in {format_duration(event.at - begun.at)}")

    def _warn(self, quiet: float) -> None:
        waiting = [event for name in self.under_way for event in self.known[name].under_way.values()]
        waits = [
            f"{read_resource_of_event(event).what} {event.logical_id} for "
            f"{format_duration(self.now() - event.at)}{_estimate(event)}"
            for event in waiting
        ]
        what = "; ".join(waits) or "the stack itself"
        self.say(f"        Nothing has changed for {format_duration(quiet)}. In progress: {what}")

    def _number_stack(self, stack: str) -> str:
        number = self.stacks.index(stack) + 1 if stack in self.stacks else "?"
        return f"[{number}/{len(self.stacks)}] {stack}"


_ENDED: Final = {
    "CREATE_COMPLETE": "created",
    "UPDATE_COMPLETE": "updated",
    "ROLLBACK_COMPLETE": "rolled back: none of its resources is left",
    "UPDATE_ROLLBACK_COMPLETE": "rolled back to its previous state",
}


def _estimate(event: Event) -> str:
    low, high = ESTIMATES.get(read_resource_of_event(event).kind, (0, 0))
    return f" (estimated {low:g}–{high:g} min)" if high else ""
