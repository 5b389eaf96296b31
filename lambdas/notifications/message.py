"""The text of mails. A mail to recipients of an export says what happened, where the file is and whom to ask;
its subject ends with the state. A mail to engineers says where to look and how to run the export again.

Titles, window labels and reasons come from contracts, tables and the job. The job cleans them, and this
module cleans them again, because a mail can't be recalled.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from decimal import Decimal
from pathlib import PurePosixPath
from typing import Any, Final
from zoneinfo import ZoneInfo

import attrs

from lambdas import contract
from lambdas.notifications import outcome as states
from lambdas.notifications.attachments import Attachment
from lambdas.notifications.mail_links import Links, PersonalLinks
from lambdas.notifications.outcome import ExportSettings, Facts, RunOutcome
from lambdas.shared.redaction import redact

HIDDEN: Final = "[hidden]"
#: SNS accepts fewer than 100 ASCII characters.
SUBJECT_LENGTH: Final = 99
LINE_LENGTH: Final = 400
#: E-mail addresses, numbers as long as those of telephones, cards and accounts, and the signature of a
#: presigned S3 URL.
_PRIVATE: Final = re.compile(
    r"[^\s@<>(),;:]+@[^\s@<>(),;:]+|\+\d[\d ()/-]{6,}\d|\b[A-Z]{2}\d{2}[A-Z0-9]{10,}\b|\d{9,}"
    r"|\b(?:X-Amz-[A-Za-z-]+|Signature|AWSAccessKeyId)=\S*"
)
_TRACE: Final = re.compile(
    r"Traceback \(most recent|\bat [\w$.]+\([\w$]+\.(?:java|scala):\d+\)|File \"[^\"]*\", line \d+"
)
#: Unicode categories of characters that are invisible, break lines or change the direction of text.
_UNSEEN: Final = ("Cc", "Cf", "Cs", "Co", "Cn")


def to_one_line(text: object, length: int = LINE_LENGTH) -> str:
    """Return the first line that is not blank, cut to `length` characters."""
    visible_line = next((line for line in str(text).splitlines() if line.strip()), "")
    # Tabs are among the unseen characters, and separate words.
    visible = "".join(char for char in visible_line if char.isspace() or not _is_unseen(char))
    one_line = " ".join(visible.split())
    return one_line if len(one_line) <= length else one_line[: length - 1] + "…"


def quote_line(text: object) -> str:
    """Return one line without secrets, stack traces and text that looks like a person's address or number."""
    shown = redact(to_one_line(text, 10 * LINE_LENGTH))
    if trace := _TRACE.search(shown):
        shown = shown[: trace.start()]
    return to_one_line(_PRIVATE.sub(HIDDEN, shown))


def to_ascii_line(text: object) -> str:
    """Return one line with accents removed from letters, and without other characters that aren't ASCII."""
    plain = unicodedata.normalize("NFKD", to_one_line(text)).encode("ascii", "ignore").decode()
    printable = "".join(char for char in plain if char.isprintable())
    return " ".join(printable.split())


def build_subject(title: str, rest: str) -> str:
    """Return `[title] rest`.

    A long title is cut, so that the rest, which says what happened, stays readable.
    """
    end = to_ascii_line(rest)[: SUBJECT_LENGTH - 8]
    clean_title = to_ascii_line(quote_line(title)).replace("[", "(").replace("]", ")")
    start = clean_title[: SUBJECT_LENGTH - 3 - len(end)].strip()
    return f"[{start}] {end}"


def _is_unseen(char: str) -> bool:
    return unicodedata.category(char) in _UNSEEN


#: Limits of lists in a mail; the report has the whole lists.
FILES: Final = 6
HEADLINES: Final = 3
_SENTENCES: Final = 12
#: A longer label could push the run's id and the state out of the subject.
_LABEL_LENGTH: Final = 20
_KEY: Final = re.compile(r"[A-Za-z0-9_.=/-]+")
_NUMBER: Final = re.compile(r"-?[0-9]{1,40}(\.[0-9]{1,40})?")

