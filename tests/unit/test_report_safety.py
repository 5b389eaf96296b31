"""A report can't harm, hide or load anything, stays small, and is accessible to everybody."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from itertools import pairwise

import attrs
import pytest

from glue_jobs.delivery import report
from glue_jobs.delivery.manifest import CheckResult
from glue_jobs.delivery.report import STYLE
from tests.support import page_reader, samples

LIMIT = 300_000
NASTY = (
    '<script>alert("1")</script>\' & \u202eevil\u202c \x00\x07\x85 \ufdd0 \u2028 </style>]]>--><b '
    "onload='x'>"
)

TEXTS = """
name = "texts"
version = 1
title = {text}
description = {text}
owner = {text}
grain = {text}
[source]
topic = "t"
event_time = "at"
[window]
every = "month"
zone = "UTC"
from = 2026-11-01
[[filter]]
where = {text}
reason = {text}
[delivery]
order_by = ["c0"]
null_text = "-"
[report]
headline = ["n"]
{columns}
{charts}
"""
COLUMN = """
[[column]]
name = "{name}"
type = "{type}"
title = {text}
description = {text}
unit = {text}
example = {text}
allowed = {allowed}
expression = {text}
nullable = true
"""
CHART = """
[[report.chart]]
title = {text}
x = "{x}"
y = "{y}"
kind = "{kind}"
"""


def texts(text: str, *, columns: int, values: list[str | None]):
    """Return an export whose texts are all `text` and whose cells have one of `values`."""
    quoted = json.dumps(text)
    named = [(f"c{number}", "text") for number in range(columns)] + [
        ("n", "decimal(38,10)"),
        ("at", "timestamp"),
    ]
    allowed = {name: json.dumps([text] * 3 if type_ == "text" else []) for name, type_ in named}
    written = "".join(
        COLUMN.format(name=name, type=type_, text=quoted, allowed=allowed[name]) for name, type_ in named
    )
    charts = "".join(
        CHART.format(text=quoted, x=x, y=y, kind=kind)
        for x, y, kind in (("c0", "n", "bar"), ("at", "n", "line"), ("c0", "rows", "line"))
    )
    contract = samples.contract(TEXTS.format(text=quoted, columns=written, charts=charts))
    start = datetime(2026, 11, 1, tzinfo=UTC)
    rows = [
        {f"c{number}": value for number in range(columns)}
        | {"n": Decimal(number - 40) * 10**15, "at": start + timedelta(seconds=number)}
        for number, value in enumerate(values)
    ]
    made = samples.delivered(contract, rows)
    checks = [CheckResult(f"k{number}", "warn", text, number % 2) for number in range(columns)]
    before = samples.previous("2026-10", 1, n="1")
    return attrs.evolve(made, checks=checks, notes=[text] * 40, files=made.files * 40, previous_window=before)


def page(delivered) -> page_reader.Node:
    return page_reader.read(report.render_html(delivered))


def test_decimals_of_the_first_rows_have_no_exponents():
    contract = samples.contract(
        TEXTS.format(
            text='"t"',
            columns=COLUMN.format(name="c0", type="text", text='"t"', allowed="[]")
            + COLUMN.format(name="n", type="decimal(38,10)", text='"t"', allowed="[]"),
            charts="",
        )
    )
    rows = (
        page(samples.delivered(contract, [{"c0": "a\r\nb", "n": Decimal("0.0000000001")}]))
        .one("div", id="first")
        .rows()
    )
    assert rows == [["1", "a↵b", "0.0000000001"]]


def test_the_order_of_inputs_has_no_effect():
    made = samples.weekly_sales()
    turned = [dict(reversed(series.items())) for series in made.stats.series]
    other = attrs.evolve(made, stats=attrs.evolve(made.stats, series=turned))
    assert report.render_html(other) == report.render_html(made)


@pytest.mark.parametrize("make", [samples.weekly_sales, samples.sales_by_region, samples.daily_trades])
def test_a_report_has_no_script_and_loads_nothing(make):
    found = page(make())
    assert (
        not found.all("script")
        + found.all("link")
        + found.all("img")
        + found.all("iframe")
        + found.all("object")
    )
    for node in found.walk():
        assert not [
            name
            for name in node.attributes
            if name.startswith("on") or name in ("style", "src", "srcset", "xlink:href")
        ]
        assert (node.attributes.get("href") or "#").startswith("#")
    style = found.one("style").children[0]
    assert "url(" not in style
    assert "@import" not in style
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    policy = found.one("meta", **{"http-equiv": "Content-Security-Policy"}).attributes["content"]
    assert policy == f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"


@pytest.mark.parametrize("make", [samples.weekly_sales, samples.sales_by_region, samples.daily_trades])
def test_a_report_is_accessible_to_screen_readers(make):
    found = page(make())
    assert found.one("html").attributes["lang"] == "en"
    levels = [int(node.name[1]) for node in found.walk() if re.fullmatch("h[1-6]", node.name)]
    assert levels[0] == 1
    assert all(after <= before + 1 for before, after in pairwise(levels))
    ids = {node.attributes["id"] for node in found.walk() if "id" in node.attributes}
    for node in found.walk():
        assert set((node.attributes.get("aria-labelledby") or "").split()) <= ids
        assert (node.attributes.get("href") or "#checks")[1:] in ids
    for table in found.all("table"):
        assert table.one("caption").text
        assert all(head.attributes["scope"] in ("col", "row") for head in table.all("th"))
    for picture in found.all("svg", role="img"):
        assert all(found.one(id=name).text for name in picture.attributes["aria-labelledby"].split())


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_colours_have_contrast(scheme):
    light, dark = STYLE.split("@media", 1)
    colours = dict(
        re.findall(r"--([a-z]+):(#[0-9a-f]+)", light if scheme == "light" else dark.split("*{", 1)[0])
    )
    for name in ("ink", "soft", "good", "warn", "wait"):
        assert min(contrast(colours[name], colours[ground]) for ground in ("paper", "card")) >= 4.5
    for name in ("blue", "red", "grey"):
        assert contrast(colours[name], colours["paper"]) >= 3


def contrast(one: str, other: str) -> float:
    light, dark = sorted((luminance(one), luminance(other)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


def luminance(colour: str) -> float:
    digits = colour[1:] if len(colour) == 7 else "".join(2 * digit for digit in colour[1:])
    parts = [int(digits[start : start + 2], 16) / 255 for start in (0, 2, 4)]
    red, green, blue = (
        part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts
    )
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def test_texts_cannot_become_markup():
    made = texts(NASTY, columns=3, values=[NASTY, "\u202eabc", 'a"b', None])
    html = report.render_html(made)
    found = page_reader.read(html)
    assert not found.all("script") + found.all("b", onload="x")
    assert len(found.all("style")) == 1
    assert '<script>alert("1")</script>\' & ‹U+202E›evil‹U+202C› ‹U+0000›‹U+0007›' in found.one("h1").text
    assert "‹U+202E›abc" in found.one("div", id="first").text
    hidden = re.findall("[\x00-\x09\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\u2028\ufdd0]", html)
    assert not hidden


def test_lone_surrogates_are_accepted():
    made = samples.weekly_sales(2)
    cells = ["\udc80" if column.type == "text" else None for column in made.contract.columns]
    broken = attrs.evolve(made.stats, first_rows=[cells], series=[{"\udc80": Decimal(1)}] * 3)
    assert "‹U+DC80›" in report.render_html(attrs.evolve(made, stats=broken)).encode().decode()


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("text", "columns", "values"),
    [
        ("A title", 3, [f"a value of usual length {number}" for number in range(5_200)]),
        ("A title", 200, [f"a value of usual length {number}" for number in range(400)]),
        ("A title", 25, ["é" * 32_000 + str(number) for number in range(30)]),
        ("&" * 3_000, 30, ["\u202e" * 300 + str(number) for number in range(600)]),
        ("&" * 3_000, 300, ["\u202e" * 300 + str(number) for number in range(60)]),
    ],
)
def test_a_report_stays_small_and_states_what_it_omits(text, columns, values):
    made = texts(text, columns=columns, values=values)
    html = report.render_html(made)
    assert len(html.encode()) <= LIMIT
    found = page_reader.read(html)
    assert "more notes are not shown here; the manifest has all of them" in found.text
    assert len(found.one("h1").text) <= 500
    shown = len(found.one("div", id="first").one("thead").all("th")) - 1
    whole = columns + 2
    assert (
        shown == whole
        or f"{whole - shown} more columns are not shown here; the file has all of them." in found.text
    )
