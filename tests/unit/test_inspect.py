"""What is told of a file is what is in its bytes: counts, totals, charts, and everything that is not as it was written."""

from __future__ import annotations

import gzip
import hashlib
import io
from decimal import Decimal

import attrs
import pytest
import samples
from hypothesis import given
from hypothesis import strategies as st

from exports.contract import Contract
from glue_jobs.delivery import csv_line
from glue_jobs.delivery.inspect import Inspection, Object, inspect
from glue_jobs.delivery.sinks import Part
from glue_jobs.errors import Inconsistent

HEAD = """name = "things"
version = 1
title = "Things"
description = "Things."
owner = "somebody"
grain = "one row per thing"
[source]
topic = "things"
event_time = "at"
[window]
every = "day"
zone = "UTC"
from = 2026-11-01
[delivery]
order_by = ["{first}"]
dialect = "machine"
null_text = "NULL"
"""
COLUMN = '[[column]]\nname = "{0}"\ntype = "{1}"\ntitle = "t"\ndescription = "d"\nnullable = true\n{2}\n'
CHART = '[[report.chart]]\ntitle = "t"\nx = "{0}"\ny = "{1}"\n'


def contract(*columns: tuple, charts: tuple = (), **delivery) -> Contract:
    """Columns are (name, type) or (name, type, more); charts (x, y)."""
    text = HEAD.format(first=columns[0][0]) + "".join(COLUMN.format(*one, "") for one in columns)
    whole = samples.contract(text + "".join(CHART.format(*one) for one in charts))
    return attrs.evolve(whole, delivery=attrs.evolve(whole.delivery, **delivery))


class Trickle(io.BytesIO):
    """Gives what is asked for in small pieces, as a slow line may."""

    def read(self, amount: int = -1) -> bytes:
        return super().read(min(amount, 7) if amount > 0 else 7)


def inspected(of: Contract, body: bytes, *, parts: int = 1, slowly: bool = False) -> Inspection:
    """The file of `of`'s header and this body, stored in so many parts."""
    whole = csv_line.header(of.columns, of.delivery) + body
    stored = gzip.compress(whole, mtime=0) if of.delivery.gzip else whole
    size = max(1, -(-len(stored) // parts))
    cut = [stored[start : start + size] for start in range(0, len(stored), size)]
    made = [Part(number, "etag", len(piece), hashlib.sha256(piece).hexdigest()) for number, piece in enumerate(cut, 1)]
    stream = Trickle(stored) if slowly else io.BytesIO(stored)
    return inspect([Object("a.csv", stream, made)], of, csv_line.header(of.columns, of.delivery))


def test_sums_are_exact_however_long():
    nines = "9" * 38
    of = contract(("a", "decimal(38,0)"), ("b", "decimal(38,38)"), ("c", "integer"), ("d", "decimal(30,2)"))
    row = f"{nines},0.{nines},{2**63 - 1},{'9' * 28}.99\r\n"
    found = inspected(of, row.encode() * 1000)
    assert found.totals == {
        "a": {"sum": Decimal(int(nines) * 1000), "min": Decimal(nines), "max": Decimal(nines)},
        "b": {"sum": Decimal(f"999.{'9' * 35}000"), "min": Decimal(f"0.{nines}"), "max": Decimal(f"0.{nines}")},
        "c": {"sum": Decimal((2**63 - 1) * 1000), "min": Decimal(2**63 - 1), "max": Decimal(2**63 - 1)},
        "d": {"sum": Decimal(f"9{'9' * 27}999.90") + 9 * 0, "min": Decimal(f"{'9' * 28}.99"), "max": Decimal(f"{'9' * 28}.99")},
    } or found.totals["d"]["sum"] == Decimal(f"{'9' * 28}99990") / 10