HOW_TO_DOWNLOAD: Final = (
    "Sign in to AWS with your usual access, then follow a link and choose Download. A link "
    "works as long as the file is kept."
)
_FIRST: Final = {
    states.COMPLETE: "The file is ready.",
    states.EMPTY: "There were no rows in this window.",
    states.INCOMPLETE: "Not final yet: the table does not have all data of this window.",
    states.BLOCKED: "There is no new file: it did not pass its checks, so it was not published.",
    states.FAILED: "The file is delayed. The team that runs the export has been notified.",
}


@attrs.frozen
class Mail:
    """A mail to an SNS topic; or, if `topic` is "", one over SES, which has a `page` of HTML and
    may have `attachments` too."""

    topic: str
    subject: str
    body: str
    page: str = ""
    attachments: Sequence[Attachment] = ()


def compose_notice(
    topic: str,
    news: RunOutcome,
    state: str,
    facts: Facts,
    links: Links,
    *,
    personal: PersonalLinks | None = None,
) -> Mail:
    """Compose the mail to all recipients or, with `personal` links, to one of them."""
    lines = _trim_lines(_list_lines(news, state, facts, links, personal, by_sns=bool(topic)))
    body = "\n".join(lines) + "\n"
    return Mail(topic, build_headline(news, state, facts), body, attachments=facts.attached)


def build_headline(news: RunOutcome, state: str, facts: Facts) -> str:
    """Return the subject.

    It ends with the state and, before it, the run's id, which shows that a second mail is a copy.
    """
    window = "" if news.window == states.RUN else f"{quote_line(news.window)[:_LABEL_LENGTH]}, "
    rows = f"{format_rows(news.document)}, " if news.has_file else ""
    return build_subject(facts.title, f"{window}{rows}run {news.run_id} - {state}")


def _list_lines(
    news: RunOutcome, state: str, facts: Facts, links: Links, personal: PersonalLinks | None, *, by_sns: bool
) -> Iterator[str]:
    window = "" if news.window == states.RUN else f", {quote_line(news.window)}"
    yield f"{quote_line(facts.title)}{window}: {state}."
    yield ""
    yield from describe_news(news, state)
    yield from explain_attachments(facts)
    yield from _list_numbers(news, facts)
    yield from list_sentences(news)
    if news.has_file:
        yield from _offer_files(news.window, news.document, facts, links, personal)
    else:
        yield from _describe_last_file(facts, links, personal)
    yield from list_closing(news, facts)
    if by_sns:
        yield "To unsubscribe, use the link below this text."


def list_closing(news: RunOutcome, facts: Facts) -> Iterator[str]:
    """Yield the lines after the files: the next run of a window without a file, the last window with rows for
    a file that has none, the window, the run and whom to ask.
    """
    if not news.has_file and facts.next_run:
        yield f"The next try is on {format_local(facts.next_run, facts.zone)}."
        yield ""
    if news.has_file and facts.last:
        yield f"The last window with rows is {quote_line(facts.last['window']['label'])}."
    yield from _describe_window(facts)
    yield f"Run: {to_one_line(news.run_id)}"
    if facts.owner:
        yield f"Questions: {quote_line(facts.owner)}"


def list_summary(news: RunOutcome, facts: Facts) -> list[str]:
    """Return the lines that say what happened: the numbers, the checks that failed, and the notes."""
    lines = [*describe_news(news, news.state), *_list_numbers(news, facts), *list_sentences(news)]
    return [line for line in lines if line]


def describe_news(news: RunOutcome, state: str) -> Iterator[str]:
    if state == states.RECOVERED:
        notice = "" if news.window == states.RUN else " This replaces the notice about it."
        yield f"The earlier problem is solved.{notice}"
    if news.state != states.FINE:
        yield _FIRST[news.state]
    if news.state == states.BLOCKED:
        yield _explain_block(news)
    elif news.state == states.INCOMPLETE and news.reason:
        yield f"Because {quote_line(news.reason)}."
    yield ""


