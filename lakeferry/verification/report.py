"""Write the evidence: a JSON document for programs, and a page for people that needs no network."""

from __future__ import annotations

import html
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

_ORDER: Final = ("failed", "unknown", "passed", "not asked")
_STYLE: Final = """
:root{color-scheme:light dark;font:16px/1.5 system-ui,sans-serif}
body{max-width:62rem;margin:1.5rem auto;padding:0 1rem;overflow-wrap:anywhere}
dl{display:grid;grid-template-columns:minmax(7rem,auto) 1fr;gap:.2rem 1rem}
dt{font-weight:600}dd{margin:0}
article{border-left:.3rem solid #8888;padding:.2rem 0 .2rem .8rem;margin:0 0 .9rem}
article.failed{border-color:#c33}article.unknown{border-color:#b80}article.passed{border-color:#383}
h3{font-size:1rem;margin:0}p{margin:.1rem 0}
.about{font-weight:600}.asked{opacity:.75;font-size:.875rem}
@media(max-width:32rem){dl{grid-template-columns:1fr}dd{margin-bottom:.4rem}}
@media print{body{margin:0;max-width:none}}
"""


def write(document: Mapping[str, Any], base: Path) -> list[Path]:
    """Write `base`.json and `base`.html, and return their paths."""
    base.parent.mkdir(parents=True, exist_ok=True)
    data = base.with_name(f"{base.name}.json")
    page = base.with_name(f"{base.name}.html")
    data.write_text(json.dumps(document, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    page.write_text(render_page(document), encoding="utf-8")
    return [data, page]


def render_page(document: Mapping[str, Any]) -> str:
    findings: Sequence[Mapping[str, str]] = document["findings"]
    counts: Mapping[str, int] = document["counts"]
    counted = ", ".join(f"{counts[outcome]} {outcome}" for outcome in _ORDER)
    facts = {
        "Deployment": f"{document['deployment']} (stage {document['stage']})",
        "Account": f"{document['account']}, {document['region']}",
        "Asked as": document["caller"],
        "From": f"{document['began']} to {document['ended']}",
        **document["versions"],
        **{f"Template of {name}": sha256 or "unknown" for name, sha256 in document["templates"].items()},
    }
    verdict = "passed" if document["passed"] else "not passed"
    sections = [
        f"<h2>{outcome.capitalize()}</h2>{''.join(_render(finding) for finding in of_outcome)}"
        for outcome in _ORDER
        if (of_outcome := [finding for finding in findings if finding["outcome"] == outcome])
    ]
    listed = "".join(f"<dt>{html.escape(name)}<dd>{html.escape(value)}" for name, value in facts.items())
    title = html.escape(f"Verification of {document['deployment']}: {verdict}")
    return (
        "<!doctype html><html lang=en><meta charset=utf-8>"
        "<meta name=viewport content='width=device-width,initial-scale=1'>"
        f"<title>{title}</title><style>{_STYLE}</style><body><h1>{title}</h1><p>{counted}</p>"
        "<p>What could not be seen is unknown, never passed. Nothing was changed in the accounts; "
        "--glue-probe starts one run of a job, which exports nothing.</p>"
        f"<dl>{listed}</dl>{''.join(sections)}\n"
    )


def _render(finding: Mapping[str, str]) -> str:
    kind = html.escape(finding["outcome"].replace(" ", "-"))
    return (
        f"<article class={kind}><h3>{html.escape(finding['claim'])}</h3>"
        f"<p><span class=about>{html.escape(finding['about'])}</span>: {html.escape(finding['seen'])}"
        f"<p class=asked>asked: {html.escape(finding['asked'])}</article>"
    )
