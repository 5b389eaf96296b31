"""What a reader wants first: which window, whether it is all there, the figures that count, and what to know about them."""

from __future__ import annotations

from datetime import timedelta
from decimal import Decimal
from typing import Any

from glue_jobs.delivery import manifest
from glue_jobs.delivery.manifest import CheckResult, WindowResult
from glue_jobs.delivery.report import wording
from glue_jobs.delivery.report.markup import Html, bullets, joined, named, prose, said, tag, verbatim
from glue_jobs.delivery.report.page import Limits, Section, more

_MANIFEST = "the manifest"
#: More of them would push what was asked for off the screen.
_HEADLINES = _NOTES = 12


def title(result: WindowResult) -> Html:
    window = prose(wording.label(result.window.label))
    return said("{title}, {window}", title=prose(result.contract.title, 120), window=window)


def header(result: WindowResult, limits: Limits) -> Html:
    contract = result.contract
    word, sentence = _status(result)
    return tag(
        "header",
        tag("h1", prose(contract.title, min(limits.text, 200))),
        tag("p", prose(wording.window(result.window, contract.window)), class_="window"),
        tag("p", prose(contract.description, limits.text), class_="prose"),
        tag("p", joined([tag("b", prose(f"{word}.")), tag("span", prose(sentence))], " "), class_=f"status {result.status}"),
    )


def numbers(result: WindowResult, limits: Limits) -> Section:
    heading = said("Rows ({grain})", grain=prose(result.contract.grain, 80))
    cards = [_card(heading, prose(wording.number(result.stats.rows)), _since(result, None))]
    for number in manifest.headline(result)[: min(limits.items, _HEADLINES)]:
        total = verbatim(wording.number(Decimal(number["total"])), 160)
        cards.append(_card(named(number["title"], number["unit"]), total, _since(result, number)))
    return Section("numbers", "In numbers", [tag("dl", *cards, class_="cards")])


def notes(result: WindowResult, limits: Limits) -> Section | None:
    failed = [check for check in result.checks if not check.passed]
    told = [prose(note, limits.text) for note in result.notes]
    told += [_warning(check, limits) for check in failed]
    shown = told[: min(limits.items, _NOTES)]
    return Section("notes", "Please note", [bullets(shown), more(len(shown), len(told), "notes", _MANIFEST)]) if told else None


def found(check: CheckResult) -> str:
    """How often a check failed; a check of the whole file fails or doesn't."""
    return "in the file as a whole" if check.of == "file" else f"in {wording.count(check.failed, 'row')}"


def until(result: WindowResult) -> str | None:
    """Until when late data still changes the window."""
    days = result.contract.window.restate_for_days
    if not days:
        return None
    return wording.instant(result.window.end + timedelta(days=days), result.contract.window.zone)


def _warning(check: CheckResult, limits: Limits) -> Html:
    return said("{what} Found {where}.", what=prose(check.message, limits.text), where=prose(found(check)))


def _status(result: WindowResult) -> tuple[str, str]:
    if result.status == "late":
        return "Late", _late(result)
    if result.status == "empty":
        return (
            "Empty",
            f"There are no rows in this window; the file has only its header.{_suppressed(result)}{_before(result)}",
        )
    rows = wording.count(result.stats.rows, "row")
    failed = sum(not check.passed for check in result.checks)
    checked = f"{wording.count(failed, 'check')} failed, see below." if failed else "Every check passed."
    sentence = f"All {rows} of this window are in the file.{_suppressed(result)} {checked}"
    return result.status.capitalize(), sentence


def _late(result: WindowResult) -> str:
    zone = result.contract.window.zone
    limit = until(result)
    again = f" The file is made again when more data arrives, until {limit}." if limit else ""
    return (
        f"Not final: data until {wording.instant(result.table.committed_at, zone)}. "
        f"Not everything up to the window's end has reached the source, so rows may be missing.{again}"
    )


def _suppressed(result: WindowResult) -> str:
    groups = result.counts["groups"]
    if not groups or not groups["suppressed"]:
        return ""
    return f" {wording.count(groups['suppressed'], 'group is', 'groups are')} left out as too small."


def _before(result: WindowResult) -> str:
    if not (before := result.previous_window):
        return ""
    return f" The window before it, {wording.label(before['window'])}, had {wording.count(before['rows'], 'row')}."


def _since(result: WindowResult, number: dict[str, Any] | None) -> Html:
    """How a number of the headline, or the count of rows, differs from the window's before."""
    before = result.previous_window
    if before is None:
        return prose("no earlier window")
    now = Decimal(number["total"] if number else result.stats.rows)
    then = before["totals"].get(manifest.figure(number)) if number else before["rows"]
    when = wording.label(before["window"])
    return verbatim(wording.change(now, None if then is None else Decimal(then), when), 300)


def _card(heading: Html, value: Html, since: Html) -> Html:
    return tag("div", tag("dt", heading), tag("dd", value, class_="big"), tag("dd", since, class_="when"))
