"""The part of an export contract about the finished file: its checks, its format and its report."""

from __future__ import annotations

from typing import Final, Literal, get_args

import attrs

from config.forms import NAME, NULL_TEXT, check_pattern
from config.toml_model import setting


@attrs.frozen
class PersonalPattern:
    name: str = setting("A short name, for messages and `may_contain`.", form=NAME)
    pattern: str = setting(
        "A regular expression in RE2's syntax, for instance 'P[0-9]{8}'. A text that contains a match "
        "blocks the file.",
        check=check_pattern,
    )


@attrs.frozen
class Check:
    id: str = setting("A short name.", form=NAME)
    severity: Literal["warn", "block"] = setting(
        "If the check fails, warn adds a note to the report, and block prevents publication."
    )
    message: str = setting("What is wrong when it fails, in plain words.")
    each_row: str | None = setting(
        "A Spark SQL condition over the file's columns. It must not be false for any row.", default=None
    )
    overall: str | None = setting(
        "A Spark SQL condition over `rows`, the number of rows, and sum_x, min_x and max_x of numeric "
        "columns x. There is no sum_x of a column that does not add up or whose unit varies.",
        default=None,
    )
    compare: str | None = setting(
        "`rows`, or a column of `report.headline`. Its number, or its total for each unit, is compared with "
        "those of the latest windows that were published before this one. The check is not made, and does "
        "not fail, as long as there are fewer such windows, or if one of them was incomplete or has another "
        "version of the contract.",
        default=None,
        form=NAME,
    )
    with_windows: int | None = setting(
        "With `compare`: the number of earlier windows. The default is 4.",
        default=None,
        minimum=1,
        maximum=52,
    )
    average: Literal["median", "mean"] | None = setting(
        "With `compare`: what is compared with. The default is the median, which one unusual window hardly "
        "changes.",
        default=None,
    )
    at_most_percent: float | None = setting(
        "With `each_row`: the highest percentage of the rows for which the condition may be false; the "
        "default is 0. With `compare`, which needs it: by how many percent of the earlier windows' median or "
        "mean the number may differ.",
        default=None,
        minimum=0,
        maximum=100_000,
    )


#: Formats beside the CSV file.
Format = Literal["parquet", "jsonl", "xlsx"]
#: The roles in manifests of files with the rows: the CSV file, and those of the other formats.
ROW_ROLES: Final = ("data", *get_args(Format))


@attrs.frozen
class Delivery:
    order_by: list[str] = setting(
        "The columns by which the file is sorted. The other columns break ties, then Kafka's order.",
        form=NAME,
    )
    dialect: Literal["excel", "machine"] = setting(
        "excel adds a byte order mark, so that Excel reads UTF-8, and cuts texts to the length of an Excel "
        "cell (32,767 characters); machine does neither.",
        default="excel",
    )
    delimiter: Literal[",", ";", "\t"] = setting(
        "What separates cells. Excel expects a comma in English and a semicolon in German or French. No "
        "matter at which of them a spreadsheet splits lines, it never executes a text of the file as a "
        "formula.",
        default=",",
    )
    null_text: str = setting(
        "The text for a missing value. A value that equals it is quoted.", default="", form=NULL_TEXT
    )
    gzip: bool = setting("Whether the CSV file is compressed, and that of JSON Lines.", default=False)
    also: list[Format] = setting(
        "Formats in which the same rows are delivered beside the CSV file: parquet, jsonl (JSON Lines), or "
        "xlsx (a workbook of up to 1,048,575 rows, which needs dialect excel).",
        default=list,
    )
    attach_up_to_kb: int = setting(
        "Attach the CSV file and the other formats of `also`, as they are stored, to the mail if together "
        "they have at most this many kilobytes of 1,000 bytes. If they have more, or with 0, none is "
        "attached. Only mails over SES can have files ([mail] of the deployment file).",
        default=0,
        minimum=0,
        maximum=5000,
    )
    attach_keeps: list[str] = setting(
        "The columns with the treatment keep whose values everybody may read to whom a mail with the file is "
        "forwarded. Without them, a contract with such a column can't have attach_up_to_kb.",
        default=list,
        form=NAME,
    )


@attrs.frozen
class Chart:
    title: str = setting("What the chart shows.")
    x: str = setting("The column whose values label the bars or the axis.", form=NAME)
    y: str = setting(
        "The numeric column that is summed, which must add up, or `rows` for the number of rows.", form=NAME
    )
    kind: Literal["bar", "line"] = setting("Bars for categories, a line for times.", default="bar")
    only: str | None = setting(
        "The unit that the chart shows, such as EUR, if the unit of y varies (`per`).", default=None
    )


@attrs.frozen
class Report:
    headline: list[str] = setting(
        "Numeric columns that add up. Their totals (one for each unit) are shown at the top.",
        default=list,
        form=NAME,
    )
    chart: list[Chart] = setting("The charts. The report shows the first three.", default=list)
