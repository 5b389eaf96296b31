"""What mails say: to an export's recipients a subject that ends with the state, what happened, where the file is and whom to ask;
to those who run the deployment where to look and how to run again.

Titles, window labels and reasons come from contracts, tables and the job. They are the job's to keep clean; a mail can't be
taken back, so they are checked once more here.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Mapping
from datetime import datetime
from decimal import Decimal
from pathlib import PurePosixPath
from typing import Any, Final
from urllib.parse import quote
from zoneinfo import ZoneInfo

import attrs

from lambdas.notifications import outcome as states
from lambdas.notifications.outcome import ExportSettings, Facts, RunOutcome
from lambdas.shared.redaction import redact

HIDDEN: Final = "[hidden]"
#: SNS takes fewer than 100 characters of ASCII.
SUBJECT_LENGTH: Final = 99
LINE_LENGTH: Final = 400
#: Addresses of people, numbers as long as those of telephones, cards and accounts, and what signs an address of S3.
_PRIVATE: Final = re.compile(
    r"[^\s@<>(),;:]+@[^\s@<>(),;:]+|\+\d[\d ()/-]{6,}\d|\b[A-Z]{2}\d{2}[A-Z0-9]{10,}\b|\d{9,}"
    r"|\b(?:X-Amz-[A-Za-z-]+|Signature|AWSAccessKeyId)=\S*"
)
_TRACE: Final = re.compile(r"Traceback \(most recent|\bat [\w$.]+\([\w$]+\.(?:java|scala):\d+\)|File \"[^\"]*\", line \d+")
#: Categories of Unicode that show nothing, break lines or turn the direction of text.
_UNSEEN: Final = ("Cc", "Cf", "Cs", "Co", "Cn")


def one_line(text: object, length: int = LINE_LENGTH) -> str:
    """The first line that says something, cut to `length` characters."""
    shown = next((each for each in str(text).splitlines() if each.strip()), "")
    visible = "".join(" " if char.isspace() else char for char in shown if char.isspace() or not _is_unseen(char))
    one = " ".join(visible.split())
    return one if len(one) <= length else one[: length - 1] + "…"


def quoted(text: object) -> str:
    """A line whose words others chose: without secrets, traces and what looks like somebody's address or number."""
    shown = redact(one_line(text, 10 * LINE_LENGTH))
    if trace := _TRACE.search(shown):
        shown = shown[: trace.start()]
    return one_line(_PRIVATE.sub(HIDDEN, shown))


def ascii_line(text: object) -> str:
    """Letters without their accents; what then isn't ASCII is left out."""
    plain = unicodedata.normalize("NFKD", one_line(text)).encode("ascii", "ignore").decode()
    return " ".join("".join(char for char in plain if char.isprintable()).split())


def subject_line(title: str, rest: str) -> str:
    """`[title] rest`, of which the title is cut where it is too long, since the rest holds what happened."""
    end = ascii_line(rest)[: SUBJECT_LENGTH - 8]
    start = ascii_line(quoted(title)).replace("[", "(").replace("]", ")")[: SUBJECT_LENGTH - 3 - len(end)].strip()
    return f"[{start}] {end}"


def _is_unseen(char: str) -> bool:
    return unicodedata.category(char) in _UNSEEN


_BUCKET = re.compile(r"[a-z0-9][a-z0-9-]{1,61}[a-z0-9]")
_REGION = re.compile(r"[a-z]{2}(?:-[a-z]+)+-\d")


@attrs.frozen
class Links:
    """Addresses in one bucket of one region, where exports lie below `prefix`. Raises ValueError for names that AWS doesn't
    give."""

    bucket: str
    region: str
    prefix: str

    def __attrs_post_init__(self) -> None:
        if not _BUCKET.fullmatch(self.bucket) or not _REGION.fullmatch(self.region):
            raise ValueError("no bucket or no region")

    def page(self, key: str) -> str:
        """The object's page in the S3 console."""
        return f"{self._console}/s3/object/{self.bucket}?region={self.region}&prefix={quote(key, safe='/')}"

    def command(self, key: str) -> str:
        """How to fetch it on a command line. No shell reads anything else into it."""
        return f"aws s3 cp 's3://{self.bucket}/{quote(key, safe='/-_.=:')}' ."

    def run(self, job: str, job_run_id: str) -> str:
        """The job's page in the Glue console, or that of one of its runs."""
        of_run = f"/run/{quote(job_run_id, safe='')}" if job_run_id else "/runs"
        return f"{self._console}/gluestudio/home?region={self.region}#/job/{quote(job, safe='')}{of_run}"

    def record(self, export: str, run_id: str) -> str:
        return f"s3://{self.bucket}/{quote(f'{self.prefix}/{export}/runs/{run_id}.json')}"

    @property
    def _console(self) -> str:
        return f"https://{self.region}.console.aws.amazon.com"


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


def compose_notice(topic: str, news: RunOutcome, state: str, facts: Facts, links: Links) -> Mail:
    return Mail(topic, headline(news, state, facts), "\n".join(_trimmed(_lines(news, state, facts, links))) + "\n")


def headline(news: RunOutcome, state: str, facts: Facts) -> str:
    """The state stands last, the run's id before it: a second copy of a mail is known by it."""
    place = "" if news.place == states.RUN else f"{quoted(news.place)[:_LABEL_LENGTH]}, "
    rows = f"{_rows(news.document)}, " if news.has_file else ""
    return subject_line(facts.title, f"{place}{rows}run {news.run_id} - {state}")


