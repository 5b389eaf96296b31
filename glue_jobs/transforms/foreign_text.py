"""The one Python function that runs over values: spellings of text beyond ASCII made equal.

Spark has no Unicode normalisation, and "é" may come as one character or as two. Everything else is a native expression.
This module is imported only by runs that met such text, because importing pandas takes a while.
"""

import re
import unicodedata

import pandas as pd
from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql.pandas.functions import pandas_udf

_BLANKS = re.compile(r"[ \t\n\r]+")


def normalise(text: str, kind: str) -> str:
    """Compatibility forms composed (NFKC), then what `pseudonymise` does natively to ASCII: trimmed, case folded."""
    text = unicodedata.normalize("NFKC", text).strip(" \t\n\r")
    if kind == "id":
        return text
    if kind == "phone":
        digits = (str(unicodedata.decimal(sign)) if sign.isdecimal() else sign for sign in text)
        return re.sub(r"[^0-9+]", "", "".join(digits))
    text = text.lower()
    return text if kind == "email" else _BLANKS.sub(" ", text)


def normalised(value: Column, kind: str) -> Column:
    """`value` normalised where it isn't null, through Arrow."""

    @pandas_udf("string")  # type: ignore[call-overload, untyped-decorator]
    def each(values: pd.Series) -> pd.Series:
        return values.map(lambda text: None if text is None else normalise(text, kind))

    # Bytes that are no UTF-8 become the replacement character here; Arrow would refuse them.
    return each(F.decode(F.encode(value, "UTF-8"), "UTF-8"))  # type: ignore[no-any-return]
