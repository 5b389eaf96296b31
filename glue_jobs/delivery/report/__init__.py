"""report.html: what a person reads beside the file.

One page without scripts, images or requests, of 300 kB at most.
"""

from __future__ import annotations

import base64
import hashlib
import re
from functools import cache
from importlib import resources
from typing import Final

import attrs
from jinja2 import Environment, StrictUndefined, Template
from markupsafe import Markup

from glue_jobs.delivery.manifest import WindowResult
from glue_jobs.delivery.report import charts, values, wording
from glue_jobs.platform import compute_code_version

STYLE: Final = resources.files(__name__).joinpath("report.css").read_text("utf-8")
#: How a line break inside a value is shown.
LINE_BREAK: Final = "↵"
_MAX_BYTES: Final = 300_000
_CHARTS: Final = 3
_NONCHARACTERS = "".join(chr(plane << 16 | low) for plane in range(17) for low in (0xFFFE, 0xFFFF))
#: Characters that HTML forbids, that can't be encoded, that are invisible, or that reverse the direction of
#: text.
_UNSEEN: Final = re.compile(
    "\r\n|[\x00-\x1f\x7f-\x9f\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufdd0-\ufdef\ufeff\ufff9-\ufffb\ud800-\udfff"
    f"\U000e0000-\U000e007f{_NONCHARACTERS}]"
)


@attrs.frozen
class Limits:
    """How much the page shows: `items` of a list, `text` characters of a contract's texts; the others limit
    the first rows.
    """

    items: int
    text: int
    rows: int
    columns: int
    cell: int


#: From most to least. The page uses the first limits with which it is small enough, or the last ones.
_LIMITS: Final = (
    Limits(items=250, text=500, rows=20, columns=250, cell=80),
    Limits(items=250, text=160, rows=20, columns=250, cell=32),
    Limits(items=120, text=120, rows=10, columns=120, cell=24),
    Limits(items=60, text=60, rows=5, columns=60, cell=16),
    Limits(items=20, text=24, rows=3, columns=20, cell=12),
)


def render_html(result: WindowResult) -> str:
    """Return the page. The same input gives the same page."""
    for limits in _LIMITS:
        page = _render(result, limits)
        if len(page.encode()) <= _MAX_BYTES:
            break
    return page


@cache
def environment() -> Environment:
    """Return Jinja's environment. It escapes all output of templates, and replaces invisible characters."""
    jinja = Environment(
        autoescape=True,
        undefined=StrictUndefined,
        finalize=_show_invisible,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    jinja.filters |= {
        name: getattr(wording, name) for name in ("prose", "cut", "number", "short", "count", "size")
    }
    jinja.globals |= {"values": values, "wording": wording, "line_break": LINE_BREAK}
    return jinja


@cache
def _load_template() -> Template:
    return environment().from_string(resources.files(__name__).joinpath("report.html.j2").read_text("utf-8"))


def _show_invisible(value: object) -> object:
    """Replace each invisible character with its code in text."""
    return value if isinstance(value, Markup) else _UNSEEN.sub(_name_character, str(value))


def _name_character(match: re.Match[str]) -> str:
    return LINE_BREAK if match[0] in ("\r\n", "\n", "\r") else f"‹U+{ord(match[0]):04X}›"


def _render(result: WindowResult, limits: Limits) -> str:
    contract = result.contract
    stats = result.stats
    drawn = range(min(_CHARTS, len(contract.report.chart)))
    page = _load_template().render(
        result=result,
        contract=contract,
        window=result.window,
        stats=stats,
        limits=limits,
        text=limits.text,
        figures=[charts.figure(index, contract, stats) for index in drawn],
        style=Markup(STYLE),  # noqa: S704 -- ours
        # A hash instead of 'unsafe-inline', so that not even a style attribute is allowed.
        style_hash=base64.b64encode(hashlib.sha256(STYLE.encode()).digest()).decode(),
        code_version=compute_code_version(),
    )
    return page.lstrip()
