"""Expressions that the job itself refuses, whatever checked the contract before."""

from __future__ import annotations

import re
from functools import partial

import pytest

from config.exports.contracts import parse
from glue_jobs.errors import BadInput
from glue_jobs.expression_guard import require_allowed
from tests.support.lake import MONDAY, column, contract, topic_of

REFUSED = {
    "(SELECT max(amount) FROM other)": "a subquery is not allowed",
    "row_number() OVER (ORDER BY amount)": "a window function is not allowed",
    "java_method('java.lang.System', 'exit', 1)": "java_method",
    "IDENTIFIER('java_method')('java.lang.System', 'getenv', 'HOME')": "IDENTIFIER() is not allowed",
    "IDENTIFIER('current_' || 'timestamp')": "IDENTIFIER() is not allowed",
    "current_timestamp()": "current_timestamp",
    "current_date": "current_date changes with time or user",
    "cast(timestamp 'now' AS string)": "timestamp 'now' may change with time",
    "cast(DATE'Yesterday' AS string)": "DATE'Yesterday' may change with time",
    "cast(timestamp/**/'now' AS string)": "timestamp/**/'now' may change with time",
    "cast(timestamp r'now' AS string)": "timestamp r'now' may change with time",
    r"cast(timestamp_ntz 'n\u006fw' AS string)": r"timestamp_ntz 'n\u006fw' may change with time",
    'cast(date" tomorrow " AS string)': 'date" tomorrow " may change with time',
    "rand()": "rand",
    "amount +": "not a Spark SQL expression",
    "cast(amount as decimal(40,2))": "not a Spark SQL expression",
    "*": "name columns one by one",
    "amount > :limit": "NamedParameter is not among the functions and operators",
}
#: Spark functions with access to the outside, random results, a clock, or results that depend on the order or
#: location of rows.
DANGEROUS = """
    reflect java_method try_reflect input_file_name input_file_block_start input_file_block_length
    rand randn random uuid shuffle monotonically_increasing_id spark_partition_id
    now curdate current_date current_timestamp current_timezone localtimestamp unix_timestamp
    current_user user session_user current_catalog current_database current_schema version
    first_value last_value collect_list collect_set array_agg listagg mode
    max_by min_by approx_count_distinct approx_percentile percentile_approx
    explode explode_outer inline posexplode stack read_files
    aes_encrypt aes_decrypt raise_error assert_true sequence repeat space
""".split()
#: Expressions that Spark's parser knows without looking up a function, at least in Spark 3.5, and a pattern
#: of the message.
PARSED = {
    "first(id)": "First",
    "last(id)": "Last",
    "any_value(id)": "AnyValue",
    "percentile_cont(0.5) WITHIN GROUP (ORDER BY amount)": "percentile_?cont",
    "percentile_disc(0.5) WITHIN GROUP (ORDER BY amount)": "percentile_?disc",
    "count(DISTINCT *)": "name columns one by one",
}


def of(*expressions):
    computed = [column(f"c{index}", expression=expression) for index, expression in enumerate(expressions)]
    return parse(contract(column("id"), *computed), name="things")


def refusal(spark, checked):
    with pytest.raises(BadInput) as refused:
        require_allowed(spark, checked)
    return str(refused.value)


@pytest.mark.parametrize("expression", REFUSED)
def test_functions_with_outside_access_or_changing_results_are_refused(spark, expression):
    message = refusal(spark, of(expression))
    assert "column c0: " in message
    assert REFUSED[expression] in message


def test_no_dangerous_function_is_allowed_in_a_measure_either(spark):
    measures = [column(f"c{index}", measure=f"{name}(id)") for index, name in enumerate(DANGEROUS)]
    measures += [column(f"p{index}", measure=measure) for index, measure in enumerate(PARSED)]
    text = contract(column("id"), *measures, aggregate={"no_persons_because": "Numbers only."})
    message = refusal(spark, parse(text, name="things"))
    assert [name for index, name in enumerate(DANGEROUS) if f"column c{index}: " not in message] == []
    assert [
        kind
        for index, kind in enumerate(PARSED.values())
        if not re.search(f"column p{index}: {kind}", message, re.IGNORECASE)
    ] == []


def test_all_mistakes_are_reported_at_once(spark):
    message = refusal(spark, of("rand()", "upper(id)", "current_date"))
    assert "column c0" in message
    assert "column c2" in message
    assert "column c1" not in message


def test_expressions_that_depend_on_the_row_only_are_allowed(spark):
    require_allowed(
        spark, of("upper(id)", "concat('now', id)", "date_format(timestamp '2026-01-05 00:00:00', 'yyyy')")
    )


