"""Pseudonyms: HMAC-SHA-256 as native expressions of Spark.

`sha2` twice with the two pads is what HMAC is (RFC 2104), at a sixth of the cost of a Python function. The pads are the
key in another form, so they come as the columns of a one-row relation: as literals they would stand in every plan,
event log and UI page.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import BinaryType, StructField, StructType

_BLOCK = 64
_BLANKS = " \t\n\r"
_INNER, _OUTER = "$pad_inner", "$pad_outer"
_PADS = StructType([StructField(_INNER, BinaryType(), nullable=False), StructField(_OUTER, BinaryType(), nullable=False)])


def pads(key: bytes) -> tuple[bytes, bytes]:
    """The inner and the outer pad. Raises ValueError for a key under 32 bytes, which could be guessed, or over 64."""
    if not 32 <= len(key) <= _BLOCK:
        raise ValueError(f"the key has {len(key)} bytes; it must have 32 to {_BLOCK}")
    block = key.ljust(_BLOCK, b"\0")
    return bytes(byte ^ 0x36 for byte in block), bytes(byte ^ 0x5C for byte in block)


def with_pads(frame: DataFrame, key: bytes) -> DataFrame:
    """Adds the columns that `pseudonym` needs, by a broadcast of one row."""
    relation = frame.sparkSession.createDataFrame([tuple(map(bytearray, pads(key)))], _PADS)
    return frame.crossJoin(F.broadcast(relation))


def normal(value: Column, kind: str, *, any_text: bool) -> Column:
    """The spelling that all spellings of a value share.

    Without `any_text` it is right for ASCII only. A row with `is_foreign` values then spoils the run, which is made again
    with `any_text`: such values go through Python.
    """
    ascii_normal = _normalise_ascii(value, kind)
    if not any_text:
        return ascii_normal
    from glue_jobs.transforms.foreign_text import normalised  # noqa: PLC0415 - costs an import of pandas

    return F.when(is_foreign(value), normalised(F.when(is_foreign(value), value), kind)).otherwise(ascii_normal)


def pseudonym(value: Column, normalised: Column, kind: str) -> Column:
    """64 hex digits of what `normal` made of `value`; null for nothing, nothing but blanks, or a telephone without digits.

    The kind is hashed too, so that the same text means nothing across kinds.
    """
    message = F.concat(F.col(_INNER), F.lit(f"v1|{kind}|").cast("binary"), normalised.cast("binary"))
    # All telephones like "n/a" would share one pseudonym, as if they were one person's.
    said = normalised.rlike("[0-9]") if kind == "phone" else (value > "!") | value.rlike(f"[^{_BLANKS}]")
    return F.when(said, F.sha2(F.concat(F.col(_OUTER), F.unhex(F.sha2(message, 256))), 256))


def is_foreign(value: Column) -> Column:
    """Whether text holds anything beyond ASCII: more bytes than characters."""
    return F.octet_length(value) != F.char_length(value)


def _normalise_ascii(value: Column, kind: str) -> Column:
    # Each branch names the value as seldom as it can: Spark computes again what stands in two places.
    if kind == "phone":
        return F.when(value.rlike("[^0-9+]"), F.regexp_replace(value, "[^0-9+]", "")).otherwise(value)
    # `btrim` with a set of characters is slow in Spark, and only blanks other than the space need it.
    odd = value.contains("\t") | value.contains("\n") | value.contains("\r")
    trimmed, all_trimmed = F.trim(value), F.btrim(value, F.lit(_BLANKS))
    if kind == "id":
        return F.when(odd, all_trimmed).otherwise(trimmed)
    if kind == "email":
        return F.when(odd, F.lower(all_trimmed)).otherwise(F.lower(trimmed))
    single_spaced = F.regexp_replace(F.lower(all_trimmed), f"[{_BLANKS}]+", " ")
    return F.when(odd | value.contains("  "), single_spaced).otherwise(F.lower(trimmed))
