"""Checks of contracts before a run: invalid expressions, unknown names, and personal data that would be
delivered.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path

import attrs
import pytest

from config.exports import check, contracts, topic_schema
from config.exports.allowed_functions import ICEBERG_FIELDS
from config.exports.avro_schema import BadSchema
from config.exports.check import NOT_JUDGED, Judge, NotJudged
from config.exports.contract import Column
from config.exports.contracts import parse
from config.toml_model import BadFile

ROOT = Path(__file__).resolve().parents[2]
SCHEMA = topic_schema.from_avro(
    {
        "type": "record",
        "name": "Sale",
        "fields": [
            {"name": "id", "type": "string"},
            {"name": "at", "type": {"type": "long", "logicalType": "timestamp-millis"}},
            {"name": "day", "type": ["null", {"type": "int", "logicalType": "date"}]},
            {"name": "amount", "type": "int"},
            {"name": "delivery", "type": "string"},
            {
                "name": "user",
                "type": {
                    "type": "record",
                    "name": "U",
                    "fields": [
                        {"name": "user", "type": "string"},
                        {"name": "since", "type": {"type": "int", "logicalType": "date"}},
                    ],
                },
            },
            {
                "name": "customer",
                "type": {
                    "type": "record",
                    "name": "Customer",
                    "fields": [
                        {"name": "email", "type": ["null", "string"], "confluent:tags": ["PII"]},
                        {"name": "region", "type": "string"},
                    ],
                },
            },
            {
                "name": "lines",
                "type": {
                    "type": "array",
                    "items": {
                        "type": "record",
                        "name": "Line",
                        "fields": [{"name": "price", "type": "int"}, {"name": "phone", "type": "string"}],
                    },
                },
            },
            {"name": "contacts", "type": {"type": "map", "values": "Customer"}},
            {"name": "codes", "type": {"type": "array", "items": "string"}},
        ],
    },
    "sales",
)
BASE = """name = "sales"
version = 1
title = "Sales"
description = "Sales."
owner = "somebody"
grain = "one row per sale"
[source]
topic = "sales"
event_time = "at"
[window]
every = "day"
zone = "UTC"
from = 2026-11-01
[[column]]
name = "id"
type = "text"
title = "Id"
description = "Id."
[delivery]
order_by = ["id"]
"""
KEPT = 'personal = { treatment = "keep", reason = "r" }'
EXPLODE = '[explode]\narray = "lines"\nas = "line"\n'
COLUMN = '[[column]]\nname = "c"\ntype = "text"\ntitle = "C"\ndescription = "C."\n'


@pytest.fixture(scope="module")
def findings(judge):
    return partial(findings_of, judge=judge)


def findings_of(
    text: str, schema: topic_schema.TopicSchema = SCHEMA, *, judge: Judge | NotJudged
) -> list[tuple[str, str]]:
    try:
        parse(text, name="sales.toml", more_rules=check.rules(schema, judge))
    except BadFile as bad:
        return [(problem.key, problem.message) for problem in bad.problems]
    return []


@pytest.fixture(scope="module")
def of_filter(findings):
    return lambda where: [
        message for _, message in findings(BASE + f"[[filter]]\nwhere = '''{where}'''\nreason = 'r'\n")
    ]


@pytest.fixture(scope="module")
def of_column(findings):
    return lambda expression, settings="": findings(
        BASE + COLUMN + f"expression = '''{expression}'''\n{settings}\n{EXPLODE}"
    )


@pytest.fixture(scope="module")
def of_measure(findings):
    def of_measure(measure: str, type_: str = "integer") -> list[str]:
        aggregate = "[aggregate]\nno_persons_because = 'x'\n"
        text = BASE + COLUMN.replace("text", type_) + f"measure = '''{measure}'''\n{aggregate}{EXPLODE}"
        return [message for _, message in findings(text)]

    return of_measure


@pytest.mark.parametrize("name", ["weekly_sales", "weekly_sales_by_region", "daily_trades"])
def test_shipped_contracts_pass(judge, name):
    topic = "stock_trades" if name == "daily_trades" else "sales_orders"
    schema = topic_schema.load(ROOT / "project" / "topics" / f"{topic}.avsc", topic)
    assert check.check_file(ROOT / "project" / "exports" / f"{name}.toml", schema, judge).name == name


def test_a_contract_in_exports_has_the_name_of_its_file(judge, tmp_path):
    (tmp_path / "exports").mkdir()
    copy = tmp_path / "exports" / "daily_volume.toml"
    elsewhere = tmp_path / "daily_volume.toml"
    for file in (copy, elsewhere):
        file.write_text((ROOT / "project" / "exports" / "daily_trades.toml").read_text())
    schema = topic_schema.load(ROOT / "project" / "topics" / "stock_trades.avsc", "stock_trades")
    assert check.check_file(elsewhere, schema, judge) == contracts.load(str(elsewhere))
    for read in (lambda: check.check_file(copy, schema, judge), lambda: contracts.load(str(copy))):
        with pytest.raises(
            BadFile, match=r"daily_trades is not the name of the file. Set name = \"daily_volume\""
        ):
            read()


def test_a_file_is_read_with_all_mistakes_of_both_kinds(judge, tmp_path):
    file = tmp_path / "sales.toml"
    file.write_text(
        BASE.replace("version = 1", "version = 0") + "[[filter]]\nwhere = 'nothing > 1'\nreason = 'r'\n"
    )
    with pytest.raises(BadFile) as bad:
        check.check_file(file, SCHEMA, judge)
    assert [(problem.line, problem.key) for problem in bad.value.problems] == [
        (2, "version"),
        (22, "filter[0].where"),
    ]
    with pytest.raises(BadFile, match="cannot be read"):
        check.check_file(tmp_path / "none.toml", SCHEMA, judge)


@pytest.mark.parametrize(
    "where",
    [
        "amount > 1 and not (delivery = 'x')",
        "amount in (1, 2) or amount between (1) and (2)",
        "case when (amount > 1) then (true) else (false) end",
        "cast(amount as decimal(10,2)) > 1.5",
        "amount div (2) = 1",
        "customer.region is not distinct from (delivery)",
        "customer.region not in ('a') and customer.region rlike '^x'",
        "extract(year from (at)) = 2026",
        "trim(both ' ' from (delivery)) = 'x'",
        "from_utc_timestamp(at, 'Europe/Berlin') > timestamp '2026-01-01 00:00:00'",
        "to_date(from_utc_timestamp(at, 'Europe/Berlin')) > date '2026-01-01'",
        "exists(lines, l -> l.price > (1 + 2))",
        "size(filter(lines, x -> x.price > 1)) > 0",
        "aggregate(lines, 0, (sum, l) -> sum + l.price) > 0",
        "delivery = 'user' or delivery = 'current_date' or delivery = 'now()'",
        "delivery in ('today', 'tomorrow') and 'now' <> delivery",
        "user.user = 'x'",
        "coalesce(customer.region, 'none') <=> ('none')",
        "at >= export_window_start and at < export_window_end",
        "kafka_timestamp > at and kafka_offset > 5",
        "codes[0] = 'a' and contacts['home'].region = 'x'",
        "amount > -1 -- a comment",
        "from_utc_timestamp(at, delivery) > at and convert_timezone(delivery, 'UTC', timestamp_ntz "
        "'2026-01-01') is null",
        "date_format(at, delivery) = 'x' and to_date(delivery, 'yyyy') is null and split(delivery, '.')[0] "
        "= 'x'",
        "`customer`.`region` = 'x'",
    ],
)
def test_valid_spark_expressions_are_accepted(of_filter, where):
    assert of_filter(where) == []


@pytest.mark.sampled(30)
@pytest.mark.parametrize(
    ("where", "expected_message"),
    [
        ("amount in (select amount from other)", "a subquery is not allowed"),
        ("exists (select 1)", "a subquery is not allowed"),
        ("amount = (select max(amount) from sales)", "a subquery is not allowed"),
        ("(with x as (select 1) select * from x)", "a subquery is not allowed"),
        ("row_number() over (partition by id order by at) = 1", "a window function is not allowed"),
        ("sum(amount) over () > 1", "a window function is not allowed"),
        ("lag(amount) over (order by at) > 1", "a window function is not allowed"),
        ("concat_ws(',', *) = 'x'", "name columns one by one"),
        ("struct(*) is not null", "name columns one by one"),
        ("struct(customer.*) is not null", "name columns one by one"),
        ("*", "name columns one by one"),
        ("my_udf(amount)", "my_udf() is not among the functions"),
        ("reflect('java.lang.System', 'getenv', 'KEY') = 'x'", "reflect() is not among the functions"),
        ("java_method('java.lang.System', 'exit', 1) = 'x'", "java_method() is not among the functions"),
        ("`reflect`('a', 'b') = 'x'", "reflect() is not among the functions"),
        ("REFLECT ('a', 'b') = 'x'", "REFLECT() is not among the functions"),
        ("lower(reflect('a', 'b')) = 'x'", "reflect() is not among the functions"),
        ("own.lower(delivery) = 'x'", ".lower() is not among the functions"),
        ("a.b.c.d.lower(delivery) = 'x'", ".lower() is not among the functions"),
        ("rand() > 0.5", "rand() is not among the functions"),
        ("uuid() > 'a'", "uuid() is not among the functions"),
        ("input_file_name() = 'x'", "input_file_name() is not among the functions"),
        ("monotonically_increasing_id() = 1", "monotonically_increasing_id() is not among the functions"),
        ("sum(amount) > 1", "sum() is an aggregate function. Use it in the `measure`"),
        ("now() > at", "now() is not among the functions"),
        ("at > current_timestamp", "current_timestamp changes with time or user"),
        ("at > current_timestamp()", "current_timestamp() is not among the functions"),
        ("to_date(at) = current_date", "current_date changes with time or user"),
        ("to_date(at) = Current_Date - 1", "Current_Date changes with time or user"),
        ("at > localtimestamp", "localtimestamp changes with time or user"),
        ("user = 'x'", "user changes with time or user"),
        ("`session_user` = 'x'", "session_user changes with time or user"),
        ("at > 'now'", "gives the time of the run, so the result would differ"),
        ("at > timestamp 'now'", "timestamp 'now' may change with time"),
        ("at > cast('Today' as timestamp)", "gives the time of the run, so the result would differ"),
        ("to_date(at) > date 'yesterday'", "date 'yesterday' may change with time"),
        ("at between 'today' and 'tomorrow UTC'", "gives the time of the run, so the result would differ"),
        ("to_date('tomorrow') > to_date(at)", "gives the time of the run, so the result would differ"),
        ("at in ('now')", "gives the time of the run, so the result would differ"),
        (
            "exists(lines, l -> at < current_timestamp)",
            "gives the time of the run, so the result would differ",
        ),
        ("delivery = 'now' and at = 'now'", "gives the time of the run, so the result would differ"),
        ("cast(delivery as date) = 'now'", "gives the time of the run, so the result would differ"),
        ("amount >", "not a Spark SQL expression (Syntax error at or near end of input, character 9)"),
        ("amount = 'it's'", "not a Spark SQL expression"),
        ("", "not a Spark SQL expression"),
        ("select 1", "not a Spark SQL expression"),
        ("drop table sales", "not a Spark SQL expression"),
        ("amount > 1; drop table sales", "not a Spark SQL expression"),
        ("amount > 1; id = 'x'", "not a Spark SQL expression"),
        ("amount > ?", "Parameter is not among the functions and operators"),
        ("amount > :limit", "Parameter is not among the functions and operators"),
        ("amount > @limit", "not a Spark SQL expression"),
        (
            "at::date > date '2026-01-01'",
            "not a Spark SQL expression (Syntax error at or near ':', character 3)",
        ),
        (
            "(at at time zone 'UTC') > timestamp '2026-01-01 00:00:00'",
            "Syntax error at or near 'time', character 8",
        ),
        ("cast(amount as text) = 'x'", 'Unsupported data type "TEXT"'),
        ("cast(amount as int64) > 1", 'Unsupported data type "INT64"'),
        ("extract(epoch from at) > 1", "Cannot extract `epoch`"),
        ("datediff('day', at, at) > 1", "not a Spark SQL expression"),
        ("amount << 1 > 1", "not a Spark SQL expression"),
        ("codes[0:1] is not null", "not a Spark SQL expression"),
        ("amount + customer > 1", 'Cannot resolve "(amount + customer)" due to data type mismatch'),
        ("amount", "gives integer, and a condition is true or false"),
        ("_file = 'x'", "_file is neither a field of sales"),
        ("`$offset` = 1", "$offset is neither a field of sales"),
        ("exists(lines, l -> l.prize > 1)", "prize is neither a field"),
        (
            "to_date(delivery, 'YYYY') is null",
            "to_date() or to_timestamp() does not accept 'YYYY' as an argument",
        ),
        ("date_format(at, 'hh:mm A') = 'x'", "date_format() does not accept 'hh:mm A'"),
        ("exists(codes, c -> c rlike '(')", "rlike() does not accept '('"),
        (
            "from_utc_timestamp(at, 'Europe/Berlyn') > at",
            "from_utc_timestamp() does not accept 'Europe/Berlyn'",
        ),
        (
            "amuont > 1",
            "amuont is neither a field of sales nor another name known here. Did you mean amount?",
        ),
        ("Amount > 1", "Amount is neither a field of sales"),
        ("customer.city = 'x'", "customer.city is neither a field of sales"),
        ("line.price > 1", "line.price is neither a field of sales"),
    ],
)
def test_forbidden_expressions_are_reported(of_filter, where, expected_message):
    found = of_filter(where)
    assert any(expected_message in message for message in found), found


def test_fields_that_the_source_lacks_are_reported_wherever_they_are_named(findings):
    text = BASE.replace('event_time = "at"', 'event_time = "when"') + (
        '[deduplicate]\nkey = ["id", "no"]\norder = ["seq"]\n'
        '[explode]\narray = "rows"\nas = "row"\n'
        '[[column]]\nname = "other"\ntype = "text"\ntitle = "t"\ndescription = "d"\n'
        '[[column]]\nname = "given"\nfrom = "row.x"\ntype = "text"\ntitle = "t"\ndescription = "d"\n'
        '[[column]]\nname = "n"\nmeasure = "count(*)"\ntype = "integer"\ntitle = "t"\ndescription = "d"\n'
        '[aggregate]\nperson_id = "customer.number"\n'
    )
    assert sorted(findings(text)) == [
        ("aggregate.person_id", "the schema of sales has no field customer.number. Did you mean customer?"),
        ("column[1].name", "the schema of sales has no field other"),
        ("column[2].from", "the schema of sales has no field row.x"),
        ("deduplicate.key[1]", "the schema of sales has no field no"),
        ("deduplicate.order[0]", "the schema of sales has no field seq"),
        ("explode.array", "the schema of sales has no field rows"),
        ("source.event_time", "the schema of sales has no field when"),
    ]


@pytest.mark.parametrize(
    ("before", "after", "key", "expected_message"),
    [
        (
            'topic = "sales"',
            'topic = "trades"',
            "source.topic",
            "reads trades, but the schema given is that of sales",
        ),
        (
            'event_time = "at"',
            'event_time = "amount"',
            "source.event_time",
            "amount is int, not a timestamp or a date. Name a field of these types, or kafka_timestamp",
        ),
        ('event_time = "at"', 'event_time = "delivery"', "source.event_time", "delivery is string, not a"),
        ('event_time = "at"', 'event_time = "customer"', "source.event_time", "customer is record, not a"),
        (
            "[delivery]",
            '[explode]\narray = "customer"\nas = "c"\n[delivery]',
            "explode.array",
            "customer is record, not an array",
        ),
    ],
)
def test_mistakes_about_the_source_are_reported(findings, before, after, key, expected_message):
    ((found_key, message),) = findings(BASE.replace(before, after))
    assert found_key == key
    assert expected_message in message


@pytest.mark.parametrize("name", ["kafka_timestamp", "day", "user.since"])
def test_kafkas_timestamp_and_a_date_are_valid_event_times(findings, name):
    assert findings(BASE.replace('event_time = "at"', f'event_time = "{name}"')) == []


def test_checks_see_columns_of_the_file_and_its_totals(findings):
    text = (
        BASE + COLUMN.replace('"c"', '"n"').replace('type = "text"', 'type = "integer"') + 'from = "amount"\n'
    )
    checks = '[[check]]\nid = "{0}"\nseverity = "warn"\nmessage = "m"\n{1} = "{2}"\n'
    good = [
        ("a", "each_row", "n > 1 and id <> 'now'"),
        ("b", "overall", "rows > 0 and sum_n > min_n and max_n < 9"),
    ]
    assert findings(text + "".join(checks.format(*values) for values in good)) == []
    bad = [
        ("a", "each_row", "amount > 1"),
        ("b", "overall", "n > 0 or sum_id > 1"),
        ("c", "each_row", "sum(n) > 1"),
    ]
    assert findings(text + "".join(checks.format(*values) for values in bad)) == [
        ("check[0].each_row", "amount is not a column of the file"),
        ("check[1].overall", "n is neither `rows` nor the sum_x, min_x or max_x of a numeric column x"),
        (
            "check[1].overall",
            "sum_id is neither `rows` nor the sum_x, min_x or max_x of a numeric column x. Did you mean "
            "sum_n?",
        ),
        ("check[2].each_row", "sum() is an aggregate function. Use it in the `measure` of a column"),
    ]


@pytest.mark.sampled(8)
@pytest.mark.parametrize(
    ("expression", "carried"),
    [
        ("customer.email", "customer.email"),
        ("lower(trim(customer.email))", "customer.email"),
        ("concat(id, coalesce(customer.email, ''))", "customer.email"),
        ("case when customer.email is null then 'a' else 'b' end", "customer.email"),
        ("customer", "customer.email"),
        ("customer['email']", "customer.email"),
        ("struct(customer).customer", "customer.email"),
        ("`customer`.`email`", "customer.email"),
        ("line.phone", "lines[].phone"),
        ("line", "lines[].phone"),
        ("lines[0].phone", "lines[].phone"),
        ("array_join(transform(lines, l -> l.phone), ',')", "lines[].phone"),
        ("contacts['home'].email", "contacts{}.email"),
        ("element_at(map_values(contacts), 1)", "contacts{}.email"),
        ("decode(kafka_raw_value, 'utf-8')", "the raw record"),
        ("decode(kafka_raw_key, 'utf-8')", "the raw record"),
        ("kafka_headers", "the raw record"),
        ("decode(key, 'utf-8')", "the key of the record"),
    ],
)
def test_personal_data_is_found_in_any_expression(of_column, expression, carried):
    found = of_column(expression)
    (message,) = [message for key, message in found if key == "column[1]" and "personal data" in message]
    assert f"c contains personal data ({carried}" in message
    assert "and has no `personal` entry" in message
    others = [finding for finding in found if finding[1] != message]
    assert others == of_column(expression, KEPT) == of_no_text(expression, "its expression gives")


def of_no_text(source: str, origin: str) -> list[tuple[str, str]]:
    """Return the findings that don't depend on the value being personal.

    `origin` is `its expression gives` or `the field is`.
    """
    nested = ("customer", "struct(customer).customer", "line", "element_at(map_values(contacts), 1)")
    kinds = dict.fromkeys(nested, "a record or a union") | {"contacts": "a map", "kafka_headers": "a map"}
    if source not in kinds:
        return []
    return [
        (
            "column[1]",
            f"c: {origin} {kinds[source]}; name a field inside it, or explode an array with [explode]",
        )
    ]


@pytest.mark.parametrize(
    "expression",
    ["delivery", "cast(line.price as string)", "transform(codes, c -> lower(c))[0]", "kafka_topic"],
)
def test_data_that_is_not_personal_is_accepted(of_column, expression):
    assert of_column(expression) == []


def test_a_text_beside_a_personal_field_needs_a_treatment_only_where_it_is_delivered_as_text(
    findings, of_column
):
    (problem,) = of_column("upper(customer.region)")
    reason = "customer.region: it is a text beside customer.email, which is personal, in customer"
    assert f"c contains personal data ({reason}) and has no `personal` entry" in problem[1]
    assert of_column("upper(customer.region)", 'personal = { treatment = "keep", reason = "r" }') == []
    as_boolean = (
        BASE + COLUMN.replace("text", "boolean") + "expression = \"customer.region = 'north'\"\n" + EXPLODE
    )
    assert findings(as_boolean) == []


def test_a_measure_over_personal_data_may_be_kept_with_a_reason(findings):
    measure = "measure = 'max(length(customer.email))'"
    text = BASE + COLUMN.replace("text", "integer") + f"{measure}\n[aggregate]\nno_persons_because = 'x'\n"
    kept = text.replace(measure, measure + "\npersonal = { treatment = 'keep', reason = 'Only a length.' }")
    hashed = text.replace(measure, measure + "\npersonal = { treatment = 'hash', kind = 'id' }")
    assert ["personal data" in message for _, message in findings(text)] == [True]
    assert findings(kept) == []
    assert [message for _, message in findings(hashed) if "keep is its only treatment" in message]


@pytest.mark.parametrize(
    "source", ["customer.email", "customer", "line", "line.phone", "contacts", "kafka_raw_value"]
)
def test_a_personal_field_needs_a_treatment(findings, source):
    text = BASE + COLUMN + f'from = "{source}"\n{EXPLODE}'
    assert [key for key, message in findings(text) if "personal data" in message] == ["column[1]"]
    kept = findings(text.replace("[explode]", f"{KEPT}\n[explode]"))
    bytes_ = "c: the field is bytes, and the column's type is text" if source == "kafka_raw_value" else None
    assert [message.partition(". Change")[0] for _, message in kept] == (
        [bytes_] if bytes_ else [message for _, message in of_no_text(source, "the field is")]
    )


def test_a_measure_may_only_count_people(of_measure):
    assert of_measure("count(distinct customer.email)") == []
    assert of_measure("count_if(customer.email is not null)") == []
    assert of_measure("sum(amount) filter (where customer.region = 'x')") == []
    mixed = "count(customer.email) + max(length(customer.email))"
    for measure, type_ in (("max(customer.email)", "text"), (mixed, "integer"), ("min(line.phone)", "text")):
        assert ["personal data" in message for message in of_measure(measure, type_)] == [True], measure
    assert "name columns one by one" in of_measure("count(distinct *)")[0]
    assert of_measure("count(*)") == []


#: Whether a measure may show one person of a group.
ONE_PERSON = {
    "max(amount)": True,
    "min(amount) + sum(amount)": True,
    "MAX(line.price)": True,
    "max(at)": True,
    "bit_and(amount)": True,
    "count_if(id = 'p1')": True,
    "sum(if(id = 'p1', amount, 0))": True,
    "sum(case when id = 'p1' then amount end)": True,
    "count(if(id = 'p1', 1, null))": True,
    "sum(amount) filter (where id = 'p1')": True,
    "sum(length(id))": True,
    "sum(amount)": False,
    "avg(cast(amount as decimal(9,2)))": False,
    "count(*)": False,
    "count(distinct id)": False,
    "count(distinct lower(id))": False,
    "count_if(amount > 5)": False,
}


@pytest.mark.sampled(8)
@pytest.mark.parametrize("measure", ONE_PERSON)
def test_a_measure_that_shows_one_person_needs_a_reason(findings, measure):
    text = BASE + COLUMN.replace("text", "decimal(18,2)" if "avg" in measure else "integer")
    text += f'measure = """{measure}"""\n[aggregate]\nperson_id = "id"\n{EXPLODE}'
    if "at)" in measure:
        text = text.replace("integer", "timestamp")
    shown = [message for key, message in findings(text) if key == "column[1].measure"]
    assert [message for _, message in findings(text)] == shown
    assert [("shows_one_person_because" in message) for message in shown] == [True] * ONE_PERSON[measure]
    excused = text.replace("measure =", 'shows_one_person_because = "r"\nmeasure =')
    assert findings(excused) == []
    without_people = text.replace('person_id = "id"', "no_persons_because = 'x'")
    assert findings(without_people) == []


def test_an_order_dependent_measure_is_reported(of_measure):
    for measure in ("first(amount)", "collect_list(amount)", "any_value(amount)", "max_by(amount, at)"):
        assert "is not among the functions" in of_measure(measure)[0]


TYPED = topic_schema.from_avro(
    {
        "type": "record",
        "name": "Ride",
        "fields": [
            {"name": "id", "type": "string"},
            {"name": "at", "type": {"type": "long", "logicalType": "timestamp-millis"}},
            {"name": "metres", "type": ["null", "double"]},
            {"name": "seats", "type": "int"},
            {"name": "fare", "type": {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}},
            {"name": "wall", "type": {"type": "long", "logicalType": "local-timestamp-millis"}},
            {
                "name": "place",
                "type": {"type": "record", "name": "P", "fields": [{"name": "city", "type": "string"}]},
            },
        ],
    },
    "sales",
)
SUMS_DOUBLES = "sums doubles, and such a sum depends on the order of rows"
CASTS_DOUBLE = "turns NaN and infinity into null"
SUM_OF_DOUBLES = (
    "is a double, and sums of doubles depend on their order: cast to decimal inside the aggregate"
)


@pytest.fixture(scope="module")
def type_findings(findings):
    def type_findings(column: str, *, more: str = "", schema=TYPED) -> list[str]:
        text = BASE + '[[column]]\nname = "c"\ntitle = "C"\ndescription = "C."\n' + column + "\n" + more
        return [message for _, message in findings(text, schema)]

    return type_findings


@pytest.mark.parametrize(
    ("type_", "origin", "expected_message"),
    [
        ("decimal(12,2)", 'measure = "sum(metres)/1000"', SUMS_DOUBLES),
        ("decimal(12,2)", 'measure = "cast(cast(sum(metres) as string) as decimal(12,2))"', SUMS_DOUBLES),
        ("decimal(12,2)", 'measure = "sum(cast(metres / 2 as decimal(18,3)))"', CASTS_DOUBLE),
        ("decimal(12,2)", 'measure = "sum(try_cast(metres as decimal(18,3)))"', None),
        ("decimal(12,2)", 'measure = "sum(seats) / 1000"', SUM_OF_DOUBLES),
        ("decimal(12,2)", 'measure = "avg(seats)"', SUM_OF_DOUBLES),
        ("decimal(12,2)", 'measure = "sum(metres) filter (where seats > 1)"', SUMS_DOUBLES),
        ("decimal(12,2)", 'measure = "sum(cast(cast(metres as string) as decimal(18,3)))/1000"', None),
        ("decimal(12,2)", 'measure = "sum(seats * fare)"', None),
        ("decimal(12,2)", 'measure = "avg(fare) + 1"', None),
        ("integer", 'measure = "sum(seats)"', None),
        (
            "integer",
            'measure = "max(fare)"',
            "its expression gives decimal(9,2), and the column's type is integer. Cast it",
        ),
        ("decimal(12,2)", 'from = "metres"', None),
        ("decimal(9,1)", 'from = "fare"', "the field is decimal(9,2), and the column's type is decimal(9,1)"),
        ("decimal(9,1)", 'from = "fare"\npersonal = { treatment = "drop" }', None),
        ("decimal(12,3)", 'from = "fare"', None),
        ("decimal(9,1)", 'expression = "fare"', None),
        ("text", 'from = "seats"', "the field is integer, and the column's type is text"),
        (
            "timestamp",
            'from = "wall"',
            "the field is a timestamp without a zone, and the column's type is timestamp",
        ),
        ("text", 'from = "place"', "the field is a record or a union; name a field inside it"),
        ("text", 'from = "place.city"', None),
        (
            "text",
            'from = "seats"\npersonal = { treatment = "hash", kind = "id" }',
            "the field is integer, and hash needs text. Cast it",
        ),
        ("integer", 'expression = "seats * 2 - 1"', None),
        (
            "integer",
            'expression = "seats / 2"',
            "its expression gives a double, and the column's type is integer. Cast it",
        ),
        ("integer", 'expression = "seats div 2"', None),
        ("text", 'expression = "coalesce(id, place.city)"', None),
    ],
)
def test_a_type_that_a_run_would_refuse_is_reported(type_findings, type_, origin, expected_message):
    more = '[aggregate]\nno_persons_because = "x"\n' if "measure" in origin else ""
    found = type_findings(f'type = "{type_}"\n{origin}', more=more)
    assert (
        found == []
        if expected_message is None
        else [expected_message in message for message in found] == [True]
    ), found


def test_all_mistakes_of_all_kinds_are_reported_at_once(findings):
    text = BASE + (
        COLUMN.replace('"c"', '"first"') + "expression = 'rand()'\n"
        + COLUMN.replace('"c"', '"second"') + "expression = 'reigon || kuntry'\n"
        + COLUMN.replace('"c"', '"third"').replace('"text"', '"date"') + "expression = 'amount'\n"
        + COLUMN.replace('"c"', '"fourth"').replace('"text"', '"boolean"') + "expression = \"at > 'now'\"\n"
        + "[[filter]]\nwhere = 'amount >'\nreason = 'r'\n"
    )  # fmt: skip
    assert [key for key, _ in findings(text)] == [
        "column[1].expression",
        "column[2].expression",
        "column[2].expression",
        "column[3]",
        "column[4].expression",
        "filter[0].where",
    ]


def test_a_column_that_can_not_be_read_hides_no_other_mistake(findings):
    text = BASE + COLUMN.replace('"text"', '"txt"') + "expression = 'amount'\n"
    text += "[[filter]]\nwhere = 'nothing > 1'\nreason = 'r'\n"
    text += '[[check]]\nid = "a"\nseverity = "warn"\nmessage = "m"\neach_row = "c > 1"\n'
    assert [key for key, _ in findings(text)] == ["column[1].type", "filter[0].where"]


def test_without_a_judge_only_expressions_and_types_are_not_checked():
    text = BASE + COLUMN + "expression = 'nonsense +'\n" + COLUMN.replace('"c"', '"d"') + 'from = "nowhere"\n'
    assert findings_of(text, judge=NOT_JUDGED) == [
        ("column[2].from", "the schema of sales has no field nowhere")
    ]


def test_a_key_that_spark_can_not_compare_is_reported(findings):
    text = BASE + '[deduplicate]\nkey = ["id", "contacts"]\n'
    ((key, message),) = findings(text)
    assert (key, "contacts is a map" in message) == ("deduplicate.key[1]", True)


def test_a_filter_that_would_take_infinity_for_nothing_is_reported(type_findings):
    more = '[[filter]]\nwhere = "cast(metres as decimal(12,2)) >= 0"\nreason = "r"\n'
    (message,) = type_findings('type = "text"\nfrom = "id"', more=more)
    assert CASTS_DOUBLE in message


def test_a_topic_with_a_time_of_day_is_reported(type_findings):
    schema = {
        "type": "record",
        "name": "R",
        "fields": [{"name": "at", "type": {"type": "long", "logicalType": "timestamp-millis"}}],
    }
    schema["fields"] += [
        {"name": "id", "type": "string"},
        {"name": "opens", "type": {"type": "int", "logicalType": "time-millis"}},
    ]
    (message,) = type_findings('type = "text"\nfrom = "id"', schema=topic_schema.from_avro(schema, "sales"))
    assert message.startswith("opens: a time of day, and Spark can't read an Iceberg table that has one")


@pytest.mark.parametrize("name", ["kafka_offset", *ICEBERG_FIELDS])
def test_a_name_that_may_mean_a_field_or_metadata_is_reported_where_it_is_named(type_findings, name):
    fields = [{"name": field, "type": "string"} for field in ("id", name)]
    at = {"name": "at", "type": {"type": "long", "logicalType": "timestamp-millis"}}
    schema = topic_schema.from_avro({"type": "record", "name": "Sale", "fields": [at, *fields]}, "sales")
    assert type_findings('type = "text"\nfrom = "id"', schema=schema) == []
    message = (
        f"{name} may mean a field of the topic or the metadata of Kafka or Iceberg. Remove it from the "
        "contract, or rename the field in the topic"
    )
    assert message in type_findings(f'type = "text"\nfrom = "{name}"', schema=schema)
    assert message in type_findings(f'type = "text"\nexpression = "upper({name})"', schema=schema)


@pytest.mark.parametrize("alias", ["kafka_offset", "export_window_start"])
def test_an_item_may_not_have_a_name_of_the_job(findings, alias):
    assert findings(BASE + EXPLODE.replace('as = "line"', f'as = "{alias}"')) == [
        ("explode.as", f"{alias} is a name of the job in expressions. Give the item another name")
    ]


def test_an_item_may_not_have_the_name_of_a_field(findings):
    assert findings(BASE + EXPLODE.replace('as = "line"', 'as = "codes"')) == [
        ("explode.as", "sales has a field codes. Give the item another name")
    ]


def test_missing_files_are_reported(judge, tmp_path):
    with pytest.raises(BadSchema) as bad:
        topic_schema.load(tmp_path / "rides.avsc", "rides")
    assert str(bad.value) == f"{tmp_path}/rides.avsc: cannot be read: No such file or directory"
    with pytest.raises(BadFile) as missing:
        check.check_file(tmp_path / "mine.toml", SCHEMA, judge)
    assert "cannot be read: No such file or directory" in str(missing.value)
    assert "Errno" not in str(missing.value)


@pytest.mark.parametrize(
    "expression",
    [
        "1 div 0",
        "n + cast('x' as int)",
        "make_date(2024, 13, 1)",
        "array(1)[5]",
        "upper(cast(1 div 0 as string))",
    ],
)
def test_a_part_that_fails_for_each_row_is_reported(of_column, expression):
    messages = [message for _, message in of_column(expression.replace("n +", "amount +"))]
    assert any("fails for each row" in message for message in messages), messages


@pytest.mark.parametrize(
    "expression", ["if(amount = 0, 'none', cast(1 div 0 as string))", "try_cast('x' as string)"]
)
def test_a_part_that_is_computed_for_some_rows_only_is_accepted(of_column, expression):
    assert [message for _, message in of_column(expression) if "fails for each row" in message] == []


@pytest.mark.parametrize(
    ("expression", "fields"),
    [
        ("upper(customer.email)", ["customer.email"]),
        ("lines[0].phone", ["lines"]),
        ("concat(id, 'customer.email', \"amount\")", ["id"]),
        ("`customer`.`region`", ["customer.region"]),
        ("amount(1) + no_field", []),
        ("upper(Customer.EMAIL)", ["customer.email"]),
        ("amount * 2 * 3", ["amount"]),
        ("key", ["key"]),
        ("kafka_raw_value", ["kafka_raw_value"]),
    ],
)
def test_names_in_expressions_stand_for_fields_where_spark_is_not_asked(expression, fields):
    contract = plan_contract(expression)
    assert check.read_by_names(contract, SCHEMA).reads == {"column[0].expression": fields}


@pytest.mark.parametrize(
    "text", ["to_json(struct(*))", "to_json(struct(id, *))", "to_json(struct(customer.*))"]
)
def test_all_fields_at_once_are_refused_where_spark_is_not_asked(text):
    (finding,) = check.read_by_names(plan_contract(text), SCHEMA).findings
    assert (finding.key, finding.message) == ("column[0].expression", check._NAME_FIELDS)


def test_counting_rows_reads_no_field():
    analysis = check.read_by_names(plan_contract("count( * ) + 0", "measure"), SCHEMA)
    assert (analysis.findings, analysis.reads) == ([], {"column[0].measure": []})


def test_a_measure_that_counts_carries_no_value():
    counted = plan_contract("count(customer.email)", "measure")
    assert check.read_by_names(counted, SCHEMA).counts == ["column[0].measure"]
    assert check.read_by_names(plan_contract("max(customer.email)", "measure"), SCHEMA).counts == []


def plan_contract(text, kind="expression"):
    column = Column(name="a", type="text", title="", description="", **{kind: text})
    return attrs.evolve(contracts.load("weekly_sales"), explode=None, column=[column])
