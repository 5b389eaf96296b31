"""The errors of an export, and how exceptions of Spark, Iceberg and executors are translated into them.

ExportError            code, what happened and why, what to do
├── BadInput           arguments or contract                        exit code 2
├── SourceProblem      the table is missing, not ready or changed   exit code 1
├── DataProblem        the data of a window can't be exported       exit code 1
├── Blocked            a check or the scan for personal data        exit code 7
├── StorageProblem     S3, Glue or Secrets Manager refused          exit code 1
└── Inconsistent       counts or checksums that must agree differ   exit code 1
"""

from __future__ import annotations

import logging
import re
import traceback
from typing import ClassVar

from config.aws_denials import find_denial
from config.errors import find_entry, to_plain_text

_LOG = logging.getLogger("lakeferry.export")
_JAVA_CLASS = re.compile(r"\b(?:[a-z]\w*\.)+[A-Z]\w*(?:Exception|Error)\b")


class ExportError(Exception):
    """`code` is stable and documented; `what` and `remedy` are sentences without secrets or personal data.

    `remedy` replaces that of the catalogue (config/errors.toml) where more specific advice can be given.
    """

    exit_code: ClassVar[int] = 1

    def __init__(self, code: str, what: str, remedy: str = "") -> None:
        advice = remedy or to_plain_text(find_entry(code).remedy).removesuffix(".")
        super().__init__(f"{code}  {what}. {advice}")
        self.code = code
        self.what = what
        self.remedy = advice


class BadInput(ExportError):
    exit_code = 2


class SourceProblem(ExportError):
    """The source can't be read as the contract says."""


class DataProblem(ExportError):
    """The data of a window can't be exported, for example because of a value or the amount of data."""


class Blocked(ExportError):
    """A check or the scan for personal data prevents the file from being published."""

    exit_code = 7


class StorageProblem(ExportError):
    """An AWS service refused a request, or still failed after retries."""


class Inconsistent(ExportError):
    """Counts or checksums that must agree don't, so nothing is published."""


_CAST: tuple[type[ExportError], str, str, str] = (
    DataProblem,
    "EXP-CAST",
    "a text can't be read as the number or date that an expression wants",
    "Use try_cast(), try_to_timestamp() or try_to_number(), which give null for such a text, and decide "
    "what null means",
)

