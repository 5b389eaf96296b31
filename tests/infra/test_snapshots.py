"""Each stack's template as a whole, so that a change shows where it was not thought of.

After a change that is meant: `UPDATE_SNAPSHOTS=1 pytest tests/infra/test_snapshots.py`, then read the difference.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest
from policies import as_json

FOLDER = Path(__file__).parent / "snapshots"


def normalised(template):
    """Without what changes with every line of code: hashes of assets."""
    return re.sub(r"\b[0-9a-f]{64}\b", "<asset>", as_json(template))


@pytest.mark.parametrize("part", ["data", "confluent", "snowflake", "exports", "operations"])
def test_the_template_is_as_it_was(dev, part):
    now, file = normalised(dev.templates[part]), FOLDER / f"{part}.json"
    if os.environ.get("UPDATE_SNAPSHOTS"):
        FOLDER.mkdir(exist_ok=True)
        file.write_text(now)
    assert now == file.read_text()


def test_a_change_shows(dev):
    template = {**dev.templates["data"], "Description": "another"}
    assert normalised(template) != (FOLDER / "data.json").read_text()


def test_the_same_file_gives_the_same_templates(assemblies, tmp_path_factory):
    """No clock, no chance, no order of sets."""
    import assembly_kit

    from deployments import check

    again = assembly_kit.synthesise(check.load_stage("dev"), tmp_path_factory.mktemp("again"))
    assert again.templates == assemblies["dev"].templates