def _explain_block(news: RunOutcome) -> str:
    """Return the check's message. Personal data is not quoted."""
    if news.code == "EXP-CHECK-BLOCKED":
        return f"Why: {quote_line(news.reason)}"
    if news.code == "EXP-PERSONAL-DATA":
        return "Why: it contains what looks like personal data."
    return "Why: the export's rules don't allow it."


def _list_numbers(news: RunOutcome, facts: Facts) -> Iterator[str]:
    if not news.has_file:
        return
    yield format_rows(news.document)
    for number in (news.document.get("headline") or [])[:HEADLINES]:
        unit = f" {quote_line(number['unit'])}" if number.get("unit") else ""
        change = facts.change(number)
        against = f" ({change[0]:+f} % against {quote_line(change[1])})" if change else ""
        yield f"{quote_line(number['title'])}: {group_digits(number['total'])}{unit}{against}"
    yield from describe_generation(news)
    yield ""


def describe_generation(news: RunOutcome) -> Iterator[str]:
    if int(news.document.get("generation") or 1) > 1:
        yield (
            f"This is version {int(news.document['generation'])} of the file; use it instead of the "
            "earlier one."
        )


def list_sentences(news: RunOutcome) -> Iterator[str]:
    """Yield the checks that failed without blocking the file, and the notes."""
    lines = []
    for check in news.document.get("checks") or []:
        if has_failed(check):
            rows = f" ({int(check.get('failed') or 0):,} rows)" if check.get("of") == "rows" else ""
            found = f" ({quote_line(check['found'])})" if check.get("found") else rows
            lines.append(f"Check: {quote_line(check['message'])}{found}")
    lines += [f"Note: {quote_line(note)}" for note in news.document.get("notes") or []]
    yield from lines[:_SENTENCES]
    if len(lines) > _SENTENCES:
        yield f"... and {len(lines) - _SENTENCES} more, in the report."
    if lines:
        yield ""


def has_failed(check: Mapping[str, Any]) -> bool:
    """Return whether a check failed. One that could not be made has not: its `passed` is null."""
    return not check.get("passed") and not check.get("unknown")


def _offer_files(
    window: str, document: Mapping[str, Any], facts: Facts, links: Links, personal: PersonalLinks | None
) -> Iterator[str]:
    if personal is None:
        yield from _list_files(document, links)
        return
    until = format_local(personal.until, facts.zone)
    yield f"Files. Open this link and choose a file. The link is yours, and works until {until}:"
    yield personal.sign(window, int(document["generation"]))
    yield ""
    for file in select_files(document):
        yield f"- {PurePosixPath(file['key']).name}, {format_size(int(file.get('size') or 0))}"
    yield ""


def explain_attachments(facts: Facts) -> Iterator[str]:
    if facts.attached:
        yield f"Attached: {', '.join(attachment.name for attachment in facts.attached)}."
        yield ""


