"""What a reader wants first: which window, whether it is all there, the figures that count, and what to know about them."""

from __future__ import annotations

from datetime import timedelta
from decimal import Decimal
from typing import Any

from glue_jobs.delivery import manifest
from glue_jobs.delivery.manifest import CheckResult, Delivered
from glue_jobs.delivery.report import wording
from glue_jobs.delivery.report.markup import Html, bullets, joined, named, prose, said, tag, verbatim
from glue_jobs.delivery.report.page import Limits, Section, more

_MANIFEST = "the manifest"
#: More of them would push what was asked for off the screen.
_HEADLINES = _NOTES = 12


def title(delivered: Delivered) -> Html:
    window = prose(wording.label(delivered.window.label))
    return said("{title}, {window}", title=prose(delivered.contract.title, 120), window=window)


def header(delivered: Delivered, limits: Limits) -> Html:
    contract = delivered.contract
    word, sentence = _status(delivered)
    return tag(
        "header",
        tag("h1", prose(contract.title, min(limits.text, 200))),
        tag("p", prose(wording.window(delivered.window, contract.window)), class_="window"),
        tag("p", prose(contract.description, limits.text), class_="prose"),
        tag("p", joined([tag("b", prose(f"{word}.")), tag("span", prose(sentence))], " "), class_=f"status {delivered.status}"),
    )


def numbers(delivered: Delivered, limits: Limits) -> Section:
    heading = said("Rows ({grain})", grain=prose(delivered.contract.grain, 80))
    cards = [_card(heading, prose(wording.number(delivered.inspection.rows)), _since(delivered, None))]
    for number in manifest.headline(delivered)[: min(limits.items, _HEADLINES)]:
        total = verbatim(wording.number(Decimal(number["total"])), 160)
        cards.append(_card(named(number["title"], number["unit"]), total, _since(delivered, number)))
    return Section("numbers", "In numbers", [tag("dl", *cards, class_="cards")])


def notes(delivered: Delivered, limits: Limits) -> Section | None:
    failed = [check for check in delivered.checks if not check.passed]
    told = [prose(note, limits.text) for note in delivered.notes]
    told += [_warning(check, limits) for check in failed]
    shown = told[: min(limits.items, _NOTES)]
    return Section("notes", "Please note", [bullets(shown), more(len(shown), len(told), "notes", _MANIFEST)]) if told else None


def found(check: CheckResult) -> str:
    """How often a check failed; a check of the whole file fails or doesn't."""
    return "in the file as a whole" if check.of == "file" else f"in {wording.count(check.failed, 'row')}"


def until(delivered: Delivered) -> str | None:
    """Until when late data still changes the window."""
    days = delivered.contract.window.restate_for_days
    if not days:
        return None
    return wording.instant(delivered.window.end + timedelta(days=days), delivered.contract.window.zone)


def _warning(check: CheckResult, limits: Limits) -> Html:
    return said("{what} Found {where}.", what=prose(check.message, limits.text), where=prose(found(check)))


def _status(delivered: Delivered) -> tuple[str, str]:
    if delivered.status == "late":
        return "Late", _late(delivered)
    if delivered.status == "empty":
        return (
            "Empty",
            f"There are no rows in this window; the file has only its header.{_suppressed(delivered)}{_before(delivered)}",
        )
    rows = wording.count(delivered.inspection.rows, "row")
    failed = sum(not check.passed for check in delivered.checks)
    checked = f"{wording.count(failed, 'check')} failed, see below." if failed else "Every check passed."
    sentence = f"All {rows} of this window are in the file.{_suppressed(delivered)} {checked}"
    return delivered.status.capitalize(), sentence


def _late(delivered: Delivered) -> str:
    zone = delivered.contract.window.zone
    limit = until(delivered)
    again = f" The file is made again when more data arrives, until {limit}." if limit else ""
    return (
        f"Not final: data until {wording.instant(delivered.table.committed_at, zone)}. "
        f"Not everything up to the window's end has reached the source, so rows may be missing.{again}"
    )


def _suppressed(delivered: Delivered) -> str:
    groups = delivered.books["groups"]
    if not groups or not groups["suppressed"]:
        return ""
    return f" {wording.count(groups['suppressed'], 'group is', 'groups are')} left out as too small."


def _before(delivered: Delivered) -> str:
    if not (before := delivered.previous_window):
        return ""
    return f" The window before it, {wording.label(before['window'])}, had {wording.count(before['rows'], 'row')}."


def _since(delivered: Delivered, number: dict[str, Any] | None) -> Html:
    """How a number of the headline, or the count of rows, differs from the window's before."""
    before = delivered.previous_window
    if before is None:
        return prose("no earlier window")
    now = Decimal(number["total"] if number else delivered.inspection.rows)
    then = before["totals"].get(manifest.figure(number)) if number else before["rows"]
    when = wording.label(before["window"])
    return verbatim(wording.change(now, None if then is None else Decimal(then), when), 300)


def _card(heading: Html, value: Html, since: Html) -> Html:
    return tag("div", tag("dt", heading), tag("dd", value, class_="big"), tag("dd", since, class_="when"))
