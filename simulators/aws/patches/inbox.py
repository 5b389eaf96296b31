"""The mails that were sent, in place of the recipients' own inboxes: /_simulator/mail as JSON, mail.html for people.

`?to=` and `?topic=` choose. They are in memory: a later start of the embedded AWS has none.
"""

from __future__ import annotations

import html
import re
from collections import deque
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import Final

from simulators.aws import controls
from simulators.core.control import Request, Response, as_html, as_json

_MAILS: Final = 10_000
_LINK: Final = re.compile(r"https?://[^\s<>\"']+")
_STYLE: Final = (
    "body{font:16px/1.5 system-ui,sans-serif;max-width:50rem;margin:2rem auto;padding:0 1rem}"
    "article{border:1px solid #ccc;border-radius:6px;margin:1rem 0;padding:0 1rem}"
    "pre{white-space:pre-wrap;overflow-wrap:anywhere}header{color:#555}"
)


@dataclass(frozen=True)
class Mail:
    """`link` is what the mail asks to follow: it confirms, or it unsubscribes."""

    to: str
    subject: str
    body: str
    at: str
    topic: str
    sender: str
    kind: str
    link: str


_mails: deque[Mail] = deque(maxlen=_MAILS)


def put(to: str, subject: str, body: str, *, topic: str, sender: str, kind: str, link: str) -> None:
    at = datetime.now(UTC).isoformat(timespec="milliseconds")
    _mails.append(Mail(to, subject, body, at, topic, sender, kind, link))


@controls.register("GET", "/mail")
def mails(request: Request) -> Response:
    return as_json([asdict(mail) for mail in _chosen(request)])


@controls.register("GET", "/mail.html")
def page(request: Request) -> Response:
    """Newest first."""
    articles = [_article(mail) for mail in reversed(_chosen(request))]
    shown = "\n".join(articles) or "<p>No mail yet.</p>"
    head = f"<meta charset=utf-8><title>Mails ({len(articles)})</title><style>{_STYLE}</style>"
    return as_html(f"<!doctype html><html lang=en>{head}<h1>Mails</h1>\n{shown}\n")


def _chosen(request: Request) -> list[Mail]:
    wanted = {name: request.query[name] for name in ("to", "topic") if name in request.query}
    return [mail for mail in _mails if all(getattr(mail, name) == value for name, value in wanted.items())]


def _article(mail: Mail) -> str:
    head = html.escape(f"{mail.at} · from {mail.sender} · to {mail.to}")
    return f"<article><h2>{html.escape(mail.subject)}</h2><header>{head}</header><pre>{_linked(mail.body)}</pre></article>"


def _linked(text: str) -> str:
    """Escaped, with its links to follow."""
    parts, at = [], 0
    for found in _LINK.finditer(text):
        link = html.escape(found[0])
        parts += [html.escape(text[at : found.start()]), f'<a href="{link}">{link}</a>']
        at = found.end()
    return "".join([*parts, html.escape(text[at:])])
