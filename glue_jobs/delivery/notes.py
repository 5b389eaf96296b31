"""Sentences for the reader of a file about what the file itself doesn't show."""

from __future__ import annotations

from decimal import Decimal
from typing import Final

from config.exports.contract import Contract
from glue_jobs.delivery.excel_limits import FIRST_DAY, MOST_DIGITS
from glue_jobs.delivery.verify import FileStats

#: The most rows in a sheet of Excel, including the header.
EXCEL_ROWS: Final = 1_048_576


def write_notes(contract: Contract, stats: FileStats, cut: int, replaced: int) -> list[str]:
    """Return the notes on the content of a file."""
    lines = []
    if contract.delivery.dialect == "excel" and stats.rows >= EXCEL_ROWS:
        lines.append(f"The file has {stats.rows:,} rows; Excel opens the first {EXCEL_ROWS - 1:,} of them.")
    if contract.delivery.dialect == "excel" and _has_many_digits(stats):
        lines.append("Some numbers have more than 15 digits; Excel rounds them when it opens the file.")
    if stats.inexact:
        names = [column.name for column in contract.columns if column.name in stats.inexact]
        lines.append(
            f"In the workbook, {', '.join(names)} {'is' if len(names) == 1 else 'are'} text: Excel would "
            f"change some of the values. It keeps {MOST_DIGITS} digits, milliseconds, and days since "
            f"{FIRST_DAY}."
        )
    if cut:
        lines.append(
            f"{count_noun(cut, 'text was', 'texts were')} longer than an Excel cell, 32,767 characters, and "
            "cut to it."
        )
    if replaced:
        lines.append(
            f"{count_noun(replaced, 'byte that is', 'bytes that are')} not valid text became the character "
            "\ufffd."
        )
    return lines


def count_noun(amount: int, one: str, more: str) -> str:
    return f"{amount:,} {one if amount == 1 else more}"


def _has_many_digits(stats: FileStats) -> bool:
    for total in stats.totals.values():
        for value in (total["min"], total["max"]):
            if value is not None and len(Decimal(value).as_tuple().digits) > 15:
                return True
    return False
