"""Pseudonyms: HMAC-SHA-256 as native expressions of Spark, with a key from Secrets Manager.

`sha2` twice with the two pads is what HMAC is (RFC 2104), at a sixth of the cost of a Python function. The pads are the
key in another form, so they come as the columns of a one-row relation: as literals they would stand in every plan,
event log and UI page. Only text beyond ASCII goes through Python, because Spark has no Unicode normalisation, and "é" may
come as one character or as two.
"""

import base64
import binascii
import json
import re
import unicodedata

import attrs
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import BinaryType, StructField, StructType

from glue_jobs.errors import BadInput, StorageProblem
from glue_jobs.store import Services, aws_errors

_BLOCK = 64
_BLANKS = " \t\n\r"
_BLANK_RUN = re.compile(f"[{_BLANKS}]+")
_INNER, _OUTER = "$pad_inner", "$pad_outer"
_PADS = StructType([StructField(_INNER, BinaryType(), nullable=False), StructField(_OUTER, BinaryType(), nullable=False)])


@attrs.frozen
class PseudonymKey:
    """`version` names the key without telling it: pseudonyms of two versions can't be compared."""

    value: bytes = attrs.field(repr=False)
    version: str


def fetch_key(services: Services, secret: str) -> PseudonymKey:
    """Return the current version of a secret like {"key": "<32 to 64 bytes in base64>"}.

    Raises BadInput where it holds no such key, StorageProblem where it can't be read.
    """
    if not secret:
        raise BadInput("EXP-KEY-MISSING", "the contract hashes columns, but no key was named", "Give --pseudonym-secret")
    try:
        with aws_errors(f"reading the secret {secret}"):
            answer = services.secrets.get_secret_value(SecretId=secret)
    except StorageProblem as problem:
        raise StorageProblem(
            "EXP-KEY-UNREADABLE",
            f"the pseudonymisation key can't be read: {problem.what}",
            "Check the secret's name and the role's right to read it. Nothing leaves without its key",
        ) from None
    try:
        value = base64.b64decode(json.loads(answer.get("SecretString", ""))["key"], validate=True)
        _pads(value)
    except (ValueError, KeyError, TypeError, binascii.Error):
        raise BadInput(
            "EXP-KEY-FORM",
            f"the secret {secret} does not hold a key in the form expected",
            'Store {"key": "<32 to 64 random bytes in base64>"}',
        ) from None
    return PseudonymKey(value, answer["VersionId"])


def _pads(key: bytes) -> tuple[bytes, bytes]:
    """Return the inner and the outer pad. Raises ValueError for a key under 32 bytes, which could be guessed, or over 64."""
    if not 32 <= len(key) <= _BLOCK:
        raise ValueError(f"the key has {len(key)} bytes; it must have 32 to {_BLOCK}")
    block = key.ljust(_BLOCK, b"\0")
    return bytes(byte ^ 0x36 for byte in block), bytes(byte ^ 0x5C for byte in block)


def with_pads(frame: DataFrame, key: bytes) -> DataFrame:
    """Add the columns that `pseudonym` needs, by a broadcast of one row."""
    relation = frame.sparkSession.createDataFrame([tuple(map(bytearray, _pads(key)))], _PADS)
    return frame.crossJoin(F.broadcast(relation))


def pseudonym(value: Column, kind: str, *, allow_non_ascii: bool) -> Column:
    """Return 64 hex digits; null for nothing, nothing but blanks, or a telephone without digits.

    All spellings of a value give the same digits, but without `allow_non_ascii` only where they are ASCII: a row for which
    `is_non_ascii` holds then makes the run compute everything once more, with such values sent through Python.
    """
    normalized = _normalized_ascii(value, kind)
    if allow_non_ascii:
        through_python = _normalized_in_python(F.when(is_non_ascii(value), value), kind)
        normalized = F.when(is_non_ascii(value), through_python).otherwise(normalized)
    # The kind is hashed too, so that the same text means nothing across kinds.
    message = F.concat(F.col(_INNER), F.lit(f"v1|{kind}|").cast("binary"), normalized.cast("binary"))
    # All telephones like "n/a" would share one pseudonym, as if they were one person's.
    has_text = normalized.rlike("[0-9]") if kind == "phone" else (value > "!") | value.rlike(f"[^{_BLANKS}]")
    return F.when(has_text, F.sha2(F.concat(F.col(_OUTER), F.unhex(F.sha2(message, 256))), 256))


def is_non_ascii(value: Column) -> Column:
    """Tell whether text holds anything beyond ASCII: more bytes than characters."""
    return F.octet_length(value) != F.char_length(value)


def normalize(text: str, kind: str) -> str:
    """Compose compatibility forms (NFKC), then do what `_normalized_ascii` does natively: trim, fold case."""
    text = unicodedata.normalize("NFKC", text).strip(_BLANKS)
    if kind == "id":
        return text
    if kind == "phone":
        digits = (str(unicodedata.decimal(sign)) if sign.isdecimal() else sign for sign in text)
        return re.sub(r"[^0-9+]", "", "".join(digits))
    text = text.lower()
    return text if kind == "email" else _BLANK_RUN.sub(" ", text)


def _normalized_in_python(value: Column, kind: str) -> Column:
    import pandas as pd  # noqa: PLC0415 - takes a while, and only runs that met such text need it
    from pyspark.sql.pandas.functions import pandas_udf  # noqa: PLC0415 - imports pandas

    # The decorator reads the annotations, so this module must not turn them into text.
    @pandas_udf("string")  # type: ignore[call-overload, untyped-decorator]
    def each(values: pd.Series) -> pd.Series:
        return values.map(lambda text: None if text is None else normalize(text, kind))

    # Bytes that are no UTF-8 become the replacement character; Arrow would refuse them.
    return each(F.decode(F.encode(value, "UTF-8"), "UTF-8"))  # type: ignore[no-any-return]


def _normalized_ascii(value: Column, kind: str) -> Column:
    # Each branch names the value as seldom as it can: Spark computes again what is named twice.
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
