"""HTML that nothing can break out of: text becomes `Html` only by being made visible, cut and escaped."""

from __future__ import annotations

import html
import re
from collections.abc import Collection, Iterable, Sequence
from typing import NewType

Html = NewType("Html", str)

#: How a line break shows inside a value.
LINE_BREAK = "↵"
_VOID = {"meta"}
_NONCHARACTERS = "".join(chr(plane << 16 | low) for plane in range(17) for low in (0xFFFE, 0xFFFF))
#: Signs that HTML forbids, that can't be encoded, or that would hide themselves or turn the order of the text around.
_UNSEEN = re.compile(
    "\r\n|[\x00-\x1f\x7f-\x9f\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufdd0-\ufdef\ufeff\ufff9-\ufffb\ud800-\udfff"
    f"\U000e0000-\U000e007f{_NONCHARACTERS}]"
)


def prose(value: str, limit: int = 500) -> Html:
    """A text of a contract: line breaks are blanks."""
    return verbatim(" ".join(value.split()), limit)


def verbatim(value: str, limit: int) -> Html:
    """A value as it is, each sign that can't be seen replaced by one that names it, and no longer than `limit`."""
    shown = value if len(value) <= limit else value[: limit - 1] + "…"
    return Html(html.escape(_UNSEEN.sub(_named, shown)))


def named(title: str, unit: str | None, limit: int = 80) -> Html:
    """A figure's title with its unit, where the title doesn't say it already."""
    if not unit or unit.lower() in title.lower().split():
        return prose(title, limit)
    return said("{title} ({unit})", title=prose(title, limit), unit=prose(unit, limit // 2))


def tag(name: str, /, *children: Html, **attributes: str | int | None) -> Html:
    """`class_` and `aria_label` become class and aria-label; an attribute that is None is left out."""
    given = "".join(
        f' {key.strip("_").replace("_", "-")}="{html.escape(str(value))}"'
        for key, value in attributes.items()
        if value is not None
    )
    return Html(f"<{name}{given}>" if name in _VOID else f"<{name}{given}>{''.join(children)}</{name}>")


def joined(parts: Iterable[Html], between: str = "") -> Html:
    return Html(html.escape(between).join(parts))


def said(template: str, **values: Html) -> Html:
    """A sentence of ours with {names} for what was escaped already."""
    return Html(html.escape(template, quote=False).format(**values))


def bullets(items: Iterable[Html]) -> Html:
    return tag("ul", *[tag("li", item) for item in items])


def table(name: str, caption: Html, heads: Sequence[str], rows: Iterable[Sequence[Html]], numeric: Collection[int] = ()) -> Html:
    """The first cell of a row is its header. `name` is unique in the page; `numeric` holds places of cells with numbers."""
    classes = ["n" if place in numeric else None for place in range(len(heads))]
    top = [tag("th", prose(head), scope="col", class_=class_) for head, class_ in zip(heads, classes, strict=True)]
    body = [tag("tr", tag("th", row[0], scope="row", class_=classes[0]), *_cells(row, classes)) for row in rows]
    above = tag("caption", tag("span", caption), id=f"{name}-caption")
    whole = tag("table", above, tag("thead", tag("tr", *top)), tag("tbody", *body))
    return tag("div", whole, class_="scroll", id=name, role="region", aria_labelledby=f"{name}-caption", tabindex=0)


def _cells(row: Sequence[Html], classes: list[str | None]) -> list[Html]:
    return [tag("td", cell, class_=class_) for cell, class_ in zip(row[1:], classes[1:], strict=True)]


def _named(match: re.Match[str]) -> str:
    return LINE_BREAK if match[0] in ("\r\n", "\n", "\r") else f"‹U+{ord(match[0]):04X}›"
