"""Check workbooks: LibreOffice opens them, and finds the cells of the CSV file."""

from __future__ import annotations

import csv
import gzip
import io
import shutil
import subprocess
import tempfile
from datetime import datetime
from decimal import Decimal, InvalidOperation
from itertools import zip_longest
from pathlib import Path
from typing import Final

from config.deployments.export_model import Export
from config.exports.contract import Contract
from lakeferry.rehearsal.harness import Check, CheckFailed, Harness, NotApplicable, Result, require
from lakeferry.verification.claims import Claim

#: The program of LibreOffice, of which a rehearsal installs nothing.
OFFICE: Final = "soffice"
_SECONDS: Final = 300
#: CSV with commas, quotes and UTF-8, numbers and times unrounded, all sheets (LibreOffice's filter options).
_AS_CSV: Final = "csv:Text - txt - csv (StarCalc):44,34,76,1,,0,false,true,false,false,false,-1"


class NotOpened(Exception):
    """LibreOffice can't open the file. The message is what it says."""


def libreoffice_opens(harness: Harness) -> list[Result]:
    office = shutil.which(OFFICE)
    if office is None:
        return [NotApplicable(Claim.WORKBOOKS, f"LibreOffice ({OFFICE}) is not installed on this machine")]
    opened = []
    cells = 0
    for export in harness.deployment.exports:
        contract = harness.ctx.loaded.sources.contract(export.contract, None)
        if "xlsx" in contract.delivery.also:
            name, found = _open_newest(harness, export, contract, office)
            opened.append(name)
            cells += found
    if not opened:
        return [NotApplicable(Claim.WORKBOOKS, "no contract of the file has xlsx in delivery.also")]
    seen = f"{', '.join(opened)}: {cells} cells as in the CSV file"
    return [Check(Claim.WORKBOOKS, seen, {"workbooks": len(opened), "cells": cells})]


def _open_newest(harness: Harness, export: Export, contract: Contract, office: str) -> tuple[str, int]:
    """Return the name of the newest workbook, and the number of its cells. Raises CheckFailed."""
    bucket = harness.output("data", "LakeBucketName")
    keys = harness.objects(bucket, f"exports/{export.contract}/data/")
    workbooks = [key for key in keys if key.endswith(".xlsx")]
    require(workbooks, f"{export.contract} has published no workbook")
    key = max(workbooks)
    beside = key.removesuffix(".xlsx") + (".csv.gz" if contract.delivery.gzip else ".csv")
    name = key.rpartition("/")[2]
    with tempfile.TemporaryDirectory() as folder:
        workbook = Path(folder) / name
        workbook.write_bytes(harness.content(bucket, key))
        try:
            sheet = read_first_sheet(workbook, office)
        except NotOpened as reason:
            raise CheckFailed(f"LibreOffice can't open {key}: {reason}") from None
    published = harness.content(bucket, beside)
    rows = read_csv(gzip.decompress(published) if contract.delivery.gzip else published, contract)
    difference = find_difference(sheet, rows, contract.delivery.null_text)
    require(not difference, f"LibreOffice shows other cells of {key} than {beside} has: {difference}")
    return name, sum(len(row) for row in rows)


def read_first_sheet(workbook: Path, office: str) -> list[list[str]]:
    """Return the cells of a workbook as LibreOffice writes them. Raises NotOpened.

    The profile is empty and new, so that no other LibreOffice of the user is disturbed.
    """
    with tempfile.TemporaryDirectory() as folder:
        profile = f"-env:UserInstallation={(Path(folder) / 'profile').as_uri()}"
        process = subprocess.run(
            [
                office,
                profile,
                "--headless",
                "--norestore",
                "--convert-to",
                _AS_CSV,
                "--outdir",
                folder,
                workbook,
            ],
            capture_output=True,
            text=True,
            timeout=_SECONDS,
            check=False,
        )
        sheets = sorted(Path(folder).glob("*.csv"))
        if process.returncode or not sheets:
            raise NotOpened(process.stderr.strip() or f"it ended with code {process.returncode}")
        with sheets[0].open(encoding="utf-8", newline="") as lines:
            return list(csv.reader(lines))


def read_csv(content: bytes, contract: Contract) -> list[list[str]]:
    """Return the cells of a published CSV file, with the header."""
    text = io.StringIO(content.decode("utf-8-sig"), newline="")
    return list(csv.reader(text, delimiter=contract.delivery.delimiter))


def find_difference(sheet: list[list[str]], rows: list[list[str]], null_text: str) -> str:
    """Return the first cell in which a sheet differs from the rows of the CSV file, "" if none does."""
    no_cells: list[str] = []
    for number, (seen, written) in enumerate(zip_longest(sheet, rows, fillvalue=no_cells), 1):
        for column, (cell, text) in enumerate(zip_longest(seen, written, fillvalue=None), 1):
            if cell is None or text is None or not _is_same(cell, text, null_text):
                return f"row {number}, column {column} is {cell!r} instead of {text!r}"
    return ""


def _is_same(cell: str, text: str, null_text: str) -> bool:
    """Compare values: a cell has no zeros at the end of a number, and times in UTC without T and Z."""
    if cell == text or (cell == "" and text == null_text):
        return True
    if text in ("true", "false"):
        return cell == text.upper()
    try:
        return Decimal(cell) == Decimal(text)
    except InvalidOperation:
        pass
    try:
        return datetime.fromisoformat(f"{cell}Z") == datetime.fromisoformat(text)
    except ValueError:
        return False
