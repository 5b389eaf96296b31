"""Which pages are made, and whether those on disk still say what the code says."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Final

from lakeferry.local.bootstrap import ROOT
from tools.docs import (
    commands,
    contract,
    deployment,
    documents,
    errors,
    expressions,
    permissions,
    resources,
)

FOLDER: Final = ROOT / "docs" / "reference"
#: The one page there that is written by hand; tests/test_docs.py compares its fields with the code.
WRITTEN: Final = ("secrets.md",)


def pages() -> dict[str, str]:
    """Text by file name. Raises LookupError where the code has something that no page explains."""
    return {
        "command-line.md": commands.text(),
        "deployment-file.md": deployment.text(),
        "deployment.schema.json": json.dumps(deployment.schema(), indent=2, ensure_ascii=False) + "\n",
        "errors.md": errors.text(),
        "export-contract.md": contract.text(),
        "export.schema.json": json.dumps(contract.schema(), indent=2, ensure_ascii=False) + "\n",
        "expressions.md": expressions.text(),
        "iam.md": permissions.text(),
        "job-arguments.md": commands.job_text(),
        "manifest.md": documents.manifest_text(),
        "resources.md": resources.text(),
        "run-record.md": documents.run_text(),
    }


def write(folder: Path = FOLDER) -> None:
    made = pages()
    for name, text in made.items():
        (folder / name).write_text(text, encoding="utf-8")


def stale(folder: Path = FOLDER) -> list[str]:
    """Names of pages in `folder` that differ from what would be made now, are missing, or are not made any more."""
    made, found = pages(), _found(folder)
    return sorted(name for name in made.keys() | found.keys() if made.get(name) != found.get(name))


def _found(folder: Path) -> dict[str, str]:
    files = (file for file in folder.iterdir() if file.name not in WRITTEN)
    return {file.name: file.read_text(encoding="utf-8") for file in files}
