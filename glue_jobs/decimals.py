"""Which operations of an expression lose digits of decimals without an error, by the types that Spark's
analyser gives them.

The job sets `spark.sql.decimalOperations.allowPrecisionLoss` to false. Spark then keeps the decimal places of
a sum, a difference, a product and a common type, and a value that doesn't fit is an error. These are the
exceptions.
"""

from __future__ import annotations

import math
from decimal import Decimal
from typing import Any, Final

from pyspark.sql import SparkSession

#: The most digits of a decimal, all of which may be decimal places.
_MOST: Final = 38
#: A quotient and an average are rounded half up. They must keep this number of decimal places, or more if the
#: column has more.
QUOTIENT_PLACES: Final = 6
#: Integers of at most this number of digits fit into a bigint.
_BIGINT_DIGITS: Final = 18
#: Each decimal of at most this number of digits is the shortest form of a double.
_DOUBLE_DIGITS: Final = 15
#: Operations that cast an exact number to a double if another operand is a double or a text. A division of
#: integers does so too.
_COMPUTING: Final = frozenset(
    "Add Subtract Multiply Divide Remainder Pmod EqualTo EqualNullSafe LessThan LessThanOrEqual "
    "GreaterThan GreaterThanOrEqual In".split()
)
#: Operations that return one of their operands, after such a cast.
_PASSING: Final = frozenset("Coalesce CaseWhen If Greatest Least".split())


def explain_inexact(spark: SparkSession, node: Any, size: tuple[int, int]) -> str | None:
    """Return what an analysed node of an expression does to digits, or None if it is exact.

    `size` has the digits and the decimal places of the column, or zeros if there is none.
    """
    digits_of_column, places = size
    kind = node.getClass().getSimpleName()
    if kind in ("Floor", "Ceil") and _is_double(node.children().apply(0)):
        return (
            "rounds a double to an integer, which turns NaN into 0: write floor(cast(cast(x as string) as "
            "decimal(18,6)))"
        )
    if kind == "Multiply" and _are_both_decimals(node):
        return _explain_product(*(_read_size(node.children().apply(index))[1] for index in (0, 1)))
    if kind == "Divide" and _are_both_decimals(node):
        ends = _count_exact_places(node.children().apply(0), node.children().apply(1))
        return (
            None
            if ends <= _read_size(node)[1]
            else _explain_quotient("a quotient", _read_size(node)[1], places)
        )
    if kind == "Average" and _is_decimal(node):
        return _explain_quotient("an average", _read_size(node)[1], places)
    if kind == "IntegralDivide" and _are_both_decimals(node):
        (digits, scale), (_, of_divisor) = (_read_size(node.children().apply(index)) for index in (0, 1))
        return _explain_integral_quotient(digits - scale + of_divisor)
    # A column of few digits has those of a quotient of integers, and a larger quotient is an error.
    is_short_quotient = kind == "Divide" and digits_of_column <= _DOUBLE_DIGITS
    may_become_double = kind in _COMPUTING | _PASSING and not is_short_quotient
    return _describe_doubles(spark, node) if may_become_double else None


def _describe_doubles(spark: SparkSession, node: Any) -> str | None:
    """Return what Spark does to an exact number that it casts to a double by itself.

    The result of a computation with a double of the table is a double anyway, so that nothing more is lost
    there.
    """
    children = [node.children().apply(index) for index in range(node.children().size())]
    cast_children = [child for child in children if _is_cast_to_double(spark, child)]
    has_real_double = any(
        _is_double(child) and not _is_conversion(spark, child) and not _is_constant_or_text(child)
        for child in children
    )
    if has_real_double and node.getClass().getSimpleName() in _COMPUTING:
        return None
    types = {child.children().apply(0).dataType().sql().lower() for child in cast_children}
    if "float" in types:
        return (
            "turns a float into a double, which has other digits (0.1 becomes 0.10000000149011612): cast "
            "it first, such as cast(cast(x as string) as decimal(18,6))"
        )
    if types:
        return (
            f"turns a {min(types)} into a double, which keeps 15 digits: write constants without quotes "
            "and exponents, and cast other operands to decimals, such as cast(x as decimal(18,0))"
        )
    return None


def _is_cast_to_double(spark: SparkSession, node: Any) -> bool:
    """Return whether Spark, not the author, casts a number of a row to a double that can't hold each of its
    values.
    """
    if not _is_conversion(spark, node) or node.foldable():
        return False
    kind = str(node.children().apply(0).dataType().typeName())
    return kind in ("long", "float") or kind.startswith("decimal")


def _is_conversion(spark: SparkSession, node: Any) -> bool:
    """Return whether Spark, not the author, casts a value of another type to a double.

    It also casts doubles to doubles.
    """
    if not _is_double(node) or not _is_cast(node):
        return False
    jvm: Any = spark._jvm
    by_author = jvm.org.apache.spark.sql.catalyst.expressions.Cast.USER_SPECIFIED_CAST()
    is_double = node.children().apply(0).dataType().typeName() == "double"
    return not is_double and not node.getTagValue(by_author).isDefined()


def _is_cast(node: Any) -> bool:
    return bool(node.getClass().getSimpleName() == "Cast")


def _is_constant_or_text(node: Any) -> bool:
    is_text = _is_cast(node) and node.children().apply(0).dataType().typeName() == "string"
    return bool(node.foldable()) or is_text


def _explain_product(left: int, right: int) -> str | None:
    if left + right <= _MOST:
        return None
    return (
        f"multiplies decimals with {left} and {right} decimal places, and a product has at most {_MOST}: "
        "cast the factors to decimals with fewer places"
    )


def _explain_quotient(noun: str, scale: int, places: int) -> str | None:
    wanted = max(places, QUOTIENT_PLACES)
    if scale >= wanted:
        return None
    return (
        f"has {noun} that Spark rounds to {scale} decimal places, and {wanted} are needed: cast the "
        "dividend to a decimal with fewer digits before the point, or choose a column type with fewer "
        "decimal places"
    )


def _count_exact_places(dividend: Any, divisor: Any) -> float:
    """Return how many decimal places the quotient has at most.

    A division by a constant such as 100 or 4, whose prime factors are 2 and 5, always ends.
    """
    constant = divisor.eval(None) if divisor.foldable() else None
    if constant is None:
        return math.inf
    value = Decimal(constant.toString()).normalize()
    _, digits, exponent = value.as_tuple()
    whole = int("".join(map(str, digits)))
    if not whole or not isinstance(exponent, int):
        return math.inf
    twos = _count_divisions(whole, 2)
    fives = _count_divisions(whole, 5)
    ends = whole == 2**twos * 5**fives
    return max(0, _read_size(dividend)[1] + max(twos, fives) + exponent) if ends else math.inf


def _count_divisions(number: int, factor: int) -> int:
    times = 0
    while number % factor == 0:
        number //= factor
        times += 1
    return times


def _explain_integral_quotient(digits: int) -> str | None:
    if digits <= _BIGINT_DIGITS:
        return None
    return (
        f"has an integral quotient (div) of up to {digits} digits, and an integer has {_BIGINT_DIGITS}: "
        "cast the operands to bigint, or to decimals with fewer digits"
    )


def _are_both_decimals(node: Any) -> bool:
    return all(_is_decimal(node.children().apply(index)) for index in (0, 1))


def _is_decimal(node: Any) -> bool:
    return str(node.dataType().typeName()).startswith("decimal")


def _is_double(node: Any) -> bool:
    return node.dataType().typeName() in ("double", "float")


def _read_size(node: Any) -> tuple[int, int]:
    return node.dataType().precision(), node.dataType().scale()
