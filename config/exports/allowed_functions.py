"""The Spark SQL that a contract may use: functions whose result depends only on the rows, without side
effects.

It is an allow list, because Spark also has functions that run any Java method (`reflect`), read the clock or
return random numbers.
"""

from __future__ import annotations

from typing import Final

#: Functions of one row.
SCALAR: Final = frozenset(
    """
    abs add_months aggregate array array_contains array_distinct array_join array_max array_min array_size
    ascii bround cardinality cast ceil ceiling char_length character_length coalesce concat concat_ws contains
    convert_timezone date_add date_diff date_format date_from_unix_date date_part date_sub date_trunc dateadd
    datediff day dayofmonth dayofweek dayofyear decode element_at elt endswith exists extract factorial filter
    find_in_set flatten floor forall format_number format_string from_unixtime from_utc_timestamp get greatest
    hex hour if ifnull initcap instr isnan isnotnull isnull last_day lcase least left length levenshtein lower
    lpad ltrim make_date make_timestamp map_contains_key map_keys map_values minute mod month months_between
    named_struct nanvl negative next_day nullif nvl nvl2 octet_length overlay pmod position positive pow power
    quarter regexp_extract regexp_like regexp_replace replace reverse right rlike round rpad rtrim second sign
    signum size slice sort_array split split_part startswith struct substr substring substring_index
    timestamp_micros timestamp_millis timestamp_seconds to_char to_date to_number to_timestamp
    to_utc_timestamp transform translate trim trunc try_add try_cast try_divide try_multiply try_subtract
    try_to_number try_to_timestamp typeof ucase unix_date unix_millis unix_seconds upper weekday weekofyear
    width_bucket year
    """.split()
)

#: Aggregate functions. Those whose result depends on the order of rows (first, last, collect_list, …) are
#: left out.
AGGREGATE: Final = frozenset(
    "any avg bit_and bit_or bit_xor bool_and bool_or count count_if every max mean min some sum try_avg "
    "try_sum".split()
)

#: Those whose result is the value of one row, or shows that there is such a row.
SHOWS_ONE_PERSON: Final = frozenset("any bit_and bit_or bit_xor bool_and bool_or every max min some".split())
#: The functions that may get the id of a person: a number of people shows none of them.
COUNTS_PEOPLE: Final = frozenset("count lower upper trim btrim".split())

#: The names of Kafka's metadata in expressions, which are the same under both of Tableflow's naming schemes.
KAFKA_FIELDS: Final = (
    "kafka_topic",
    "kafka_partition",
    "kafka_headers",
    "kafka_leader_epoch",
    "kafka_offset",
    "kafka_timestamp",
    "kafka_timestamp_type",
    "kafka_raw_key",
    "kafka_raw_value",
)

#: The names of Iceberg's metadata in Spark. Iceberg refuses to read a field of the topic that has one of
#: them.
ICEBERG_FIELDS: Final = (
    "_file",
    "_pos",
    "_deleted",
    "_spec_id",
    "_partition",
    "_row_id",
    "_last_updated_sequence_number",
)

#: The bounds of the export's window, as timestamps. They are not called window_start and window_end, because
#: tables with aggregates from Flink have columns of these names.
WINDOW_FIELDS: Final = ("export_window_start", "export_window_end")

#: The column with the record's key, unless the topic's value has a field of this name.
RECORD_KEY: Final = "key"


def find_forbidden(functions: list[str], *, aggregate: bool) -> list[str]:
    """Return those of `functions` (as written) that a contract may not use."""
    allowed_names = SCALAR | AGGREGATE if aggregate else SCALAR
    return [name for name in functions if name.lower() not in allowed_names]


def explain_forbidden(name: str) -> str:
    if name.lower() in AGGREGATE:
        return f"{name}() is an aggregate function. Use it in the `measure` of a column"
    return f"{name}() is not among the functions a contract may use (docs/reference/expressions.md)"


def shows_one_person(functions: list[str], *, compares_person_id: bool) -> str | None:
    """Return why a measure over `functions` may show one person's value in an aggregate with `person_id`, or
    None.
    """
    revealing_functions = sorted({name.lower() for name in functions} & SHOWS_ONE_PERSON)
    if not revealing_functions and not compares_person_id:
        return None
    reason = (
        f"{', '.join(revealing_functions)}() gives the value of one person"
        if revealing_functions
        else "a condition on the person's id picks out one person"
    )
    return (
        f"{reason}, however large the group. Sum or average the values, or say why it may be shown: "
        "shows_one_person_because"
    )


#: Messages about an aggregate of doubles and a cast of a double. They follow the name of the expression.
SUMS_DOUBLES: Final = (
    "sums doubles, and such a sum depends on the order of rows: cast to decimal inside the aggregate"
)
CASTS_DOUBLE: Final = (
    "casts a double to a decimal, which turns NaN and infinity into null: write cast(cast(x as string) as "
    "decimal(12,2)), which stops the run for such a value, or try_cast(x as decimal(12,2)), which gives "
    "null"
)

#: Words that Spark reads as functions without parentheses. Their results differ between runs or users.
CLOCK_WORDS: Final = frozenset(
    "current_catalog current_database current_date current_schema current_time current_timestamp "
    "current_timezone current_user localtimestamp now session_user user".split()
)
