"""What recipients of an export read: a subject that ends with the state, then what happened, where the file is, whom to ask."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from datetime import datetime
from decimal import Decimal
from pathlib import PurePosixPath
from typing import Any, Final
from zoneinfo import ZoneInfo

import attrs

from lambdas.notifications import outcome as states
from lambdas.notifications.facts import Facts
from lambdas.notifications.links import Links
from lambdas.notifications.outcome import News
from lambdas.notifications.text import foreign, line, subject

#: A mail isn't the place for long lists; the report has them all.
_FILES: Final = 6
_SENTENCES: Final = 12
_SHOWN: Final = ("data", "report")
#: So that a label can't push the run's id and the state out of the subject.
_LABEL_LENGTH: Final = 20
_KEY: Final = re.compile(r"[A-Za-z0-9_.=/-]+")
_NUMBER: Final = re.compile(r"-?[0-9]{1,40}(\.[0-9]{1,40})?")

_FIRST: Final = {
    states.COMPLETE: "The file is ready.",
    states.EMPTY: "There were no rows in this window.",
    states.LATE: "Not final yet: the source does not reach to the end of this window.",
    states.BLOCKED: "There is no new file: it was made, did not pass its checks and was kept back.",
    states.FAILED: "The file is delayed. The team that runs the export has been told.",
}


@attrs.frozen
class Mail:
    topic: str
    subject: str
    body: str


def compose(topic: str, news: News, state: str, facts: Facts, links: Links) -> Mail:
    return Mail(topic, headline(news, state, facts), "\n".join(_trimmed(_lines(news, state, facts, links))) + "\n")


def headline(news: News, state: str, facts: Facts) -> str:
    """The state stands last, the run's id before it: a second copy of a mail is known by it."""
    place = "" if news.place == states.RUN else f"{foreign(news.place)[:_LABEL_LENGTH]}, "
    rows = f"{_rows(news.document)}, " if news.has_file else ""
    return subject(facts.title, f"{place}{rows}run {news.run_id} - {state}")


def _lines(news: News, state: str, facts: Facts, links: Links) -> Iterator[str]:
    yield f"{foreign(facts.title)}{'' if news.place == states.RUN else ', ' + foreign(news.place)}: {state}."
    yield ""
    yield from _what(news, state)
    yield from _numbers(news, facts)
    yield from _sentences(news)
    yield from _files(news.document, links) if news.has_file else _instead(facts, links)
    yield from _window(facts)
    yield from _end(news, facts)


def _what(news: News, state: str) -> Iterator[str]:
    if state == states.RECOVERED:
        yield "What was wrong before is over." + ("" if news.place == states.RUN else " This replaces the notice about it.")
    if news.state != states.FINE:
        yield _FIRST[news.state]
    if news.state == states.BLOCKED:
        yield _why_blocked(news)
    elif news.state == states.LATE and news.reason:
        yield f"Because {foreign(news.reason)}."
    yield ""


def _why_blocked(news: News) -> str:
    """The checks' own words; where personal data was found, not what."""
    if news.code == "EXP-CHECK-BLOCKED":
        return f"Why: {foreign(news.reason)}"
    return "Why: it holds what looks like personal data." if news.code == "EXP-PERSONAL-DATA" else "Why: a rule of the export."


def _numbers(news: News, facts: Facts) -> Iterator[str]:
    if not news.has_file:
        return
    yield _rows(news.document)
    for number in (news.document.get("headline") or [])[:3]:
        unit = f" {foreign(number['unit'])}" if number.get("unit") else ""
        yield f"{foreign(number['title'])}: {_grouped(number['total'])}{unit}{_change(facts, number)}"
    if int(news.document.get("generation") or 1) > 1:
        yield f"This is version {int(news.document['generation'])} of the file; use it in place of the former one."
    yield ""


def _change(facts: Facts, number: Mapping[str, Any]) -> str:
    found = facts.change(number)
    return f" ({found[0]:+.1f} % against {foreign(found[1])})" if found else ""


def _sentences(news: News) -> Iterator[str]:
    """Checks that failed without keeping the file back, and what the reader should know."""
    failed = [check for check in news.document.get("checks") or [] if not check.get("passed")]
    told = [f"Check: {foreign(check['message'])}{_count(check)}" for check in failed]
    told += [f"Note: {foreign(note)}" for note in news.document.get("notes") or []]
    yield from told[:_SENTENCES]
    if len(told) > _SENTENCES:
        yield f"... and {len(told) - _SENTENCES} more, in the report."
    if told:
        yield ""


def _count(check: Mapping[str, Any]) -> str:
    return f" ({int(check.get('failed') or 0):,} rows)" if check.get("of") == "rows" else ""


def _files(document: Mapping[str, Any], links: Links) -> Iterator[str]:
    shown = [file for file in document.get("files") or [] if file.get("role") in _SHOWN and _is_ours(str(file["key"]))]
    yield "Files. Sign in to AWS with your usual access, then follow a link and choose Download. Links do not run out."
    for file in shown[:_FILES]:
        yield f"- {PurePosixPath(file['key']).name}, {_size(int(file.get('size') or 0))}"
        yield f"  {links.page(file['key'])}"
        yield f"  {links.command(file['key'])}"
    if len(shown) != len(shown[:_FILES]) or not shown:
        yield f"All of them lie in bucket {links.bucket}, and their keys stand in the window's manifest."
    yield ""


def _is_ours(key: str) -> bool:
    """Names that the job makes need no quoting and hold nothing that would be hidden elsewhere."""
    return bool(_KEY.fullmatch(key)) and foreign(key) == key


def _instead(facts: Facts, links: Links) -> Iterator[str]:
    """What there is in place of a new file."""
    if facts.last:
        yield f"The last file with rows is that of {foreign(facts.last['window']['label'])}:"
        yield from _files(facts.last, links)
    if facts.next_run:
        yield f"The next try is on {_local(facts.next_run, facts.zone)}."
        yield ""


def _window(facts: Facts) -> Iterator[str]:
    if window := facts.manifest.get("window"):
        start, end = (_local(datetime.fromisoformat(window[edge]), window["zone"]) for edge in ("start", "end"))
        yield f"The window is from {start} to before {end}."


def _end(news: News, facts: Facts) -> Iterator[str]:
    yield f"Run: {line(news.run_id)}"
    if facts.owner:
        yield f"Questions: {foreign(facts.owner)}"
    yield "To get no more of these mails, use the link below this text."


def _rows(document: Mapping[str, Any]) -> str:
    rows = int((document.get("rows") or {}).get("rows") or 0)
    return f"{rows:,} row{'' if rows == 1 else 's'}"


def _grouped(number: object) -> str:
    """1142546.38 as 1,142,546.38; what isn't a number is a word like any other."""
    return f"{Decimal(str(number)):,f}" if _NUMBER.fullmatch(str(number)) else foreign(number)


def _size(size: int) -> str:
    return f"{size / 1_000_000:,.1f} MB" if size >= 100_000 else f"{size / 1000:,.1f} kB"


def _local(instant: datetime, zone: str) -> str:
    return f"{instant.astimezone(ZoneInfo(zone)):%d %b %Y %H:%M} {zone}"


def _trimmed(lines: Iterator[str]) -> list[str]:
    """Without two empty lines in a row."""
    kept: list[str] = []
    for each in lines:
        if each or (kept and kept[-1]):
            kept.append(each)
    return kept
