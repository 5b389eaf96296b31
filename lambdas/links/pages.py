"""The two pages that a link shows: the files with a button for each, or that it opens nothing.

They have no script, load nothing, and are kept by no cache. All texts are escaped.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterator, Sequence
from html import escape
from typing import Any, Final

import attrs

from lambdas.notifications import message

_STYLE: Final = (
    "body{font:1rem/1.5 system-ui,sans-serif;max-width:36rem;margin:0 auto;padding:1rem;color:#1a1a1a;"
    "background:#fff;overflow-wrap:anywhere}h1{font-size:1.25rem}li{margin:0 0 1rem}"
    "ul{list-style:none;padding:0}p.note{border-left:.25rem solid #b35900;padding-left:.75rem}"
    "button{font:inherit;padding:.5rem 1rem;min-height:2.75rem;width:100%;text-align:left;cursor:pointer}"
    "small{color:#555}"
)
_STYLE_HASH: Final = base64.b64encode(hashlib.sha256(_STYLE.encode()).digest()).decode()
_HEADERS: Final = {
    "Cache-Control": "no-store",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "X-Robots-Tag": "noindex",
}


@attrs.frozen
class Response:
    status: int
    headers: dict[str, str]
    body: str = ""

    def document(self) -> dict[str, Any]:
        """Return the response as API Gateway's payload format 2.0 has it."""
        return {"statusCode": self.status, "headers": self.headers, "body": self.body}


@attrs.frozen
class ShownFile:
    """`size` is in bytes."""

    name: str
    key: str
    size: int


@attrs.frozen
class Offer:
    """What a link opens. `newer` is the generation that replaced it, None if it is the newest. `until` says
    how long the link works."""

    title: str
    window: str
    files: Sequence[ShownFile]
    until: str
    newer: int | None = None


def show_files(offer: Offer, origin: str) -> Response:
    """`origin` is where the downloads are: browsers apply `form-action` to redirects too."""
    return _render(200, f"{offer.title}, {offer.window}", _list_lines(offer), origin)


def refuse() -> Response:
    """Return the one page for all links that open nothing: it tells nobody how near a guess is."""
    text = (
        "<p>It may be incomplete, too old, used too often, or ended by the team that runs the export.</p>"
        "<p>Open the link in the newest mail about this export, or ask the team that the mail names.</p>"
    )
    return _render(403, "This link opens nothing", [text])


def redirect(url: str) -> Response:
    return Response(303, {**_HEADERS, "Location": url})


def _list_lines(offer: Offer) -> Iterator[str]:
    if offer.newer is not None:
        yield (
            f'<p class="note"><strong>A newer version of these files exists: version {offer.newer}.</strong> '
            "Use the link in the mail about it. The files below are the earlier version that this link was "
            "made for.</p>"
        )
    yield '<form method="post"><ul>'
    for number, file in enumerate(offer.files):
        yield (
            f'<li><button name="file" value="{number}">Download {escape(file.name)}<br>'
            f"<small>{message.format_size(file.size)}</small></button></li>"
        )
    yield "</ul></form>"
    yield (
        f"<p><small>This link is yours, and works until {escape(offer.until)}. Downloads are recorded. "
        "Please don't forward it.</small></p>"
    )


def _render(status: int, title: str, lines: Iterator[str] | list[str], origin: str = "") -> Response:
    targets = f"'self' {origin}" if origin else "'none'"
    policy = (
        f"default-src 'none'; style-src 'sha256-{_STYLE_HASH}'; base-uri 'none'; frame-ancestors 'none'; "
        f"form-action {targets}"
    )
    body = (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width,initial-scale=1">'
        f"<title>{escape(title)}</title><style>{_STYLE}</style></head>"
        f"<body><h1>{escape(title)}</h1>{''.join(lines)}</body></html>"
    )
    headers = {**_HEADERS, "Content-Type": "text/html; charset=utf-8", "Content-Security-Policy": policy}
    return Response(status, headers, body)
