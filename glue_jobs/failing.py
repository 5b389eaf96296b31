"""Find the columns, filters and checks whose expressions fail on a value, after a window has failed.

Spark's own message names the expression only sometimes, and always has the value, so it isn't used. Instead,
the window is computed again with some of the expressions at a time. That happens only after a failure, and
the rows go nowhere.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import attrs
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from config.exports.contract import Column, Contract
from config.exports.file_model import Check
from glue_jobs import errors
from glue_jobs.rows import ExportQuery, WindowQuery
from glue_jobs.table_fields import OFFSET

#: Errors that a value causes, and whose message doesn't say where.
_OF_A_VALUE = ("EXP-CAST", "EXP-DIVISION", "EXP-FUNCTION-ARGUMENT", "EXP-INDEX", "EXP-OVERFLOW")


@contextmanager
def name_expressions(find: Callable[[str], list[str]]) -> Iterator[None]:
    """Translate an error that a value causes, and name the expressions that `find` returns for its code."""
    try:
        yield
    except Exception as thrown:  # PySpark raises many classes
        error = errors.translate(thrown)
        if error.code not in _OF_A_VALUE or not (labels := find(error.code)):
            raise
        errors.log_cause(thrown)
        raise type(error)(error.code, f"{error.what} ({', '.join(labels)})", error.remedy) from None


def find_failing_expressions(query: WindowQuery, code: str) -> list[str]:
    """Return labels like "column total" or "filter[0].where" of expressions of rows and groups that fail with
    this code.

    Columns are tried if all filters can be computed, and checks if all columns can.
    """
    contract = query.contract
    export = query.export

    def fails(probe: Contract) -> bool:
        probed = ExportQuery(export.spark, probe, export.table, export.windows, export.key, export.catalog)
        return _find_code(lambda: probed.window(query.window).rows().frame) == code

    def columns_fail(names: list[str]) -> bool:
        return fails(_with_columns(contract, names))

    for number, _ in enumerate(contract.filter):
        if fails(_with_filters(contract, number + 1)):
            return [f"filter[{number}].where"]
    plain = [column.name for column in contract.columns if not column.measure]
    measures = [column.name for column in contract.columns if column.measure]
    if columns := _find_failing(plain, columns_fail) or _find_failing(measures, columns_fail):
        return [f"column {name}" for name in columns]
    checks = [check for check in contract.check if check.each_row]
    return [f"check {check.id}" for check in checks if fails(attrs.evolve(contract, check=[check]))]


def find_failing_totals(totals: DataFrame, checks: list[Check], code: str) -> list[str]:
    """Return labels like "check balance" of checks of the whole file that fail with this code.

    `totals` has the file's totals.
    """

    def fails(check: Check) -> bool:
        return _find_code(lambda: totals.select(F.expr(check.overall or ""))) == code

    return [f"check {check.id}" for check in checks if fails(check)]


def _find_failing(names: list[str], fail: Callable[[list[str]], bool]) -> list[str]:
    """Return the columns that fail, by halves, so that one among many is found in few attempts."""
    if not names or not fail(names):
        return []
    if len(names) == 1:
        return names
    middle = len(names) // 2
    return _find_failing(names[:middle], fail) + _find_failing(names[middle:], fail)


def _with_filters(contract: Contract, number: int) -> Contract:
    """Return the contract with its first filters and one column, which can be computed for any event."""
    offset = Column(name="offset", source=OFFSET, type="integer", title="", description="")
    delivery = attrs.evolve(contract.delivery, order_by=[offset.name])
    filters = contract.filter[:number]
    return attrs.evolve(
        contract, filter=filters, column=[offset], check=[], aggregate=None, delivery=delivery
    )


def _with_columns(contract: Contract, names: list[str]) -> Contract:
    """Return the contract with these columns. With a measure, the columns that make the groups stay."""
    measured = any(column.measure and column.name in names for column in contract.columns)
    kept = [
        column for column in contract.columns if column.name in names or (measured and not column.measure)
    ]
    delivery = attrs.evolve(contract.delivery, order_by=[kept[0].name])
    return attrs.evolve(contract, column=kept, check=[], delivery=delivery)


def _find_code(compute: Callable[[], DataFrame]) -> str | None:
    """Return the code of the error with which a frame can't be computed, or None. Its rows are not kept."""
    try:
        compute().write.format("noop").mode("overwrite").save()
    except Exception as thrown:  # PySpark raises many classes
        return errors.translate(thrown).code
    return None