def test_every_operator_is_allowed(spark):
    """All of Spark's expression syntax whose result depends on the row only."""
    operators = """
        a + b; a - b; a * b; a / b; a % b; a div b; -a; +a; ~a; a & b; a | b; a ^ b; a || b; a and b or not c
        !a; a = b; a == b; a <> b; a != b; a < b; a <= b; a > b; a >= b; a <=> b; a is distinct from b
        a is null; a is not null; a is true; a is not false; a is unknown; a is not unknown; a in (1, 2)
        a not in (1); a between 1 and 2; a not between 1 and 2; a like 'x'; a like 'x' escape '/'
        a not like 'x'; a ilike 'x'; a rlike 'x'; a regexp 'x'; a like any ('x', 'y'); a like all ('x')
        a not like all ('x'); a not like any ('x'); a ilike any ('x'); case when a then 1 else 2 end
        case a when 1 then 2 end; if(a, b, c); nullif(a, b); cast(a as int); try_cast(a as decimal(9, 2))
        (a, b); struct(a as b); named_struct('a', 1); array(1, 2)[0]; a.b.c; a[0].b; `a b`
        substring(a from 1 for 2); trim(both 'x' from a); trim(leading from a); trim(trailing 'x' from a)
        overlay(a placing 'x' from 1); position('x' in a); extract(year from a); left(a, 1)
        a + interval 1 day; date_add(day, 1, a); datediff(day, a, b); timestampdiff(hour, a, b)
        date '2020-01-01'; TIMESTAMP "2020-01-01 00:00:00+01:00"; timestamp_ntz '2020-01-01'; X'1F'; 1.5; 1e5
        1.5bd; null; 'a' 'b'; transform(a, x -> x + 1); aggregate(a, 0, (sum, x) -> sum + x.y)
        exists(a, x -> x = 1)
    """
    every = [text.strip() for line in operators.splitlines() for text in line.split(";") if text.strip()]
    fields = require_allowed(spark, of(*every))
    assert {"a", "b", "c", "a.b.c", "a b"} == set(fields)


def test_the_fields_inside_lambda_functions_are_found(spark):
    """Spark's parser calls them variables, like the arguments of the function."""
    assert set(
        require_allowed(spark, of("transform(a, x -> x + _pos + b.c)", "transform(d, _file -> _file)"))
    ) == {
        "a",
        "_pos",
        "b.c",
        "d",
    }
    nested = of(
        "transform(a, x -> transform(x, y -> x + y + z))",
        "transform(a, _pos -> 1)[0] + transform(a, x -> _pos)[0]",
    )
    assert set(require_allowed(spark, nested)) == {"a", "z", "_pos"}


#: Whether a measure may show one person of a group, by the id `who`.
ONE_PERSON = {
    "max(spent)": True,
    "MIN(spent) + sum(spent)": True,
    "bool_or(spent > 5)": True,
    "bit_xor(spent)": True,
    "every(spent > 5)": True,
    "sum(if(who = 'p', spent, 0))": True,
    "sum(spent) filter (where who = 'p')": True,
    "count(case when who = 'p' then 1 end)": True,
    "count_if(WHO = 'p')": True,
    "sum(spent)": False,
    "avg(spent)": False,
    "count(*)": False,
    "count(distinct lower(trim(who)))": False,
    "count_if(spent > 5)": False,
}


@pytest.mark.sampled(8)
@pytest.mark.parametrize("measure", ONE_PERSON)
def test_a_measure_that_shows_one_person_needs_a_reason(spark, measure):
    def checked(rule, **more):
        return parse(
            contract(column("id"), column("m", "integer", measure=measure, **more), aggregate=rule),
            name="things",
        )

    if ONE_PERSON[measure]:
        assert "shows_one_person_because" in refusal(spark, checked({"person_id": "who"}))
    else:
        require_allowed(spark, checked({"person_id": "who"}))
    require_allowed(
        spark, checked({"person_id": "who"}, shows_one_person_because="The highest amount is public.")
    )
    require_allowed(spark, checked({"no_persons_because": "Numbers only."}))


#: The same, by an id inside a record.
BY_PART = {
    "sum(if(customer['id'] = 'p', spent, 0))": True,
    "sum(if(get(array(customer), 0).id = 'p', spent, 0))": True,
    "sum(if(struct(CUSTOMER).customer.id = 'p', spent, 0))": True,
    "sum(case when customer = named_struct('id', 'p') then spent end)": True,
    "count_if(customer['id'] = 'p')": True,
    "count(distinct customer['id'])": False,
    "count(distinct lower(customer.id))": False,
    "sum(if(customer.region = 'north', spent, 0))": False,
    "sum(if(customer_region = 'north', spent, 0))": False,
}


@pytest.mark.parametrize("measure", BY_PART)
def test_the_id_of_a_person_is_known_by_any_way_into_its_record(spark, measure):
    measured = column("m", "integer", measure=measure)
    checked = parse(contract(column("id"), measured, aggregate={"person_id": "customer.id"}), name="things")
    if BY_PART[measure]:
        assert "a condition on the person's id" in refusal(spark, checked)
    else:
        require_allowed(spark, checked)