#: (pattern in the exception's text, class, code, what, remedy). The first match is used.
_KNOWN: tuple[tuple[str, type[ExportError], str, str, str], ...] = (
    (
        r"Cannot find snapshot with ID|NotFoundException: Location does not exist|NoSuchKeyException",
        SourceProblem,
        "EXP-SNAPSHOT-EXPIRED",
        "the table's snapshot expired while it was read",
        "Run again: the next run reads a newer one",
    ),
    (
        r"Cannot find field '[^']+' in struct",
        SourceProblem,
        "EXP-SCHEMA-CHANGED",
        "the table has another name for a field, or no longer has it, since its last commit",
        "Change the contract to the field's new name, which it can read after the table's next commit, or "
        "put the field back",
    ),
    (
        # Iceberg finds out only when it reads an old file, because it looks for any column of the map or
        # array there.
        r"IllegalArgumentException: \[[^\]]+\] .* is not in the store",
        SourceProblem,
        "EXP-SCHEMA-CHANGED",
        "a record in a map or an array has none of the fields that it had in older files, and Iceberg "
        "can't read these files",
        "Remove the field from the contract, or put one of the former fields back into the topic",
    ),
    (
        # Checks are analysed on `spark.range(1)`, and all other expressions on the table.
        r"(?s)(UNRESOLVED_COLUMN|FIELD_NOT_FOUND|INVALID_EXTRACT_(BASE|VALUE)|cannot be resolved)"
        r".*\+- Range \(",
        BadInput,
        "EXP-EXPRESSION",
        "a [[check]] names a column that the file doesn't have",
        "Correct the check: `each_row` sees the file's columns, `overall` sees `rows`, and sum_x, min_x "
        "and max_x of numeric columns x",
    ),
    (
        r"UNRESOLVED_COLUMN|FIELD_NOT_FOUND|INVALID_EXTRACT_(BASE|VALUE)|cannot be resolved",
        SourceProblem,
        "EXP-SCHEMA-CHANGED",
        "an expression of the contract names a field that the table doesn't have",
        "Correct the expression, or put the field back",
    ),
    (
        r"DATATYPE_MISMATCH|UNSUPPORTED_FEATURE|INCOMPATIBLE",
        SourceProblem,
        "EXP-TYPE-CHANGED",
        "an expression of the contract does not fit the types of the table's fields",
        "Correct the expression, or the field's type",
    ),
    (
        r"NaN or infinity is no number",
        DataProblem,
        "EXP-NOT-A-NUMBER",
        "a value is NaN or infinite, which no decimal can hold",
        "Leave such events out by a [[filter]] with isnan(), or correct the source",
    ),
    (
        r"outside of the years 1 to 9999",
        DataProblem,
        "EXP-DATE-RANGE",
        "a date or time is outside of the years 1 to 9999",
        "Such values often mean that there is none: leave these events out by a [[filter]], or give null "
        "with an expression such as if(due between DATE '0001-01-01' and DATE '9999-12-31', due, null)",
    ),
    (
        r"ARITHMETIC_OVERFLOW|NUMERIC_VALUE_OUT_OF_RANGE|CAST_OVERFLOW|cannot be represented as Decimal"
        # The second is of timestamp_seconds() with a decimal.
        r"|Division impossible|java\.lang\.ArithmeticException: (Overflow|Rounding necessary)",
        DataProblem,
        "EXP-OVERFLOW",
        "a number is too large for its type",
        "Widen the column's type in the contract, for instance decimal(18,2) to decimal(24,2). A decimal "
        "has at most 38 digits, and a product has the decimal places of both factors: cast factors to "
        "types with fewer places",
    ),
    (
        r"(DIVIDE|REMAINDER)_BY_ZERO",
        DataProblem,
        "EXP-DIVISION",
        "an expression divides by zero",
        "Use try_divide() or a [[filter]]",
    ),
    (
        r"CAST_INVALID_INPUT|CANNOT_PARSE_TIMESTAMP|INVALID_FORMAT\.MISMATCH_INPUT|INVALID_FRACTION",
        *_CAST,
    ),
    (
        # Spark 4 has codes for most of these; otherwise Spark throws texts and classes of Java's own
        # libraries.
        r"INVALID_PARAMETER_VALUE|INVALID_FORMAT|DATETIME_PATTERN|INVALID_REGEXP|INVALID_TIMEZONE|DAY_OF_WEEK|CANNOT_DECODE_URL"
        r"|DUPLICATED_MAP_KEY|UNSUPPORTED_DATATYPE|(Unknown|Illegal|Too many) pattern "
        r"|week-based patterns|Pattern ends with"
        r"|(Malformed|separators in|characters? in|character '.' in|symbols in) pattern"
        r"|PatternSyntaxException|near index \d+|No group \d+|Illegal input for day of week"
        r"|INVALID_EXTRACT_FIELD|java\.util\.\w*Format\w*Exception|Unknown time-zone ID"
        r"|Invalid ID for |Zone offset "
        r"|UnsupportedEncodingException|Illegal sequence boundaries|Unexpected value for \w+ in function",
        DataProblem,  # the argument may be the value of a field
        "EXP-FUNCTION-ARGUMENT",
        "an expression gives a function an argument that it doesn't accept, such as a date format, a "
        "regular expression or a time zone that Spark doesn't know",
        "Correct it: a date format is like 'yyyy-MM-dd', a time zone like 'Europe/Berlin'. If the argument "
        "is a field, leave events with other values out by a [[filter]]",
    ),
    (
        r"INVALID_ARRAY_INDEX|INVALID_INDEX_OF_ZERO",
        DataProblem,
        "EXP-INDEX",
        "an expression reads an item that an array doesn't have",
        "Use get(items, 0), which counts from 0 and gives null (element_at() counts from 1), or leave such "
        "events out by a [[filter]]",
    ),
    (
        r"DateTimeException",
        *_CAST,
    ),
    (
        r"No space left on device|ENOSPC|File too large|Disk quota exceeded",
        StorageProblem,
        "EXP-DISK-FULL",
        "the disk that Spark sorts on is full",
        "Free space or give larger workers, then run again",
    ),
    (
        r"larger than its part numbers allow",
        DataProblem,
        "EXP-FILE-TOO-LARGE",
        "the window's file would need more than the 10,000 parts that S3 allows",
        "Choose smaller windows in the contract, for instance days",
    ),
    (
        r"OutOfMemoryError|Container killed|exit code 137",
        StorageProblem,
        "EXP-MEMORY",
        "the work did not fit into memory",
        "Give larger or more workers, then run again",
    ),
    (
        r"ExpiredToken|token (included in the request is|has) expired",
        StorageProblem,
        "EXP-CREDENTIALS-ENDED",
        "the credentials for the table's files ended while they were read",
        "",
    ),
    (
        r"AccessDenied|S3Exception.*403|Access Denied",
        StorageProblem,
        "EXP-AWS-DENIED",
        "AWS refused a read or a write in a task",
        "Give the job's role this permission (docs/reference/iam.md lists what it needs), then run again",
    ),
    (
        r"botocore\.exceptions|ClientError|SdkClientException|S3Exception|GlueException"
        r"|ConnectionClosedException|Premature end of Content-Length|SocketTimeoutException|SocketException",
        StorageProblem,
        "EXP-AWS-FAILED",
        "a read or a write in a task failed in AWS, even after retries",
        "Run again; nothing was published",
    ),
)


def translate(error: BaseException) -> ExportError:
    """Translate an exception of Spark, Iceberg or an executor into an ExportError: the cause in a sentence,
    without data.
    """
    if isinstance(error, ExportError):
        return error
    text = f"{type(error).__name__}: {error}"
    for pattern, kind, code, what, remedy in _KNOWN:
        if re.search(pattern, text):
            denial = find_denial(text) if code == "EXP-AWS-DENIED" else None
            if denial:
                return kind(code, f"{what}; it is denied by {denial.by}", denial.remedy)
            return kind(code, what + _find_place(text, code), remedy)
    return Inconsistent("EXP-UNEXPECTED", f"an unexpected {type(error).__name__} stopped the run")


def _find_place(text: str, code: str) -> str:
    """Return the column that Spark names. The name comes from the contract and is not data."""
    if code in ("EXP-SCHEMA-CHANGED", "EXP-EXPRESSION") and (
        name := re.search(
            r"with name `([^']+?)` cannot be resolved|No such struct field `([^`]+)`"
            r"|Cannot find field '([^']+)'",
            text,
        )
    ):
        return f": {(name[1] or name[2] or name[3]).replace('`', '')}"
    if code in ("EXP-NOT-A-NUMBER", "EXP-DATE-RANGE") and (
        name := re.search(r"column (\w+): (NaN|a date or time)", text)
    ):
        return f" (column {name[1]})"
    return ""


def log_cause(error: BaseException) -> None:
    """Log the classes and stack frames of an error, but not its text, which may contain the rows on which it
    failed.
    """
    frames = "".join(traceback.format_tb(error.__traceback__))
    java = list(dict.fromkeys(_JAVA_CLASS.findall(str(error))))
    _LOG.error("%s from %s\n%s", type(error).__name__, ", ".join(java) or "Python", frames)