def _lines(news: RunOutcome, state: str, facts: Facts, links: Links) -> Iterator[str]:
    yield f"{quoted(facts.title)}{'' if news.place == states.RUN else ', ' + quoted(news.place)}: {state}."
    yield ""
    yield from _what(news, state)
    yield from _numbers(news, facts)
    yield from _sentences(news)
    yield from _files(news.document, links) if news.has_file else _instead(facts, links)
    yield from _window(facts)
    yield from _end(news, facts)


def _what(news: RunOutcome, state: str) -> Iterator[str]:
    if state == states.RECOVERED:
        yield "What was wrong before is over." + ("" if news.place == states.RUN else " This replaces the notice about it.")
    if news.state != states.FINE:
        yield _FIRST[news.state]
    if news.state == states.BLOCKED:
        yield _why_blocked(news)
    elif news.state == states.LATE and news.reason:
        yield f"Because {quoted(news.reason)}."
    yield ""


def _why_blocked(news: RunOutcome) -> str:
    """The checks' own words; where personal data was found, not what."""
    if news.code == "EXP-CHECK-BLOCKED":
        return f"Why: {quoted(news.reason)}"
    return "Why: it holds what looks like personal data." if news.code == "EXP-PERSONAL-DATA" else "Why: a rule of the export."


def _numbers(news: RunOutcome, facts: Facts) -> Iterator[str]:
    if not news.has_file:
        return
    yield _rows(news.document)
    for number in (news.document.get("headline") or [])[:3]:
        unit = f" {quoted(number['unit'])}" if number.get("unit") else ""
        yield f"{quoted(number['title'])}: {_grouped(number['total'])}{unit}{_change(facts, number)}"
    if int(news.document.get("generation") or 1) > 1:
        yield f"This is version {int(news.document['generation'])} of the file; use it in place of the former one."
    yield ""


def _change(facts: Facts, number: Mapping[str, Any]) -> str:
    found = facts.change(number)
    return f" ({found[0]:+.1f} % against {quoted(found[1])})" if found else ""


def _sentences(news: RunOutcome) -> Iterator[str]:
    """Checks that failed without keeping the file back, and what the reader should know."""
    failed = [check for check in news.document.get("checks") or [] if not check.get("passed")]
    told = [f"Check: {quoted(check['message'])}{_count(check)}" for check in failed]
    told += [f"Note: {quoted(note)}" for note in news.document.get("notes") or []]
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
    return bool(_KEY.fullmatch(key)) and quoted(key) == key


def _instead(facts: Facts, links: Links) -> Iterator[str]:
    """What there is in place of a new file."""
    if facts.last:
        yield f"The last file with rows is that of {quoted(facts.last['window']['label'])}:"
        yield from _files(facts.last, links)
    if facts.next_run:
        yield f"The next try is on {_local(facts.next_run, facts.zone)}."
        yield ""


def _window(facts: Facts) -> Iterator[str]:
    if window := facts.manifest.get("window"):
        start, end = (_local(datetime.fromisoformat(window[edge]), window["zone"]) for edge in ("start", "end"))
        yield f"The window is from {start} to before {end}."


def _end(news: RunOutcome, facts: Facts) -> Iterator[str]:
    yield f"Run: {one_line(news.run_id)}"
    if facts.owner:
        yield f"Questions: {quoted(facts.owner)}"
    yield "To get no more of these mails, use the link below this text."


def _rows(document: Mapping[str, Any]) -> str:
    rows = int((document.get("rows") or {}).get("rows") or 0)
    return f"{rows:,} row{'' if rows == 1 else 's'}"


def _grouped(number: object) -> str:
    """1142546.38 as 1,142,546.38; what isn't a number is a word like any other."""
    return f"{Decimal(str(number)):,f}" if _NUMBER.fullmatch(str(number)) else quoted(number)


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


#: What engineers hear of; the rest is none of their business.
HEARD: Final = (states.LATE, *states.FAILURE_STATES, states.RECOVERED)


@attrs.frozen
class Run:
    """The job's run that the news comes from, "" where nobody knows it, and how Glue says it ended."""

    job_run_id: str = ""
    state: str = ""


def compose_alarm(
    topic: str, news: RunOutcome, state: str, facts: Facts, *, links: Links, told: ExportSettings, run: Run
) -> Mail:
    words = [*_head(news, state, told), "", *_where(news, links, told, run), *_again(news, told)]
    return Mail(topic, headline(news, state, facts), "\n".join(words) + "\n")


def _head(news: RunOutcome, state: str, told: ExportSettings) -> Iterator[str]:
    yield f"Export {one_line(told.name)}, {'the run' if news.place == states.RUN else 'window ' + quoted(news.place)}: {state}."
    if news.code:
        yield f"{one_line(news.code)}  {quoted(news.reason)}"
    elif news.reason:
        yield quoted(news.reason)
    if news.remedy:
        yield f"What to do: {quoted(news.remedy)}"


def _where(news: RunOutcome, links: Links, told: ExportSettings, run: Run) -> Iterator[str]:
    yield f"Run's record: {links.record(told.name, one_line(news.run_id))}"
    yield f"Job's runs and logs: {links.run(told.job, run.job_run_id)}"
    if run.state:
        yield f"State of the job: {one_line(run.state)}"


def _again(news: RunOutcome, told: ExportSettings) -> Iterator[str]:
    if not news.code:
        yield "Nothing has to be done."
        return
    yield f"Code explained: docs/reference/errors.md#{one_line(news.code).lower()}"
    yield f"Run again: aws glue start-job-run --job-name {one_line(told.job)}"
