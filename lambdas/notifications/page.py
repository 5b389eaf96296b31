"""The HTML of a mail to a recipient: the facts of the text, with the numbers first.

It loads nothing and runs nothing: mail programs block both. One column, so that it is readable on a telephone
of 320 pixels. Colours are never the only sign.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from decimal import Decimal
from html import escape
from pathlib import PurePosixPath
from typing import Any, Final

from lambdas.notifications import message
from lambdas.notifications import outcome as states
from lambdas.notifications.mail_links import Links, PersonalLinks
from lambdas.notifications.outcome import Facts, RunOutcome

_STYLE: Final = """
:root{color-scheme:light dark}
body{margin:0;padding:16px;font:16px/1.5 -apple-system,"Segoe UI",Roboto,Arial,sans-serif;color:#1b1f24;
background:#fff;overflow-wrap:anywhere}
main{max-width:560px;margin:0 auto}
h1{font-size:20px;line-height:1.3;margin:0 0 4px}
h2{font-size:16px;margin:24px 0 8px}
p{margin:0 0 8px}
ul{margin:0 0 8px;padding-left:20px}
.state{display:inline-block;border:1px solid #6a737d;border-radius:12px;padding:0 10px;margin:0 0 12px}
.number{border-left:4px solid #6a737d;padding:2px 0 2px 12px;margin:0 0 12px}
.number b{display:block;font-size:28px;line-height:1.2}
.quiet{color:#57606a;font-size:14px}
.button{display:inline-block;background:#0b5cad;color:#fff;text-decoration:none;border-radius:6px;
padding:10px 16px;margin:0 0 8px}
a{color:#0b5cad}
code{font-size:13px}
@media (prefers-color-scheme:dark){body{color:#e6edf3;background:#0d1117}.quiet{color:#9da7b1}a{color:#79b8ff}
.button{color:#fff}}
"""


def compose_page(
    news: RunOutcome, state: str, facts: Facts, links: Links, personal: PersonalLinks | None
) -> str:
    body = "\n".join(_list_parts(news, state, facts, links, personal))
    title = escape(message.quote_line(facts.title))
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        '<meta name="color-scheme" content="light dark">'
        f"<title>{title}</title><style>{_STYLE}</style></head>\n<body><main>\n{body}\n</main></body></html>\n"
    )


def _list_parts(
    news: RunOutcome, state: str, facts: Facts, links: Links, personal: PersonalLinks | None
) -> Iterator[str]:
    window = "" if news.window == states.RUN else f", {message.quote_line(news.window)}"
    yield f"<h1>{_quote(facts.title)}{escape(window)}</h1>"
    yield f'<p class="state">{escape(state)}</p>'
    yield from _write_lines(message.describe_news(news, state))
    yield from _write_lines(message.explain_attachments(facts))
    if news.has_file:
        yield from _list_numbers(news, facts)
    if sentences := [line for line in message.list_sentences(news) if line]:
        yield "<h2>Checks and notes</h2>"
        yield f"<ul>{''.join(f'<li>{escape(line)}</li>' for line in sentences)}</ul>"
    if news.has_file:
        yield from _offer_files(news.window, news.document, facts, links, personal)
    elif facts.last:
        label = facts.last["window"]["label"]
        yield f"<h2>The last file with rows is of {_quote(label)}</h2>"
        yield from _offer_files(label, facts.last, facts, links, personal)
    yield from _write_lines(message.list_closing(news, facts), quiet=True)


def _quote(text: object) -> str:
    return escape(message.quote_line(text))


def _write_lines(lines: Iterator[str], *, quiet: bool = False) -> Iterator[str]:
    opening = '<p class="quiet">' if quiet else "<p>"
    yield from (f"{opening}{escape(line)}</p>" for line in lines if line)


def _list_numbers(news: RunOutcome, facts: Facts) -> Iterator[str]:
    rows, _, unit = message.format_rows(news.document).partition(" ")
    yield f'<p class="number"><b>{rows}</b>{unit}</p>'
    for number in (news.document.get("headline") or [])[: message.HEADLINES]:
        unit = f" {_quote(number['unit'])}" if number.get("unit") else ""
        total = escape(message.group_digits(number["total"]))
        change = _describe_change(facts.change(number))
        yield f'<p class="number"><b>{total}{unit}</b>{_quote(number["title"])}{change}</p>'
    yield from _write_lines(message.describe_generation(news))


def _describe_change(change: tuple[Decimal, str] | None) -> str:
    """Return the change with an arrow and a sign, so that no colour is needed."""
    if change is None:
        return ""
    percent, before = change
    label = _quote(before)
    if not percent:
        return f"<br>= unchanged from {label}"
    sign = "▲ +" if percent > 0 else "▼ −"
    return f"<br>{sign}{abs(percent):,} % compared with {label}"


def _offer_files(
    window: str, document: Mapping[str, Any], facts: Facts, links: Links, personal: PersonalLinks | None
) -> Iterator[str]:
    files = message.select_files(document)
    if personal:
        url = escape(personal.sign(window, int(document["generation"])))
        until = message.format_local(personal.until, facts.zone)
        yield f'<p><a class="button" href="{url}">Open the files</a></p>'
        yield f'<p class="quiet">The link is yours, and works until {escape(until)}.</p>'
    else:
        yield "<h2>Files</h2>"
        yield f'<p class="quiet">{escape(message.HOW_TO_DOWNLOAD)}</p>'
    shown = files if personal else files[: message.FILES]
    items = []
    for file in shown:
        name = escape(PurePosixPath(file["key"]).name)
        if not personal:
            name = f'<a href="{escape(links.page(file["key"]))}">{name}</a>'
        command = "" if personal else f"<br><code>{escape(links.command(file['key']))}</code>"
        items.append(f"<li>{name}, {escape(message.format_size(int(file.get('size') or 0)))}{command}</li>")
    yield f"<ul>{''.join(items)}</ul>"
    if len(shown) < len(files) or not files:
        yield f"<p>{escape(message.explain_other_files(links))}</p>"
