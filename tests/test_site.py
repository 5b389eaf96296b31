"""The site that `make docs` makes: every link on it leads somewhere, its pages ask nobody for anything, pictures are drawn."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from pathlib import Path, PurePosixPath

import docs_reader
import pytest

from lakeferry.site import building, flowchart
from lakeferry.site.markdown import render

ROOT = Path(__file__).resolve().parents[1]
MERMAID = [fence.text for page in docs_reader.pages(ROOT) for fence in docs_reader.fences(page) if fence.language == "mermaid"]
_ASKS = re.compile(r"url\(|@import|fetch\(|XMLHttpRequest|https?://(?!www\.w3\.org)")


class Page(HTMLParser):
    """Ids, links and what a browser would fetch by itself."""

    def __init__(self, file):
        super().__init__()
        self.ids, self.links, self.fetched = set(), [], []
        self.feed(file.read_text(encoding="utf-8"))

    def handle_starttag(self, tag, attrs):
        found = dict(attrs)
        self.ids |= {found["id"]} if "id" in found else set()
        self.links += [found["href"]] if tag == "a" and "href" in found else []
        self.fetched += [found[name] for name in ("src", "href", "srcset") if name in found and tag != "a"]


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    out = tmp_path_factory.mktemp("site")
    assert building.build(ROOT, out) == len(docs_reader.pages(ROOT))
    return {file.relative_to(out): Page(file) for file in sorted(out.rglob("*.html"))}, out


def dead(site):
    """Links within the site that lead to no file, or to no heading of it."""
    pages, out = site
    for place, page in pages.items():
        for link in page.links:
            path, _, anchor = link.partition("#")
            if "://" in link:
                continue
            target = (out / place.parent / path).resolve() if path else out / place
            if not target.is_file() or (anchor and anchor not in pages[target.relative_to(out)].ids):
                yield f"{place}: {link}"


def test_links_of_the_site_lead_somewhere(site):
    assert list(dead(site)) == []


def test_dead_links_are_found(tmp_path):
    (tmp_path / "a.html").write_text('<h1 id="one"></h1><a href="#one"></a><a href="#two"></a><a href="b.html"></a>')
    pages = {Path("a.html"): Page(tmp_path / "a.html")}
    assert list(dead((pages, tmp_path))) == ["a.html: #two", "a.html: b.html"]


def elsewhere(pages, out):
    """What a browser would fetch for a page, and that doesn't lie beside it; what scripts and styles would ask for."""
    for place, page in pages.items():
        for link in page.fetched:
            if link != "data:," and not (out / place.parent / link).resolve().is_file():
                yield f"{place}: {link}"
    for file in sorted(out.rglob("*")):
        if file.suffix in (".css", ".js") and (found := _ASKS.search(file.read_text(encoding="utf-8"))):
            yield f"{file.name}: {found[0]}"


def test_pages_fetch_nothing_from_elsewhere(site):
    pages, out = site
    assert all(len(page.fetched) >= 4 for page in pages.values())
    assert list(elsewhere(pages, out)) == []


def test_what_is_fetched_from_elsewhere_is_found(tmp_path):
    (tmp_path / "a.html").write_text('<img src="https://example.org/a.png"><script src="s.js"></script><link href="//cdn/x.css">')
    (tmp_path / "s.js").write_text("fetch('https://example.org')")
    (tmp_path / "s.css").write_text("@import 'x';")
    found = list(elsewhere({Path("a.html"): Page(tmp_path / "a.html")}, tmp_path))
    assert found == ["a.html: https://example.org/a.png", "a.html: //cdn/x.css", "s.css: @import", "s.js: fetch("]


def test_the_list_of_pages_is_that_of_the_index_by_titles(site):
    pages, _ = site
    titles = {PurePosixPath(one): "T" for one in ("docs/how-to/a.md", "docs/b.md", "docs/c.md")}
    groups = building.navigation("# X\n**One**: more\n\n- [a](how-to/a.md), [b](b.md)\n\n**Two** (so)\n\n- [c](c.md)\n", titles)
    assert [(one.title, [str(page) for _, page in one.links]) for one in groups] == [
        ("One: more", ["docs/how-to/a.md", "docs/b.md"]),
        ("Two", ["docs/c.md"]),
    ]
    assert all("how-to/tear-down.html" in " ".join(page.links) for place, page in pages.items() if place.parent == Path())


