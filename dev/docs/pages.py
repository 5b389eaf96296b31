"""The generated pages: write them, and report those on disk that are out of date."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Final

from dev.docs import (
    assumptions,
    command_line,
    documents,
    expressions,
    findings,
    permissions,
    resources,
    toml_files,
)
from lakeferry.local.bootstrap import ROOT

FOLDER: Final = ROOT / "docs" / "reference"
#: Written by hand; tests/test_docs.py compares its fields with the code.
BY_HAND: Final = ("secrets.md",)


def pages() -> dict[str, str]:
    """Return text by file name. Raises LookupError for anything in the code that no page explains."""
    return {
        "accepted-findings.md": findings.build_page(),
        "assumptions.md": assumptions.build_page(),
        "command-line.md": command_line.build_commands_page(),
        "deployment-file.md": toml_files.build_deployment_page(),
        "deployment.schema.json": json.dumps(
            toml_files.build_deployment_schema(), indent=2, ensure_ascii=False
        )
        + "\n",
        "errors.md": command_line.build_errors_page(),
        "export-contract.md": toml_files.build_contract_page(),
        "export.schema.json": json.dumps(toml_files.build_contract_schema(), indent=2, ensure_ascii=False)
        + "\n",
        "expressions.md": expressions.build_expressions_page(),
        "iam.md": permissions.build_page(),
        "manifest-and-run-record.md": documents.build_page(),
        "resources.md": resources.build_page(),
    }


def write(folder: Path = FOLDER) -> None:
    for name, text in pages().items():
        (folder / name).write_text(text, encoding="utf-8")


def stale(folder: Path = FOLDER) -> list[str]:
    """Return the names of pages in `folder` that are out of date, missing, or no longer generated."""
    current = pages()
    on_disk = {
        file.name: file.read_text(encoding="utf-8") for file in folder.iterdir() if file.name not in BY_HAND
    }
    return sorted(name for name in current.keys() | on_disk.keys() if current.get(name) != on_disk.get(name))