def select_files(document: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Return the files for readers whose keys may be shown."""
    return [
        file
        for file in document.get("files") or []
        if file.get("role") in contract.DELIVERED_ROLES and _is_plain(str(file["key"]))
    ]


def _list_files(document: Mapping[str, Any], links: Links) -> Iterator[str]:
    files = select_files(document)
    yield f"Files. {HOW_TO_DOWNLOAD}"
    for file in files[:FILES]:
        yield f"- {PurePosixPath(file['key']).name}, {format_size(int(file.get('size') or 0))}"
        yield f"  {links.page(file['key'])}"
        yield f"  {links.command(file['key'])}"
    if len(files) != len(files[:FILES]) or not files:
        yield explain_other_files(links)
    yield ""


def explain_other_files(links: Links) -> str:
    return f"All files are in bucket {links.bucket}; the window's manifest has their keys."


def _is_plain(key: str) -> bool:
    """Return whether a key looks as the job writes it: it needs no quoting, and `quote_line` hides
    nothing in it.
    """
    return bool(_KEY.fullmatch(key)) and quote_line(key) == key


def _describe_last_file(facts: Facts, links: Links, personal: PersonalLinks | None) -> Iterator[str]:
    """Yield the lines about the last file with rows, and about the next run."""
    if facts.last:
        window = facts.last["window"]["label"]
        yield f"The last file with rows is of {quote_line(window)}:"
        yield from _offer_files(window, facts.last, facts, links, personal)


def _describe_window(facts: Facts) -> Iterator[str]:
    if window := facts.manifest.get("window"):
        start = format_local(datetime.fromisoformat(window["start"]), window["zone"])
        end = format_local(datetime.fromisoformat(window["end"]), window["zone"])
        yield f"The window is from {start} to before {end}."


def format_rows(document: Mapping[str, Any]) -> str:
    rows = int((document.get("rows") or {}).get("rows") or 0)
    return f"{rows:,} row{'' if rows == 1 else 's'}"


def quote_number(number: object) -> str:
    """Return a number as it is, and anything else as quoted text: `quote_line` hides long numbers."""
    return str(number) if _NUMBER.fullmatch(str(number)) else quote_line(number)


def group_digits(number: object) -> str:
    """Return 1142546.38 as 1,142,546.38, and anything else as quoted text."""
    if not _NUMBER.fullmatch(str(number)):
        return quote_line(number)
    return f"{Decimal(str(number)):,f}"


def format_size(size: int) -> str:
    return f"{size / 1_000_000:,.1f} MB" if size >= 100_000 else f"{size / 1000:,.1f} kB"


def format_local(instant: datetime, zone: str) -> str:
    return f"{instant.astimezone(ZoneInfo(zone)):%d %b %Y %H:%M} {zone}"


def _trim_lines(lines: Iterator[str]) -> list[str]:
    """Return the lines without two empty ones in a row."""
    lines_kept: list[str] = []
    for line in lines:
        if line or (lines_kept and lines_kept[-1]):
            lines_kept.append(line)
    return lines_kept


#: States that engineers get a mail about.
FOR_ENGINEERS: Final = (states.INCOMPLETE, *states.FAILURE_STATES, states.RECOVERED)


def compose_alarm(
    topic: str,
    news: RunOutcome,
    state: str,
    facts: Facts,
    *,
    links: Links,
    export: ExportSettings,
    job_run: tuple[str, str],
) -> Mail:
    """Compose the mail to engineers. `job_run` has the id of the job run and its final state in Glue."""
    lines = [
        *_describe_head(news, state, export),
        "",
        *_list_places(news, links, export, job_run),
        *_describe_retry(news, export),
    ]
    return Mail(topic, build_headline(news, state, facts), "\n".join(lines) + "\n")


def _describe_head(news: RunOutcome, state: str, export: ExportSettings) -> Iterator[str]:
    window = "the run" if news.window == states.RUN else f"window {quote_line(news.window)}"
    yield f"Export {to_one_line(export.name)}, {window}: {state}."
    if news.code:
        yield f"{to_one_line(news.code)}  {quote_line(news.reason)}"
    elif news.reason:
        yield quote_line(news.reason)
    if news.remedy:
        yield f"What to do: {quote_line(news.remedy)}"


def _list_places(
    news: RunOutcome, links: Links, export: ExportSettings, job_run: tuple[str, str]
) -> Iterator[str]:
    job_run_id, job_state = job_run
    yield f"Run's record: {links.record(export.name, to_one_line(news.run_id))}"
    yield f"Job's runs and logs: {links.run(export.job, job_run_id)}"
    yield f"State of the job: {to_one_line(job_state)}"


def _describe_retry(news: RunOutcome, export: ExportSettings) -> Iterator[str]:
    if not news.code:
        yield "Nothing has to be done."
        return
    yield f"Code explained: docs/reference/errors.md#{to_one_line(news.code).lower()}"
    arguments = r'"{\"--as-of\": \"$(date -u +%FT%TZ)\"}"'
    yield f"Run again: aws glue start-job-run --job-name {to_one_line(export.job)} --arguments {arguments}"
