"""Pseudonyms: HMAC-SHA-256 with a key from Secrets Manager, computed for one Arrow batch at a time.

Executors hash values just before they write them, so only delivered rows are hashed. The key is sent to them
as part of the function that writes the file, so it is in no plan, event log or UI page. If Spark itself needs
pseudonyms, because it groups or sorts by them or a check names them, the same function runs as a UDF.
"""

import base64
import binascii
import hashlib
import json
import re
import unicodedata
from collections.abc import Callable
from typing import TYPE_CHECKING

import attrs
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from glue_jobs.errors import BadInput, StorageProblem

if TYPE_CHECKING:
    from pyspark.sql import Column

    from glue_jobs.store import Services

_BLOCK = 64
_BLANKS = " \t\n\r"
_BLANK_RUN = re.compile(f"[{_BLANKS}]+")
#: Categories of characters that nobody sees: white space, control characters, and format characters such as
#: the zero-width space.
_INVISIBLE = ("Zs", "Zl", "Zp", "Cc", "Cf")
#: Invisible characters of other categories: those of Unicode's Default_Ignorable_Code_Point, and the blank
#: braille pattern.
_FILLERS = re.compile(
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2800\u3164\ufe00-\ufe0f\uffa0\U000e0100-\U000e01ef]"
)
_ASCII_INVISIBLE = "[\\x00-\\x20\\x7f]"
_NOT_IN_PHONE_NUMBERS = re.compile("[^0-9+]")


@attrs.frozen
class PseudonymKey:
    """`version` identifies the key without revealing it.

    Pseudonyms of different versions can't be compared.
    """

    value: bytes = attrs.field(repr=False)
    version: str


def fetch_key(services: "Services", secret: str) -> PseudonymKey:
    """Return the key in the current version of a secret like {"key": "<32 to 64 bytes in base64>"}.

    Raises BadInput if there is no such key in it, and StorageProblem if it can't be read.
    """
    # Executors import this module, and boto3 takes a while.
    from glue_jobs.store import translate_aws_errors  # noqa: PLC0415

    if not secret:
        raise BadInput("EXP-KEY-MISSING", "the contract hashes columns, but no key was named")
    try:
        with translate_aws_errors(f"reading the secret {secret}"):
            answer = services.secrets.get_secret_value(SecretId=secret)
    except StorageProblem as problem:
        raise StorageProblem(
            "EXP-KEY-UNREADABLE", f"the pseudonymisation key can't be read: {problem.what}"
        ) from None
    try:
        value = base64.b64decode(json.loads(answer.get("SecretString", ""))["key"], validate=True)
        _compute_pads(value)
    except (ValueError, KeyError, TypeError, binascii.Error):
        raise BadInput(
            "EXP-KEY-FORM", f"the secret {secret} does not hold a key in the form expected"
        ) from None
    return PseudonymKey(value, answer["VersionId"])


def _compute_pads(key: bytes) -> tuple[bytes, bytes]:
    """Return HMAC's inner and outer pad.

    Raises ValueError for a key under 32 bytes, which could be guessed, or over 64.
    """
    if not 32 <= len(key) <= _BLOCK:
        raise ValueError(f"the key has {len(key)} bytes; it must have 32 to {_BLOCK}")
    block = key.ljust(_BLOCK, b"\0")
    return bytes(byte ^ 0x36 for byte in block), bytes(byte ^ 0x5C for byte in block)


def create_hasher(key: bytes, kind: str) -> Callable[[pa.Array], pa.Array]:
    """Return a function that turns texts into pseudonyms of 64 hex digits. All spellings of a value (see
    `normalize`) have the same pseudonym. Null, blank texts and telephone numbers without digits become null.
    Raises ValueError for a key of the wrong length.
    """
    inner, outer = (hashlib.sha256(pad) for pad in _compute_pads(key))
    inner.update(f"v1|{kind}|".encode())  # so that a text has different pseudonyms in different kinds

    def hashed(values: pa.Array) -> pa.Array:
        distinct = values.dictionary_encode()
        texts = _normalize_texts(distinct.dictionary, kind)
        digests = []
        # HMAC (RFC 2104). Copying the hash states after the pads takes a third of the time of Python's
        # `hmac`.
        for text in texts.cast(pa.binary()).to_numpy(zero_copy_only=False).tolist():
            message = inner.copy()
            sealed = outer.copy()
            message.update(text)
            sealed.update(message.digest())
            digests.append(sealed.digest())
        pseudonyms = pc.if_else(_is_empty(texts, kind), None, _encode_hex(digests))
        return pseudonyms.take(distinct.indices)

    return hashed


def _encode_hex(digests: list[bytes]) -> pa.Array:
    ends = np.arange(0, 64 * (len(digests) + 1), 64, dtype=np.int32)
    digits = b"".join(digests).hex().encode()
    return pa.Array.from_buffers(pa.string(), len(digests), [None, pa.py_buffer(ends), pa.py_buffer(digits)])