def test_the_id_of_a_person_is_known_in_the_array_of_an_item(spark):
    by_array = column("m", "integer", measure="count_if(exists(lines, l -> l.buyer.id = 'p'))")
    sections = {"explode": {"array": "lines", "as": "line"}, "aggregate": {"person_id": "line.buyer.id"}}
    checked = parse(contract(column("id"), by_array, **sections), name="things")
    assert "a condition on the person's id" in refusal(spark, checked)


METADATA = ["_file", "_pos", "_spec_id", "_partition", "_deleted", "_FILE", "things._file", "_metadata"]


@pytest.mark.sampled(1)
@pytest.mark.parametrize("name", METADATA)
def test_the_metadata_that_iceberg_adds_to_a_table_is_no_field(guarded_lake, name):
    """_file has the bucket and the ids of the organisation, the environment and the cluster."""
    texts = [
        contract(column("id"), column("c", expression=f"cast({name} as string)", nullable=True)),
        contract(
            column("id"), filter=[{"where": f"exists(array(1), x -> {name} is not null)", "reason": "r"}]
        ),
    ]
    for text in texts:
        window = guarded_lake.export(text, "--dry-run", "true").window()
        assert (window["state"], window["code"]) == ("failed", "EXP-SCHEMA-CHANGED")
        assert name.rpartition(".")[2] in window["reason"]


@pytest.mark.slow
def test_names_of_kafka_of_the_window_and_of_the_item_are_known(lakes):
    lake = lakes()
    item = {"type": "record", "name": "Item", "fields": [{"name": "n", "type": "int"}]}
    lake.commit(
        topic_of(("items", {"type": "array", "items": item})), {"id": "a", "at": MONDAY, "items": [{"n": 1}]}
    )
    columns = [
        column("id"),
        column("n", "integer", expression="line.n + size(transform(items, x -> x.n))"),
        column("o", "integer", expression="kafka_offset"),
        column("late", "boolean", expression="at > export_window_start"),
    ]
    window = lake.export(
        contract(*columns, explode={"array": "items", "as": "line"}), "--dry-run", "true"
    ).window()
    assert window["state"] == "dry_run", window["reason"]


CLOCKS = {
    "at > 'now'": True,
    "at > cast('now' AS timestamp)": True,
    "at > concat('no', 'w')": True,
    "to_date(at) = to_date(' Today ')": True,
    "to_date(at) in ('2024-03-04', 'tomorrow')": True,
    "coalesce(to_timestamp(id), 'yesterday') < at": True,
    # Spark's parser doesn't tell a function without parentheses from a variable of the lambda function.
    "exists(array(at), x -> x < current_timestamp)": True,
    "exists(array(id), x -> x = current_user)": True,
    "id = 'now' or id in ('today', 'tomorrow')": False,
    "at > '2024-03-04' and to_date(at) < cast('2024-04-01' as date)": False,
}


@pytest.mark.sampled(1)
@pytest.mark.parametrize("where", CLOCKS)
def test_a_text_that_spark_reads_as_the_current_time_is_refused_everywhere(guarded_lake, where):
    filters = [{"where": where, "reason": "the case at hand"}]
    run = partial(guarded_lake.export, contract(column("id"), filter=filters), "--dry-run", "true")
    if not CLOCKS[where]:
        assert run().state() == "dry_run"
        return
    window = run().window()
    assert (window["state"], window["code"], window["exit_code"]) == ("failed", "EXP-EXPRESSION", 2)
    assert (
        "filter[0].where: a text such as 'now' or 'today', or a function, gives the time" in window["reason"]
    )


@pytest.mark.slow
def test_the_clock_is_found_in_columns_measures_and_checks(guarded_lake):
    each_row = [{"id": "fresh", "severity": "warn", "message": "m", "each_row": "at < 'now'"}]
    overall = [
        {"id": "late", "severity": "warn", "message": "m", "overall": "rows > day(cast('now' as date))"}
    ]
    measured = {"measure": "max(at < 'now')"}
    texts = {
        "column c": contract(column("id"), column("c", "boolean", expression="at < 'now'")),
        "column m": contract(
            column("id"), column("m", "boolean", **measured), aggregate={"no_persons_because": "x"}
        ),
        "check fresh": contract(column("id"), column("at", "timestamp"), check=each_row),
        "check late": contract(column("id"), check=overall),
    }
    reasons = {
        key: guarded_lake.export(text, "--dry-run", "true").window()["reason"] for key, text in texts.items()
    }
    assert [
        key
        for key, reason in reasons.items()
        if f"contract things: {key}: a text such as 'now'" not in reason
    ] == [], reasons


@pytest.fixture(scope="module")
def guarded_lake(lakes):
    lake = lakes()
    lake.commit(topic_of(), {"id": "a", "at": MONDAY})
    return lake
