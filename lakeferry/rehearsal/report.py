"""Write the report of a rehearsal: an offline page for people, a JSON document for programs."""

from __future__ import annotations

import html
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import attrs

from lakeferry.rehearsal.harness import Phase

NOT_COVERED: Final = (
    "that AWS, Confluent Cloud and Snowflake answer as the simulators do: these implement what the vendors "
    "document, and were not compared with a live account",
    "how long the vendors take: the simulators shorten their delays, and the embedded AWS creates "
    "resources in an instant",
    "quotas, service control policies and permission boundaries of your accounts, and rules of your network: "
    "the embedded AWS checks that subnets and security groups exist, and lets everything through",
    "what it costs: `lakeferry cost` estimates it from list prices",
    "delivery of mails: they end in an inbox of the embedded AWS",
    "speed and memory on Glue's workers: the job runs on real Spark, in one process on this machine",
    "Kafka's own protocol: records come from the simulated Datagen connector or are made from "
    "a topic's schema; statements run on real Flink",
    "alarms, dashboards and budgets: they are deployed, and nothing triggers them",
)
_STYLE: Final = """
:root{color-scheme:light dark;font:16px/1.5 system-ui,sans-serif}
body{max-width:62rem;margin:2rem auto;padding:0 1rem}
table{border-collapse:collapse;width:100%;margin:1rem 0 2rem}
th,td{text-align:left;vertical-align:top;padding:.4rem .8rem .4rem 0;border-bottom:1px solid #8886}
td.n{text-align:right;white-space:nowrap;font-variant-numeric:tabular-nums}
.wrong{white-space:pre-wrap;border-left:4px solid #c33;padding-left:1rem}
@media print{body{margin:0;max-width:none}}
"""


def write(phases: Sequence[Phase], seconds: float, out: Path) -> dict[str, Any]:
    """Return the document, and write it to out/rehearsal.json and out/rehearsal.html."""
    failed = [phase for phase in phases if phase.failure]
    document = {
        "passed": not failed,
        "seconds": round(seconds, 1),
        "phases": [{**attrs.asdict(phase), "seconds": round(phase.seconds, 1)} for phase in phases],
        "not_covered": list(NOT_COVERED),
    }
    out.mkdir(parents=True, exist_ok=True)
    (out / "rehearsal.json").write_text(
        json.dumps(document, indent=1, ensure_ascii=False) + "\n", encoding="utf-8"
    )
    (out / "rehearsal.html").write_text(render_page(phases, seconds), encoding="utf-8")
    return document


def render_page(phases: Sequence[Phase], seconds: float) -> str:
    checks = [(phase.name, check.claim, check.seen) for phase in phases for check in phase.checks]
    wrong = "".join(
        f"<p class=wrong>{html.escape(f'{phase.name}: {phase.failure}')}</p>"
        for phase in phases
        if phase.failure
    )
    verdict = "failed" if wrong else f"{len(checks)} checks passed"
    absent = [(result.claim, result.why) for phase in phases for result in phase.not_applicable]
    timed = [(phase.name, f"{phase.seconds:.1f} s") for phase in phases]
    return "".join(
        (
            "<!doctype html><html lang=en><meta charset=utf-8><meta name=viewport "
            "content='width=device-width'>",
            f"<title>Rehearsal: {verdict}</title><style>{_STYLE}</style><body>",
            f"<h1>Rehearsal: {verdict}</h1>{wrong}",
            "<h2>Checks</h2>",
            _render_table(("phase", "check", "seen"), checks),
            *(
                ("<h2>What does not apply to this file</h2>", _render_table(("check", "why"), absent))
                if absent
                else ()
            ),
            f"<h2>Phases</h2><p>{seconds:.0f} s in all.</p>",
            _render_table(("phase", "time"), timed, numeric=1),
            "<h2>What a rehearsal doesn't cover</h2><ul>",
            *(f"<li>{html.escape(sentence)}</li>" for sentence in NOT_COVERED),
            "</ul>",
        )
    )


def _render_table(head: Sequence[str], rows: Sequence[Sequence[str]], numeric: int = -1) -> str:
    top = "".join(f"<th>{html.escape(title)}</th>" for title in head)
    body = ""
    for row in rows:
        body += "<tr>"
        for column, cell in enumerate(row):
            attribute = " class=n" if column == numeric else ""
            body += f"<td{attribute}>{html.escape(cell)}</td>"
        body += "</tr>"
    return f"<table><thead><tr>{top}</tr></thead><tbody>{body}</tbody></table>"