@pytest.mark.parametrize("page", docs_reader.pages(ROOT)[:40], ids=lambda page: str(page.relative_to(ROOT)))
def test_anchors_are_those_of_github(page):
    made = render(page.read_text(encoding="utf-8"), lambda link: link)
    assert {heading.anchor for heading in made.headings} == docs_reader.anchors(page)


def test_a_link_that_leads_nowhere_stops_the_making(tmp_path):
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "README.md").write_text("# X\n[a](a.md)\n")
    with pytest.raises(LookupError, match=r"docs/README\.md: a\.md"):
        building.build(tmp_path, tmp_path / "out")


def test_what_a_page_says_is_text_and_never_markup():
    made = render("# A <b>\n<!-- made -->\n\n<script>alert(1)</script> `<i>`\n\n```html\n<u>\n```\n", lambda link: link)
    assert not re.search(r"<(b|script|i|u)>", made.html)
    assert "made" not in made.html
    assert made.title == "A <b>"


# --- pictures


@pytest.mark.parametrize("text", MERMAID)
def test_every_flowchart_on_our_pages_is_drawn_whole(text):
    drawn = flowchart.picture(text)
    nodes = set(re.findall(r"^\s*(\w+)(?:\[|\()", re.sub(r"subgraph.*", "", text), re.MULTILINE))
    assert drawn.count('class="node"') == len(nodes)
    assert drawn.count('class="arrow') == len(re.findall(r"-->|==>|\.->", text))
    assert drawn.count('class="frame"') == text.count("subgraph ")


def test_arrows_say_how_they_are_and_what_they_mean():
    drawn = flowchart.picture(
        'flowchart LR\n  subgraph one [First]\n    a["A<br/>two <lines>"]\n    b[B]\n  end\n  c([C])\n'
        '  a -->|makes| b\n  b -. "1 gives a principal" .-> c\n  a == "as it then is" ==> c\n  a -- reads --> b\n  a -.-> one\n'
    )
    assert drawn.count('class="arrow dashed"') == 2
    assert drawn.count('class="arrow thick"') == 1
    assert re.findall(r'class="label"[^>]*>([^<]+)<', drawn) == ["makes", "1", "b", "reads"]
    assert "<b>1</b> gives a principal" in drawn
    assert "<b>b</b> as it then is" in drawn
    assert "two &lt;lines&gt;" in drawn


def test_arrows_begin_and_end_at_the_edges_of_boxes():
    drawn = flowchart.picture(
        "flowchart LR\n subgraph s [S]\n  a[A]\n  b[B]\n end\n c[C]\n a --> b\n b --> c\n c --> a\n b --> a\n"
    )
    boxes = [
        tuple(map(float, found)) for found in re.findall(r'class="node" x="(.+?)" y="(.+?)" width="(.+?)" height="(.+?)"', drawn)
    ]
    paths = [re.findall(r"[\d.-]+", path) for path in re.findall(r'class="arrow " d="([^"]+)"', drawn)]
    ends = [(float(x), float(y)) for path in paths for x, y in (path[:2], path[-2:])]
    assert len(ends) == 8
    assert [end for end in ends if not any(_on_edge(end, box) for box in boxes)] == []


def _on_edge(point, box):
    x, y, width, height = box
    near = [abs(point[0] - x), abs(point[0] - x - width), abs(point[1] - y), abs(point[1] - y - height)]
    within = x - 1 <= point[0] <= x + width + 1 and y - 1 <= point[1] <= y + height + 1
    return within and min(near) <= 1


def test_another_sort_of_picture_stays_text_and_a_line_that_nobody_understands_is_told():
    assert flowchart.picture("sequenceDiagram\n  a->>b: hello\n") == ""
    assert "<pre" in render("```mermaid\nsequenceDiagram\n  a->>b: hello\n```\n", lambda link: link).html
    with pytest.raises(ValueError, match="no node"):
        flowchart.picture("flowchart LR\n  a ~~~ b ~~~ !\n")
