"""The inbox of all mails that the embedded AWS sends, from SNS and SES. It is in memory.

GET mail (JSON) and mail.html under /_simulator show the mails, filtered by `?to=` and `?topic=`.
"""

from __future__ import annotations

import html
import re
from collections import deque
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import Final

from simulators.aws import controls
from simulators.core import control

_MAX_MAILS: Final = 10_000
#: In a group, so that split() returns the links too.
_LINK: Final = re.compile(r"(https?://[^\s<>\"']+)")
_STYLE: Final = (
    "body{font:16px/1.5 system-ui,sans-serif;max-width:50rem;margin:2rem auto;padding:0 1rem}"
    "article{border:1px solid #ccc;border-radius:6px;margin:1rem 0;padding:0 1rem}"
    "pre{white-space:pre-wrap;overflow-wrap:anywhere}header{color:#555}"
    "iframe{width:100%;height:32rem;border:0}"
)


@dataclass(frozen=True)
class Attachment:
    """`size` is in bytes, `sha256` in hexadecimal digits."""

    name: str
    type: str
    size: int
    sha256: str


@dataclass(frozen=True)
class Mail:
    """`link` is the link in a mail of SNS, which confirms the subscription or unsubscribes. `topic` is its
    topic, "" for a mail of SES. `html` is the HTML of a mail of SES.

    `at` is ISO 8601, in UTC.
    """

    to: str
    subject: str
    body: str
    at: str
    topic: str
    sender: str
    kind: str
    link: str
    html: str = ""
    attachments: tuple[Attachment, ...] = ()


_mails: deque[Mail] = deque(maxlen=_MAX_MAILS)


def keep(mail: Mail) -> None:
    _mails.append(mail)


def now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds")


@controls.register("GET", "/mail")
def list_mails(request: control.Request) -> control.Response:
    return control.build_json_response([asdict(mail) for mail in _select_mails(request)])


@controls.register("GET", "/mail.html")
def render_page(request: control.Request) -> control.Response:
    """Show the mails, the newest first."""
    articles = [_render_mail(mail) for mail in reversed(_select_mails(request))]
    content = "\n".join(articles) or "<p>No mail yet.</p>"
    head = f"<meta charset=utf-8><title>Mails ({len(articles)})</title><style>{_STYLE}</style>"
    return control.build_html_response(f"<!doctype html><html lang=en>{head}<h1>Mails</h1>\n{content}\n")


def _select_mails(request: control.Request) -> list[Mail]:
    filters = {name: request.query[name] for name in ("to", "topic") if name in request.query}
    mails = list(_mails)
    for name, value in filters.items():
        mails = [mail for mail in mails if getattr(mail, name) == value]
    return mails


def _render_mail(mail: Mail) -> str:
    head = html.escape(f"{mail.at} · from {mail.sender} · to {mail.to}")
    return (
        f"<article><h2>{html.escape(mail.subject)}</h2><header>{head}</header>"
        f"{_render_body(mail)}{_render_attachments(mail)}</article>"
    )


def _render_body(mail: Mail) -> str:
    """Return the HTML in a frame without scripts, or the text with links."""
    if mail.html:
        return f'<iframe sandbox srcdoc="{html.escape(mail.html)}"></iframe>'
    parts = [html.escape(part) for part in _LINK.split(mail.body)]
    for number in range(1, len(parts), 2):
        parts[number] = f'<a href="{parts[number]}">{parts[number]}</a>'
    return f"<pre>{''.join(parts)}</pre>"


def _render_attachments(mail: Mail) -> str:
    items = [
        f"<li>{html.escape(f'{part.name}, {part.type}, {part.size:,} bytes')}</li>"
        for part in mail.attachments
    ]
    return f"<ul>{''.join(items)}</ul>" if items else ""
