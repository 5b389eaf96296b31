"""The page about the handshakes agrees with the templates' trust statements."""

from __future__ import annotations

import re
from pathlib import Path

from tests.support.policies import Reader

PAGE = Path(__file__).resolve().parents[2] / "docs" / "explanation" / "trust.md"
_ROW = re.compile(
    r"^\| `([\w.]+)` \| `(sts:\w+)` \| `(<[\w.]+>)` \| (?:`(<[\w.]+>)`|none: .*) \|$", re.MULTILINE
)


def in_templates(assembly):
    for role, statement in Reader(assembly).trusts():
        if "AWS" in statement["Principal"]:
            wanted = statement.get("Condition", {}).get("StringEquals", {}).get("sts:ExternalId", "")
            name = re.match(r"\w+\.\w+Role", role)[0]
            yield name, statement["Action"], statement["Principal"]["AWS"], wanted


def on_page(text):
    return set(_ROW.findall(text))


def test_the_table_agrees_with_the_templates(assembly):
    rows = on_page(PAGE.read_text())
    if not assembly.plan.deployment.shows_aggregates:
        rows = {row for row in rows if "AggregatesVolume" not in str(row)}
    assert rows == set(in_templates(assembly))


def test_a_wrong_row_is_found(assembly):
    changed = PAGE.read_text().replace("<snowflake.Volume.external_id>", "<snowflake.Catalog.external_id>")
    assert on_page(changed) != set(in_templates(assembly))