def _is_empty(texts: pa.Array, kind: str) -> pa.Array:
    """Return for each text whether it has no value.

    All telephone numbers like "n/a" would share one pseudonym.
    """
    if kind == "phone":
        return pc.invert(pc.match_substring_regex(texts, "[0-9]"))
    return pc.equal(texts, "")


def _normalize_texts(values: pa.Array, kind: str) -> pa.Array:
    """Return the normalised spelling of each text. Python handles texts beyond ASCII, which Arrow can't."""
    if pc.all(pc.string_is_ascii(values)).as_py() is False:
        # Bytes that are not valid UTF-8 become the replacement character.
        texts = (raw.decode(errors="replace") for raw in values.cast(pa.binary()).to_pylist())
        return pa.array([normalize(text, kind) for text in texts], pa.string())
    if kind == "phone":
        return _replace_matches(values, "[^0-9+]", "[^0-9+]", "")
    trimmed = pc.ascii_trim(values, _BLANKS)
    if kind == "id":
        return trimmed
    lower = pc.ascii_lower(trimmed)
    return lower if kind == "email" else _replace_matches(lower, r"  |[\t\n\r]", f"[{_BLANKS}]+", " ")


def _replace_matches(values: pa.Array, where: str, pattern: str, by: str) -> pa.Array:
    """Replace matches of a pattern if any text matches `where`: replacing takes several times as long as
    searching.
    """
    matches = pc.any(pc.match_substring_regex(values, where)).as_py()
    return pc.replace_substring_regex(values, pattern, by) if matches else values


def normalize(text: str, kind: str) -> str:
    """Return the normalised spelling: NFKC, trimmed and, except for ids, in lower case.

    A telephone number keeps only its digits and plus signs. In texts and names, each run of white space
    becomes one space.
    """
    text = unicodedata.normalize("NFKC", text).strip(_BLANKS)
    if kind == "id":
        return text
    if kind == "phone":
        digits = (str(unicodedata.decimal(sign)) if sign.isdecimal() else sign for sign in text)
        return _NOT_IN_PHONE_NUMBERS.sub("", "".join(digits))
    text = text.lower()
    return text if kind == "email" else _BLANK_RUN.sub(" ", text)


def spelling_of_person(text: str, kind: str) -> str:
    """Return a text that all spellings of a person's id share. It is empty for an id that has no visible
    character.

    Ids with the same pseudonym have the same spelling here. In addition, white space inside of an id, case,
    and characters that nobody sees make no difference. People who are counted as one make a group smaller, so
    that it is rather left out.
    """
    text = normalize(text, kind)
    visible = (sign for sign in text if unicodedata.category(sign) not in _INVISIBLE)
    return unicodedata.normalize("NFKC", _FILLERS.sub("", "".join(visible)).casefold())


def _find_spellings(values: pa.Array, kind: str) -> pa.Array:
    """Return `spelling_of_person` of each text, and null for an empty one."""
    if kind != "phone" and pc.all(pc.string_is_ascii(values)).as_py() is not False:
        spellings = pc.ascii_lower(_replace_matches(values, _ASCII_INVISIBLE, _ASCII_INVISIBLE, ""))
    else:
        spellings = pa.array([spelling_of_person(text, kind) for text in values.to_pylist()], pa.string())
    return pc.if_else(pc.equal(spellings, ""), None, spellings)


def person(value: "Column", kind: str) -> "Column":
    """Return the spelling by which people are counted, as a Spark column; null if an id is null or blank."""

    def spelled(values: pa.Array) -> pa.Array:
        distinct = values.dictionary_encode()
        return _find_spellings(distinct.dictionary, kind).take(distinct.indices)

    return _apply_function(value, lambda: spelled)


def pseudonym(value: "Column", kind: str, key: bytes) -> "Column":
    """Return pseudonyms as a Spark column. Raises ValueError for a key of the wrong length."""
    _compute_pads(key)  # checked here, before any task runs
    return _apply_function(
        value, lambda: create_hasher(key, kind)
    )  # made in the tasks, because a hash state can't be sent to executors


def _apply_function(value: "Column", function: Callable[[], Callable[[pa.Array], pa.Array]]) -> "Column":
    """Return a Spark column of texts that a function of Arrow computes from another one."""
    import pandas as pd  # noqa: PLC0415 - takes a while, and few contracts need it
    from pyspark.sql import functions as F  # noqa: PLC0415
    from pyspark.sql.pandas.functions import pandas_udf  # noqa: PLC0415 - imports pandas

    # The decorator reads the annotations, so this module must not import `annotations` from `__future__`.
    @pandas_udf("string")  # type: ignore[call-overload, untyped-decorator]
    def each(values: pd.Series) -> pd.Series:
        return function()(pa.array(values, pa.string())).to_pandas()

    # Bytes that are not valid UTF-8 become the replacement character; pandas would refuse them.
    return each(F.decode(F.encode(value, "UTF-8"), "UTF-8"))  # type: ignore[no-any-return]
